"""Vectors for words before anything is trained: words that stand together point the same way, whatever language they are of.

pmi(a, b) = log( n c(a, b) / (c(a) c(b)) )
A_ab      = max(pmi, 0) min(1, c(a, b) / SURE)  ~  X X'      the closest there is with vectors of that width: X = U L^(1/2)

A runs over the words of both languages. Across languages c counts the pairs of sentences that hold a word, or both; within one it counts
words near each other, and weighs less. A word and its translation so begin close to each other: a model that merely looks at the right
word of the source knows much already.
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
"""Times that two words must stand together until their association is believed in full; once says nothing."""
NEAR = 3
"""Words this far apart still are near each other ..."""
NEAR_WEIGHT = 0.5
"""... which says so much less than standing in a translation of each other's sentence."""
ROUNDS = 2
"""Of the power iteration that finds the strongest directions."""
SPARE = 8
"""Directions more than wanted that take part in it: they make the wanted ones sharp."""

Weights = tuple[Ids, Ids, NDArray[Any]]
"""(a, b, A_ab) where it is not zero."""


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


@dataclass(frozen=True)
class _Words:
    """All words of some rows of one side, one after the other."""

    rows: Ids  # which row each stands in, sorted
    ids: Ids
    size: int  # of the vocabulary

    @classmethod
    def of(cls, side: Side, rows: Ids, size: int) -> _Words:
        lengths = side.offsets[rows + 1] - side.offsets[rows]
        ids = side.ids[spans(side.offsets[rows], lengths)].astype(np.int64)
        return cls(np.repeat(np.arange(len(rows)), lengths), ids, size)

    def once(self) -> _Words:
        """Each word once for each row."""
        return _Words(*np.divmod(np.unique(self.rows * self.size + self.ids), self.size), self.size)

    def counts(self) -> NDArray[np.int64]:
        return np.bincount(self.ids, minlength=self.size)


def associate(store: Store, width: int, *, places: int = PLACES) -> Associations | None:
    """The vectors of a corpus; None if it has fewer words than a vector has numbers."""
    sizes = [int(store.meta[side]["vocabulary"]) for side in ("source", "target")]
    if min(sizes) < width + SPARE:
        return None
    rows = sample(store, places)
    words = [_Words.of(side, rows, size) for side, size in zip(store.sides, sizes, strict=True)]
    source, target = (side.once() for side in words)
    s, t, across = _across(source, target, len(rows))
    within = [_within(side) for side in words]
    a, b, weight = (
        np.concatenate(parts)
        for parts in zip(
            (s, t + sizes[0], across),
            (t + sizes[0], s, across),
            within[0],
            (within[1][0] + sizes[0], within[1][1] + sizes[0], within[1][2]),
            strict=True,
        )
    )
    vectors = _strongest(a, b, weight, sum(sizes), width)
    vectors[np.bincount(a, minlength=sum(sizes)) == 0] = 0.0  # and not what rounding made of it
    counts = [torch.from_numpy(side.counts()).float() for side in (source, target)]
    return Associations(*unit(vectors).split(sizes), *counts)


def unit(vectors: Tensor) -> Tensor:
    """Each row at length one; zero stays zero."""
    return vectors / vectors.norm(dim=1, keepdim=True).clamp_min(1e-6)


def _across(source: _Words, target: _Words, pairs: int) -> Weights:
    """Of source words with target words: counted in pairs of sentences."""
    lengths = np.bincount(target.rows, minlength=pairs)
    starts = np.cumsum(lengths) - lengths
    beside = target.ids[spans(starts[source.rows], lengths[source.rows])]
    return _weigh(np.repeat(source.ids, lengths[source.rows]), beside, source.counts(), target.counts(), pairs)


def _within(words: _Words) -> Weights:
    """Of the words of one language with each other: counted where they stand near."""
    pairs = []
    for distance in range(1, NEAR + 1):
        same = words.rows[:-distance] == words.rows[distance:]
        one, other = words.ids[:-distance][same], words.ids[distance:][same]
        pairs += [(one, other), (other, one)]
    a, b = (np.concatenate(side) for side in zip(*pairs, strict=True))
    counts = np.bincount(a, minlength=words.size)
    a, b, weight = _weigh(a, b, counts, counts, len(a))
    return a, b, NEAR_WEIGHT * weight


def _weigh(a: Ids, b: Ids, count_a: NDArray[Any], count_b: NDArray[Any], total: int) -> Weights:
    """A for the words that stand together at (a, b), each time once."""
    kinds, together = np.unique(a * len(count_b) + b, return_counts=True)
    kinds, together = kinds[together > 1], together[together > 1]
    a, b = np.divmod(kinds, len(count_b))
    pmi = np.log(total * together / (count_a[a].astype(np.float64) * count_b[b]))
    weight = np.maximum(pmi, 0) * np.minimum(1, together / SURE)
    return a[weight > 0], b[weight > 0], weight[weight > 0]


def _strongest(a: Ids, b: Ids, weight: NDArray[Any], size: int, width: int) -> Tensor:
    """U L^(1/2) of the `width` largest eigenvalues L of the symmetric matrix with these weights.

    For every direction in which a word and its translation agree there is one, about as strong, in which they are opposites, with a
    negative eigenvalue. Both are found, the latter are left.
    """
    places, values = torch.from_numpy(np.stack((a, b))), torch.from_numpy(weight).float()
    matrix = torch.sparse_coo_tensor(places, values, (size, size), check_invariants=False).coalesce()
    directions = torch.randn(size, 2 * (width + SPARE), generator=torch.Generator().manual_seed(0))
    for _ in range(2 * ROUNDS):
        directions = torch.linalg.qr(matrix @ directions).Q
    values, turns = _eigenvectors(directions.mT @ (matrix @ directions))
    return (directions @ turns[:, -width:]) * values[-width:].clamp_min(0).sqrt()


def _eigenvectors(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues of a symmetric matrix, the smallest first, and their vectors."""
    try:
        values, vectors = torch.linalg.eigh(matrix)
    except torch.linalg.LinAlgError:  # of a corpus with few words nearly all directions are nothing but rounding
        values, vectors = (found.float() for found in torch.linalg.eigh(matrix.double()))
    return values, vectors
