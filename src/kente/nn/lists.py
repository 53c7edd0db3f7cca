"""The positions of all texts of a batch in one list (N, D), and back into lines where attention needs them.

Whatever looks at one position at a time works on the list, which is filled up to a number of rows that products are fast for
(`linear.filled`). Lines are cut out of it and put back by one copy each way, gradients too.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from kente.nn.linear import filled

Shape = tuple[int, int]
"""(B, T) of texts whose positions stand in one list."""


def listed(x: Float[Tensor, "B T D"]) -> tuple[Float[Tensor, "... D"], Shape | None]:
    """All positions in one list with their shape, where filling it up makes products faster; otherwise x and None."""
    rows = x.flatten(0, 1)
    whole = filled(rows)
    return (x, None) if whole is rows else (whole, (x.shape[0], x.shape[1]))


def in_lines(x: Float[Tensor, "... X"], shape: Shape | None) -> Float[Tensor, "B T X"]:
    """The positions of texts that stand in one list, without what it was filled up with; x itself, if it is no list."""
    return x if shape is None else x[: shape[0] * shape[1]].view(*shape, -1)


def in_heads(
    x: Float[Tensor, "... X"], shape: Shape | None, heads: int, parts: int
) -> tuple[Float[Tensor, "B H T K"], ...]:
    """What stands side by side in each position, such as queries, keys and values: as so many parts, each cut into heads."""
    if shape is not None:
        found: tuple[Tensor, ...] = _Cut.apply(x, shape, heads, parts)
        return found
    return tuple(split_heads(part, heads) for part in x.chunk(parts, dim=-1))


def in_a_list(x: Float[Tensor, "B H T K"], like: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The heads' pieces side by side again: in lines (B, T, D), or in a list as long as `like`, if that is one."""
    if like.dim() == 3:
        return join_heads(x)
    found: Tensor = _Join.apply(x, len(like))
    return found


def split_heads(x: Float[Tensor, "B T D"], heads: int) -> Float[Tensor, "B H T K"]:
    """Cut each vector into one piece for each head."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def join_heads(x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B T D"]:
    """Put the heads' pieces side by side again."""
    return x.transpose(1, 2).flatten(-2)


class _Cut(torch.autograd.Function):
    """Views of a list. Its gradient is written once into a list of that length."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: Shape, heads: int, parts: int) -> tuple[Tensor, ...]:
        ctx.of, ctx.shape, ctx.heads = x.shape, shape, heads
        ctx.set_materialize_grads(False)
        return _cut(x, shape, heads, parts)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *outer: Tensor | None) -> tuple[Tensor | None, None, None, None]:
        some = next((part for part in outer if part is not None), None)
        if some is None:
            return None, None, None, None
        whole = some.new_empty(ctx.of)
        for part, gradient in zip(_cut(whole, ctx.shape, ctx.heads, len(outer)), outer, strict=True):
            part.zero_() if gradient is None else part.copy_(gradient)
        whole[ctx.shape[0] * ctx.shape[1] :].zero_()
        return whole, None, None, None


def _cut(x: Tensor, shape: Shape, heads: int, parts: int) -> tuple[Tensor, ...]:
    lines = x[: shape[0] * shape[1]].view(*shape, parts, heads, -1)
    return lines.permute(2, 0, 3, 1, 4).unbind(0)


class _Join(torch.autograd.Function):
    """What `_cut` takes apart, put into a list of so many rows. Its gradient is a view of that list's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: int) -> Tensor:
        sentences, heads, length, size = ctx.of = x.shape
        whole = x.new_empty(rows, heads * size)
        _cut(whole, (sentences, length), heads, 1)[0].copy_(x)
        whole[sentences * length :].zero_()
        return whole

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None]:
        sentences, heads, length, _ = ctx.of
        return _cut(outer, (sentences, length), heads, 1)[0], None
