"""What a decoder remembers of the words it has written: keys and values, written in place into buffers with room to spare.

A sentence may be continued in several ways at once, by G rows. Everything that any of them writes stands in one buffer of the sentence,
one entry after the other, and `kin` says for each row which entries are its own past. When a row goes on from where another stood, only
its line of `kin` changes. Entries that no row descends from any more are dropped when room is needed: rows share most of their past, so
that G rows have little more to remember, and to look through, than one. Where attention looks at a stretch of the past only, entries
before it have no row either: a past of any length needs the room of the stretch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kente.nn.masks import LEAST, as_numbers

SPARE = 16
"""Entries a buffer has room for at least beyond those in use; it grows by doubling."""


@dataclass
class Past:
    """The buffers of every layer, and what stands where: by sentence, not by row."""

    layers: tuple[tuple[Tensor, Tensor], ...]  # keys and values, (B, H, E, K) each
    places: Int[Tensor, "B E"]  # the position of the word an entry belongs to
    used: Int[Tensor, "B"]  # entries in use; the next is written behind them
    position: Int[Tensor, "B"]  # words written by each row


def no_past(layers: int, like: Float[Tensor, "B H S K"]) -> Past:
    """Nothing written yet, for the sentences of `like`."""
    nothing = like.new_empty(*like.shape[:2], 0, like.shape[3])
    zero = torch.zeros(len(like), dtype=torch.long, device=like.device)
    return Past(((nothing, nothing),) * layers, zero.new_empty(len(like), 0), zero, zero)


@dataclass(frozen=True)
class Column:
    """The next position of each row: which entries it fills, and what may be looked at. The same in every layer."""

    fills: Int[Tensor, "B G"]  # the entry that each row fills
    together: slice | None  # these, where all sentences fill the same
    seen: int  # entries that attention is given: all there are, and room behind them where they are few (masks.LEAST)
    position: Int[Tensor, "B"]
    places: Int[Tensor, "B S"]
    mask: Float[Tensor, "B 1 G S"] | None  # 0 = may look, -inf = may not; None = may look at everything

    def add(self, buffer: Float[Tensor, "B H E K"], new: Float[Tensor, "B H G K"]) -> Float[Tensor, "B H S K"]:
        """Write new keys or values; returns those to be given to attention."""
        if self.together is not None:
            buffer[:, :, self.together] = new
        else:
            buffer[self._sentences, :, self.fills] = new.transpose(1, 2)
        return buffer[:, :, : self.seen]

    @cached_property
    def _sentences(self) -> Int[Tensor, "B 1"]:
        return torch.arange(len(self.fills), device=self.fills.device)[:, None]

    @cached_property
    def apart(self) -> Int[Tensor, "B 1 S"]:
        """j - i from the new position i to the position j of each entry."""
        return (self.places - self.position[:, None])[:, None]


def open_column(
    past: Past, kin: Bool[Tensor, "N E"], first: Callable[[Tensor], Tensor] | None = None
) -> tuple[Past, Bool[Tensor, "N E2"], Column]:
    """(past, kin, column) as they will be when each row has written one more word into the column.

    `first` says which place is the first that a position looks at (longspan.Window.first); without it, all are looked at.
    """
    if not past.layers:  # sums in place of entries: linear attention
        nowhere = past.places[:, :0]
        return (
            replace(past, position=past.position + 1),
            kin,
            Column(nowhere, None, 0, past.position, past.places, None),
        )
    sentences, group = len(past.used), len(kin) // len(past.used)
    if first is not None:
        in_sight = past.places >= first(past.position)[:, None]
        # what is out of sight is nobody's past any more, and stands nowhere that would have to be felt as a distance
        kin = kin & in_sight.repeat_interleave(group, dim=0)
        past = replace(past, places=torch.where(in_sight, past.places, past.position[:, None]))
    if int(past.used.max()) + group > kin.shape[1]:
        past, kin = _with_room(past, kin, group)
    first_free, last = int(past.used.min()), int(past.used.max())
    fills = past.used[:, None] + torch.arange(group, device=kin.device)
    kin = kin.scatter(1, fills.view(-1, 1), True)  # another one: a state stays as it is
    places = past.places.scatter(1, fills, past.position[:, None].expand(-1, group))
    seen = max(last + group, min(LEAST, kin.shape[1]))
    own = kin[:, :seen]
    mask = None if bool(own.all()) else as_numbers(own.view(sentences, 1, group, seen), past.layers[0][0])
    together = slice(last, last + group) if first_free == last else None
    after = Past(past.layers, places, past.used + group, past.position + 1)
    return after, kin, Column(fills, together, seen, past.position, places[:, :seen], mask)


def _with_room(past: Past, kin: Tensor, group: int) -> tuple[Past, Tensor]:
    """Only the entries that some row descends from, and room for more behind them."""
    sentences = len(past.used)
    alive = kin.view(sentences, group, -1).any(1)  # (B, E)
    used = alive.sum(1)
    kept = int(used.max())
    living_first = alive.byte().argsort(dim=1, descending=True, stable=True)
    order = living_first[:, :kept]  # (B, kept)
    spare = max(kept, SPARE, 2 * group)

    def pack(buffer: Tensor) -> Tensor:
        index = order[:, None, :, None].expand(-1, buffer.shape[1], -1, buffer.shape[3])
        return F.pad(buffer.gather(2, index), (0, 0, 0, spare))

    layers = tuple((pack(keys), pack(values)) for keys, values in past.layers)
    places = F.pad(past.places.gather(1, order), (0, spare))
    rows = order.repeat_interleave(group, dim=0)
    return Past(layers, places, used, past.position), F.pad(kin.gather(1, rows), (0, spare))
