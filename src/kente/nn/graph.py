"""Attention over the edges of a graph: a node looks at its neighbours, and nothing of size N x N ever exists.

    h'_i = sigma(1/K sum_k sum_j a_ij^k W^k h_j),     a_ij = softmax_j(LeakyReLU(a . [W h_i || W h_j])),     j in N_i      (lecture 001)

The layers below differ in the score that goes into the softmax; a graph convolution has fixed weights in its place. Letters: N nodes,
E edges, H heads, K width per head. Scores and weights of edges are (H, E), vectors of nodes (H, N, K).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, Literal, final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from kente.nn.dropout import drop

STRIP = 65_536
"""Edges whose vectors are held at once while dot products are taken."""


@dataclass(frozen=True)
class Edges:
    """Edge e goes from sources[e] to targets[e]: a target looks at its sources. Those of one target stand side by side."""

    sources: Tensor  # (E,)
    targets: Tensor  # (E,) in rising order
    starts: Tensor  # (N + 1,) node i looks along the edges starts[i] to starts[i + 1]
    by_source: Tensor  # (E,) places of the edges in the order of their sources: the way back
    targets_by_source: Tensor  # (E,)
    source_starts: Tensor  # (M + 1,)

    @classmethod
    def of(cls, sources: Int[Tensor, "E"], targets: Int[Tensor, "E"], *, seen: int, looking: int) -> Edges:
        """Edges in any order, from `seen` nodes to `looking` ones; in a graph both are the same nodes."""
        order = torch.argsort(targets * seen + sources)
        sources, targets = sources[order].contiguous(), targets[order].contiguous()
        by_source = torch.argsort(sources, stable=True)
        return cls(sources, targets, _starts(targets, looking), by_source, targets[by_source], _starts(sources, seen))

    @property
    def looking(self) -> int:
        """How many nodes look."""
        return len(self.starts) - 1

    def __len__(self) -> int:
        return len(self.sources)

    def to(self, device: torch.device | str) -> Edges:
        return Edges(*(getattr(self, field.name).to(device) for field in fields(self)))


def _starts(ends: Tensor, count: int) -> Tensor:
    """Where each of `count` nodes begins in a sorted list of their numbers, and the end."""
    return F.pad(torch.bincount(ends, minlength=count).cumsum(0), (1, 0))


@dataclass(frozen=True)
class SparseRows:
    """Rows that are mostly zeros, such as bags of words: entry e is values[e] in row targets[e] and column sources[e]."""

    entries: Edges
    values: Tensor  # (E,)

    def __len__(self) -> int:
        return self.entries.looking

    def to(self, device: torch.device | str) -> SparseRows:
        return SparseRows(self.entries.to(device), self.values.to(device))


Rows = Tensor | SparseRows
"""A vector for each node: (N, D), or only what is not zero of it."""


# ---------------------------------------------------------------- along edges, without writing down a vector for each


def _weighted_sum(
    weights: Float[Tensor, "H E"], values: Float[Tensor, "H M K"], sources: Tensor, starts: Tensor
) -> Float[Tensor, "H N K"]:
    heads = [
        F.embedding_bag(sources, value, starts, mode="sum", per_sample_weights=weight, include_last_offset=True)
        for weight, value in zip(weights.contiguous(), values.contiguous(), strict=True)
    ]
    return torch.stack(heads)


def _dots(queries: Float[Tensor, "H N K"], keys: Float[Tensor, "H M K"], edges: Edges) -> Float[Tensor, "H E"]:
    strips = [
        (queries.index_select(1, targets) * keys.index_select(1, sources)).sum(-1)
        for targets, sources in zip(edges.targets.split(STRIP), edges.sources.split(STRIP), strict=True)
    ]
    return torch.cat(strips, dim=1)


class _NeighbourSum(torch.autograd.Function):
    """c_i = sum_j w_ij v_j.     With g = dL/dc:  dL/dw_ij = g_i . v_j,   dL/dv_j = sum_i w_ij g_i."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, edges: Edges) -> Tensor:
        ctx.save_for_backward(weights, values)
        ctx.edges = edges
        return _weighted_sum(weights, values, edges.sources, edges.starts)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (weights, values), edges, gradient = ctx.saved_tensors, ctx.edges, gradients[0].contiguous()
        of_weights = _dots(gradient, values, edges) if ctx.needs_input_grad[0] else None
        of_values = _returned(weights, gradient, edges) if ctx.needs_input_grad[1] else None
        return of_weights, of_values, None


