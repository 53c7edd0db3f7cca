"""What a network says of the nodes of a graph, how often it is right, and whom each node looks at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kente.data.graphs import TEST, TRAIN, VALIDATION, Graph
from kente.nn.graph import Edges
from kente.runs import Score

SPLIT_NAMES = {TRAIN: "train", VALIDATION: "validation", TEST: "test"}


@dataclass(frozen=True)
class NodeAnswers:
    """A class for every node, with the probability of each class."""

    graph: Graph
    classes: list[str]
    probabilities: NDArray[np.float32]  # (N, C)

    @property
    def predicted(self) -> NDArray[np.int64]:
        """The likeliest class of each node."""
        return self.probabilities.argmax(axis=1)

    def accuracy(self, split: int | None = None) -> Score | None:
        """Of the labelled nodes of a split, or of all; None where there are none. The interval is Wilson's, 95 %."""
        labels = self.graph.labels
        asked = np.flatnonzero(labels >= 0) if split is None else self.graph.nodes(split)
        if not len(asked):
            return None
        share = float((self.predicted[asked] == labels[asked]).mean())
        low, high = wilson(share, len(asked))
        return Score("accuracy", 100 * share, f"{len(asked):,} nodes", 100 * low, 100 * high)

    def scores(self) -> dict[str, Score]:
        """Accuracy of each split that has labelled nodes; of all of them where nodes are in no split."""
        by_split = {name: self.accuracy(split) for split, name in SPLIT_NAMES.items()}
        if not any(by_split.values()):
            by_split = {"all": self.accuracy()}
        return {name: score for name, score in by_split.items() if score}

    def rows(self) -> list[dict[str, Any]]:
        """One record to a node."""
        return [
            {"id": name, "class": self.classes[best], "probability": round(float(row[best]), 4)}
            for name, best, row in zip(self.graph.ids, self.predicted, self.probabilities, strict=True)
        ]

    def lines(self) -> list[str]:
        return [f"{row['id']}\t{row['class']}\t{row['probability']:.4f}" for row in self.rows()]

    def as_dict(self) -> dict[str, Any]:
        return {
            "classes": self.classes,
            "scores": {name: asdict(score) for name, score in self.scores().items()},
            "nodes": [
                {**row, "probabilities": [round(float(p), 4) for p in shares]}
                for row, shares in zip(self.rows(), self.probabilities, strict=True)
            ],
        }


