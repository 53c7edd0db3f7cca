"""What a decoder remembers of the words it has written: keys and values in buffers that are written in place.

A sentence may be continued in several ways at once, by G rows. Their keys and values stand side by side, position by position:
(B, H, capacity, G, K). When one row goes on from where another stood, nothing moves; `slots` (B G, capacity) says for each row which
of the G holds its own past at each position, and a mask hides the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kente.nn.masks import as_numbers

SMALLEST = 16
"""Positions a buffer has at least; it grows by doubling."""

Past = tuple[Tensor, Tensor]
"""Buffers of one layer's keys and values, (B, H, capacity, side, K) each: `side` rows of a sentence have room beside each other."""


@dataclass(frozen=True)
class Column:
    """The next position of each sentence: where it is written and what its rows may look at. The same in every layer."""

    position: Int[Tensor, "B"]
    same: int | None  # that position, if it is the same for all
    width: int  # positions to look at, the new one included
    side: int
    mask: Float[Tensor, "B 1 G S"] | None  # over all S = width x side keys: 0 = may look, -inf = may not; None = all

    def add(self, past: Float[Tensor, "B H C side K"], new: Float[Tensor, "B H G K"]) -> Float[Tensor, "B H S K"]:
        """Put new keys or values in their place; returns those of all rows of a sentence up to there."""
        group = new.shape[2]
        if self.same is not None:
            past[:, :, self.same, :group] = new
        else:
            sentences = torch.arange(len(new), device=new.device)
            past[sentences, :, self.position, :group] = new
        return past[:, :, : self.width].flatten(2, 3)

    @cached_property
    def apart(self) -> Int[Tensor, "B 1 S"]:
        """j - i from the new position i to the position j of each key."""
        places = torch.arange(self.width, device=self.position.device).repeat_interleave(self.side)
        return (places - self.position[:, None])[:, None]


def open_column(
    past: tuple[Past, ...], slots: Int[Tensor, "N C"], position: Int[Tensor, "B"]
) -> tuple[tuple[Past, ...], Int[Tensor, "N C2"], Column]:
    """Room for one more position: (buffers, slots, the column), larger ones where these are full."""
    group = len(slots) // len(position)
    first, last = (int(end) for end in position.aminmax())
    _, _, capacity, side, _ = past[0][0].shape
    if last >= capacity or group > side:
        wanted, side = capacity if last < capacity else max(2 * last, SMALLEST), max(side, group)
        past = tuple((_grown(keys, wanted, side), _grown(values, wanted, side)) for keys, values in past)
        slots = F.pad(slots, (0, wanted - capacity))
    if side > 1:
        own = torch.arange(len(slots), device=slots.device) % group
        slots.scatter_(1, position.repeat_interleave(group)[:, None], own[:, None])
    same = last if first == last else None
    mask = _mask(slots, position, last + 1, side, same is not None)
    return past, slots, Column(position, same, last + 1, side, None if mask is None else as_numbers(mask, past[0][0]))


def _grown(buffer: Tensor, capacity: int, side: int) -> Tensor:
    return F.pad(buffer, (0, 0, 0, side - buffer.shape[3], 0, capacity - buffer.shape[2]))


def _mask(slots: Tensor, position: Tensor, width: int, side: int, same: bool) -> Bool[Tensor, "B 1 G S"] | None:
    """True where a row's own past stands."""
    rows = (len(position), -1)
    mask: Tensor | None = None
    if side > 1:
        beside = torch.arange(side, device=slots.device)
        mask = (slots[:, :width, None] == beside).unflatten(0, rows)  # (B, G, width, side)
    if not same:
        written = torch.arange(width, device=slots.device) <= position[:, None]
        written = written[:, None, :, None].expand(-1, len(slots) // len(position), -1, side)
        mask = written if mask is None else mask & written
    return None if mask is None else mask.flatten(2)[:, None]