class _EdgeDots(torch.autograd.Function):
    """s_ij = q_i . k_j.     With g = dL/ds:  dL/dq_i = sum_j g_ij k_j,   dL/dk_j = sum_i g_ij q_i."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, edges: Edges) -> Tensor:
        ctx.save_for_backward(queries, keys)
        ctx.edges = edges
        return _dots(queries, keys, edges)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (queries, keys), edges, gradient = ctx.saved_tensors, ctx.edges, gradients[0]
        return _weighted_sum(gradient, keys, edges.sources, edges.starts), _returned(gradient, queries, edges), None


def _returned(weights: Tensor, values: Tensor, edges: Edges) -> Tensor:
    """sum_i w_ij v_i: along every edge the other way."""
    return _weighted_sum(weights.index_select(1, edges.by_source), values, edges.targets_by_source, edges.source_starts)


class _EdgeSoftmax(torch.autograd.Function):
    """a_ij = exp(s_ij) / sum_j exp(s_ij).     With g = dL/da:  dL/ds_ij = a_ij (g_ij - sum_j a_ij g_ij)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, edges: Edges) -> Tensor:
        nodes, index = (len(scores), edges.looking), edges.targets.expand_as(scores)
        highest = scores.new_full(nodes, -math.inf).scatter_reduce_(1, index, scores, "amax")
        raised = (
            scores - highest.gather(1, index)
        ).exp_()  # no larger than one, and one somewhere: safe to divide by the sum
        weights = raised.div_(scores.new_zeros(nodes).scatter_add_(1, index, raised).gather(1, index))
        ctx.save_for_backward(weights)
        ctx.edges = edges
        return weights

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (weights,), edges = ctx.saved_tensors, ctx.edges
        index, flow = edges.targets.expand_as(weights), weights * gradients[0]
        total = flow.new_zeros(len(flow), edges.looking).scatter_add_(1, index, flow)
        return flow.addcmul_(weights, total.gather(1, index), value=-1), None


def neighbour_sum(
    weights: Float[Tensor, "H E"], values: Float[Tensor, "H M K"], edges: Edges
) -> Float[Tensor, "H N K"]:
    """c_i = sum over neighbours j of w_ij v_j, in every head."""
    return _NeighbourSum.apply(weights, values, edges)


def edge_dots(queries: Float[Tensor, "H N K"], keys: Float[Tensor, "H M K"], edges: Edges) -> Float[Tensor, "H E"]:
    """s_ij = q_i . k_j for every edge, in every head."""
    return _EdgeDots.apply(queries, keys, edges)


def edge_softmax(scores: Float[Tensor, "H E"], edges: Edges) -> Float[Tensor, "H E"]:
    """a_ij = softmax over the neighbours j of i: positive, and each node's edges sum to one."""
    return _EdgeSoftmax.apply(scores, edges)


def at(x: Float[Tensor, "H N"], nodes: Int[Tensor, "E"]) -> Float[Tensor, "H E"]:
    """What each edge finds at one of its ends."""
    return x.gather(1, nodes.expand(len(x), -1))


def project(x: Rows, matrix: Float[Tensor, "D W"]) -> Float[Tensor, "N W"]:
    """X W. Of sparse rows, each is a sum over its entries: a look at columns with weights that are given."""
    if isinstance(x, Tensor):
        return x @ matrix
    return neighbour_sum(x.values[None], matrix[None], x.entries)[0]


def silence(x: Rows, share: float) -> Rows:
    """Dropout; zeros stay what they are, so sparse rows need no more than their entries."""
    return drop(x, share) if isinstance(x, Tensor) else SparseRows(x.entries, drop(x.values, share))


# ---------------------------------------------------------------- layers


