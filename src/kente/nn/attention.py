"""The operation at the centre:   weights = softmax(score(query, keys) + mask),   context = weights @ values.

Every system in the lectures is this line with something else held fixed. Two paths lead through it: the visible one
shows its weights, the fused one is fast. They are tested equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from kente.nn.dropout import drop
from kente.nn.linear import Linear
from kente.nn.lists import Shape, in_a_list, in_heads, join_heads
from kente.nn.masks import LEAST, causal_mask, up_to_least
from kente.nn.past import Column

Turn = Callable[..., Tensor]
"""(x, positions) -> x: marks queries and keys (B, H, T, K) with where they stand, by default 0, 1, 2, ...; positions.Rotary."""
MultiHead = Callable[..., tuple[Tensor, Tensor | None]]
"""How queries meet keys and values in every head: `multi_head`, or what takes its arguments and feels how far they are `apart`;
positions.Alibi, positions.Relative."""


Mask = Bool[Tensor, "..."] | Float[Tensor, "..."] | None
"""True = may look. Or, ready to be added to many scores: 0 = may look, -inf = may not; `masks.as_numbers`. None = may look everywhere."""
MANY, FEW, SMALL = 64, 8, 400
"""Where `ask` leaves the fused kernel aside: heads of all sentences at least, queries of each at most, multiplications at least."""


def dot_scores(queries: Float[Tensor, "*B T K"], keys: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
    """score_ji = q_j . k_i / sqrt(K)      (lecture 004: softmax(Q K' / sqrt(d)) V)"""
    return queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])


def hide(scores: Float[Tensor, "..."], mask: Mask) -> Float[Tensor, "..."]:
    """Scores where one may look, -inf where not."""
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask


def attend(
    scores: Float[Tensor, "*B T S"], values: Float[Tensor, "*B S K"], mask: Mask = None, dropout: float = 0.0
) -> tuple[Float[Tensor, "*B T K"], Float[Tensor, "*B T S"]]:
    """c_j = sum_i a_ji v_i  with  a_j = softmax_i(score_ji). Returns (context, weights as used). Mask: True = may look."""
    weights = drop(hide(scores, mask).softmax(dim=-1), dropout)
    return weights @ values, weights


def as_mask(mask: Mask, causal: bool, queries: Tensor, keys: Tensor) -> Mask:
    """The mask itself, or `causal` written as one: queries are the last positions of the sequence the keys are from."""
    if not causal:
        return mask
    assert mask is None
    length = queries.shape[-2]
    return causal_mask(length, keys.shape[-2] - length, queries.device)


def multi_head(
    queries: Float[Tensor, "B H T K"],
    keys: Float[Tensor, "B H S K"],
    values: Float[Tensor, "B H S K"],
    mask: Mask,
    *,
    causal: bool = False,
    dropout: float = 0.0,
    visible: bool = False,
) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T S"] | None]:
    """Attention in every head at once. The fused path returns no weights; the visible one cannot drop any out."""
    if visible or (dropout and queries.is_cpu):  # torch's fused kernel has no dropout there
        mask = as_mask(mask, causal, queries, keys)
        context, weights = attend(dot_scores(queries, keys), values, mask, 0.0 if visible else dropout)
        return context, weights if visible else None
    if keys.shape[2] < LEAST and not causal and queries.is_cpu and not torch.is_grad_enabled():
        everywhere = torch.ones(1, 1, 1, keys.shape[2], dtype=torch.bool) if mask is None else mask
        if everywhere.dtype == torch.bool:
            keys, values, mask = up_to_least(keys, -2), up_to_least(values, -2), up_to_least(everywhere, -1)
    return F.scaled_dot_product_attention(queries, keys, values, mask, dropout, is_causal=causal), None


def ask(
    queries: Float[Tensor, "B H G K"],
    keys: Float[Tensor, "B H S K"],
    values: Float[Tensor, "B H S K"],
    mask: Float[Tensor, "B 1 G2 S"] | None,
) -> Float[Tensor, "B G D"]:
    """What `multi_head` gives, heads joined, while writing word by word: few queries of many sentences, no gradient.

    On a CPU plain products are then faster than the fused kernel, unless they are so small that torch has no fast product for them.
    """
    (sentences, heads, group, size), others = queries.shape, keys.shape[2]
    if queries.device.type != "cpu" or sentences * heads < MANY or group > FEW or group * others * size < SMALL:
        return join_heads(F.scaled_dot_product_attention(queries, keys, values, mask))
    flat = (sentences * heads, -1, size)
    scores = torch.bmm((queries * size**-0.5).reshape(flat), keys.reshape(flat).mT).view(
        sentences, heads, group, others
    )
    weights = (scores if mask is None else scores.add_(mask)).softmax(dim=-1)
    return join_heads(torch.bmm(weights.view(-1, group, others), values.reshape(flat)).view(queries.shape))


