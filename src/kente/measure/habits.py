"""What a head does, in three numbers: how spread its looks are, how far they go, and how much of them goes back.

Position i of n rows stands beside place i (C - 1) / (n - 1) of C columns: in self-attention that is itself, in cross-attention the diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kente.measure.explored import Weights

Habit = NDArray[np.float64]


def entropy(weights: Weights) -> Habit:
    """Mean over rows of -sum_j a_ij log2 a_ij: 0 bits on one place, log2 C bits spread evenly over all."""
    known = np.where(weights > 0, weights, 1.0).astype(float)
    return -(known * np.log2(known)).sum(-1).mean(-1)


def distance(weights: Weights) -> Habit:
    """Mean over rows of sum_j a_ij |j - place of i|."""
    return (weights * np.abs(_from_place(weights))).sum(-1).mean(-1, dtype=float)


def looks_back(weights: Weights) -> Habit:
    """Mean over rows of the weight that lies before the row's own place."""
    return (weights * (_from_place(weights) <= -0.5)).sum(-1).mean(-1, dtype=float)


def habits(weights: Weights) -> dict[str, Habit]:
    """All three, by name, for maps (..., rows, columns)."""
    return {"entropy": entropy(weights), "distance": distance(weights), "looks back": looks_back(weights)}


def _from_place(weights: Weights) -> NDArray[np.float64]:
    rows, columns = weights.shape[-2:]
    places = np.arange(rows) * ((columns - 1) / max(rows - 1, 1))
    return np.arange(columns) - places[:, None]