class NeighbourLayer(nn.Module, ABC):
    """h'_i = sum_j a_ij W h_j + b in each of H heads, which are then joined: side by side, or their mean."""

    def __init__(
        self,
        inputs: int,
        width: int,
        heads: int = 1,
        *,
        join: Literal["concatenate", "average"] = "concatenate",
        dropout: float = 0.0,
        bias: bool = True,
    ):
        super().__init__()
        self.heads, self.width, self.join, self.dropout = heads, width, join, dropout
        self.value = _matrix(inputs, width, heads)
        self.bias = nn.Parameter(torch.zeros(width if join == "average" else heads * width)) if bias else None

    @abstractmethod
    def weights(self, x: Rows, values: Float[Tensor, "N HK"], edges: Edges) -> Float[Tensor, "H E"]:
        """a_ij, for what the nodes are (x) and what they say (values = W x)."""

    def forward(self, x: Rows, edges: Edges) -> tuple[Float[Tensor, "N W"], Float[Tensor, "H E"]]:
        """(h', the weights before dropout)."""
        values = project(x, self.value)
        weights = self.weights(x, values, edges)
        used = drop(weights, self.dropout) if self.training else weights
        context = neighbour_sum(used, self.split(values), edges)
        joined = context.mean(dim=0) if self.join == "average" else context.transpose(0, 1).flatten(1)
        return joined if self.bias is None else joined + self.bias, weights

    def split(self, x: Float[Tensor, "N HK"]) -> Float[Tensor, "H N K"]:
        """Each vector cut into one piece for each head."""
        return x.view(len(x), self.heads, self.width).transpose(0, 1).contiguous()

    def per_head(self, x: Float[Tensor, "N HK"], vectors: Float[Tensor, "H K"]) -> Float[Tensor, "H N"]:
        """a_h . x_h for each head h."""
        return (x.view(len(x), self.heads, self.width) * vectors).sum(-1).T.contiguous()


@final
class GraphAttention(NeighbourLayer):
    """a_ij = softmax_j(LeakyReLU(a . [W h_i || W h_j]))      (GAT, Velickovic et al., 2018; lecture 001)

    a is two halves: what a node brings to every look of its own, and what it brings to every look at it.
    """

    def __init__(self, inputs: int, width: int, heads: int = 1, *, slope: float = 0.2, **others: Any):
        super().__init__(inputs, width, heads, **others)
        self.slope = slope
        self.looking, self.seen = _vectors(heads, width), _vectors(heads, width)

    def weights(self, x: Rows, values: Tensor, edges: Edges) -> Tensor:
        scores = at(self.per_head(values, self.looking), edges.targets) + at(
            self.per_head(values, self.seen), edges.sources
        )
        return edge_softmax(F.leaky_relu(scores, self.slope), edges)


@final
class GraphAttentionV2(NeighbourLayer):
    """a_ij = softmax_j(a . LeakyReLU(U h_i + W h_j))      (GATv2, Brody et al., 2022)

    In GAT every node ranks its neighbours alike; here the ranking depends on who looks. The price is a vector for each edge.
    """

    def __init__(self, inputs: int, width: int, heads: int = 1, *, slope: float = 0.2, **others: Any):
        super().__init__(inputs, width, heads, **others)
        self.slope = slope
        self.query = _matrix(inputs, width, heads)
        self.energy = _vectors(heads, width)

    def weights(self, x: Rows, values: Tensor, edges: Edges) -> Tensor:
        both = F.embedding(edges.targets, project(x, self.query)) + F.embedding(edges.sources, values)  # (E, H K)
        return edge_softmax(self.per_head(F.leaky_relu(both, self.slope), self.energy), edges)


@final
class GraphDotProduct(NeighbourLayer):
    """a_ij = softmax_j(W_Q h_i . W_K h_j / sqrt(K)): the Transformer's score, for neighbours only."""

    def __init__(self, inputs: int, width: int, heads: int = 1, **others: Any):
        super().__init__(inputs, width, heads, **others)
        self.query, self.key = _matrix(inputs, width, heads), _matrix(inputs, width, heads)

    def weights(self, x: Rows, values: Tensor, edges: Edges) -> Tensor:
        queries, keys = self.split(project(x, self.query)), self.split(project(x, self.key))
        return edge_softmax(edge_dots(queries, keys, edges) / math.sqrt(self.width), edges)


@final
class GraphConvolution(NeighbourLayer):
    """a_ij = 1 / sqrt(d_i d_j), d the number of edges a node looks along: given by the graph, not learned      (GCN, Kipf and Welling, 2017)"""

    def weights(self, x: Rows, values: Tensor, edges: Edges) -> Tensor:
        scale = edges.starts.diff().clamp_min(1).to(values.dtype).rsqrt()
        return (scale[edges.targets] * scale[edges.sources]).expand(self.heads, -1)


def _matrix(inputs: int, width: int, heads: int) -> nn.Parameter:
    """One matrix for all heads, begun as if each head's stood alone."""
    blocks = [nn.init.xavier_uniform_(torch.empty(inputs, width)) for _ in range(heads)]
    return nn.Parameter(torch.cat(blocks, dim=1))


def _vectors(heads: int, width: int) -> nn.Parameter:
    bound = math.sqrt(6 / (width + 1))
    return nn.Parameter(torch.empty(heads, width).uniform_(-bound, bound))
