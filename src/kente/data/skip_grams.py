"""Words and the words around them, drawn from running text: what word vectors learn from (Mikolov et al., 2013, section 2).

Frequent words are passed over at random, the window's width is drawn anew for each word and ends where the document does, and the words to be
told from real neighbours are drawn by frequency to the power of 3/4. batch = f(seed, epoch, step), as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kente.config import BatchConfig, SkipGramConfig
from kente.data.batches import Rows
from kente.data.texts import TextStore
from kente.data.tokenizer import SPECIALS
from kente.errors import CorpusError

POWER = 0.75
"""Of the frequency by which negatives are drawn: between all words alike (0) and as often as they are (1)."""
COUNTED = 1 << 22  # ids counted at once
FURTHER = 100_000  # places looked at where a batch found no neighbours


@dataclass
class Neighbours:
    """Words, and beside each of them one that stood near it and then some that were drawn at random."""

    words: Tensor  # (P,)
    others: Tensor  # (P, 1 + K)
    rows: Rows  # where in the text the words stand

    @property
    def target_tokens(self) -> int:
        return len(self.words)

    @property
    def tokens(self) -> int:
        return len(self.words)

    @property
    def work(self) -> int:
        return len(self.words)

    def shares(self, count: int) -> list[Neighbours]:
        if count == 1:
            return [self]
        cuts = [len(self.words) * place // count for place in range(count + 1)]
        return [
            Neighbours(self.words[start:end], self.others[start:end], self.rows[start:end])
            for start, end in pairwise(cuts)
            if start < end
        ]

    def to(self, device: torch.device | str) -> Neighbours:
        return replace(self, words=self.words.to(device), others=self.others.to(device))


class SkipGrams:
    """The endless sequence of batches over a text; `batches.tokens` words of it are looked at for each."""

    def __init__(
        self, store: TextStore, vocabulary: int, config: SkipGramConfig, batches: BatchConfig, seed: int
    ) -> None:
        self.store, self.config, self.seed = store, config, seed % 2**64
        counts = np.zeros(vocabulary, np.int64)
        for start in range(0, len(store), COUNTED):
            counts += np.bincount(store.ids[start : start + COUNTED], minlength=vocabulary)
        counts[: len(SPECIALS)] = 0
        if np.count_nonzero(counts) < 2:
            raise CorpusError(f"{store.folder} holds fewer than two different words; word vectors need a text")
        self.kept = keep_chances(counts, config.subsample)
        chances = counts**POWER
        self._negatives = np.cumsum(chances / chances.sum())
        self._ends = np.append(store.offsets[1:], len(store))  # the BOS that ends the last document is none of its own
        self._together = min(batches.tokens, len(store))
        self._epoch: tuple[int, Rows] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return max(1, len(self.store) // self._together)

    def batch(self, step: int) -> Neighbours:
        epoch, place = divmod(step, len(self))
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = (epoch, np.random.default_rng([self.seed, epoch]).permutation(len(self.store)))
        places = self._epoch[1][place * self._together : (place + 1) * self._together]
        rng = np.random.default_rng([self.seed, step, 5])
        reaches = rng.integers(1, self.config.window + 1, len(places))
        words, near = self._near(places, self.kept, reaches, rng)
        if not len(words):  # all of them were passed over: this once, none is
            places = self._epoch[1][:FURTHER]
            reaches = np.full(len(places), self.config.window)
            words, near = self._near(places, (self.kept > 0).astype(np.float64), reaches, rng)
        if not len(words):
            raise CorpusError(
                f"no two words of {self.store.folder} stand within model.window = {self.config.window} of each other"
            )
        negatives = np.searchsorted(self._negatives, rng.random((len(words), self.config.negatives)), side="right")
        negatives = np.minimum(negatives, len(self._negatives) - 1)
        others = np.concatenate([self.store.ids[near].astype(np.int64)[:, None], negatives], axis=1)
        return Neighbours(
            torch.from_numpy(self.store.ids[words].astype(np.int64)), torch.from_numpy(others), words.astype(np.int64)
        )

    def _near(
        self, places: Rows, kept: NDArray[np.float64], reaches: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[Rows, Rows]:
        """(where a word stands, where a neighbour of it stands) for every such pair around these places."""
        ids = self.store.ids
        chosen = rng.random(len(places)) < kept[ids[places]]
        places, reaches = places[chosen], reaches[chosen]
        widest = self.config.window
        offsets = np.concatenate([np.arange(-widest, 0), np.arange(1, widest + 1)])
        near = places[:, None] + offsets
        document = np.searchsorted(self.store.offsets, places, side="right")
        inside = (near >= self.store.offsets[document - 1][:, None]) & (near < self._ends[document - 1][:, None])
        near = np.clip(near, 0, len(self.store) - 1)
        wanted = inside & (np.abs(offsets) <= reaches[:, None]) & (rng.random(near.shape) < kept[ids[near]])
        return np.broadcast_to(places[:, None], near.shape)[wanted], near[wanted]


def keep_chances(counts: NDArray[np.int64], threshold: float) -> NDArray[np.float64]:
    """sqrt(t / f) + t / f, at most 1, for words with a share f of the text: as word2vec's own program has it. 0 for what never occurs."""
    shares = counts / max(1, counts.sum())
    if not threshold:
        return (counts > 0).astype(np.float64)
    ratio = np.divide(threshold, shares, out=np.zeros_like(shares), where=shares > 0)
    return np.minimum(1.0, np.sqrt(ratio) + ratio)
