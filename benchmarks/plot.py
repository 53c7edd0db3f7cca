"""Charts as SVG files that stand alone: a light card, so that they read on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kente.show.axes import Axis, axis, short

WIDTH = 760
INK, FAINT, CARD, RULE = "#1f2933", "#66717d", "#fbfaf7", "#dcd8cf"
OURS, THEIRS = "#b8860b", "#5b7083"
LINES = ("#b8860b", "#2f6690", "#a23b3b", "#4b7f52", "#6b4e8e", "#8a5a2b", "#1f9e9a", "#c2558f")
LETTER = 7.2
"""Width of a letter, about, in the size of text used."""


@dataclass(frozen=True)
class Bar:
    """A name, a value, and the range its samples had."""

    name: str
    value: float
    low: float
    high: float
    ours: bool = False


@dataclass(frozen=True)
class Line:
    """Points of one series."""

    name: str
    points: Sequence[tuple[float, float]]


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """One bar to a row, from zero; a thin line over its end shows the range of the samples."""
    scale = axis([0.0, *(bar.high for bar in rows)], count=5)
    left = 24 + LETTER * max((len(bar.name) for bar in rows), default=1)
    right = WIDTH - 90
    top, step = 58, 30
    parts = []
    for place, bar in enumerate(rows):
        middle = top + step * place + step / 2
        end, low, high = (left + (right - left) * scale.place(value) for value in (bar.value, bar.low, bar.high))
        colour = OURS if bar.ours else THEIRS
        parts += [
            _text(left - 10, middle, bar.name, "end", weight="600" if bar.ours else "400"),
            f'<rect x="{left:.1f}" y="{middle - 9:.1f}" width="{end - left:.1f}" height="18" fill="{colour}"/>',
            f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}" stroke="{INK}" stroke-width="1.5"/>',
            _text(max(end, high) + 8, middle, short(bar.value), "start"),
        ]
    height = top + step * len(rows) + 16
    words = "; ".join(f"{bar.name} {short(bar.value)}" for bar in rows)
    return _card(title, unit, "".join(parts), height, f"{title}, {unit}: {words}")


def lines(
    title: str,
    across: str,
    up: str,
    series: Sequence[Line],
    *,
    log: bool = False,
    log_up: bool = False,
    from_zero: bool = True,
) -> str:
    """Lines over a common x; `log` is for x, `log_up` for y. With both, a slope of one is growth in proportion."""
    points = [point for line in series for point in line.points]
    x = axis([px for px, _ in points], log=log)
    if log:  # the values themselves are the ticks: they are the lengths or sizes that were measured
        values = sorted({px for px, _ in points})
        x = Axis(values[0], values[-1], tuple((v, short(v)) for v in values), log=True)
    y = axis([*([0.0] if from_zero and not log_up else []), *(py for _, py in points)], log=log_up)
    names = LETTER * max((len(line.name) for line in series), default=0)
    left, right, top, bottom = 70, WIDTH - max(190, 40 + names), 62, 330

    def at(px: float, py: float) -> tuple[float, float]:
        return left + (right - left) * x.place(px), bottom - (bottom - top) * y.place(py)

    parts = []
    for value, label in y.ticks:
        down = at(x.low, value)[1]
        parts.append(f'<path d="M{left} {down:.1f}H{right}" stroke="{RULE}"/>')
        parts.append(_text(left - 8, down, label, "end", colour=FAINT))
    for value, label in x.ticks:
        parts.append(_text(at(value, y.low)[0], bottom + 18, label, "middle", colour=FAINT))
    parts.append(_text((left + right) / 2, bottom + 40, across, "middle", colour=FAINT))
    drawn = [(line, LINES[place % len(LINES)]) for place, line in enumerate(series) if line.points]
    ends = apart([at(*line.points[-1])[1] for line, _ in drawn], top - 10, bottom + 10)
    for (line, colour), beside in zip(drawn, ends, strict=True):
        spots = [at(*point) for point in line.points]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in spots)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="{colour}"/>' for px, py in spots]
        parts.append(_text(right + 12, beside, line.name, "start", colour=colour, weight="600"))
    told = "; ".join(
        f"{line.name}: " + ", ".join(f"{short(py)} at {short(px)}" for px, py in line.points) for line in series
    )
    return _card(title, up, "".join(parts), bottom + 60, f"{title}, {up} over {across}. {told}")


def apart(wanted: Sequence[float], top: float, bottom: float, room: float = 17) -> list[float]:
    """Heights near those wanted and in their order, where no name lies on another, nor below `bottom` if there is room above."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    found = [0.0] * len(wanted)
    above = top - room
    for place in order:
        found[place] = above = max(wanted[place], above + room)
    below = bottom + room
    for place in reversed(order):
        found[place] = below = min(found[place], below - room)
    return found


def _text(x: float, y: float, words: str, anchor: str, *, colour: str = INK, weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="central" fill="{colour}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )


def _card(title: str, unit: str, drawing: str, height: float, told: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13" aria-label="{escape(told)}">'
        f'<rect width="{WIDTH}" height="{height:.0f}" rx="8" fill="{CARD}" stroke="{RULE}"/>'
        f'<text x="20" y="26" font-size="16" font-weight="600" fill="{INK}">{escape(title)}</text>'
        f'<text x="20" y="45" fill="{FAINT}">{escape(unit)}</text>{drawing}</svg>\n'
    )
