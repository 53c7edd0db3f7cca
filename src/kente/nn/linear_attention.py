"""Linear attention: without the softmax, sums over all keys can be made once and kept (Katharopoulos et al., 2020).

    c_i = sum_j phi(q_i).phi(k_j) v_j / sum_j phi(q_i).phi(k_j)  =  phi(q_i)' S / phi(q_i)' z,   phi(x) = elu(x) + 1
    S = sum_j phi(k_j) v_j',   z = sum_j phi(k_j)

Where order is kept the sums run up to i, and S_i = S_{i-1} + phi(k_i) v_i': a recurrent network with a matrix for a state.
"""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from kente.nn.attention import begin_stacked
from kente.nn.linear import Linear
from kente.nn.lists import Shape, in_a_list, in_heads
from kente.nn.past import Column

CHUNK = 64
"""Positions read together where order is kept: inside a chunk by pairs, across chunks by sums."""
TINY = 1e-6
"""Keeps the division finite."""


def features(x: Float[Tensor, "*B K"]) -> Float[Tensor, "*B K"]:
    """phi(x) = elu(x) + 1: positive, so that weights are."""
    return F.elu(x) + 1


def with_one(values: Float[Tensor, "*B K"]) -> Float[Tensor, "*B K1"]:
    """[v, 1]: the sums of keys that the division needs come along as one more value."""
    return F.pad(values, (0, 1), value=1.0)


def divided(sums: Float[Tensor, "*B K1"]) -> Float[Tensor, "*B K"]:
    """phi(q)' S / phi(q)' z"""
    return sums[..., :-1] / (sums[..., -1:] + TINY)


def read_all(
    queries: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H S K"], values: Float[Tensor, "B H S K"]
) -> Float[Tensor, "B H T K"]:
    """phi(q_i)' S / phi(q_i)' z with the sums over everything. Queries and keys are features already."""
    return divided(queries @ (keys.mT @ with_one(values)))


def read_in_order(
    queries: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H T K"], values: Float[Tensor, "B H T K"]
) -> Float[Tensor, "B H T K"]:
    """phi(q_i)' S_i / phi(q_i)' z_i with the sums over j <= i. Queries and keys are features already.

    No state for each position: one for each chunk, and pairs of positions inside a chunk only.
    """
    length = queries.shape[2]
    missing = -length % CHUNK
    queries, keys, values = (
        F.pad(x, (0, 0, 0, missing)).unflatten(2, (-1, CHUNK)) for x in (queries, keys, with_one(values))
    )  # (B, H, chunks, CHUNK, K)
    sums = (keys.mT @ values).cumsum(dim=2)  # (B, H, chunks, K, K + 1)
    earlier = F.pad(sums[:, :, :-1], (0, 0, 0, 0, 1, 0))
    inside = (queries @ keys.mT).tril()
    return divided(queries @ earlier + inside @ values).flatten(2, 3)[:, :, :length]


def weights_of(
    queries: Float[Tensor, "B H T K"],
    keys: Float[Tensor, "B H S K"],
    causal: bool,
) -> Float[Tensor, "B H T S"]:
    """a_ij = phi(q_i).phi(k_j) / sum_j phi(q_i).phi(k_j): what attention would show, if it ever made it."""
    products = queries @ keys.mT
    products = products.tril() if causal else products
    return products / (products.sum(dim=-1, keepdim=True) + TINY)


class LinearAttention(nn.Module):
    """Self-attention without a softmax, H heads side by side; it takes the place of `SelfAttention` and has its weights."""

    def __init__(self, width: int, heads: int, *, biases: bool = False):
        super().__init__()
        self.heads = heads
        self.query_key_value = Linear(width, 3 * width, bias=biases)
        self.output = Linear(width, width, bias=biases)
        for projection in (self.query_key_value, self.output):
            begin_stacked(projection, width)

    def forward(
        self,
        x: Float[Tensor, "... D"],
        mask: Bool[Tensor, "B 1 1 T"] | None = None,
        *,
        shape: Shape | None = None,
        causal: bool = False,
        visible: bool = False,
        read: list[tuple[Tensor, Tensor]] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns (context, weights), of texts or of a list as in `SelfAttention`. `read` collects features of keys, and values, for `summed`."""
        queries, keys, values = in_heads(self.query_key_value(x), shape, self.heads, 3)
        queries, keys = features(queries), features(keys)
        if mask is not None:
            keys = keys * mask.mT  # what may not be looked at is left out of every sum
        if read is not None:
            read.append((keys, values))
        if visible:
            weights = weights_of(queries, keys, causal)
            return self.output(in_a_list(weights @ values, x)), weights
        context = read_in_order(queries, keys, values) if causal else read_all(queries, keys, values)
        return self.output(in_a_list(context, x)), None

    def step(self, x: Float[Tensor, "N D"], past: tuple[Tensor, ...], column: Column) -> Float[Tensor, "N D"]:
        """S_i = S_{i-1} + phi(k_i) [v_i, 1]', added to the sums (N, H, K, K + 1) in `past`; then phi(q_i)' S_i, divided."""
        (sums,) = past
        parts = self.query_key_value(x).view(len(x), 3, self.heads, -1).unbind(1)  # (N, H, K) each
        queries, keys, values = features(parts[0]), features(parts[1]), with_one(parts[2])
        sums += keys[..., None] * values[..., None, :]
        return self.output(divided((queries[..., None, :] @ sums)[..., 0, :]).flatten(1))


def summed(
    keys: Float[Tensor, "B H S K"], values: Float[Tensor, "B H S K"], mask: Bool[Tensor, "B S"]
) -> Float[Tensor, "B H K K1"]:
    """S and z of a text that was read in one go, for `step` to go on from; padding left out. Keys are features already."""
    return (keys * mask[:, None, :, None]).mT @ with_one(values)


def no_sums(layers: int, like: Float[Tensor, "B H S K"]) -> tuple[Tensor, ...]:
    """Nothing read yet, for the texts of `like`: each layer's sums."""
    texts, heads, _, size = like.shape
    return tuple(like.new_zeros(texts, heads, size, size + 1) for _ in range(layers))
