"""How a decoder's state is compared with the states of an encoder: the scores of the lectures beside each other.

In each, a_i = softmax_j(e_ij) and c_i = sum_j a_ij v_j (`attention.attend`); what differs is e_ij, and what stands for v_j.
`prepare` does once for a sentence what does not depend on the query. Several queries may ask the same sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from kente.nn.attention import attend
from kente.nn.linear import Linear


class StateAttention(nn.Module, ABC):
    """Attention of queries over a memory of states; `context` is the size of what it returns."""

    context: int

    @abstractmethod
    def prepare(self, memory: Float[Tensor, "B S M"]) -> tuple[Tensor, Tensor]:
        """(keys, values), each (B, S, some size)."""

    @abstractmethod
    def scores(self, queries: Float[Tensor, "B G Q"], keys: Float[Tensor, "B S K"]) -> Float[Tensor, "B G S"]:
        """e_ij for every query i and every word j of its source."""

    def forward(
        self, queries: Float[Tensor, "N Q"], keys: Tensor, values: Tensor, mask: Bool[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N S"]]:
        """(contexts, weights). There may be several queries for each sentence, as many for all and side by side."""
        grouped = queries.unflatten(0, (len(keys), -1))
        contexts, weights = attend(self.scores(grouped, keys), values, mask[:, None])
        return contexts.flatten(0, 1), weights.flatten(0, 1)


@final
class Additive(StateAttention):
    """e_ij = v' tanh(W s_{i-1} + U h_j + b)      (Bahdanau et al., 2015; lecture 002's a(s_{i-1}, h_j))"""

    def __init__(self, query: int, memory: int, width: int):
        super().__init__()
        self.query = Linear(query, width, bias=False)
        self.key = Linear(memory, width)
        self.energy = Linear(width, 1, bias=False)
        self.context = memory

    def prepare(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self.key(memory), memory

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        return self.energy(torch.tanh(self.query(queries)[:, :, None] + keys[:, None]))[..., 0]


@final
class Bilinear(StateAttention):
    """e_ij = h_j' W s_{i-1}      (lecture 001; "general" in Luong et al., 2015)"""

    def __init__(self, query: int, memory: int):
        super().__init__()
        self.key = Linear(memory, query, bias=False)  # W' h_j once for a sentence rather than W s at every step
        self.context = memory

    def prepare(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self.key(memory), memory

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (keys @ queries.mT).mT


@final
class Dot(StateAttention):
    """e_ij = h_j . s_{i-1}: no weights at all, so both must have one size      (Luong et al., 2015)"""

    def __init__(self, query: int, memory: int):
        super().__init__()
        assert query == memory, "a dot product needs vectors of one size"
        self.context = memory

    def prepare(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return memory, memory

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (keys @ queries.mT).mT


@final
class Projected(StateAttention):
    """q_i = W_Q s_{i-1},  k_j = W_K h_j,  v_j = W_V h_j,  e_ij = k_j . q_i      (lecture 003)"""

    def __init__(self, query: int, memory: int, width: int):
        super().__init__()
        self.query = Linear(query, width, bias=False)
        self.key = Linear(memory, width, bias=False)
        self.value = Linear(memory, width, bias=False)
        self.context = width

    def prepare(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        return self.key(memory), self.value(memory)

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        return (keys @ self.query(queries).mT).mT
