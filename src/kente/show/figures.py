"""Attention as a picture that stands alone, for a paper: SVG with its style inside, a panel to each model; PNG drawn from it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from kente.measure.explored import Explored, Reading
from kente.show.heatmaps import CELL, Drawing, drawing
from kente.show.raster import png_of
from kente.show.text import escaped
from kente.show.views import View, shown

STYLE = (
    'text{font:13px system-ui,"Noto Sans","DejaVu Sans","Liberation Sans",sans-serif;fill:#1e1b16;dominant-baseline:central;'
    "unicode-bidi:isolate}.title{font-weight:600}.rows{text-anchor:end}.ground{fill:#fff}.cells{stroke:#0d5a8c;fill:none}"
    ".threads{stroke:#e6dfd1;fill:none}.known{fill:none;stroke:#c94f00;stroke-width:2}.cursor{display:none}"
    ".value{fill:#0d5a8c}"
)
GAP, LINE, LETTER = 28, 20, 7.4
REASON = 46
"""Letters in a line of a sentence that explains why there is no map."""
VALUES = 64
"""Values of a vector in a row."""


def svg(explored: Explored, view: View) -> str:
    """The view of every model, side by side."""
    panels = [_panel(reading, view) for reading in explored.readings]
    left, parts = 0.0, []
    for panel in panels:
        parts.append(f'<g transform="translate({left:.4g} 0)">{panel.markup}</g>')
        left += panel.width + GAP
    width, height = left - GAP, max(panel.height for panel in panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def png(explored: Explored, view: View) -> bytes:
    """The same, as pixels."""
    return png_of(svg(explored, view))


def _panel(reading: Reading, view: View) -> Drawing:
    found = shown(reading, view)
    if found is None:
        lines = textwrap.wrap(reading.absent[view.kind], REASON)
        return _headed([reading.name], _explained(lines, reading.vector))
    picture = found.mirrored()
    drawn = drawing(picture.weights.tolist(), picture.rows, picture.columns, linked=picture.links)
    return _headed([reading.name, found.title], drawn)


def _headed(words: Sequence[str], drawn: Drawing) -> Drawing:
    """A drawing with lines of text above it."""
    kinds = (' class="title"', *[""] * len(words))
    heads = "".join(
        f'<text{kind} y="{LINE * (place + 0.5):g}">{escaped(line)}</text>'
        for place, (kind, line) in enumerate(zip(kinds, words, strict=False))
    )
    top = LINE * len(words) + 4
    width = max(drawn.width, *(LETTER * len(line) for line in words))
    return Drawing(
        f'{heads}<g transform="translate(0 {top})">{drawn.markup}</g>', width, drawn.height + top, drawn.shares
    )


def _explained(lines: Sequence[str], vector: Sequence[float]) -> Drawing:
    """Why there is no map, and what there is instead: one vector, a bar to a value, up or down."""
    words = "".join(f'<text y="{LINE * (place + 0.5):g}">{escaped(line)}</text>' for place, line in enumerate(lines))
    top, bars = LINE * len(lines) + 8, []
    largest = max((abs(value) for value in vector), default=1.0) or 1.0
    for place, value in enumerate(vector):
        row, column = divmod(place, VALUES)
        middle = top + 2 * CELL * (row + 0.5)
        bars.append(f"M{5 * column + 2} {middle:g}v{-value / largest * CELL * 0.9:.2f}")
    height = top + 2 * CELL * -(-len(vector) // VALUES) + 4
    markup = f'{words}<path stroke="#0d5a8c" stroke-width="3" d="{"".join(bars)}"/>'
    return Drawing(markup, max(5 * min(len(vector), VALUES), LETTER * REASON), height, [])
