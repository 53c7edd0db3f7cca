"""One map out of many: which kind, which layer, which head, and whether pieces are joined to words."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kente.errors import UsageError
from kente.measure.explored import Head, Maps, Reading, Weights, by_words

TITLES = {"cross": "target to source", "encoder": "within the source", "decoder": "within the target"}
"""Kinds of maps in words; a kind without any goes by its name."""


@dataclass(frozen=True)
class View:
    """What to show of every model. Layers and heads count from 0; the usual layer is the last but one, of a rollout the last."""

    kind: str = "cross"
    layer: int | Literal["usual", "all"] = "usual"
    head: Head = "mean"
    joined: bool = True


@dataclass(frozen=True, eq=False)
class Shown:
    """A map ready to be drawn."""

    title: str
    weights: Weights  # (rows, columns)
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    links: tuple[tuple[int, int], ...]

    def mirrored(self) -> Shown:
        """With the columns from right to left where their words are written so."""
        if not right_to_left(self.columns):
            return self
        last = len(self.columns) - 1
        links = tuple((row, last - column) for row, column in self.links)
        return Shown(self.title, self.weights[:, ::-1], self.rows, self.columns[::-1], links)


def shown(reading: Reading, view: View) -> Shown | None:
    """The map of this view; None where the model has no such maps."""
    maps = reading.of(view.kind)
    if maps is None:
        known = {*reading.absent, *(m.kind for m in reading.maps)}
        if view.kind not in known:
            raise UsageError(f"no maps of kind {view.kind}; there are {', '.join(sorted(known))}")
        return None
    layer = _layer(maps, view)
    weights = maps.seen(layer, view.head)
    rows, columns = reading.sides[maps.rows], reading.sides[maps.columns]
    links = reading.links if view.kind == "cross" else ()
    if view.joined:
        weights = by_words(weights, rows, columns)
        places = [
            {piece: place for place, word in enumerate(side.words) for piece in range(word.begin, word.end)}
            for side in (rows, columns)
        ]
        links = tuple(sorted({(places[0][row], places[1][column]) for row, column in links}))
    return Shown(
        f"{TITLES.get(view.kind, view.kind)}, {_title(maps, layer, view.head)}",
        np.asarray(weights),
        rows.labels(view.joined),
        columns.labels(view.joined),
        links,
    )


def _layer(maps: Maps, view: View) -> int | None:
    if view.layer == "all":
        return None
    if view.layer == "usual":
        return maps.layers - 1 if view.head == "rollout" else maps.usual_layer()
    return view.layer


def _title(maps: Maps, layer: int | None, head: Head) -> str:
    where = "all layers" if layer is None else f"layer {layer + 1} of {maps.layers}"
    if head == "rollout":
        return f"rollout up to layer {maps.layers if layer is None else layer + 1}"
    if isinstance(head, int):
        return f"{where}, head {head + 1} of {maps.heads}"
    if maps.heads == 1:
        return where
    return f"{where}, {head} of {maps.heads} heads"


def right_to_left(words: tuple[str, ...]) -> bool:
    """Whether the first letter that has a direction runs from right to left."""
    for letter in "".join(word for word in words if not word.startswith("<")):
        direction = unicodedata.bidirectional(letter)
        if direction in ("L", "R", "AL"):
            return direction != "L"
    return False
