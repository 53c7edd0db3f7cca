"""What a decoder remembers of the words it has written: keys and values in buffers that are written in place.

A sentence may be continued in several ways at once, by G rows. Their keys and values stand side by side, position by position:
(B, capacity, G, 2D). When one row goes on from where another stood, nothing moves; `slots` (B G, capacity) says for each row which of
the G holds its own past at each position, and a mask hides the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

SMALLEST = 16
"""Positions a buffer has at least; it grows by doubling."""


@dataclass(frozen=True)
class Column:
    """The next position of each sentence: where it is written and what its rows may look at. The same in every layer."""

    position: Int[Tensor, "B"]
    width: int  # positions to look at, the new one included
    side: int  # rows that have room beside each other
    place: tuple[Any, ...]  # the index of the new position in a buffer
    mask: Bool[Tensor, "B 1 G S"] | None  # over all S = width x side keys that `read` gives; None = all

    def write(self, past: Float[Tensor, "B C side E"], new: Float[Tensor, "B G E"]) -> None:
        """Put the new keys and values in their place."""
        past[self.place] = new

    def read(
        self, past: Float[Tensor, "B C side E"], heads: int
    ) -> tuple[Float[Tensor, "B H S K"], Float[Tensor, "B H S K"]]:
        """Keys and values of everything up to the new position, of all rows of a sentence."""
        both = past[:, : self.width].flatten(1, 2).unflatten(-1, (2, heads, -1))  # (B, S, 2, H, K)
        keys, values = both.unbind(2)
        return keys.transpose(1, 2), values.transpose(1, 2)

    @cached_property
    def apart(self) -> Int[Tensor, "B 1 S"]:
        """j - i from the new position i to the position j of each key."""
        places = torch.arange(self.width, device=self.position.device).repeat_interleave(self.side)
        return (places - self.position[:, None])[:, None]


def open_column(
    past: tuple[Tensor, ...], slots: Int[Tensor, "N C"], position: Int[Tensor, "B"]
) -> tuple[tuple[Tensor, ...], Int[Tensor, "N C2"], Column]:
    """Room for one more position: (buffers, slots, the column), larger ones where these are full."""
    sentences, group = len(position), len(slots) // len(position)
    first, last = (int(end) for end in position.aminmax())
    _, capacity, side, _ = past[0].shape
    wanted, side = capacity if last < capacity else max(2 * last, SMALLEST), max(side, group)
    if past[0].shape[1:3] != (wanted, side):
        past = tuple(F.pad(x, (0, 0, 0, side - x.shape[2], 0, wanted - capacity)) for x in past)
        slots = F.pad(slots, (0, wanted - capacity))
    width, own = last + 1, slice(0, group)
    places = torch.arange(width, device=position.device)
    mask: Tensor | None = None
    if first == last:
        place: tuple[Any, ...] = (slice(None), last, own)
    else:
        place = (torch.arange(sentences, device=position.device), position, own)
        mask = (places <= position[:, None])[:, None, :, None].expand(-1, group, -1, side)  # (B, G, width, side)
    if side > 1:
        beside = torch.arange(side, device=position.device)
        slots.unflatten(0, (sentences, group))[place[0], :, place[1]] = beside[own].to(slots)
        kin = (slots[:, :width, None] == beside).unflatten(0, (sentences, group))
        mask = kin if mask is None else mask & kin
    return past, slots, Column(position, width, side, place, None if mask is None else mask.flatten(2)[:, None])
