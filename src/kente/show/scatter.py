"""Points on paper, a colour and a mark to each group: a map of vectors. Distances matter, axes do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kente.show.charts import COLOURS, MARKS, sign
from kente.show.text import cut, escaped, isolated

WIDTH, HEIGHT, MARGIN = 640, 460, 12
LONGEST = 90
"""Letters of a point's text, which is shown to whoever points at it."""


@dataclass(frozen=True)
class Points:
    """A group: its name, and of each point where it is and what it stands for."""

    name: str
    points: Sequence[tuple[float, float, str]]


def scatter(groups: Sequence[Points], *, title: str, note: str = "") -> str:
    """All groups in one drawing, each of which can be hidden. Both directions have the same scale."""
    every = [point for group in groups for point in group.points]
    left, right = min((x for x, _, _ in every), default=0.0), max((x for x, _, _ in every), default=1.0)
    low, high = min((y for _, y, _ in every), default=0.0), max((y for _, y, _ in every), default=1.0)
    scale = min((WIDTH - 2 * MARGIN) / max(right - left, 1e-9), (HEIGHT - 2 * MARGIN) / max(high - low, 1e-9))
    shift = (WIDTH - scale * (right - left)) / 2, (HEIGHT - scale * (high - low)) / 2
    parts = []
    for place, group in enumerate(groups):
        marks = "".join(
            f'<path d="{MARKS[place % len(MARKS)]}" transform="translate({shift[0] + scale * (x - left):.1f} '
            f'{HEIGHT - shift[1] - scale * (y - low):.1f}) scale(.7)"><title>{escaped(cut(words, LONGEST))}</title></path>'
            for x, y, words in group.points
        )
        parts.append(f'<g class="series s{place % COLOURS}" data-series="{place}"><g class="marks">{marks}</g></g>')
    keys = "".join(
        f'<li><button type="button" class="key" data-series="{place}" aria-pressed="true">{sign(place, reach=8)}'
        f"<span>{isolated(group.name)}</span></button></li>"
        for place, group in enumerate(groups)
    )
    label = escaped(f"{title}: " + "; ".join(f"{len(group.points)} points of {group.name}" for group in groups))
    return (
        f'<figure class="chart"><figcaption>{escaped(title)}</figcaption><ul class="legend">{keys}</ul>'
        f'<svg class="drawing" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
        + (f'<p class="note">{escaped(note)}</p>' if note else "")
        + "</figure>"
    )
