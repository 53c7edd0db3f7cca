"""A network over a graph: layers in which each node reads its neighbours, and a class for each node at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from kente.config import GraphConfig
from kente.nn.graph import (
    Edges,
    GraphAttention,
    GraphAttentionV2,
    GraphConvolution,
    GraphDotProduct,
    NeighbourLayer,
    Rows,
    silence,
)

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"elu": F.elu, "relu": F.relu}


class GraphNetwork(nn.Module):
    """logits = layer_L(... sigma(layer_1(X))): heads of the last layer are averaged, those before it joined as the settings say."""

    def __init__(self, config: GraphConfig, features: int, classes: int):
        super().__init__()
        self.config, self.features = config, features
        self.activation: Callable[[Tensor], Tensor] = ACTIVATIONS[config.activation]
        self.layers = nn.ModuleList()
        size = features
        for _ in range(config.layers - 1):
            self.layers.append(_layer(config, size, config.width, config.heads, config.join))
            size = config.width * (config.heads if config.join == "concatenate" else 1)
        self.layers.append(_layer(config, size, classes, config.output_heads, "average"))

    def forward(self, x: Rows, edges: Edges) -> Tensor:
        """Scores of the classes (N, C) for every node."""
        return self.read(x, edges)[0]

    def predict(self, scores: Tensor) -> Tensor:
        """What the last layer gives are scores of classes already."""
        return scores

    def look(self, x: Rows, edges: Edges) -> list[Tensor]:
        """The weights (H, E) of each layer: what the target of each edge makes of its source."""
        return self.read(x, edges)[1]

    def read(self, x: Rows, edges: Edges) -> tuple[Tensor, list[Tensor]]:
        """Scores and weights, of one reading."""
        looks: list[Tensor] = []
        for layer in self.layers:
            before = self.activation(x) if looks and isinstance(x, Tensor) else x
            x, weights = layer(silence(before, self.config.dropout) if self.training else before, edges)
            looks.append(weights)
        assert isinstance(x, Tensor)
        return x, looks


def _layer(config: GraphConfig, inputs: int, width: int, heads: int, join: str) -> NeighbourLayer:
    shared: dict[str, Any] = {"join": join, "dropout": config.attention_dropout}
    match config.layer:
        case "gat":
            return GraphAttention(inputs, width, heads, slope=config.slope, **shared)
        case "gatv2":
            return GraphAttentionV2(inputs, width, heads, slope=config.slope, **shared)
        case "dot":
            return GraphDotProduct(inputs, width, heads, **shared)
        case "gcn":
            return GraphConvolution(inputs, width, heads, **shared)
