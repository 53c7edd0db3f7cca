"""Node classification as the trainer sees it: one batch, the whole graph, again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from kente.config import GraphConfig
from kente.data.graphs import Graph
from kente.nn.graph import Edges, Rows, SparseRows
from kente.runs import Score
from kente.train.objectives import Loss

DENSE = 0.25
"""Share of features that are not zero, from which on a plain matrix is the faster way to hold them."""


def network_inputs(graph: Graph, config: GraphConfig, features: int) -> tuple[Rows, Edges]:
    """What a network reads of a graph: a row of features for each node, and who looks at whom."""
    nodes = len(graph)
    ends = np.stack([graph.sources, graph.targets])
    if config.both_ways:
        ends = np.concatenate([ends, ends[::-1]], axis=1)
    if config.self_loops:
        ends = np.concatenate([ends, np.arange(nodes)[None].repeat(2, axis=0)], axis=1)
    once = np.unique(ends[1] * nodes + ends[0])
    sources, targets = torch.from_numpy(once % nodes), torch.from_numpy(once // nodes)
    return _rows(graph, features), Edges.of(sources, targets, seen=nodes, looking=nodes)


def _rows(graph: Graph, features: int) -> Rows:
    bags = graph.features
    places, values = torch.from_numpy(bags.places), torch.from_numpy(bags.values)
    rows = torch.repeat_interleave(torch.arange(len(graph)), torch.from_numpy(np.diff(bags.starts)))
    if len(places) > DENSE * len(graph) * features:
        dense = torch.zeros(len(graph), features)
        dense[rows, places] = values
        return dense
    return SparseRows(Edges.of(places, rows, seen=features, looking=len(graph)), values)


@dataclass
class GraphBatch:
    """The whole graph, and the nodes whose labels are asked for."""

    features: Rows
    edges: Edges
    labels: Tensor  # (L,) classes
    nodes: Tensor  # (L,) of these nodes
    rows: NDArray[np.int64]

    @property
    def target_tokens(self) -> int:
        """Labels asked for."""
        return len(self.rows)

    @property
    def tokens(self) -> int:
        """Edges looked along."""
        return len(self.edges)

    work = tokens

    @classmethod
    def of(cls, graph: Graph, inputs: tuple[Rows, Edges], split: int) -> GraphBatch:
        rows = graph.nodes(split)
        labels = torch.from_numpy(graph.labels[rows])
        return cls(*inputs, labels, torch.from_numpy(rows), rows)

    def shares(self, count: int) -> list[GraphBatch]:
        """A graph is not cut: its nodes look at each other."""
        return [self]

    def to(self, device: torch.device | str) -> GraphBatch:
        names = ("features", "edges", "labels", "nodes")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})


class GraphBatches:
    """The endless sequence of one batch."""

    def __init__(self, batch: GraphBatch):
        self._batch = batch

    def __len__(self) -> int:
        return 1

    def batch(self, step: int) -> GraphBatch:
        return self._batch


class NodeCrossEntropy:
    """-log p(label | node, graph), and while training penalty / 2 |weights|^2 for each label."""

    def __init__(self, smoothing: float = 0.0, penalty: float = 0.0):
        self.smoothing, self.penalty = smoothing, penalty

    def __call__(self, model: nn.Module, batch: Any) -> Loss:
        logits = model(batch.features, batch.edges)[batch.nodes]
        smoothing = self.smoothing if model.training else 0.0
        total = F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=smoothing)
        if model.training and self.penalty:
            length = sum(weights.square().sum() for weights in model.parameters())
            total = total + batch.target_tokens * self.penalty / 2 * length
        return Loss(total, batch.target_tokens)


def node_validator(batch: GraphBatch) -> Callable[[nn.Module, int], dict[str, Score]]:
    """What the trainer calls to see how good the model is: loss and accuracy on nodes held out."""

    @torch.inference_mode()
    def validate(model: nn.Module, step: int) -> dict[str, Score]:
        logits = model(batch.features, batch.edges)[batch.nodes]
        loss = F.cross_entropy(logits, batch.labels).item()
        right = (logits.argmax(dim=1) == batch.labels).float().mean().item()
        return {
            "loss": Score("loss", loss, higher_is_better=False),
            "accuracy": Score("accuracy", 100 * right, f"{batch.target_tokens:,} nodes"),
        }

    return validate
