"""Clusters of vectors, and a map of them on paper: k-means, HDBSCAN and t-SNE are scikit-learn's."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kente.decode.embedder import Vectors
from kente.errors import UsageError

Numbers = NDArray[np.int64]
TRIED = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
"""Numbers of clusters tried when none is given."""
JUDGED = 2000
"""Vectors that a number of clusters is judged by, and drawn on a map, at most."""
DIRECTIONS = 20
"""HDBSCAN looks for dense places, and in many dimensions nothing is dense: it is given the directions vectors differ most in."""


def _sklearn(module: str) -> Any:
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError:
        raise UsageError('kente cluster needs scikit-learn: pip install "kente[cluster]"') from None


def require_sklearn() -> None:
    """Say that scikit-learn is missing, where it is."""
    _sklearn("cluster")


def kmeans(vectors: Vectors, clusters: int, seed: int = 1, tries: int = 10) -> Numbers:
    """The best of several k-means, each from other middles."""
    if clusters > len(vectors):
        raise UsageError(f"{len(vectors):,} texts cannot make {clusters:,} clusters")
    finder = _sklearn("cluster").KMeans(clusters, n_init=tries, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # texts that stand there twice may make fewer clusters than asked for: seen in the result
        return np.asarray(finder.fit_predict(vectors), np.int64)


def choose_clusters(vectors: Vectors, seed: int = 1) -> int:
    """The number of clusters, of those tried, whose silhouette is best: near to one's own, far from the next."""
    some = vectors[spread(len(vectors), JUDGED)]
    silhouette = _sklearn("metrics").silhouette_score
    different = len(np.unique(some, axis=0))
    scores = {
        number: float(silhouette(some, kmeans(some, number, seed, tries=3))) for number in TRIED if number < different
    }
    return max(scores, key=lambda number: scores[number]) if scores else 1


def hdbscan(vectors: Vectors, smallest: int) -> Numbers:
    """Dense places, however many there are; -1 for what lies between them."""
    if smallest > len(vectors):
        raise UsageError(f"{len(vectors):,} texts hold no cluster of {smallest:,}")
    finder = _sklearn("cluster").HDBSCAN(min_cluster_size=smallest, copy=True)
    return np.asarray(finder.fit_predict(main_directions(vectors, DIRECTIONS)), np.int64)


def main_directions(vectors: Vectors, count: int) -> Vectors:
    """Coordinates along the directions that vectors differ most in."""
    centred = vectors - vectors.mean(axis=0)
    values, directions = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ directions[:, np.argsort(-values)[:count]], np.float32)


def flat(vectors: Vectors, seed: int = 1) -> Vectors:
    """(N, 2) a place on paper for each vector, so that neighbours stay neighbours: t-SNE."""
    if len(vectors) < 5:
        return main_directions(np.pad(vectors, ((0, 0), (0, 1))), 2)
    crowd = min(30.0, (len(vectors) - 1) / 3)
    drawn = _sklearn("manifold").TSNE(init="pca", perplexity=crowd, random_state=seed).fit_transform(vectors)
    return np.asarray(drawn, np.float32)


def spread(total: int, most: int) -> Numbers:
    """At most so many places, evenly taken from all."""
    return np.unique(np.linspace(0, total - 1, min(total, most)).astype(np.int64))


def numbered(labels: Sequence[str]) -> Numbers:
    """Labels as numbers, the same for the same."""
    _, numbers = np.unique(np.array(labels), return_inverse=True)
    return np.asarray(numbers, np.int64)
