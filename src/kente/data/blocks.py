"""Blocks of running text, and the endless sequence of batches made of them: batch = f(seed, epoch, step), as in `batches`.

Packed, all blocks have the same length and follow each other through the whole text; where the first of them begins is drawn anew for each
epoch. Kept apart, each document is cut for itself and blocks of like length stand together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kente.config import BatchConfig, TextConfig
from kente.data.batches import Batch, Plan, Rows
from kente.data.texts import TextStore
from kente.data.tokenizer import PAD, SPECIALS, Tokenizer
from kente.errors import CorpusError

Ids = NDArray[np.int64]
Truths = NDArray[np.bool_]
LONGEST_WORD = 16
"""Pieces hidden together at most: where a script has no spaces, a line would be one word."""
HIDDEN, REPLACED = 0.8, 0.1
"""Of the pieces to be guessed: shares that a mask hides and that another piece replaces; the rest stand as they are."""


@dataclass(frozen=True)
class Masking:
    """Which words are to be guessed, and what a reader sees in their place (BERT, section 3.1; whole words as in its later release)."""

    share: float
    continuing: Truths
    """(V,) which pieces carry on a word; all False hides piece by piece."""
    mask: int

    @classmethod
    def of(cls, config: TextConfig, tokenizer: Tokenizer) -> Masking:
        continuing = tokenizer.continuing()
        return cls(config.mask_share, continuing & config.whole_words, tokenizer.mask)

    def __call__(self, ids: Ids, real: Truths, rng: np.random.Generator) -> tuple[Ids, Truths]:
        """(what is read, where to guess) for ids (B, T); where `real` is False there is nothing to guess. At least one gap."""
        candidates = real & (ids >= len(SPECIALS))
        chance, manner = rng.random(ids.shape), rng.random(ids.shape)
        asked = np.take_along_axis(chance, self.words(ids), axis=1) < self.share  # one chance for each word
        asked &= candidates
        if not asked.any():
            asked.flat[int(np.argmax(candidates if candidates.any() else real))] = True
        others = rng.integers(len(SPECIALS), len(self.continuing), ids.shape)
        read = np.where(asked & (manner < HIDDEN), self.mask, ids)
        return np.where(asked & (manner >= HIDDEN) & (manner < HIDDEN + REPLACED), others, read), asked

    def words(self, ids: Ids) -> Ids:
        """(B, T) the number of the word each piece belongs to, from 0 in each row."""
        goes_on = self.continuing[ids]
        places = np.arange(ids.shape[1])
        begun = np.maximum.accumulate(np.where(goes_on, 0, places), axis=1)  # where the word began
        begins = ~goes_on | ((places - begun) % LONGEST_WORD == 0)
        begins[:, 0] = False  # the first word is number 0, begun here or before
        return np.cumsum(begins, axis=1)


@dataclass(frozen=True)
class Cut:
    """Blocks as places in a store: `length` ids from `start` on, and what follows each of them to be predicted."""

    starts: Rows
    lengths: Rows

    @classmethod
    def packed(cls, store: TextStore, length: int, phase: int = 0) -> Cut:
        """Blocks of one length from `phase` on. The last may be shorter when nothing is left out (phase 0)."""
        starts = np.arange(phase, len(store) - 1, length, dtype=np.int64)
        return cls(starts, np.minimum(length, len(store) - 1 - starts))

    @classmethod
    def apart(cls, store: TextStore, length: int) -> Cut:
        """Every document cut into blocks of its own."""
        sizes = np.diff(store.offsets)
        counts = -(-sizes // length)
        owner = np.repeat(np.arange(len(sizes)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = store.offsets[owner] + number * length
        return cls(starts, np.minimum(length, store.offsets[owner + 1] - starts))

    def batch(self, store: TextStore, rows: Rows, masking: Masking | None, rng: np.random.Generator) -> Batch:
        """These blocks side by side: to be gone on with, or with gaps to be filled."""
        starts, lengths = self.starts[rows], self.lengths[rows]
        columns = np.arange(int(lengths.max()))
        real = columns < lengths[:, None]
        places = np.minimum(starts[:, None] + columns, len(store) - 2)
        ids = _padded(store.ids[places], real)
        if masking is None:
            following = _padded(store.ids[places + 1], real)
            nothing = np.zeros((len(rows), 0), np.int64)
            return _batch(nothing, nothing.astype(bool), ids, following, real, starts)
        read, asked = masking(ids, real, rng)
        return _batch(read, real, np.zeros((len(rows), 0), np.int64), ids, asked, starts)


def _padded(ids: NDArray[Any], real: Truths) -> Ids:
    return np.where(real, ids.astype(np.int64), PAD)


def _batch(source: Ids, source_mask: Truths, before: Ids, output: Ids, output_mask: Truths, rows: Rows) -> Batch:
    tensor = torch.from_numpy
    return Batch(
        tensor(source),
        tensor(source_mask),
        tensor(before),
        tensor(output),
        tensor(output_mask),
        rows,
        int(source_mask.sum()),
        int(output_mask.sum()),
    )


class Blocks:
    """The endless sequence of training batches: `batch(step)` is a function of the store, the settings, the seed and the step."""

    def __init__(
        self, store: TextStore, batches: BatchConfig, text: TextConfig, seed: int, masking: Masking | None = None
    ) -> None:
        if len(store) < 3:
            raise CorpusError(f"{store.folder} holds {len(store):,} ids; a text to learn from has more")
        self.store, self.masking, self.seed = store, masking, seed % 2**64
        self.length = min(batches.max_length, len(store) - 1)
        self._apart = None if text.packed else Cut.apart(store, self.length)
        self._plan: Plan | None = None
        if self._apart is not None:
            lengths = self._apart.lengths.astype(np.int32)
            self._plan = Plan.of(lengths, lengths, batches.tokens)
        # whatever the phase, so many blocks of full length fit behind it
        self._blocks = max(1, (len(store) - self.length) // self.length)
        self._together = max(1, min(batches.tokens // self.length, self._blocks))
        self._epoch: tuple[int, Cut, list[Rows]] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._plan) if self._plan else self._blocks // self._together

    def _of_epoch(self, epoch: int) -> tuple[Cut, list[Rows]]:
        """The blocks of an epoch and which of them go together."""
        rng = np.random.default_rng([self.seed, epoch])
        if self._apart is not None and self._plan is not None:
            order, batches = self._plan.shuffled(rng)
            return self._apart, [order[self._plan.cuts[b] : self._plan.cuts[b + 1]] for b in batches]
        spare = len(self.store) - 1 - self._blocks * self.length
        phase = int(rng.integers(0, min(self.length, spare + 1)))
        order = rng.permutation(self._blocks)[: len(self) * self._together]
        return Cut.packed(self.store, self.length, phase), np.split(order, len(self))

    def batch(self, step: int) -> Batch:
        epoch, place = divmod(step, len(self))
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = (epoch, *self._of_epoch(epoch))
        _, cut, rows = self._epoch
        return cut.batch(self.store, rows[place], self.masking, np.random.default_rng([self.seed, step, 3]))


def validation_blocks(
    store: TextStore, batches: BatchConfig, text: TextConfig, masking: Masking | None = None, most: int | None = None
) -> Iterator[Batch]:
    """Every block once, in an order that never changes; at most about `most` ids, in blocks evenly taken."""
    length = min(batches.max_length, len(store) - 1)
    cut = Cut.packed(store, length) if text.packed else Cut.apart(store, length)
    rows = np.argsort(-cut.lengths, kind="stable")
    if most is not None and cut.lengths.sum() > most:
        kept = max(1, int(len(rows) * most / cut.lengths.sum()))
        rows = rows[np.linspace(0, len(rows) - 1, kept).astype(np.int64)]
    together = max(1, batches.tokens // length)
    for number, first in enumerate(range(0, len(rows), together)):
        yield cut.batch(store, rows[first : first + together], masking, np.random.default_rng([number, 4]))