def begin_stacked(projection: Linear, width: int) -> None:
    """Initialise matrices that were stacked for speed as if each stood alone, and biases, if any, at nothing."""
    for block in projection.weight.split(width):
        nn.init.xavier_uniform_(block)
    if projection.bias is not None:
        nn.init.zeros_(projection.bias)


class SelfAttention(nn.Module):
    """C = Attn(X, X): queries, keys and values come from the same sequence (lecture 003), H heads side by side.

    Positions that act inside attention are parts: `turn` marks queries and keys before they meet, `meet` is how they meet.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float = 0.0,
        turn: Turn | None = None,
        meet: MultiHead = multi_head,
        *,
        biases: bool = False,
    ):
        super().__init__()
        self.heads, self.dropout, self.turn, self.meet = heads, dropout, turn, meet
        self.query_key_value = Linear(width, 3 * width, bias=biases)  # three matrices in one: one pass over memory
        self.output = Linear(width, width, bias=biases)
        for projection in (self.query_key_value, self.output):
            begin_stacked(projection, width)

    def forward(
        self,
        x: Float[Tensor, "... D"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        shape: Shape | None = None,
        causal: bool = False,
        visible: bool = False,
        read: list[tuple[Tensor, Tensor]] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns (context, weights). x is (B, T, D), or a list of all positions (N, D) with its `shape` (B, T).

        `read`, when given, collects keys and values, for `step` to go on from.
        """
        queries, keys, values = in_heads(self.query_key_value(x), shape, self.heads, 3)
        if self.turn is not None:
            queries, keys = self.turn(queries), self.turn(keys)
        if read is not None:
            read.append((keys, values))
        dropout = self.dropout if self.training else 0.0
        context, weights = self.meet(queries, keys, values, mask, causal=causal, dropout=dropout, visible=visible)
        return self.output(in_a_list(context, x)), weights

    def step(self, x: Float[Tensor, "N D"], past: tuple[Tensor, ...], column: Column) -> Float[Tensor, "N D"]:
        """The context of one more position in each of a sentence's rows. Writes its keys and values into the buffers `past`."""
        rows = (len(column.position), -1, 3, self.heads, x.shape[1] // self.heads)  # (B, G, 3, H, K)
        queries, keys, values = self.query_key_value(x).view(rows).permute(2, 0, 3, 1, 4)
        if self.turn is not None:
            where = column.position[:, None, None]
            queries, keys = self.turn(queries, where), self.turn(keys, where)
        keys, values = column.add(past[0], keys), column.add(past[1], values)
        if self.meet is multi_head:
            context = ask(queries, keys, values, column.mask)
        else:
            context = join_heads(self.meet(queries, keys, values, column.mask, apart=column.apart)[0])
        return self.output(context.view(x.shape))


class CrossAttention(nn.Module):
    """C = Attn(X, X'): queries from the target, keys and values from the encoder (lecture 004: Q = M W_Q, K = R W_K, V = R W_V)."""

    def __init__(
        self, width: int, heads: int, dropout: float = 0.0, meet: MultiHead = multi_head, *, biases: bool = False
    ):
        super().__init__()
        self.heads, self.dropout, self.meet = heads, dropout, meet
        self.query = Linear(width, width, bias=biases)
        self.key_value = Linear(width, 2 * width, bias=biases)
        self.output = Linear(width, width, bias=biases)
        for projection in (self.query, self.key_value, self.output):
            begin_stacked(projection, width)

    def project(
        self, memory: Float[Tensor, "... D"], shape: Shape | None = None
    ) -> tuple[Float[Tensor, "B H S K"], Float[Tensor, "B H S K"]]:
        """Keys and values of the source: computed once for a sentence, used at every step."""
        keys, values = in_heads(self.key_value(memory), shape, self.heads, 2)
        return keys, values

    def forward(
        self,
        x: Float[Tensor, "... D"],
        memory: tuple[Tensor, Tensor],
        mask: Mask = None,
        *,
        shape: Shape | None = None,
        visible: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns (context, weights). x is (B, T, D), or a list of all positions (N, D) with its `shape` (B, T)."""
        (queries,) = in_heads(self.query(x), shape, self.heads, 1)
        dropout = self.dropout if self.training else 0.0
        context, weights = self.meet(queries, *memory, mask, dropout=dropout, visible=visible)
        return self.output(in_a_list(context, x)), weights

    def step(
        self, x: Float[Tensor, "N D"], memory: tuple[Tensor, Tensor], mask: Float[Tensor, "B 1 1 S"]
    ) -> Float[Tensor, "N D"]:
        """The context of one more position; the rows of a sentence ask its one source together."""
        rows = (len(mask), -1, self.heads, x.shape[1] // self.heads)  # (B, G, H, K)
        return self.output(ask(self.query(x).view(rows).transpose(1, 2), *memory, mask).view(x.shape))
