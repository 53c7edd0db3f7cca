"""A graph on disk: a table of nodes and a table of edges.

nodes   a header row names the columns: id, and as many as there are of label, split (train, validation, test), name (shown in pictures) and
        features (any other columns; `features` tells how each is read). Without a header: id, label, features, or id, label, split, features.
edges   two columns of ids; a header is skipped, further columns are not read. An edge may stand there twice, or both ways: it counts once.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from kente.data.corpus import shorten
from kente.data.features import Bags, Columns, Encode, Features
from kente.data.tables import Table, read_rows, read_table
from kente.durable import replace_file
from kente.errors import CorpusError, RunError
from kente.reporting import SILENT, Reporter

ROLES = {"id": ("id", "node", "node_id"), "label": ("label", "class"), "split": ("split",), "name": ("name",)}
"""Columns that are not features, and the names they go by."""
KNOWN = (*(name for part in ("label", "split", "name") for name in ROLES[part]), "features")
"""What tells a header from a row of a node, where the column of ids goes by another name."""
USUAL = {3: "id,label,features", 4: "id,label,split,features"}
NONE, TRAIN, VALIDATION, TEST = range(4)
SPLITS = {
    **dict.fromkeys(("", "-", "none", "unlabelled"), NONE),
    **dict.fromkeys(("train", "training"), TRAIN),
    **dict.fromkeys(("validation", "valid", "val", "dev"), VALIDATION),
    "test": TEST,
}
UNLABELLED = ("", "-", "?")
HELD_OUT = 0.2
"""Share of the labelled nodes that are validated on, when the table does not say which."""


@dataclass(frozen=True)
class NodeTable:
    """The rows of a table of nodes, as text."""

    path: Path
    ids: list[str]
    names: list[str]
    labels: list[str]
    """Empty where a node has none."""
    splits: NDArray[np.int8] | None
    columns: Columns
    """The others, which hold features."""


@dataclass(frozen=True)
class Schema:
    """What a model knows a graph by: the features it reads, and the classes it tells apart."""

    features: Features
    classes: list[str]
    tokenizer_sha256: str = ""
    """Of the tokenizer that cuts its text, where it has any."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "features": self.features.as_dict(),
            "classes": self.classes,
            "tokenizer_sha256": self.tokenizer_sha256,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Schema:
        return cls(Features.from_dict(values["features"]), list(values["classes"]), str(values["tokenizer_sha256"]))


@dataclass(frozen=True)
class Graph:
    """Nodes by number; an edge goes from sources[e] to targets[e]."""

    ids: list[str]
    names: list[str]
    features: Bags
    labels: NDArray[np.int64]
    """The number of the class, or -1."""
    splits: NDArray[np.int8]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def nodes(self, split: int) -> NDArray[np.int64]:
        """The labelled nodes of a split."""
        return np.flatnonzero((self.splits == split) & (self.labels >= 0))


# ---------------------------------------------------------------- reading


def read_nodes(path: Path | str, columns: Sequence[str] | None = None, features: Container[str] = ()) -> NodeTable:
    """A table of nodes; `columns` are their names where the file has no header, `features` those that a model knows as such."""
    table = read_table(path, columns, marker=ROLES["id"], usual=USUAL, known=KNOWN)
    free = [name for name in table.columns if name not in features]
    role = {part: next((name for name in names if name in free), None) for part, names in ROLES.items()}
    if role["id"] is None:
        raise CorpusError(f"{path}: no column called 'id' among {', '.join(table.columns)}; every node needs a name")
    ids = table.columns[role["id"]]
    _require_distinct(table, ids)
    labels = table.columns[role["label"]] if role["label"] else [""] * len(ids)
    return NodeTable(
        table.path,
        ids,
        table.columns[role["name"]] if role["name"] else ids,
        ["" if label in UNLABELLED else label for label in labels],
        _splits(table, table.columns[role["split"]]) if role["split"] else None,
        {name: cells for name, cells in table.columns.items() if name not in role.values()},
    )


def _require_distinct(table: Table, ids: Sequence[str]) -> None:
    first: dict[str, int] = {}
    for line, name in zip(table.lines, ids, strict=True):
        if not name:
            raise CorpusError(f"{table.path}:{line}: a node without an id")
        if name in first:
            raise CorpusError(f"{table.path}:{line}: the id {shorten(name)!r} stands in line {first[name]} already")
        first[name] = line


def _splits(table: Table, cells: Sequence[str]) -> NDArray[np.int8]:
    for line, cell in zip(table.lines, cells, strict=True):
        if cell.lower() not in SPLITS:
            raise CorpusError(
                f"{table.path}:{line}: the split {shorten(cell)!r} is none of train, validation and test; "
                "leave it empty for nodes that are in none"
            )
    return np.array([SPLITS[cell.lower()] for cell in cells], np.int8)


