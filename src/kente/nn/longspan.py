"""Attention over long sequences at a cost that grows with their length, not with its square: each position looks at a stretch around it.

Two stretches, told apart by where they begin and end. A `Window` moves along with each position. `Segments` stand still: a segment sees
itself and remembers the ones before it (Transformer-XL). Both are computed by blocks: the queries of a block meet the keys of that block
and of its neighbours, so that scores exist for pairs that are near each other and for no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.nn.attention import Mask, MultiHead, multi_head
from kente.nn.recompute import once_more


@dataclass(frozen=True)
class Window:
    """i looks at j when |i - j| < reach, and at no j > i where order is kept (Beltagy et al., 2020; Child et al., 2019)."""

    reach: int

    @property
    def block(self) -> int:
        """Positions computed together. Those a block looks at lie in it or in the `before` and `after` blocks beside it."""
        return self.reach

    before = 1
    after = 1

    def first(self, place: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """The first place that a position looks at; below 0 when that is the beginning."""
        return place - self.reach + 1

    def last(self, place: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        """The last place that a position looks at where it may look ahead."""
        return place + self.reach - 1


@dataclass(frozen=True)
class Segments:
    """i looks at its own segment and at the `remembered` ones before it (Dai et al., 2019).

    There the memory comes from an earlier update and lets no gradient through. Here segments follow each other within one
    reading: the gradient goes through them all, and nothing has to be carried from one batch to the next.
    """

    length: int
    remembered: int = 1

    after = 0

    @property
    def block(self) -> int:
        return self.length

    @property
    def before(self) -> int:
        return self.remembered

    def first(self, place: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        return (place // self.length - self.remembered) * self.length

    def last(self, place: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
        return (place // self.length + 1) * self.length - 1


Span = Window | Segments


def within(
    span: Span, looking: Int[Tensor, "*n T"], seen: Int[Tensor, "*n S"], *, causal: bool
) -> Bool[Tensor, "*n T S"]:
    """Which places `seen` lie in the stretch of each place `looking`."""
    last = looking if causal else span.last(looking)
    place = seen[..., None, :]
    return (place >= span.first(looking)[..., None]) & (place <= last[..., None])


class Blockwise(nn.Module):
    """How queries meet the keys of their stretch: `meet` for each block of queries and its neighbours.

    `meet` may feel distances (positions.Relative, Alibi, RelativeSinusoid). A sequence that fits into one block meets as a whole.
    """

    def __init__(self, span: Span, meet: MultiHead = multi_head):
        super().__init__()
        self.span, self.meet = span, meet

    def forward(
        self,
        queries: Float[Tensor, "B H T K"],
        keys: Float[Tensor, "B H S K"],
        values: Float[Tensor, "B H S K"],
        mask: Mask,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        visible: bool = False,
        apart: Int[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T S"] | None]:
        """Attention in every head at once. With `apart` the keys are what is left of a past (past.open_column): the stretch itself."""
        if apart is not None:
            return self.meet(queries, keys, values, mask, **self._felt(apart))
        length = queries.shape[2]
        if length <= self.span.block:
            return self.meet(queries, keys, values, mask, causal=causal, dropout=dropout, visible=visible)
        if visible:
            places = torch.arange(length, device=queries.device)
            look = _or_itself(within(self.span, places, places, causal=causal), mask, places, places)
            return self.meet(queries, keys, values, look, visible=True)
        return self._by_blocks(queries, keys, values, mask, causal, dropout), None

    def _felt(self, apart: Tensor) -> dict[str, Any]:
        return {} if self.meet is multi_head else {"apart": apart}

    def _by_blocks(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Mask, causal: bool, dropout: float
    ) -> Float[Tensor, "B H T K"]:
        batch, _, length, _ = queries.shape
        size, before, after = self.span.block, self.span.before, 0 if causal else self.span.after
        count = -(-length // size)
        looking = torch.arange(count * size, device=queries.device).view(count, size)
        near = torch.arange(-before * size, (1 + after) * size, device=queries.device)
        seen = looking[:, :1] + near  # (blocks, those looked at)
        look = within(self.span, looking, seen, causal=causal) & ((seen >= 0) & (seen < length))[:, None]
        if mask is not None:  # (B, 1, 1, S)
            mask = neighbours(mask[:, 0, 0], size, before, after)[:, :, None]
        look = _or_itself(look, mask, looking, seen)
        whole = look.expand(batch, *look.shape[-3:]).flatten(0, 1)[:, None]  # (B blocks, 1, queries, keys)
        # where a block is the end of what it sees, distances are those `meet` takes for granted
        felt = self._felt((near - looking[0, :, None])[None]) if after else {}
        parts = (
            neighbours(x.transpose(1, 2), size, before, after).flatten(0, 1).transpose(1, 2) for x in (keys, values)
        )
        blocks = neighbours(queries.transpose(1, 2), size, 0, 0).flatten(0, 1).transpose(1, 2)
        context, _ = self.meet(blocks, *parts, whole, dropout=dropout, **felt)
        joined = context.transpose(1, 2).reshape(batch, count * size, *queries.shape[1::2])  # (B, T, H, K)
        return joined[:, :length].transpose(1, 2)


def _or_itself(look: Tensor, mask: Mask, looking: Tensor, seen: Tensor) -> Tensor:
    """`look` where the mask allows it, and every position at itself.

    For a word that is no addition. Padding may have nothing but padding around it, and a softmax over nothing is no number.
    """
    own = looking[..., :, None] == seen[..., None, :]
    return (look if mask is None else look & mask) | own


def neighbours(x: Tensor, size: int, before: int, after: int) -> Tensor:
    """(B, T, ...) -> (B, blocks, places, ...): beside each block of `size` places those before and after it; zeros beyond the ends."""
    count = -(-x.shape[1] // size)
    front, back = before * size, (count + after) * size - x.shape[1]
    padded = F.pad(x, (*(0, 0) * (x.dim() - 2), front, back)).unflatten(1, (-1, size))
    if not before and not after:
        return padded
    return torch.cat([padded[:, start : start + count] for start in range(before + 1 + after)], dim=2)


CHUNK = 128
"""Queries that `in_chunks` lets ask at a time."""


def in_chunks(
    queries: Float[Tensor, "B H T K"],
    keys: Float[Tensor, "B H S K"],
    values: Float[Tensor, "B H S K"],
    mask: Mask,
    *,
    dropout: float = 0.0,
    visible: bool = False,
) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T S"] | None]:
    """`multi_head` for a long source: CHUNK queries at a time, whose weights are forgotten and made again for the gradient.

    The same numbers as all at once. Weights exist for CHUNK x S pairs instead of T x S (Rabe and Staats, 2021); the fused kernel does as
    much by itself, so this counts where that one cannot be used: with dropout on the weights.
    """
    if visible or queries.shape[2] <= CHUNK:
        return multi_head(queries, keys, values, mask, dropout=dropout, visible=visible)

    def asked(part: Tensor) -> Tensor:
        return multi_head(part, keys, values, mask, dropout=dropout)[0]

    return torch.cat([once_more(asked, part) for part in queries.split(CHUNK, dim=2)], dim=2), None
