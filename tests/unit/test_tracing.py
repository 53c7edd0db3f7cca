"""A search that is watched finds what it finds unwatched, and tells the truth about the way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from kente.config import DecodeConfig
from kente.data.tokenizer import BOS, EOS
from kente.decode.answers import CUT, length_penalty
from kente.decode.engine import Question
from kente.decode.torch_engine import TorchEngine
from kente.decode.tracing import Branch, Trace, trace
from kente.models.interface import AttentionMap, Step

VOCABULARY = 9
DROPPED = ("beaten", "hopeless", "weak")


@dataclass
class Memory:
    key: Tensor  # (B,) stands for the source and everything read so far


class Toy:
    """A model whose next word depends on source and history through a table of random logits."""

    def __init__(self, seed: int) -> None:
        self.table = torch.randn(4999, VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 2

    def start(self, source: Tensor, source_mask: Tensor) -> Memory:
        key = torch.zeros(len(source), dtype=torch.long)
        for column in source.T:
            key = self.mix(key, column)
        return Memory(key)

    def step(self, state: Memory, tokens: Tensor) -> Step:
        key = self.mix(state.key, tokens)
        return Step(self.table[key].clone(), Memory(key))

    def mix(self, key: Tensor, token: Tensor) -> Tensor:
        return (key * 31 + token + 1) % len(self.table)

    def look(self, source: Tensor, source_mask: Tensor, target: Tensor) -> list[AttentionMap]:
        return []


QUESTION = Question([5, 7, 4], cap=12)
CASES = [(seed, beam) for seed in range(4) for beam in (1, 2, 5)]


def traced(seed: int, beam: int, question: Question = QUESTION) -> tuple[Toy, Trace, DecodeConfig]:
    model, config = Toy(seed), DecodeConfig(beam=beam)
    return model, trace(TorchEngine(model), question, config), config


def log_probability(model: Toy, ids: tuple[int, ...]) -> float:
    """Summed over the ids, one at a time."""
    state, total = model.start(torch.tensor([[*QUESTION.source, EOS]]), torch.ones(1, 4, dtype=torch.bool)), 0.0
    for before, token in zip((BOS, *ids), ids, strict=False):
        step = model.step(state, torch.tensor([before]))
        state, total = step.state, total + float(step.logits[0].log_softmax(-1)[token])
    return total


def with_fate(branches: tuple[Branch, ...], *fates: str) -> list[Branch]:
    return [branch for branch in branches if branch.fate in fates]


@pytest.mark.parametrize(("seed", "beam"), CASES)
def test_the_answer_is_that_of_an_unwatched_search(seed: int, beam: int) -> None:
    model, found, config = traced(seed, beam)
    assert found.answer == TorchEngine(model).search([QUESTION], config)[0][0]


@pytest.mark.parametrize(("seed", "beam"), CASES)
def test_every_prefix_of_the_answer_lives_until_the_whole_of_it_ends(seed: int, beam: int) -> None:
    _, found, _ = traced(seed, beam)
    ids = tuple(found.answer.ids)
    for place in range(len(ids)):
        assert ids[: place + 1] in [branch.ids for branch in with_fate(found.steps[place], "lives")]
    assert (*ids, EOS) in [branch.ids for branch in with_fate(found.steps[len(ids)], "ended")]


@pytest.mark.parametrize(("seed", "beam"), CASES)
def test_what_lives_continues_what_lived_and_is_as_likely_as_the_model_says(seed: int, beam: int) -> None:
    model, found, _ = traced(seed, beam)
    before = {()}
    for branches in found.steps:
        living = with_fate(branches, "lives")
        assert len(living) <= beam and {branch.ids[:-1] for branch in living} <= before
        for branch in branches:
            assert branch.log_probability == pytest.approx(log_probability(model, branch.ids), abs=1e-4)
        before = {branch.ids for branch in living}
    assert before == set(), "a search ends when nothing lives"


@pytest.mark.parametrize(("seed", "beam"), CASES)
def test_what_was_dropped_says_rightly_why(seed: int, beam: int) -> None:
    _, found, config = traced(seed, beam)
    best = -torch.inf
    for branches in found.steps:
        living = [branch.log_probability for branch in with_fate(branches, "lives")]
        for branch in with_fate(branches, "ended"):
            best = max(best, branch.log_probability / length_penalty(float(len(branch.ids)), config.length_penalty))
        if len(living) == beam:
            length, beaten = len(branches[0].ids), with_fate(branches, "beaten")
            rivals = [branch for branch in beaten if len(branch.ids) == length and branch.ids[-1] != EOS]
            assert all(branch.log_probability <= min(living) for branch in rivals)
            for end in (branch for branch in beaten if branch.ids[-1] == EOS):
                assert sum(other.log_probability >= end.log_probability for other in branches if other != end) >= beam
        for branch in with_fate(branches, "weak"):
            assert branch.ids[-1] == EOS
            assert branch.log_probability / length_penalty(float(len(branch.ids)), config.length_penalty) <= best
        for branch in with_fate(branches, "hopeless"):  # neither at its shortest nor at its longest
            lengths = (len(branch.ids) + 1.0, QUESTION.cap + 1.0)
            assert max(branch.log_probability / length_penalty(n, config.length_penalty) for n in lengths) <= best


def test_nothing_that_lived_goes_without_a_word() -> None:
    """Each is carried on, ends, or is named among the dropped: itself, or a continuation of it."""
    for seed in range(12):
        _, found, _ = traced(seed, 4)
        for before, after in zip(found.steps, found.steps[1:], strict=False):
            named = {branch.ids for branch in after} | {branch.ids[:-1] for branch in after}
            assert {branch.ids for branch in with_fate(before, "lives")} <= named


def test_several_fates_are_met() -> None:
    """The cases above mean something: searches end, drop and give up."""
    fates = {b.fate for seed, beam in CASES for branches in traced(seed, beam)[1].steps for b in branches}
    assert fates == {"lives", "ended", *DROPPED}


def test_an_answer_cut_at_its_greatest_length_ends_too() -> None:
    class Endless(Toy):
        def step(self, state: Memory, tokens: Tensor) -> Step:
            logits = torch.zeros(len(tokens), VOCABULARY)
            logits[:, EOS] = -9.0
            logits[:, 4:8] = torch.arange(4.0) * 0.1
            return Step(logits, state)

    found = trace(TorchEngine(Endless(0)), replace(QUESTION, cap=3), DecodeConfig(beam=2))
    assert CUT in found.answer.warnings and len(found.answer.ids) == 3
    assert (*found.answer.ids, EOS) in [branch.ids for branch in with_fate(found.steps[3], "ended")]
