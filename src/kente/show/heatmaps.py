"""Attention as a picture: a row to a target piece, a column to a source piece, stronger where more of the weight lies.

A page holds many thousands of cells, so cells of like weight share one path: an element each would weigh forty bytes, this
weighs seven. The weights themselves, in thousandths, stand beside the drawing for whoever points at a cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kente.show.axes import drawable
from kente.show.text import breadth, cut, escaped, visible

CELL = 22
LETTER = 7.4
LONGEST = 14
"""Letters of a label; what is cut is whole in its <title>."""
LEVELS = 25
SLANT = 0.75
"""Sine and cosine of the angle of the column labels, rounded up for the height of their letters."""
SMALLEST = 0.75
"""A map shrinks by this much to fit; beyond that it scrolls in its box, so that its labels stay readable."""


@dataclass(frozen=True)
class Drawing:
    """A map in units of its own: markup of an <svg>, how large it is, and its weights in thousandths."""

    markup: str
    width: float
    height: float
    shares: list[list[int | None]]


def heatmap(
    weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], *, title: str, note: str = ""
) -> str:
    """weights[row][column] from 0 to 1. Values outside are drawn as the nearest of these; None and NaN stay empty."""
    drawn = drawing(weights, rows, columns)
    label = f"{title}: weights of {len(rows)} rows over {len(columns)} columns. {_summary(drawn.shares, rows, columns)}"
    numbers = ";".join(",".join("" if share is None else str(share) for share in row) for row in drawn.shares)
    return (
        f'<figure class="map"><figcaption>{escaped(title)}</figcaption><div class="scroll">'
        f'<svg class="weights" viewBox="0 0 {drawn.width:.4g} {drawn.height:.4g}" tabindex="0" role="img" '
        f'aria-label="{escaped(label)}" style="max-width:{drawn.width:.0f}px;min-width:{drawn.width * SMALLEST:.0f}px" '
        f'data-weights="{numbers}">{drawn.markup}</svg></div>'
        '<output class="readout">a row looks at its columns; stronger colour is more weight</output>'
        + (f'<p class="note">{escaped(note)}</p>' if note else "")
        + "</figure>"
    )


def drawing(
    weights: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    linked: Iterable[tuple[int, int]] = (),
) -> Drawing:
    """The picture alone; cells (row, column) that are `linked` have a ring."""
    assert len(weights) == len(rows) and all(len(row) == len(columns) for row in weights), (
        "a weight to every pair of labels"
    )
    shares = [[_thousandths(weight) for weight in row] for row in weights]
    head, left = _longest(columns) * SLANT + 12, _longest(rows) + 10
    across, down = CELL * len(columns), CELL * len(rows)
    rings = "".join(f"M{CELL * column + 4} {CELL * row + 4}h14v14h-14z" for row, column in linked)
    markup = (
        f'<g transform="translate({left:.4g} {head:.4g})">'
        f'<g class="rows" transform="translate(-6 {CELL // 2})">{_row_labels(rows)}</g>'
        f'<g class="columns" transform="rotate(-45)">{_column_labels(columns)}</g>'
        f'<rect class="ground" width="{across}" height="{down}"/>'
        f'<g class="cells" transform="scale({CELL})translate(0 .5)">{_cells(shares)}</g>'
        f'<path class="threads" d="{_threads(len(rows), len(columns))}"/>'
        + (f'<path class="known" d="{rings}"/>' if rings else "")
        + f'<rect class="cursor" width="{CELL}" height="{CELL}" visibility="hidden"/></g>'
    )
    return Drawing(markup, natural_width(rows, columns), head + down + 4, shares)


def natural_width(rows: Sequence[str], columns: Sequence[str]) -> float:
    """Pixels a map takes at its full size: row labels, cells, and what the last column label leans over."""
    return _longest(rows) + 10 + CELL * len(columns) + _longest(columns) * SLANT


def _thousandths(weight: float | None) -> int | None:
    if weight is None or not drawable(weight):
        return None
    return round(1000 * min(max(weight, 0.0), 1.0))


def _longest(labels: Sequence[str]) -> float:
    return LETTER * max((breadth(cut(visible(label), LONGEST)) for label in labels), default=1)


def _cells(shares: Sequence[Sequence[int | None]]) -> str:
    """Strokes one unit thick, one path to a level of colour; neighbours of one level are one stroke."""
    levels: dict[int, list[str]] = {}
    for down, row in enumerate(shares):
        start, current = 0, 0
        for across, share in enumerate([*row, None]):
            level = -(-(share or 0) * LEVELS // 1000)
            if across == len(row) or level != current:
                if current:
                    levels.setdefault(current, []).append(f"M{start} {down}h{across - start}")
                start, current = across, level
    return "".join(
        f'<path opacity="{level / LEVELS:g}" d="{"".join(strokes)}"/>' for level, strokes in sorted(levels.items())
    )


def _threads(rows: int, columns: int) -> str:
    across = "".join(f"M0 {CELL * row}h{CELL * columns}" for row in range(rows + 1))
    return across + "".join(f"M{CELL * column} 0v{CELL * rows}" for column in range(columns + 1))


def _row_labels(rows: Sequence[str]) -> str:
    return "".join(f'<text y="{CELL * place}">{_label(row)}</text>' for place, row in enumerate(rows))


def _column_labels(columns: Sequence[str]) -> str:
    """In the turned coordinates of their group: 6 above the map, 14 into the column."""
    return "".join(
        f'<text x="{(CELL * place + 20) * math.sqrt(0.5):.1f}" y="{(CELL * place + 8) * math.sqrt(0.5):.1f}">{_label(column)}</text>'
        for place, column in enumerate(columns)
    )


def _label(piece: str) -> str:
    shown = cut(visible(piece), LONGEST)
    return escaped(shown) + ("" if shown == visible(piece) else f"<title>{escaped(piece)}</title>")


def _summary(shares: Sequence[Sequence[int | None]], rows: Sequence[str], columns: Sequence[str]) -> str:
    """Where each target piece looks most, in words."""
    parts = []
    for row, line in zip(rows, shares, strict=True):
        most = max(range(len(line)), key=lambda place: line[place] or 0, default=None)
        if most is not None:
            parts.append(f"{row} to {columns[most]}")
    return ", ".join(parts)
