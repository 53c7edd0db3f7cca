"""Beam search: the few likeliest beginnings of each sentence, carried on together.

Living hypotheses lie flat, (N,) over all sentences, so that the model reads only what may still win. A sentence stops when none of its
living hypotheses can beat the answers it already has, whatever they would go on to write.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kente.decode.guards import NEVER, Rules
from kente.decode.hypothesis import Hypothesis, Living, length_penalty
from kente.models.interface import Generator, State, select


@dataclass
class Candidates:
    """The likeliest continuations of each sentence, best first; each (B, C)."""

    log_probability: Tensor
    parent: Tensor  # row of the living hypothesis it continues
    token: Tensor


class Answers:
    """The best finished hypotheses of each sentence."""

    def __init__(self, sentences: int, keep: int, power: float, device: torch.device) -> None:
        self.kept: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.bar = torch.full((sentences,), NEVER, device=device)  # what a newcomer must beat
        self.keep = keep
        self.power = power

    def add(self, living: Living, ended: bool) -> None:
        """Take in the rows of `living` that are good enough."""
        scores = living.log_probability / length_penalty(float(living.written + ended), self.power)
        living = select(living, (scores > self.bar[living.owner]).nonzero()[:, 0])
        for owner, hypothesis in zip(living.owner.tolist(), living.hypotheses(self.power, ended), strict=True):
            kept = self.kept[owner]
            insort(kept, hypothesis, key=lambda h: -h.score)
            del kept[self.keep :]
            if len(kept) == self.keep:
                self.bar[owner] = kept[-1].score


def beam_search(
    model: Generator, state: State, rules: Rules, bos: int, beam: int, keep: int, power: float, late: Callable[[], bool]
) -> list[list[Hypothesis]]:
    """The `keep` best answers found for each row of `state`, best first."""
    sentences = len(rules.caps)
    living = Living.begin(torch.arange(sentences, device=rules.caps.device), bos)
    answers = Answers(sentences, keep, power, rules.caps.device)
    while len(living.owner):
        if late():
            answers.add(living, ended=False)
            break
        step = model.step(state, living.tokens[:, -1])
        candidates = rank(rules.allow(step.logits, living), living, sentences, beam)
        possible = candidates.log_probability > NEVER  # false for NaN too
        ends = (candidates.token == rules.eos) & possible
        ends[:, beam:] = False  # an end must earn its place among the others
        finish(candidates, ends, living, answers)
        goes_on = possible & (candidates.token != rules.eos)
        goes_on &= goes_on.cumsum(1) <= beam
        goes_on &= (
            best_to_come(candidates.log_probability, living.written + 1, rules.caps, power) > answers.bar[:, None]
        )
        parents = candidates.parent[goes_on]
        state = carry(step.state, parents, len(living.owner))
        living = select(living, parents)
        living.write(candidates.token[goes_on], candidates.log_probability[goes_on])
    return answers.kept


def rank(scores: Tensor, living: Living, sentences: int, beam: int) -> Candidates:
    """The 2 * beam likeliest continuations of each sentence: even if every living hypothesis may end, a full beam goes on."""
    each = min(2 * beam, scores.shape[1])
    top, tokens = scores.topk(each, dim=1)
    rows = torch.arange(len(living.owner), device=scores.device)
    slots = rows - torch.searchsorted(living.owner, living.owner)  # place among the hypotheses of its sentence
    table = scores.new_full((sentences, beam, each), NEVER)
    table[living.owner, slots] = top + living.log_probability[:, None]
    row_at = living.owner.new_zeros((sentences, beam))
    row_at[living.owner, slots] = rows
    token_at = tokens.new_zeros((sentences, beam, each))
    token_at[living.owner, slots] = tokens
    best, places = table.flatten(1).topk(min(2 * beam, beam * each), dim=1)
    return Candidates(best, row_at.gather(1, places // each), token_at.flatten(1).gather(1, places))


def finish(candidates: Candidates, ends: Tensor, living: Living, answers: Answers) -> None:
    """Hand over the hypotheses that end here."""
    parents = candidates.parent[ends]
    if len(parents):
        ended = select(living, parents)
        ended.log_probability = candidates.log_probability[ends]
        answers.add(ended, ended=True)


def best_to_come(log_probability: Tensor, written: int, caps: Tensor, power: float) -> Tensor:
    """No hypothesis can score more than this: its log-probability only falls, and its length lies between one more token and the cap."""
    shortest = log_probability / length_penalty(float(written + 1), power)
    longest = log_probability / length_penalty(caps[:, None] + 1.0, power)
    return torch.maximum(shortest, longest)


def carry(state: State, parents: Tensor, rows: int) -> State:
    """The state of each hypothesis that goes on; nothing is copied when all do, in place."""
    if len(parents) == rows and bool((parents == torch.arange(rows, device=parents.device)).all()):
        return state
    return select(state, parents)
