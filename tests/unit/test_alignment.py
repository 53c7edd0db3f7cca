"""Attention against gold alignments."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kente.config import RecurrentConfig, TokenizerConfig, TransformerConfig
from kente.data.grammar import generate
from kente.data.tokenizer import train_tokenizers
from kente.measure.alignment import (
    GoldPair,
    alignment_of,
    cross_attention,
    error_rate,
    links_of,
    words_of_pieces,
)
from kente.models.build import build
from kente.models.interface import AttentionMap

PAIRS = list(generate(1, 40, 2, 10))


def gold(pair):
    return GoldPair(pair.source, pair.target, pair.source_words, pair.target_words, frozenset(pair.alignment))


@pytest.mark.parametrize(
    ("pieces", "words", "expected"),
    [
        (["▁The", "▁old", "▁c", "at", "."], ["The", "old", "cat", "."], [[0], [1], [2], [2], [3]]),
        (["▁l'ami"], ["l'", "ami"], [[0, 1]]),
        (["▁caf", "<0xC3>", "<0xA9>", "▁."], ["café", "."], [[0], [0], [0], [1]]),
        (["▁", "a"], ["a"], [[], [0]]),
        (["▁dog"], ["cat"], None),
        (["▁ca"], ["cat"], None),
    ],
)
def test_pieces_find_their_words(pieces, words, expected):
    assert words_of_pieces(pieces, words) == expected


@given(st.lists(st.text("abcé", min_size=1, max_size=6), min_size=1, max_size=6), st.randoms())
def test_however_words_are_cut_each_piece_knows_them(words, random):
    text = "".join(words)
    cuts = sorted(random.sample(range(1, len(text)), min(3, len(text) - 1))) if len(text) > 1 else []
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    owner = [i for i, word in enumerate(words) for _ in word]
    place = 0
    for piece, found in zip(pieces, words_of_pieces(pieces, words), strict=True):
        assert found == sorted(set(owner[place : place + len(piece)]))
        place += len(piece)


def test_a_target_word_is_linked_to_what_all_its_pieces_look_at():
    weights = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.5, 0.3, 0.2], [0.0, 0.0, 1.0]])  # three pieces and the end
    assert links_of(weights, [[0], [1]], [[0], [0], [1]]) == {(1, 0), (0, 1)}


def test_the_error_rate_is_that_of_och_and_ney():
    """AER = 1 - 2 |A and G| / (|A| + |G|)."""
    found, truth = {(0, 0), (1, 1), (2, 2)}, {(0, 0), (1, 2)}
    rate, precision, recall = error_rate([(found, truth), (set(), {(5, 5)})])
    assert (
        rate == pytest.approx(1 - 2 * 1 / (3 + 3))
        and precision == pytest.approx(1 / 3)
        and recall == pytest.approx(1 / 3)
    )
    assert error_rate([(truth, truth)]) == (0.0, 1.0, 1.0)
    assert error_rate([]) == (1.0, 0.0, 0.0)


class Oracle:
    """A model that looks where the gold alignment says in its second layer, and nowhere useful in its first."""

    def __init__(self, pairs, tokenizers):
        self.pairs, self.tokenizers = pairs, tokenizers

    def look(self, source, source_mask, target):
        useful = torch.zeros(len(source), target.shape[1], source.shape[1])
        for row in range(len(source)):
            ids = source[row][source_mask[row]].tolist()[:-1]
            pair = next(p for p in self.pairs if self.tokenizers.source.encode(p.source) == ids)
            pieces = words_of_pieces(self.tokenizers.source.pieces(ids), pair.source_words)
            ends = self.tokenizers.target.encode(pair.target)
            for place, words in enumerate(words_of_pieces(self.tokenizers.target.pieces(ends), pair.target_words)):
                looked = [i for i, j in pair.links if j in words]
                columns = [c for c, owners in enumerate(pieces) if set(owners) & set(looked[:1])]
                useful[row, place, columns] = 1.0
        flat = source_mask[:, None].expand_as(useful).float()
        return [AttentionMap("cross", 0, 0, flat), AttentionMap("cross", 1, 0, useful)]


def test_a_model_that_looks_where_it_should_makes_no_error_and_the_right_layer_is_found():
    texts = [(pair.source, pair.target) for pair in PAIRS]
    tokenizers = train_tokenizers(lambda: iter(texts), TokenizerConfig(kind="characters"))
    single = []
    for pair in PAIRS:  # keep words with exactly one link: then the one best source word can be all of the truth
        targets = [j for _, j in pair.alignment]
        if len(set(targets)) == len(targets) == len(pair.target_words):
            single.append(gold(pair))
    assert len(single) >= 3
    found = alignment_of(Oracle(single, tokenizers), tokenizers, single, single)
    assert (found.error_rate, found.layer, found.layers) == (0.0, 1, 2)


def test_cross_attention_is_read_without_padding():
    torch.manual_seed(0)
    model = build(
        TransformerConfig(encoder_layers=1, decoder_layers=2, width=16, feedforward=16, heads=2), 20, 20
    ).eval()
    sources, targets = [[5, 6, 7], [8]], [[9], [10, 11, 12, 13]]
    maps = cross_attention(model, sources, targets, "cpu")
    assert [m.shape for m in maps] == [(2, 2, 4), (2, 5, 2)]
    for weights in maps:
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)


def test_a_model_without_attention_has_no_alignment():
    texts = [(pair.source, pair.target) for pair in PAIRS]
    tokenizers = train_tokenizers(lambda: iter(texts), TokenizerConfig(kind="words"))
    model = build(
        RecurrentConfig(attention="none", width=8, embedding=8), tokenizers.source.size, tokenizers.target.size
    )
    pairs = [gold(pair) for pair in PAIRS[:3]]
    assert alignment_of(model.eval(), tokenizers, pairs, pairs) is None
    assert cross_attention(model, [[5]], [[6]], "cpu")[0].shape == (0, 2, 2)
