"""Other ways to cut a word, drawn so that the same random numbers always give the same cut.

sentencepiece can sample too, but from one generator per process that cannot be wound back: a resumed run would read other
pieces than an unbroken one. Here a draw is a function of the word and of the caller's random numbers. Subwords never cross a
space, so a sentence is sampled word by word and a word's cuts are worked out once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np

Ids = tuple[int, ...]
SPACE = "\u2581"  # how sentencepiece writes the space that begins a word


class WordSampler(Protocol):
    """Cuts of one word: the usual one, and the one that two random numbers in [0, 1) point at."""

    def draw(self, word: str, amount: float, first: float, second: float) -> Ids: ...


class SubwordSampling:
    """Kudo (2018): with chance `amount` a word takes one of its next-best cuts, each with probability ~ p(cut)^sharpness.

    `candidates(word)` gives (cut, log p(cut)), best first.
    """

    sharpness = 0.3
    limit = 200_000  # words remembered: some 100 MB at most

    def __init__(self, candidates: Callable[[str], Sequence[tuple[Ids, float]]]) -> None:
        self._candidates = candidates
        self._known: dict[str, tuple[Ids, list[Ids], list[float]]] = {}

    def draw(self, word: str, amount: float, first: float, second: float) -> Ids:
        known = self._known.get(word)
        if known is None:
            known = self._look_up(word)
        best, others, thresholds = known
        if first >= amount or not others:
            return best
        for cut, threshold in zip(others, thresholds, strict=True):
            if second < threshold:
                return cut
        return others[-1]

    def _look_up(self, word: str) -> tuple[Ids, list[Ids], list[float]]:
        (best, _), *rest = self._candidates(word)
        others: dict[Ids, float] = {}
        for cut, score in rest:
            if cut != best:
                others.setdefault(cut, score)
        scores = np.array(list(others.values())) * self.sharpness
        weights = np.exp(scores - scores.max()) if len(scores) else scores
        thresholds = list(accumulate((weights / weights.sum()).tolist())) if len(scores) else []
        if len(self._known) >= self.limit:
            self._known.clear()
        self._known[word] = best, list(others), thresholds
        return self._known[word]


class MergeDropout:
    """BPE-dropout, Provilkov et al. (2020): every merge is left out with chance `amount`.

    Of each word `variants` cuts are drawn with a generator seeded by the word itself, and the caller's random number picks one.
    `rank` gives the rank of a piece (the lower the earlier merged) or None; `spell` turns the pieces left over into ids.
    """

    variants = 32
    limit = 1_000_000  # cuts remembered

    def __init__(self, rank: Callable[[str], float | None], spell: Callable[[list[str]], Ids]) -> None:
        self._rank = rank
        self._spell = spell
        self._known: dict[tuple[str, float, int], Ids] = {}

    def draw(self, word: str, amount: float, first: float, second: float) -> Ids:
        key = (word, amount, int(second * self.variants) if amount > 0 else 0)
        cut = self._known.get(key)
        if cut is None:
            if len(self._known) >= self.limit:
                self._known.clear()
            cut = self._known[key] = self._spell(self.merge(word, amount, random.Random(f"{key[2]} {amount} {word}")))
        return cut

    def merge(self, word: str, amount: float, chance: random.Random) -> list[str]:
        """Join the neighbours of lowest rank until none can be joined (or all that could are left out this time)."""
        pieces = [SPACE, *word]
        while True:
            found = None
            for place in range(len(pieces) - 1):
                rank = self._rank(pieces[place] + pieces[place + 1])
                if rank is None or (found is not None and rank >= found[0]):
                    continue
                if amount > 0 and chance.random() < amount:
                    continue
                found = rank, place
            if found is None:
                return pieces
            place = found[1]
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
