"""cluster: texts that mean like things, found without labels; judged by them where there are some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kente.api.embedding import load_embedder
from kente.api.inputs import use_threads
from kente.decode.embedder import unit
from kente.durable import replace_file
from kente.errors import UsageError
from kente.measure.clusters import marking_words, normalised_information, purity
from kente.measure.grouping import JUDGED, choose_clusters, flat, hdbscan, kmeans, numbered, require_sklearn, spread
from kente.reporting import SILENT, Reporter
from kente.show.clusters import Dot, Group, Grouping, cluster_page

METHODS = ("kmeans", "hdbscan")
SHOWN = 5
"""Texts of each cluster shown in the page: those nearest to its middle."""
SMALLEST = 10
"""Texts that make a cluster, for HDBSCAN, unless set."""
SEEDS = 2**32


@dataclass(frozen=True)
class Clustered:
    """What was found: the cluster of each text (-1: none), and what each cluster is about."""

    clusters: tuple[int, ...]
    groups: tuple[Group, ...]
    purity: float | None
    nmi: float | None
    page: Path
    table: Path

    def as_dict(self) -> dict[str, Any]:
        return {
            "clusters": [asdict(group) for group in self.groups],
            "texts": len(self.clusters),
            "purity": self.purity,
            "nmi": self.nmi,
            "page": str(self.page),
            "table": str(self.table),
        }

    def lines(self) -> list[str]:
        told = [f"{group.name:>4}  {group.size:6,} texts  {', '.join(group.words)}" for group in self.groups]
        judged = []
        if self.purity is not None and self.nmi is not None:
            judged = [f"purity {self.purity:.3f}, NMI {self.nmi:.3f} against the labels | {len(self.clusters):,} texts"]
        return [*told, *judged, f"page: {self.page}", f"table: {self.table}"]


def cluster(
    run: Path | str,
    texts: Sequence[str],
    out: Path | str = Path("clusters"),
    *,
    labels: Sequence[str] | None = None,
    clusters: int | None = None,
    method: str = "kmeans",
    smallest: int | None = None,
    pooling: str | None = None,
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Clustered:
    """Group texts by the vectors an encoder gives them; page and table go into the folder `out`.

    `clusters` says how many (k-means only); without it there are as many as labels, or as many as stand apart best. `smallest` texts make
    a cluster (HDBSCAN only). `labels` are only looked at afterwards, to say how well the clusters agree with them.
    """
    if method not in METHODS:
        raise UsageError(f"no method called {method}; there are {', '.join(METHODS)}")
    if clusters is not None and method == "hdbscan":
        raise UsageError("HDBSCAN finds out how many clusters there are; leave out --clusters, or use --method kmeans")
    if smallest is not None and method == "kmeans":
        raise UsageError(f"--smallest {smallest} is for HDBSCAN: add --method hdbscan, or leave it out")
    if seed >= SEEDS:
        raise UsageError(f"--seed {seed} is too large for scikit-learn, which takes numbers below {SEEDS}")
    if len(texts) < 3:
        raise UsageError(f"{len(texts)} texts are too few to be grouped")
    require_sklearn()
    embedder = load_embedder(run, pooling, device=device, threads=threads, reporter=reporter)
    vectors = unit(embedder.vectors(texts, use_threads(threads), reporter))
    if method == "hdbscan":
        found = hdbscan(vectors, smallest or SMALLEST)
    else:
        if clusters is None:
            clusters = len(set(labels)) if labels else choose_clusters(vectors, seed)
            reporter.say(f"chosen: {clusters} clusters  ({'as many as labels' if labels else 'they stand apart best'})")
        found = kmeans(vectors, clusters, seed)
    agreement: tuple[float | None, float | None] = (None, None)
    if labels:
        agreement = purity(found, numbered(labels)), normalised_information(found, numbered(labels))
    groups = _groups(texts, found, vectors, labels)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    result = Clustered(tuple(found.tolist()), groups, *agreement, folder / "clusters.html", folder / "clusters.tsv")
    shown = spread(len(texts), JUDGED)
    dots = [
        Dot(float(x), float(y), int(found[place]), texts[place])
        for place, (x, y) in zip(shown.tolist(), flat(vectors[shown], seed), strict=True)
    ]
    page = cluster_page(Grouping(Path(run).name, len(texts), groups, dots, *agreement))
    replace_file(result.page, page.encode())
    rows = ((number, " ".join(text.splitlines())) for number, text in zip(found.tolist(), texts, strict=True))
    table = "".join(f"{number}\t{text}\n" for number, text in rows)
    replace_file(result.table, table.encode())
    return result


def _groups(
    texts: Sequence[str], found: np.ndarray, vectors: np.ndarray, labels: Sequence[str] | None
) -> tuple[Group, ...]:
    """What each cluster holds, largest first; what is in none comes last."""
    words = marking_words(texts, found)
    groups = []
    for number in sorted(words, key=lambda number: (number < 0, -int((found == number).sum()), number)):
        members = np.flatnonzero(found == number)
        middle = vectors[members].mean(axis=0)
        nearest = members[np.argsort(-(vectors[members] @ middle), kind="stable")[:SHOWN]]
        common = Counter(labels[place] for place in members.tolist()).most_common(3) if labels else []
        groups.append(
            Group(
                number=number,
                size=len(members),
                words=tuple(words[number]),
                examples=tuple(texts[place] for place in nearest.tolist()),
                labels=tuple((name, count) for name, count in common),
            )
        )
    return tuple(groups)
