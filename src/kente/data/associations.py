"""Vectors for words before anything is trained: words that stand in the same pairs of sentences point the same way.

pmi(s, t) = log( n c(s, t) / (c(s) c(t)) )                 c counts the pairs of sentences that hold a word, or both
M_st      = max(pmi, 0) min(1, c(s, t) / SURE)  ~  S T'    the best there is of that width: S = U D^(1/2), T = V D^(1/2)

A source word and its translation so begin close to each other, and a model that merely looks at the right word knows much already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kente.data.shortlist import Ids, sample, spans
from kente.data.store import Side, Store

PLACES = 8_000_000
"""Pairs of a source and a target word looked at; a corpus with more is sampled."""
SURE = 5
"""Pairs of sentences after which an association is believed in full; one alone says nothing."""
ROUNDS = 3
"""Of the power iteration that finds the strongest directions."""
SPARE = 8
"""Directions more than wanted that take part in it: they make the wanted ones sharp."""


@dataclass(frozen=True)
class Associations:
    """Vectors of unit length for source and target words, zero where nothing is known; and in how many sentences each word stands."""

    source: Tensor  # (words, width)
    target: Tensor
    source_counts: Tensor  # (words,)
    target_counts: Tensor

    def of_both(self) -> Tensor:
        """For a vocabulary that both languages share: a word lies between its two vectors, nearer to that of the language it is more often in."""
        share = self.source_counts / (self.source_counts + self.target_counts).clamp_min(1)
        return unit(share[:, None] * self.source + (1 - share[:, None]) * self.target)


def associate(store: Store, width: int, *, places: int = PLACES) -> Associations | None:
    """The vectors of a corpus; None if it has fewer words than a vector has numbers."""
    sizes = tuple(int(store.meta[side]["vocabulary"]) for side in ("source", "target"))
    if min(sizes) < width + SPARE:
        return None
    rows = sample(store, places)
    source, target = (_words_of(side, rows, size) for side, size in zip(store.sides, sizes, strict=True))
    counts = [np.bincount(words, minlength=size) for (_, words), size in zip((source, target), sizes, strict=True)]
    s, t, together = _together(source, target, len(rows), sizes[1])
    pmi = np.log(len(rows) * together / (counts[0][s].astype(np.float64) * counts[1][t]))
    weight = np.where(together > 1, np.maximum(pmi, 0), 0) * np.minimum(1, together / SURE)
    s, t, weight = s[weight > 0], t[weight > 0], weight[weight > 0]
    left, right = _halves(s, t, weight, sizes, width)
    left[np.bincount(s, minlength=sizes[0]) == 0] = 0.0  # and not what rounding made of it
    right[np.bincount(t, minlength=sizes[1]) == 0] = 0.0
    numbers = [torch.from_numpy(count).float() for count in counts]
    return Associations(unit(left), unit(right), *numbers)


def unit(vectors: Tensor) -> Tensor:
    """Each row at length one; zero stays zero."""
    return vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-6)


def _words_of(side: Side, rows: Ids, size: int) -> tuple[Ids, Ids]:
    """(row, word) for every word of every row, once each, sorted by row."""
    lengths = side.offsets[rows + 1] - side.offsets[rows]
    ids = side.ids[spans(side.offsets[rows], lengths)].astype(np.int64)
    return np.divmod(np.unique(np.repeat(np.arange(len(rows)), lengths) * size + ids), size)


def _together(
    source: tuple[Ids, Ids], target: tuple[Ids, Ids], pairs: int, size: int
) -> tuple[Ids, Ids, NDArray[np.int64]]:
    """(s, t, pairs that hold both) for all words that stand in one pair."""
    lengths = np.bincount(target[0], minlength=pairs)
    starts = np.cumsum(lengths) - lengths
    beside = target[1][spans(starts[source[0]], lengths[source[0]])]
    kinds, counts = np.unique(np.repeat(source[1], lengths[source[0]]) * size + beside, return_counts=True)
    return *np.divmod(kinds, size), counts


def _halves(s: Ids, t: Ids, weight: NDArray[Any], sizes: tuple[int, ...], width: int) -> tuple[Tensor, Tensor]:
    """(U D^(1/2), V D^(1/2)) of the `width` strongest directions of the matrix with these weights at (s, t)."""
    places, values = torch.from_numpy(np.stack((s, t))), torch.from_numpy(weight).float()
    matrix = torch.sparse_coo_tensor(places, values, sizes, is_coalesced=True, check_invariants=False)
    turned = matrix.t().coalesce()
    directions = torch.randn(sizes[1], width + SPARE, generator=torch.Generator().manual_seed(0))
    for _ in range(ROUNDS):
        directions = torch.linalg.qr(turned @ (matrix @ directions)).Q
    left, strengths, right = torch.linalg.svd(matrix @ directions, full_matrices=False)
    root = strengths[:width].sqrt()
    return left[:, :width] * root, (directions @ right.mT)[:, :width] * root
