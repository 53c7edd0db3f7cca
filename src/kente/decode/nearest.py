"""Nearest neighbours by cosine: exact, or by an index library where there are millions to look through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kente.decode.embedder import Vectors, unit
from kente.errors import UsageError

Index = Literal["exact", "hnsw", "faiss"]
Found = tuple[NDArray[np.int64], NDArray[np.float32]]
"""(Q, k) which ones, nearest first, and their cosines."""
BLOCK = 32_768
"""Rows of the corpus compared at once."""
TOGETHER = 256
"""Queries answered at once."""
LINKS, CARE = 32, 200
"""Of an index: neighbours each vector is linked to, and candidates weighed while linking it and while searching."""


def search_in(corpus: Vectors, kind: Index = "exact") -> Callable[[Vectors, int], Found]:
    """A search over the corpus: search(queries, k). What is not exact misses a neighbour now and then."""
    corpus = unit(corpus)
    match kind:
        case "exact":
            return lambda queries, k: nearest(unit(queries), corpus, k)
        case "hnsw":
            return _hnsw(corpus)
        case "faiss":
            return _faiss(corpus)


def nearest(queries: Vectors, corpus: Vectors, k: int) -> Found:
    """The k rows of the corpus with the largest products with each query, largest first. Vectors have length one."""
    k = min(k, len(corpus))
    ids = np.empty((len(queries), k), np.int64)
    cosines = np.empty((len(queries), k), np.float32)
    for begin in range(0, len(queries), TOGETHER):
        some = slice(begin, begin + TOGETHER)
        ids[some], cosines[some] = _best(queries[some], corpus, k)
    return ids, cosines


def _best(queries: Vectors, corpus: Vectors, k: int) -> Found:
    best_ids = np.zeros((len(queries), 0), np.int64)
    best = np.zeros((len(queries), 0), np.float32)
    for start in range(0, len(corpus), BLOCK):
        products = queries @ corpus[start : start + BLOCK].T
        numbers = np.broadcast_to(np.arange(start, start + products.shape[1]), products.shape)
        scores = np.concatenate([best, products], axis=1)
        ids = np.concatenate([best_ids, numbers], axis=1)
        kept = np.argpartition(-scores, min(k, scores.shape[1]) - 1, axis=1)[:, :k]
        best, best_ids = np.take_along_axis(scores, kept, 1), np.take_along_axis(ids, kept, 1)
    order = np.lexsort((best_ids, -best), axis=1)
    return np.take_along_axis(best_ids, order, 1), np.take_along_axis(best, order, 1)


def _library(name: str, package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            f"--index {'hnsw' if name == 'hnswlib' else name} needs {package}: pip install {package}, or leave it out: "
            "the exact search needs nothing"
        ) from None


def _hnsw(corpus: Vectors) -> Callable[[Vectors, int], Found]:
    index = _library("hnswlib", "hnswlib").Index(space="ip", dim=corpus.shape[1])
    index.init_index(max_elements=len(corpus), ef_construction=CARE, M=LINKS, random_seed=1)
    index.add_items(corpus, np.arange(len(corpus)))

    def search(queries: Vectors, k: int) -> Found:
        k = min(k, len(corpus))
        index.set_ef(max(CARE, 2 * k))
        ids, distances = index.knn_query(unit(queries), k=k)
        return ids.astype(np.int64), (1 - distances).astype(np.float32)

    return search


def _faiss(corpus: Vectors) -> Callable[[Vectors, int], Found]:
    faiss = _library("faiss", "faiss-cpu")
    index = faiss.IndexHNSWFlat(corpus.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = CARE
    index.add(corpus)

    def search(queries: Vectors, k: int) -> Found:
        k = min(k, len(corpus))
        index.hnsw.efSearch = max(CARE, 2 * k)
        cosines, ids = index.search(unit(queries), k)
        return ids.astype(np.int64), cosines.astype(np.float32)

    return search
