"""Which words go together: against IBM model 1 in plain loops, a dictionary it must find, and search with every word."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch

from kente.config import ConvConfig, DecodeConfig, IntraAttentionConfig, RecurrentConfig, TransformerConfig
from kente.data import shortlist as module
from kente.data.shortlist import Shortlist, learn, sample, translations
from kente.data.store import Side, Store
from kente.decode.search import Hypothesis, search, search_all
from kente.decode.words import SAMPLE
from kente.errors import RunError
from kente.models.build import build

EOS = 3


def store_of(pairs: list[tuple[list[int], list[int]]], vocabulary: int = 40) -> Store:
    sides = []
    for side in (0, 1):
        ids = np.array([token for pair in pairs for token in pair[side]], dtype=np.uint16)
        offsets = np.cumsum([0, *(len(pair[side]) for pair in pairs)])
        sides.append(Side(ids, offsets))
    about = {"vocabulary": vocabulary}
    return Store(Path("nowhere"), (sides[0], sides[1]), {"source": about, "target": about})


def random_pairs(count: int, seed: int = 0, low: int = 4, high: int = 12) -> list[tuple[list[int], list[int]]]:
    draw = random.Random(seed)
    return [
        (
            [draw.randrange(low, high) for _ in range(draw.randrange(1, 6))],
            [draw.randrange(low, high) for _ in range(draw.randrange(1, 6))],
        )
        for _ in range(count)
    ]


def model_one(pairs: list[tuple[list[int], list[int]]], rounds: int) -> dict[tuple[int, int], float]:
    """Expectation and maximisation word by word."""
    p: dict[tuple[int, int], float] = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        expected: dict[tuple[int, int], float] = defaultdict(float)
        for source, target in pairs:
            for t in target:
                total = sum(p[s, t] for s in [*source, EOS])
                for s in [*source, EOS]:
                    expected[s, t] += p[s, t] / total
        of_source: dict[int, float] = defaultdict(float)
        for (s, _), count in expected.items():
            of_source[s] += count
        p = defaultdict(float, {(s, t): count / of_source[s] for (s, t), count in expected.items()})
    return dict(p)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_translations_are_those_of_ibm_model_1(rounds: int) -> None:
    pairs = random_pairs(60, seed=rounds)
    source, target, probability = translations(store_of(pairs), np.arange(60), rounds)
    found = {(s, t): p for s, t, p in zip(source.tolist(), target.tolist(), probability.tolist(), strict=True)}
    assert found == pytest.approx(model_one(pairs, rounds))
    assert source.tolist() == sorted(source.tolist())


def test_only_the_rows_asked_for_are_read() -> None:
    pairs = random_pairs(50)
    some = np.array([3, 4, 17, 49])
    for one, other in zip(
        translations(store_of(pairs), some), translations(store_of([pairs[i] for i in some]), np.arange(4)), strict=True
    ):
        np.testing.assert_allclose(one, other)


def dictionary_pairs(count: int) -> list[tuple[list[int], list[int]]]:
    """Source word w becomes w + 16, in another order, with a filler (36) here and there."""
    draw = random.Random(3)
    pairs = []
    for _ in range(count):
        source = draw.sample(range(4, 20), 5)
        target = [word + 16 for word in source] + [36] * draw.randrange(3)
        pairs.append((source, draw.sample(target, len(target))))
    return pairs


def test_a_dictionary_is_found_and_the_filler_comes_from_no_word() -> None:
    found = learn(store_of(dictionary_pairs(400)), joint=False, depth=8, frequent=0)
    for word in range(4, 20):
        assert found.candidates(word)[0] == word + 16
    assert found.candidates(EOS)[0] == 36
    assert found.always.tolist() == [0, 1, 2, 3]


def test_frequent_words_are_always_allowed_and_a_word_may_stay_as_it_is() -> None:
    found = learn(store_of(dictionary_pairs(400)), joint=True, depth=8, frequent=1)
    assert found.always.tolist() == [0, 1, 2, 3, 36]
    for word in range(4, 20):
        assert found.candidates(word)[:2].tolist() == [word, word + 16] and len(set(found.candidates(word))) == 8
    assert found.candidates(39).tolist() == [39]  # never seen in training
    in_place = learn(store_of([([5, 6], [6, 5])] * 9), joint=True, depth=4, frequent=0)
    assert sorted(in_place.candidates(5)) == [5, 6] and in_place.candidates(5)[0] == 5


def test_a_batch_may_use_what_its_words_may_become_and_no_more() -> None:
    found = Shortlist(np.array([2, 7]), np.array([[EOS] * 3] * 4 + [[9, 5, EOS], [6, 9, 8]], dtype=np.int32), 12)
    assert found.for_batch([4, 4]).tolist() == [2, EOS, 5, 7, 9]
    assert found.for_batch([5, 4]).tolist() == [2, EOS, 5, 6, 7, 8, 9]
    assert found.first(1).for_batch(np.array([5, 4])).tolist() == [2, EOS, 6, 7, 9]
    both = found.allowed([[4], [5]])
    assert [np.flatnonzero(row).tolist() for row in both] == [[2, EOS, 5, 7, 9], [2, EOS, 6, 7, 8, 9]]


def test_more_of_the_frequent_words_may_be_had(tmp_path: Path) -> None:
    pairs = [([4], [9]), ([4], [9, 7]), ([5], [7, 9, 11])]
    found = learn(store_of(pairs), joint=False, depth=2, frequent=1)
    assert found.seen.tolist() == [9, 7, 11] and found.always.tolist() == [0, 1, 2, 3, 9]
    assert found.first(1, frequent=2).always.tolist() == [0, 1, 2, 3, 7, 9]
    found.save(tmp_path / "list", "words")
    assert Shortlist.load(tmp_path / "list", "words").seen.tolist() == [9, 7, 11]


def test_a_sample_holds_every_source_word_often_enough() -> None:
    """Rare words stand in 3 of 2,000 pairs; a random tenth of the pairs would lose most of them."""
    pairs = [([4, 5, 6, 7], [4, 5, 6, 7]) for _ in range(2000)]
    for word in range(10, 40):
        for place in range(3):
            pairs[(word * 61 + place * 700) % 2000] = ([4, word], [5, word])
    store = store_of(pairs)
    rows = sample(store, 2000)
    looked_at = sum((len(pairs[row][0]) + 1) * len(pairs[row][1]) for row in rows)
    assert 1900 <= looked_at <= 2020
    words = [word for row in rows for word in pairs[row][0]]
    assert all(words.count(word) >= min(3, module.SEEN) for word in range(10, 40))
    assert sample(store, 10**9).tolist() == list(range(2000))
    assert sample(store, 2000).tolist() == rows.tolist()


def test_a_list_is_kept_on_disk_bound_to_its_tokenizer(tmp_path: Path) -> None:
    found, path = learn(store_of(dictionary_pairs(50)), joint=True), tmp_path / "shortlist.safetensors"
    found.save(path, "abc")
    again = Shortlist.load(path, "abc")
    assert (again.table == found.table).all() and (again.always == found.always).all() and again.vocabulary == 40
    with pytest.raises(RunError, match="speaks of another tokenizer's ids"):
        Shortlist.load(path, "abd")
    found.first(3).save(path, "abc")
    assert Shortlist.load(path, "abc").table.shape == (40, 3)


@pytest.mark.parametrize("place", [-1, -900, 20, 40, 60, 120])
def test_a_damaged_list_is_refused(tmp_path: Path, place: int) -> None:
    path = tmp_path / "shortlist.safetensors"
    learn(store_of(dictionary_pairs(50)), joint=True).save(path, "abc")
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    with pytest.raises(RunError, match=r"shortlist\.safetensors"):
        Shortlist.load(path, "abc")
    path.write_bytes(bytes(data[:100]))
    with pytest.raises(RunError, match="cannot read"):
        Shortlist.load(path, "abc")


# --- searching with one ---

VOCABULARY = 40
FAMILIES = {
    "transformer": TransformerConfig(encoder_layers=1, decoder_layers=2, width=16, feedforward=32, heads=2),
    "fixed": RecurrentConfig(attention="none", width=12, embedding=10),
    "one-hot": RecurrentConfig(attention="none", width=12, embedding=0, bidirectional="none", tie="none"),
    "attentive": RecurrentConfig(width=12, embedding=10),
    "lstmn": IntraAttentionConfig(width=12, embedding=10),
    "conv": ConvConfig(
        embedding=12, encoder_channels=(16,), encoder_kernels=(3,), decoder_channels=(16,), decoder_kernels=(3,)
    ),
}
SETTINGS = {
    "greedy": DecodeConfig(beam=1),
    "beam": DecodeConfig(beam=3),
    "sample": DecodeConfig(sample=True),
    "no_repeat": DecodeConfig(beam=2, no_repeat=2),
}
EVERYTHING = Shortlist(np.arange(VOCABULARY), np.full((VOCABULARY, 1), EOS, np.int32), VOCABULARY)


def model_of(family: str) -> torch.nn.Module:
    torch.manual_seed(2)
    model = build(FAMILIES[family], VOCABULARY, VOCABULARY).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)  # sharper than a fresh model
    return model


def sentences(count: int = 6) -> list[list[int]]:
    draw = random.Random(8)
    return [[*(draw.randrange(4, VOCABULARY) for _ in range(draw.randrange(1, 8))), EOS] for _ in range(count)]


def same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]]) -> None:
    assert [[h.ids for h in answers] for answers in found] == [[h.ids for h in answers] for answers in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)
        assert [h.warnings for h in one] == [h.warnings for h in other]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_list_of_all_words_changes_nothing(family: str, setting: str) -> None:
    model, config, prefix = model_of(family), SETTINGS[setting], [[], [7, 8], [], [9], [], []]
    how = {"n_best": 2, "prefix": prefix}
    same(
        search_all(model, sentences(), config, shortlist=EVERYTHING, **how),
        search_all(model, sentences(), config, **how),
    )


SOME = Shortlist(
    np.array([0, 1, 2, 3, 20, 21]),
    np.array([[(word * 7 + place * 5) % VOCABULARY for place in range(4)] for word in range(VOCABULARY)], np.int32),
    VOCABULARY,
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_sentence_has_a_list_of_its_own(setting: str) -> None:
    """Only its words are written, and its neighbours' lists are none of its business."""
    model, config = model_of("transformer"), SETTINGS[setting]
    together = search_all(model, sentences(), config, shortlist=SOME, n_best=2)
    refilled = search_all(model, sentences(), config, shortlist=SOME, n_best=2, room=20)
    alone = [search_all(model, [sentence], config, shortlist=SOME, n_best=2)[0] for sentence in sentences()]
    same(together, alone)
    same(refilled, alone)
    for sentence, answers in zip(sentences(), together, strict=True):
        allowed = set(SOME.for_batch(sentence).tolist())
        assert all(set(h.ids) <= allowed for h in answers)
    if setting != "no_repeat":
        assert together != search_all(model, sentences(), config, n_best=2)