def read_edges(path: Path | str, ids: Sequence[str], reporter: Reporter = SILENT) -> tuple[NDArray[Any], NDArray[Any]]:
    """(sources, targets): each edge once, by the numbers of its nodes. Edges of nodes nobody knows are counted and left out."""
    number = {name: place for place, name in enumerate(ids)}
    found: list[list[int | None]] = []
    unknown, example, columns = 0, "", 2
    for place, (line, cells) in enumerate(read_rows(path)):
        if len(cells) < 2:
            raise CorpusError(f"{path}:{line}: one column, where an edge has two ids: {shorten(cells[0])!r}")
        ends = [number.get(cell) for cell in cells[:2]]
        if place == 0 and ends == [None, None]:  # a header
            if not cells[0] and len(cells) > 2:
                raise CorpusError(
                    f"{path}:{line}: the first column has no name (row numbers that a program wrote?), and edges are read from "
                    "the first two columns; leave it out"
                )
            continue
        columns = max(columns, len(cells))
        if None in ends:
            unknown += 1
            example = example or f"line {line}: {shorten(cells[ends.index(None)])!r}"
        else:
            found.append(ends)
    if unknown > len(found):
        raise CorpusError(
            f"{path}: {unknown:,} of {unknown + len(found):,} edges name a node that is not in the table of nodes "
            f"({example}); do both files use the same ids?"
        )
    if unknown:
        reporter.warn(f"{path}: left out {unknown:,} edges that name a node nobody knows ({example})")
    if columns > 2:
        reporter.say(f"{path}: edges are read from the first two of {columns} columns")
    pairs = np.array(found, np.int64).reshape(-1, 2)
    once = np.unique(pairs, axis=0)
    if len(once) < len(pairs):
        reporter.say(f"{path}: {len(pairs) - len(once):,} edges stand there more than once and count once")
    return once[:, 0].copy(), once[:, 1].copy()


def learn_classes(table: NodeTable) -> list[str]:
    """The labels there are."""
    classes = sorted({label for label in table.labels if label})
    if len(classes) < 2:
        seen = f"only {classes[0]!r}" if classes else "none"
        raise CorpusError(
            f"{table.path}: a column called 'label' with two classes or more is wanted to learn from; it has {seen}"
        )
    return classes


def make_graph(
    table: NodeTable, edges: Path | str, schema: Schema, encode: Encode | None = None, reporter: Reporter = SILENT
) -> Graph:
    """Tables as numbers, as the schema has them. Features and labels it does not know are counted and left out."""
    try:
        bags, unknown = schema.features.read(table.columns, len(table.ids), encode)
    except CorpusError as error:
        raise CorpusError(f"{table.path}: {error}") from None
    if unknown:
        named = unknown + len(bags.places)
        reporter.warn(
            f"{table.path}: {unknown:,} of about {named:,} features were never seen in training, and say nothing"
        )
    number = {name: place for place, name in enumerate(schema.classes)}
    strange = sorted({label for label in table.labels if label and label not in number})
    if strange:
        reporter.warn(
            f"{table.path}: the label {shorten(strange[0])!r} {f'and {len(strange) - 1} more are' if len(strange) > 1 else 'is'} "
            f"not among the {len(schema.classes)} classes learned, so nodes that have it are not scored"
        )
    sources, targets = read_edges(edges, table.ids, reporter)
    labels = np.array([number.get(label, -1) for label in table.labels], np.int64)
    splits = np.zeros(len(labels), np.int8) if table.splits is None else table.splits
    return Graph(table.ids, table.names, bags, labels, splits, sources, targets)


def hold_out_nodes(graph: Graph, split_given: bool, seed: int, reporter: Reporter = SILENT) -> Graph:
    """The graph with nodes to train on and nodes to validate on: as its table says, or drawn by the seed."""
    splits = graph.splits.copy()
    if not split_given:
        splits[graph.labels >= 0] = TRAIN
    train = np.flatnonzero((splits == TRAIN) & (graph.labels >= 0))
    if not len(train):
        raise CorpusError("no node has both a label and the split train: there is nothing to learn from")
    if not len(np.flatnonzero((splits == VALIDATION) & (graph.labels >= 0))):
        count = max(1, round(HELD_OUT * len(train)))
        if count >= len(train):
            raise CorpusError(f"{len(train)} labelled node is too few: some are learned from, others validated on")
        chosen = np.random.default_rng([seed % 2**63, 1]).permutation(train)[:count]
        splits[chosen] = VALIDATION
        reporter.say(f"validation: {count:,} of {len(train):,} labelled nodes, drawn by the seed")
    return replace(graph, splits=splits)


# ---------------------------------------------------------------- kept in a run


def save_graph(graph: Graph, folder: Path) -> None:
    """graph.safetensors and graph.json, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {"labels": graph.labels, "splits": graph.splits, "sources": graph.sources, "targets": graph.targets}
    arrays |= {"starts": graph.features.starts, "places": graph.features.places, "values": graph.features.values}
    replace_file(folder / "graph.safetensors", save({name: np.ascontiguousarray(a) for name, a in arrays.items()}))
    names = None if graph.names == graph.ids else graph.names
    replace_file(folder / "graph.json", json.dumps({"ids": graph.ids, "names": names}, ensure_ascii=False).encode())


def open_graph(folder: Path) -> Graph:
    """What `save_graph` left there."""
    try:
        arrays = load_file(folder / "graph.safetensors")
        words = json.loads((folder / "graph.json").read_bytes())
        bags = Bags(*(arrays.pop(name) for name in ("starts", "places", "values")))
        return Graph(words["ids"], words["names"] or words["ids"], bags, **arrays)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"the graph in {folder} cannot be read ({error}); begin the run again with --force") from None
