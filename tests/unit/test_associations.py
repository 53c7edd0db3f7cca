"""Where words begin: against counting in plain loops, the singular vectors of the whole matrix, and a dictionary."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from kente.config import ModelConfig, RecurrentConfig, TransformerConfig
from kente.data.associations import NEAR, NEAR_WEIGHT, SPARE, SURE, associate
from kente.data.store import Side, Store
from kente.models.build import build
from kente.nn.words import Words
from kente.train.beginnings import begin_with_associations

Pairs = list[tuple[list[int], list[int]]]
WIDTH = 16
VOCABULARY = 60


def store_of(pairs: Pairs, vocabulary: int = VOCABULARY) -> Store:
    sides = []
    for side in (0, 1):
        ids = np.array([token for pair in pairs for token in pair[side]], dtype=np.uint16)
        sides.append(Side(ids, np.cumsum([0, *(len(pair[side]) for pair in pairs)])))
    about = {"vocabulary": vocabulary}
    return Store(Path("nowhere"), (sides[0], sides[1]), {"source": about, "target": about})


def a_language(count: int, seed: int = 0) -> Pairs:
    """Source words are 4 ... 29; the translation of w is w + 30, in another order."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        source = [draw.randrange(4, 30) for _ in range(draw.randrange(2, 7))]
        target = [word + 30 for word in source]
        draw.shuffle(target)
        pairs.append((source, target))
    return pairs


def weigh(together: int, one: int, other: int, total: int) -> float:
    return max(0.0, math.log(total * together / (one * other))) * min(1.0, together / SURE) if together > 1 else 0.0


def matrix_of(pairs: Pairs) -> Tensor:
    """A, cell by cell: source words first, then target words."""
    matrix = torch.zeros(2 * VOCABULARY, 2 * VOCABULARY)
    words = range(VOCABULARY)
    for s, t in itertools.product(words, words):
        both = sum(s in source and t in target for source, target in pairs)
        alone = [sum(word in pair[side] for pair in pairs) for side, word in enumerate((s, t))]
        matrix[s, VOCABULARY + t] = matrix[VOCABULARY + t, s] = weigh(both, *alone, len(pairs))
    for side in (0, 1):
        near: Counter[tuple[int, int]] = Counter()
        for pair in pairs:
            for (i, a), (j, b) in itertools.permutations(enumerate(pair[side]), 2):
                near[a, b] += abs(i - j) <= NEAR
        of_word = {word: sum(count for (a, _), count in near.items() if a == word) for word in words}
        for (a, b), count in near.items():
            cell = (side * VOCABULARY + a, side * VOCABULARY + b)
            matrix[cell] = NEAR_WEIGHT * weigh(count, of_word[a], of_word[b], near.total())
    return matrix


def test_vectors_are_the_strongest_directions_of_the_association_matrix() -> None:
    pairs = a_language(120)
    found = associate(store_of(pairs), WIDTH)
    assert found is not None
    values, directions = torch.linalg.eigh(matrix_of(pairs))
    wanted = directions[:, -WIDTH:] * values[-WIDTH:].sqrt()
    vectors = torch.cat([found.source[4:30], found.target[34:60]])
    wanted = torch.cat([wanted[4:30], wanted[VOCABULARY + 34 : VOCABULARY + 60]])
    cosines = torch.nn.functional.cosine_similarity(wanted[:, None], wanted[None], dim=2)
    torch.testing.assert_close(vectors @ vectors.T, cosines, atol=0.02, rtol=0)


def test_a_word_begins_nearest_to_its_translation() -> None:
    found = associate(store_of(a_language(400)), WIDTH)
    assert found is not None
    nearest = (found.source[4:30] @ found.target.T).argmax(dim=1)
    assert nearest.tolist() == list(range(34, 60))


def test_a_word_of_both_languages_lies_between_its_two_vectors() -> None:
    pairs = [([*source, 59], target) for source, target in a_language(300)]  # 59 also is a target word
    found = associate(store_of(pairs), WIDTH)
    assert found is not None
    both = found.of_both()
    torch.testing.assert_close(both[4:30], found.source[4:30])
    torch.testing.assert_close(both[34:59], found.target[34:59])
    share = found.source_counts[59] / (found.source_counts[59] + found.target_counts[59])
    between = share * found.source[59] + (1 - share) * found.target[59]
    torch.testing.assert_close(both[59], between / between.norm())


def test_counts_are_sentences_that_hold_a_word() -> None:
    found = associate(store_of([([5, 5, 6], [7, 7]), ([5], [8])] * 3), WIDTH)
    assert found is not None
    assert found.source_counts[[5, 6]].tolist() == [6, 3]
    assert found.target_counts[[7, 8]].tolist() == [3, 3]


def test_words_that_never_stand_together_twice_have_no_vector() -> None:
    pairs = [*a_language(50), ([4], [33])]
    found = associate(store_of(pairs), WIDTH)
    assert found is not None
    assert not found.target[33].any()  # seen once only
    assert not found.source[30:].any()  # never seen


def test_a_vocabulary_smaller_than_a_vector_has_no_associations() -> None:
    assert associate(store_of(a_language(20)), VOCABULARY - SPARE + 1) is None
    assert associate(store_of(a_language(20)), VOCABULARY - SPARE) is not None


def test_a_large_corpus_is_sampled() -> None:
    pairs = a_language(2000)
    found = associate(store_of(pairs), WIDTH, places=4000)
    assert found is not None
    assert found.source_counts.sum() < 4000
    assert ((found.source[4:30] @ found.target.T).argmax(dim=1) == torch.arange(34, 60)).float().mean() > 0.9


TINY = TransformerConfig(width=WIDTH, heads=2, encoder_layers=1, decoder_layers=1, feedforward=8)
GRU = RecurrentConfig(cell="gru", attention="additive", width=8, embedding=WIDTH)
SILENT = ("attention.output.weight", "cross.output.weight", "feedforward.outer.weight")
UNTIED = RecurrentConfig(cell="gru", attention="none", width=8, embedding=WIDTH, tie="none")


@pytest.mark.parametrize("config", [TINY, GRU, UNTIED], ids=["transformer", "gru with attention", "tables apart"])
def test_a_model_begins_with_words_beside_their_translations(config: ModelConfig) -> None:
    model = build(config, VOCABULARY, VOCABULARY, joint=config.tie == "all")
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    assert begin_with_associations(model, store_of(a_language(400)))
    source, target = model.source_embedding, model.target_embedding
    assert isinstance(source, Words) and isinstance(target, Words)
    cosines = torch.nn.functional.cosine_similarity(source.weight[4:30, None], target.weight[None, 34:60], dim=2)
    assert cosines.argmax(dim=1).tolist() == list(range(26))
    tables = {id(table.weight) for table in (source, target, model.output)}
    for name, parameter in model.named_parameters():
        if name.endswith(SILENT):
            assert not parameter.any()
        elif id(parameter) not in tables:
            assert torch.equal(parameter, before[name]), f"{name} is no table of words"
    assert torch.equal(
        target.weight[:4], before["target_embedding.weight" if target is not source else "source_embedding.weight"][:4]
    )
    lengths = source.weight.norm(dim=1)
    assert lengths.std() < 0.3 * lengths.mean()


def test_a_model_without_vectors_for_words_begins_at_random() -> None:
    one_hot = RecurrentConfig(cell="gru", attention="none", width=8, embedding=0, tie="none")
    model = build(one_hot, VOCABULARY, VOCABULARY, joint=False)
    before = [parameter.clone() for parameter in model.parameters()]
    assert not begin_with_associations(model, store_of(a_language(50)))
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))