def wilson(share: float, count: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of shares p with |share - p| <= z sqrt(p (1 - p) / count)."""
    middle, spread = share + z * z / (2 * count), z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2)
    return (middle - spread) / (1 + z * z / count), (middle + spread) / (1 + z * z / count)


# ---------------------------------------------------------------- whom a node looks at


@dataclass(frozen=True)
class Neighbour:
    """One of those a node looks at; weights[layer][head]."""

    id: str
    name: str
    label: str | None
    predicted: str
    itself: bool
    weights: tuple[tuple[float, ...], ...]

    def mean(self, layer: int) -> float:
        return sum(self.weights[layer]) / len(self.weights[layer])


@dataclass(frozen=True)
class Neighbourhood:
    """A node, what it was taken for, and its neighbours, those that matter most to the last layer first."""

    id: str
    name: str
    label: str | None
    predicted: str
    probabilities: dict[str, float]
    neighbours: tuple[Neighbour, ...]

    @property
    def layers(self) -> int:
        return len(self.neighbours[0].weights) if self.neighbours else 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def neighbourhood(node: int, answers: NodeAnswers, edges: Edges, looks: Sequence[Tensor]) -> Neighbourhood:
    """What a node made of its neighbours, from the weights (H, E) of every layer."""
    graph, predicted = answers.graph, answers.predicted
    start, end = int(edges.starts[node]), int(edges.starts[node + 1])
    weights = [look[:, start:end].T.tolist() for look in looks]  # (layers, edges, heads)
    neighbours = [
        Neighbour(
            graph.ids[other],
            graph.names[other],
            _label(answers, other),
            answers.classes[predicted[other]],
            other == node,
            tuple(tuple(layer[place]) for layer in weights),
        )
        for place, other in enumerate(edges.sources[start:end].tolist())
    ]
    neighbours.sort(key=lambda neighbour: -neighbour.mean(-1))
    shares = {name: float(p) for name, p in zip(answers.classes, answers.probabilities[node], strict=True)}
    likeliest = dict(sorted(shares.items(), key=lambda item: -item[1]))
    label, best = _label(answers, node), answers.classes[predicted[node]]
    return Neighbourhood(graph.ids[node], graph.names[node], label, best, likeliest, tuple(neighbours))


def _label(answers: NodeAnswers, node: int) -> str | None:
    label = int(answers.graph.labels[node])
    return answers.classes[label] if label >= 0 else None


@dataclass(frozen=True)
class LayerLook:
    """How a layer spreads its weight over the neighbours of nodes that have several; means over heads and nodes."""

    layer: int
    evenness: float
    """Entropy of the weights, as a share of the entropy of equal ones: 1 is an average of the neighbours."""
    itself: float
    """Weight on the node itself."""
    itself_if_even: float
    """What that would be with equal weights."""
    alike: float
    """Of the weight on others, the part on nodes of the same class (the label, or the prediction where there is none)."""
    alike_if_even: float

    def sentence(self) -> str:
        if math.isnan(self.evenness):
            return f"Layer {self.layer + 1}: no node has more than one to look at, so there is nothing to share out."
        return (
            f"Layer {self.layer + 1}: its weights have {self.evenness:.0%} of the entropy of equal ones; {self.itself:.0%} of the "
            f"weight stays on the node itself (equal weights: {self.itself_if_even:.0%}), and {self.alike:.0%} of the rest goes to "
            f"nodes of its own class (equal weights: {self.alike_if_even:.0%})."
        )


def layer_looks(answers: NodeAnswers, edges: Edges, looks: Sequence[Tensor]) -> list[LayerLook]:
    """One for each layer."""
    labels = torch.from_numpy(np.where(answers.graph.labels >= 0, answers.graph.labels, answers.predicted))
    sources, targets = edges.sources.cpu(), edges.targets.cpu()
    degrees = edges.starts.cpu().diff()
    several = degrees > 1
    own, alike = (sources == targets).double(), (labels[sources] == labels[targets]).double()
    even = 1 / degrees[targets].double()

    def per_node(values: Tensor) -> Tensor:
        return torch.zeros(len(degrees), dtype=torch.float64).index_add_(0, targets, values)

    def spread(weights: Tensor) -> tuple[float, float, float]:
        entropy = per_node(-(weights * weights.clamp_min(1e-30).log())) / degrees.double().log().clamp_min(1e-9)
        others, same = per_node(weights * (1 - own)), per_node(weights * (1 - own) * alike)
        looks_out = several & (others > 0)
        return (
            _mean(entropy[several]),
            _mean(per_node(weights * own)[several]),
            _mean((same / others.clamp_min(1e-30))[looks_out]),
        )

    found = []
    for layer, look in enumerate(looks):
        rows = look.cpu().double()
        shares = rows / torch.stack([per_node(row) for row in rows])[:, targets]  # a convolution's do not sum to one
        heads = [spread(row) for row in shares]
        evenness, itself, same = (sum(part) / len(heads) for part in zip(*heads, strict=True))
        _, itself_if_even, same_if_even = spread(even)
        found.append(LayerLook(layer, evenness, itself, itself_if_even, same, same_if_even))
    return found


def _mean(values: Tensor) -> float:
    return float(values.mean()) if len(values) else math.nan


def telling_nodes(answers: NodeAnswers, each: int = 2) -> dict[int, str]:
    """Nodes worth a look, and why: sure and right, sure and wrong, and torn between classes; from those not trained on."""
    labels, sure = answers.graph.labels, answers.probabilities.max(axis=1)
    asked = np.flatnonzero((labels >= 0) & (answers.graph.splits != TRAIN))
    if not len(asked):
        asked = np.arange(len(labels))
    right = answers.predicted[asked] == labels[asked]
    by_sureness = asked[np.argsort(-sure[asked], kind="stable")]
    is_right = dict(zip(asked.tolist(), right.tolist(), strict=True))
    chosen: dict[int, str] = {}
    for reason, candidates in (
        ("sure and right", [n for n in by_sureness.tolist() if is_right[n]]),
        ("sure and wrong", [n for n in by_sureness.tolist() if not is_right[n] and labels[n] >= 0]),
        ("torn", by_sureness[::-1].tolist()),
    ):
        for node in [node for node in candidates if node not in chosen][:each]:
            chosen[node] = reason
    return chosen
