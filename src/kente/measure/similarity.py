"""Whether texts that people find alike have vectors that are alike: Spearman's correlation of scores and cosines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kente.runs import Score


def ranks(values: Sequence[float] | NDArray[np.floating]) -> NDArray[np.float64]:
    """Places in order of size from 1 on; equals share the mean of theirs."""
    array = np.asarray(values, np.float64)
    _, place, counts = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[place]


def spearman(one: Sequence[float] | NDArray[np.floating], other: Sequence[float] | NDArray[np.floating]) -> float:
    """Pearson's correlation of the ranks; nan where one side is the same everywhere."""
    first, second = (ranks(side) - (len(side) + 1) / 2 for side in (one, other))
    size = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / size if size else math.nan


def similarity_score(scores: Sequence[float], one: NDArray[np.float32], other: NDArray[np.float32]) -> Score:
    """Spearman's correlation of people's scores with the cosines of the vectors, which have length one."""
    return Score("spearman", spearman(scores, (one * other).sum(axis=1)), f"{len(scores):,} pairs, cosine")
