"""match: which texts of a corpus mean most nearly what a query means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kente.api.embedding import load_embedder, read_vectors
from kente.api.inputs import use_threads
from kente.data.tokenizer import SPECIALS
from kente.decode.nearest import Index, search_in
from kente.errors import UsageError
from kente.reporting import SILENT, Reporter
from kente.runs import Run

INDEXES = ("exact", "hnsw", "faiss")


@dataclass(frozen=True)
class Neighbour:
    """A text of the corpus: its line, from 1, and its cosine with the query."""

    line: int
    cosine: float
    text: str


@dataclass(frozen=True)
class Match:
    """A query and its nearest neighbours, nearest first."""

    query: str
    neighbours: tuple[Neighbour, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def vocabulary_of(run: Path | str) -> list[str]:
    """The words of a run's vocabulary, for whoever has word vectors and no corpus."""
    opened = Run.open(run)
    if opened.config.train.task != "words":
        raise UsageError("no corpus given: --corpus FILE names the texts to look through, a line each")
    tokenizer = opened.tokenizers().target
    words = (tokenizer.decode([number]) for number in range(len(SPECIALS), tokenizer.size))
    return list(dict.fromkeys(word for word in words if word.strip()))


def match(
    run: Path | str,
    queries: Sequence[str],
    corpus: Sequence[str] | None = None,
    *,
    nearest: int = 5,
    vectors: Path | str | None = None,
    index: str = "exact",
    pooling: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> list[Match]:
    """The nearest neighbours of each query in the corpus, by cosine.

    `vectors` is a .npy file that `embed` made of the same corpus, so that it need not be read again. Word vectors need no corpus: their
    vocabulary is one. A query of which nothing is known has no neighbours, and is warned of.
    """
    if index not in INDEXES:
        raise UsageError(f"no index called {index}; there are {', '.join(INDEXES)}")
    if not queries:
        raise UsageError("nothing to look for: give a text, or a file of them with --queries")
    corpus = vocabulary_of(run) if corpus is None else corpus
    if not corpus:
        raise UsageError("the corpus is empty: there is nothing to look through")
    which: Index = index  # type: ignore[assignment]
    search_in(np.eye(1, dtype=np.float32), which)  # a library that is missing is said before a corpus is read
    embedder = load_embedder(run, pooling, device=device, threads=threads, reporter=reporter)
    count = use_threads(threads)
    asked = embedder.vectors(queries, count, reporter)
    known_words = np.abs(asked).max(axis=1) > 0
    for query in (query for query, known in zip(queries, known_words, strict=True) if not known):
        reporter.warn(
            f"{query!r} has no word that this run knows (capitals and full stops count), so nothing is near it"
        )
    known = read_vectors(vectors) if vectors else embedder.vectors(corpus, count, reporter)
    if known.shape != (len(corpus), asked.shape[1]):
        raise UsageError(
            f"{vectors} holds {known.shape[0]:,} vectors of {known.shape[1]:,} numbers, but the corpus has {len(corpus):,} lines "
            f"and this run's vectors have {asked.shape[1]:,}; make it again with `kente embed`"
        )
    ids, cosines = search_in(known, which)(asked, nearest)
    return [
        Match(query, _neighbours(corpus, row.tolist(), near.tolist()) if knows else ())
        for query, row, near, knows in zip(queries, ids, cosines, known_words, strict=True)
    ]


def _neighbours(corpus: Sequence[str], row: Sequence[int], cosines: Sequence[float]) -> tuple[Neighbour, ...]:
    """Those that were found: where an index finds fewer than were asked for, faiss fills up with -1."""
    found = ((number, cosine) for number, cosine in zip(row, cosines, strict=True) if number >= 0)
    return tuple(Neighbour(number + 1, cosine, corpus[number]) for number, cosine in found)
