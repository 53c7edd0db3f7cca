"""Beam search: the few likeliest beginnings of each sentence, carried on together.

A sentence stops when none of its living hypotheses can beat the answers it already has, whatever they would go on to write.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from kente.decode.answers import Hypothesis, length_penalty
from kente.decode.guards import Rules
from kente.decode.hypothesis import NEVER, Living
from kente.decode.likeliest import likeliest
from kente.decode.words import Words
from kente.models.interface import regroup


@dataclass
class Candidates:
    """The likeliest continuations of each sentence, best first; each (B, C)."""

    log_probability: Tensor
    parent: Tensor  # row of the living hypothesis it continues
    token: Tensor


class Answers:
    """The best finished hypotheses of each sentence."""

    def __init__(self, sentences: int, keep: int, device: torch.device) -> None:
        self.kept: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.bar = torch.full((sentences,), NEVER, device=device)  # what a newcomer must beat
        self.keep = keep

    def add(self, found: Iterable[tuple[int, Hypothesis]]) -> None:
        """Take in those that are good enough."""
        for owner, hypothesis in found:
            kept = self.kept[owner]
            insort(kept, hypothesis, key=lambda h: -h.score)
            del kept[self.keep :]
            if len(kept) == self.keep:
                self.bar[owner] = kept[-1].score


class Beam:
    """Keeps `width` hypotheses of each sentence alive and the `keep` best answers to it."""

    copies = 1
    several = True

    def __init__(self, sentences: int, rules: Rules, width: int, keep: int, power: float, device: torch.device) -> None:
        self.rules, self.width, self.power = rules, width, power
        self.found = Answers(sentences, keep, device)

    def advance(self, logits: Tensor, living: Living, words: Words) -> tuple[Tensor, Living]:
        """One token further: (the row that each new row continues, the rows after it), `width` rows for each sentence."""
        candidates = rank(self.rules.allow(logits, living, words), living, words, self.width)
        possible = candidates.log_probability > NEVER
        ends = (candidates.token == self.rules.eos) & possible
        ends[:, self.width :] = False  # an end must earn its place among the others
        self._finish(candidates, ends, living)
        coming = best_to_come(candidates.log_probability, living.written[:, None] + 1, living.cap, self.power)
        goes_on = possible & (candidates.token != self.rules.eos)
        goes_on &= goes_on.cumsum(1) <= self.width
        goes_on &= coming > self.found.bar[living.owner, None]
        best, places = candidates.log_probability.masked_fill(~goes_on, NEVER).topk(self.width, dim=1)
        parents = candidates.parent.gather(1, places).flatten()
        living = regroup(living, parents)
        living.write(candidates.token.gather(1, places).flatten(), best.flatten())
        return parents, living

    def _finish(self, candidates: Candidates, ends: Tensor, living: Living) -> None:
        """Keep the hypotheses that end here, if they are good enough."""
        norm = length_penalty(living.written[:, None] + 1.0, self.power)
        good = ends & (candidates.log_probability / norm > self.found.bar[living.owner, None])
        if bool(good.any()):
            rows, totals = candidates.parent[good], candidates.log_probability[good]
            self.found.add(living.hypotheses(rows, totals, self.power, ended=True))

    def stop(self, living: Living) -> None:
        """Out of time: what is being written counts as it stands."""
        scores = living.log_probability / length_penalty(living.each(living.written) + 0.0, self.power)
        rows = (scores > living.each(self.found.bar[living.owner])).nonzero()[:, 0]
        self.found.add(living.hypotheses(rows, living.log_probability[rows], self.power, ended=False))

    def answers(self) -> list[list[Hypothesis]]:
        """The answers to each sentence, best first."""
        return self.found.kept


def rank(scores: Tensor, living: Living, words: Words, beam: int) -> Candidates:
    """The 2 * beam likeliest continuations of each sentence: even if every living hypothesis may end, a full beam goes on."""
    sentences, columns = len(living.owner), scores.shape[1]
    scores.add_(living.log_probability[:, None])
    of_sentence = scores.view(sentences, -1)  # (B, G A)
    count = min(2 * beam, of_sentence.shape[1])
    best, places = likeliest(of_sentence, count)
    if bool(best.isnan().any()):  # what is not a number counts as the largest, and must not hide the rest
        best, places = of_sentence.masked_fill(of_sentence.isnan(), NEVER).topk(count, dim=1)
    if count < 2 * beam:  # a small vocabulary has not so many; impossible ones stand for those that are missing
        missing = (0, 2 * beam - count)
        best, places = F.pad(best, missing, value=NEVER), F.pad(places, missing)
    first = torch.arange(0, len(scores), living.group, device=scores.device)
    return Candidates(best, first[:, None] + places // columns, words.tokens(places % columns))


def best_to_come(log_probability: Tensor, written: int | Tensor, caps: Tensor, power: float) -> Tensor:
    """No hypothesis can score more than this: its log-probability only falls, and its length lies between one more token and the cap."""
    shortest = log_probability / length_penalty(torch.as_tensor(written + 1.0), power)
    longest = log_probability / length_penalty(caps[:, None] + 1.0, power)
    return torch.maximum(shortest, longest)