@pytest.mark.parametrize("setting", ["greedy", "beam", "sample"])
def test_a_forced_beginning_may_stand_on_no_list(setting: str) -> None:
    model = model_of("transformer")
    outside = [[next(word for word in range(4, VOCABULARY) if word not in SOME.for_batch(s))] for s in sentences()]
    for begin, answers in zip(
        outside, search_all(model, sentences(), SETTINGS[setting], shortlist=SOME, prefix=outside), strict=True
    ):
        assert answers[0].ids[:1] == begin
        assert answers[0].log_probability > -1e3


def test_a_probability_is_a_share_among_all_words_the_others_told_by_a_sample() -> None:
    """A plain sum: words on the list count as themselves, of the others every second is looked at and counts twice or so."""
    vocabulary = 2 * SAMPLE
    listed = Shortlist(np.array([3, 4, 5, 8]), np.full((vocabulary, 1), EOS, np.int32), vocabulary)
    torch.manual_seed(3)
    model = build(FAMILIES["transformer"], vocabulary, vocabulary).eval()
    (best,) = search_all(model, [[9, 7, EOS]], DecodeConfig(beam=1), shortlist=listed)[0]
    source = torch.tensor([[9, 7, EOS]])
    with torch.inference_mode():
        read = model.predict(model(source, source != 0, torch.tensor([[2, *best.ids]])))[0].double()
    known = (0, 1, 2, 3, 4, 5, 8)
    drawn = [word for word in range(0, vocabulary, 2) if word not in known]
    total = 0.0
    for logits, token in zip(read, [*best.ids, EOS], strict=True):
        others = sum(math.exp(logits[word]) for word in drawn) * (vocabulary - len(known)) / len(drawn)
        total += float(logits[token]) - math.log(sum(math.exp(logits[word]) for word in known) + others)
    assert best.log_probability == pytest.approx(total, abs=1e-3)
    (full,) = search_all(model, [[9, 7, EOS]], DecodeConfig(), prefix=[best.ids], max_lengths=0)[0]
    assert best.log_probability == pytest.approx(full.log_probability, rel=0.1)


def test_a_model_that_cannot_weigh_a_few_words_says_so() -> None:
    class Plain:
        def start(self, source: torch.Tensor, mask: torch.Tensor) -> None: ...

    with pytest.raises(AssertionError, match="can weigh a few words alone"):
        search(Plain(), torch.tensor([[4, 3]]), torch.ones(1, 2).bool(), DecodeConfig(), shortlist=SOME)  # type: ignore[arg-type]
