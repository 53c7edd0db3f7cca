"""From tables of nodes and edges to what training reads: features and classes learned, text cut by a tokenizer, all of it in the run folder."""

from __future__ import annotations

import shutil
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.config import Config
from kente.data.features import Encode, Features
from kente.data.graphs import (
    TRAIN,
    VALIDATION,
    Graph,
    NodeTable,
    Schema,
    hold_out_nodes,
    learn_classes,
    make_graph,
    open_graph,
    read_nodes,
    save_graph,
)
from kente.data.tokenizer import Tokenizers, train_tokenizers
from kente.errors import CorpusError, RunError
from kente.reporting import Reporter
from kente.runs import FEATURES, Run


@dataclass(frozen=True)
class GraphFiles:
    """A graph named by a person: a table of nodes, a table of edges, and names for the nodes' columns where the file has none."""

    nodes: Path
    edges: Path
    columns: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Absolute paths, so that a resumed run finds its graph from any folder."""
        return {"nodes": str(self.nodes.resolve()), "edges": str(self.edges.resolve()), "columns": self.columns}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> GraphFiles:
        columns = tuple(values["columns"]) if values["columns"] else None
        return cls(Path(values["nodes"]), Path(values["edges"]), columns)

    def read(self, features: Container[str] = ()) -> NodeTable:
        """The table of nodes; columns that a model knows as `features` are that, whatever they are called."""
        return read_nodes(self.nodes, self.columns, features)


def prepare_graph(run: Run, files: GraphFiles, config: Config, reporter: Reporter) -> dict[str, Any]:
    """Learn features, classes and, where there is text, a tokenizer; returns facts for the model card. Safe to do again after a crash."""
    for name in ("data", "tokenizer"):
        shutil.rmtree(run.path / name, ignore_errors=True)
    table = files.read()
    tokenizers = _tokenizers(table, config, reporter)
    if tokenizers is not None:
        tokenizers.save(run.path / "tokenizer")
    features = Features.learn(table.columns, tokenizers.source.size if tokenizers else 0)
    if not features.size:
        raise CorpusError(
            f"{files.nodes}: no column says anything about the nodes; beside id, label, split and name there should be "
            "numbers, categories, text, or a column called features"
        )
    schema = Schema(features, learn_classes(table), tokenizers.sha256 if tokenizers else "")
    run.write_json(FEATURES, schema.as_dict())
    encode = tokenizers.source.encode if tokenizers else None
    graph = make_graph(table, files.edges, schema, encode, reporter)
    graph = hold_out_nodes(graph, table.splits is not None, config.train.seed, reporter)
    save_graph(graph, run.path / "data")
    facts = {
        "nodes": len(graph),
        "edges": len(graph.sources),
        "features": features.size,
        "columns": features.describe(),
        "classes": len(schema.classes),
        "train_nodes": len(graph.nodes(TRAIN)),
        "validation_nodes": len(graph.nodes(VALIDATION)),
    }
    reporter.say(
        f"graph: {facts['nodes']:,} nodes, {facts['edges']:,} edges, {facts['features']:,} features ({facts['columns']}), "
        f"{facts['classes']} classes; {facts['train_nodes']:,} nodes to learn from, {facts['validation_nodes']:,} to validate on"
    )
    return facts


def _tokenizers(table: NodeTable, config: Config, reporter: Reporter) -> Tokenizers | None:
    """Learned from the columns of text, if there are any."""
    columns = [table.columns[name] for name in Features.learn(table.columns).text_columns]
    if not columns:
        return None
    return train_tokenizers(lambda: ((cell, "") for column in columns for cell in column), config.tokenizer, reporter)


def open_schema(run: Run) -> tuple[Schema, Encode | None]:
    """What the run's network knows a graph by, and how it cuts text; refused when its weights were trained with another."""
    try:
        schema = Schema.from_dict(run.features())
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{run.path / FEATURES} cannot be read ({error!r}); put the run's own file back") from None
    if not schema.tokenizer_sha256:
        return schema, None
    return schema, Tokenizers.load(run.path / "tokenizer", schema.tokenizer_sha256).source.encode


def read_graph(run: Run, files: GraphFiles | None, reporter: Reporter) -> tuple[Graph, Schema]:
    """A graph as the run's network reads it: the one it was trained on, or another."""
    schema, encode = open_schema(run)
    if files is None:
        return open_graph(run.path / "data"), schema
    return make_graph(files.read(schema.features.kinds), files.edges, schema, encode, reporter), schema
