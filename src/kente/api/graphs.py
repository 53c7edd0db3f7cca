"""graph_train, graph_predict, graph_look: a network over a graph, its answers, and whom its nodes look at."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from kente.api.inputs import pick_device, use_threads
from kente.api.lifecycle import TrainResult, launch
from kente.api.nodes import graph_model, graph_settings
from kente.data.corpus import shorten
from kente.data.tables import read_rows
from kente.durable import replace_file
from kente.errors import CorpusError, UsageError
from kente.measure.graphs import LayerLook, Neighbourhood, NodeAnswers, layer_looks, neighbourhood, telling_nodes
from kente.models.summary import describe
from kente.nn.graph import Edges
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.show.graphs import graph_page
from kente.train.graphs import network_inputs
from kente.train.kinds import require
from kente.train.prepare_graph import GraphFiles, read_graph

RECIPE = "gat"


def graph_train(
    files: GraphFiles,
    out: Path | str,
    *,
    recipe: str | Path | None = None,
    settings: Sequence[str] = (),
    **options: Any,
) -> TrainResult:
    """Train a network to tell the classes of a graph's nodes. `options` are those of `train`: minutes, updates, seed, force, ..."""
    for path in (files.nodes, files.edges):
        if next(read_rows(path), None) is None:  # said before a folder is made
            raise CorpusError(f"{path} is empty")
    return launch(
        graph_settings(), out, {"graph": files.as_dict()}, recipe=recipe or RECIPE, settings=settings, **options
    )


@dataclass(frozen=True)
class _Reading:
    """A graph as a run's network read it."""

    run: Run
    answers: NodeAnswers
    edges: Edges
    looks: list[torch.Tensor]


@torch.inference_mode()
def _read(
    run: Path | str, files: GraphFiles | None, verb: str, device: str, threads: int | None, reporter: Reporter
) -> _Reading:
    opened = require(Run.open(run), verb, "nodes")
    use_threads(threads)
    where = pick_device(device)
    checkpoint = opened.chosen(reporter)
    graph, schema = read_graph(opened, files, reporter)
    rows, edges = network_inputs(graph, graph_model(opened.config), schema.features.size)
    rows, edges = rows.to(where), edges.to(where)
    model = opened.model(checkpoint, where)
    scores, looks = model.read(rows, edges)  # type: ignore[operator]
    answers = NodeAnswers(graph, schema.classes, scores.softmax(dim=1).cpu().numpy())
    return _Reading(opened, answers, edges.to("cpu"), [weights.cpu() for weights in looks])


def graph_predict(
    run: Path | str,
    files: GraphFiles | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> NodeAnswers:
    """The class of every node: of the graph the run was trained on, or of another one with the same kinds of columns."""
    return _read(run, files, "kente graph predict", device, threads, reporter).answers


@dataclass(frozen=True)
class GraphLook:
    """Whom some nodes look at, in numbers and on a page."""

    page: Path
    nodes: tuple[Neighbourhood, ...]
    layers: tuple[LayerLook, ...]

    def as_dict(self) -> dict[str, Any]:
        nodes, layers = [node.as_dict() for node in self.nodes], [asdict(look) for look in self.layers]
        return {"page": str(self.page), "nodes": nodes, "layers": layers}

    def lines(self) -> list[str]:
        return [*(look.sentence() for look in self.layers), f"page: {self.page}"]


def graph_look(
    run: Path | str,
    ids: Sequence[str] = (),
    out: Path | str = Path("graph.html"),
    *,
    files: GraphFiles | None = None,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> GraphLook:
    """The weights of nodes over their neighbours, in every layer and head, and a page with their pictures.

    Without ids, nodes are chosen whose answer is sure and right, sure and wrong, or torn.
    """
    reading = _read(run, files, "kente graph look", device, threads, reporter)
    answers, graph = reading.answers, reading.answers.graph
    asked = {_node(name, graph.ids): "" for name in ids} or telling_nodes(answers)
    nodes = {
        node: neighbourhood(node, answers, reading.edges, reading.looks)
        for node in asked
        if _looks(reading.edges, node)
    }
    if not nodes:
        raise UsageError(f"{', '.join(graph.ids[node] for node in asked)} has no neighbours to look at")
    layers = layer_looks(answers, reading.edges, reading.looks)
    scores = [f"accuracy {score.value:.1f} % | {name} | {score.signature}" for name, score in answers.scores().items()]
    lead = [
        f"{describe(reading.run.config.model)}. {len(graph):,} nodes, {len(graph.sources):,} edges. {'; '.join(scores)}"
    ]
    shown = [(nodes[node], asked[node]) for node in nodes]
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    replace_file(Path(out), graph_page(f"Who looks at whom: {reading.run.path.name}", shown, layers, lead).encode())
    return GraphLook(Path(out), tuple(nodes.values()), tuple(layers))


def _looks(edges: Edges, node: int) -> bool:
    return bool(edges.starts[node + 1] > edges.starts[node])


def _node(name: str, ids: list[str]) -> int:
    if name not in ids:
        near = difflib.get_close_matches(name, ids[:100_000], 1)
        hint = f"did you mean {near[0]}?" if near else f"the first ones are {', '.join(map(shorten, ids[:5]))}"
        raise UsageError(f"no node has the id {name}; {hint}")
    return ids.index(name)
