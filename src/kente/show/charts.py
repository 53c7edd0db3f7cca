"""Charts as inline SVG inside a <figure>: they take the page's colours and need nothing else.

Titles, axis names and legends are HTML beside the drawing, so they keep their size on a phone; the few numbers inside it grow
when the drawing shrinks (see assets/page.css). No two lines share both colour and marker until the twenty-fifth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kente.show.axes import Axis, axis, drawable, short, thinned
from kente.show.heatmaps import heatmap
from kente.show.tables import cell, is_number, table_html
from kente.show.text import breadth, cut, escaped, isolated

__all__ = ["Series", "bar_chart", "heatmap", "line_chart", "plot", "sign", "table"]

WIDTH, HEIGHT = 640, 340
TOP, BOTTOM, RIGHT = 14, 30, 22
LETTER = 11
"""Width of a letter when the drawing is at its smallest and its letters, in its own units, at their largest."""
SMALL_LETTER = 7.5
"""The same when the drawing is at its widest."""
LINE = 22
COLOURS = 8
MARKS = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "M-4-4h8v8h-8z",
    "M0-5.5l5 9h-10z",
    "M0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
    "M0 5.5l5-9h-10z",
    "M-1.8-5.4h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6z",
)
MOST_MARKS = 16


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Frame:
    """The rectangle between two axes, in units of the drawing."""

    x: Axis
    y: Axis
    left: float
    right: float
    top: float
    bottom: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = self.left + self.x.place(x) * (self.right - self.left)
        return round(across, 1), round(self.bottom - self.y.place(y) * (self.bottom - self.top), 1)


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
    note: str = "",
) -> str:
    """One line to a series. A point that is None, or holds None or NaN, leaves a gap; so does what a log scale cannot show."""
    points = [point for line in series for point in line.points if _drawable(point, log_x, log_y)]
    across, up = axis((p[0] for p in points), log=log_x, tight=True), axis((p[1] for p in points), log=log_y)
    return plot(series, across, up, title=title, x=x, y=y, note=note)


def plot(
    series: Sequence[Series],
    across: Axis,
    up: Axis,
    *,
    title: str,
    x: str,
    y: str,
    note: str = "",
    under: Sequence[tuple[float, str]] = (),
    shaded: tuple[float, float] | None = None,
) -> str:
    """A line chart on axes of the caller's: `under` is a second line of words below the ticks, `shaded` a range of x to set apart."""
    labels = [label for _, label in up.ticks]
    left = 14 + LETTER * max((breadth(label) for label in labels), default=1)
    lower = HEIGHT - BOTTOM - (LINE if under else 0)
    frame = Frame(across, up, left, WIDTH - RIGHT, TOP, lower)
    lines = [_line(line, place, frame) for place, line in enumerate(series)]
    drawing = _shade(frame, shaded) + _grid(frame) + _below(frame, under, lower + 10 + LINE) + "".join(lines)
    empty = not any(lines)
    if empty:
        drawing += f'<text class="empty" x="{WIDTH / 2}" y="{HEIGHT / 2}">no values to draw</text>'
    body = _svg(drawing, HEIGHT, f"{title}: {y} over {x}. {_summary(series, frame)}")
    legend = _legend(series, lines) if any(line.name for line in series) else ""
    return _figure(
        "chart", title, f'{legend}<p class="up">{escaped(y)}</p>{body}<p class="across">{escaped(x)}</p>', note
    )


def _figure(kind: str, title: str, body: str, note: str) -> str:
    remark = f'<p class="note">{escaped(note)}</p>' if note else ""
    return f'<figure class="{kind}"><figcaption>{escaped(title)}</figcaption>{body}{remark}</figure>'


def _svg(drawing: str, height: float, label: str) -> str:
    return f'<svg class="drawing" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escaped(label)}">{drawing}</svg>'


def _grid(frame: Frame) -> str:
    parts = []
    for value, label in frame.y.ticks:
        _, down = frame.at(frame.x.low, value)
        parts.append(f'<path class="rule" d="M{frame.left:g} {down}H{frame.right:g}"/>')
        parts.append(f'<text class="left" x="{frame.left - 8:g}" y="{down}">{escaped(label)}</text>')
    for value, _ in frame.x.ticks:
        parts.append(f'<path class="tick" d="M{frame.at(value, frame.y.low)[0]} {frame.bottom:g}v5"/>')
    parts.append(_below(frame, frame.x.ticks, frame.bottom + 10))
    return "".join(parts) + f'<path class="base" d="M{frame.left:g} {frame.bottom:g}H{frame.right:g}"/>'


def _below(frame: Frame, words: Sequence[tuple[float, str]], down: float) -> str:
    """Words in a row. Those that fit a wide drawing but not a narrow one are marked `roomy`: the style hides them on a phone."""
    room = frame.right - frame.left + 2 * RIGHT
    wide, narrow = thinned(words, int(room / SMALL_LETTER)), thinned(words, int(room / LETTER))
    return "".join(
        f'<text class="below{"" if always else " roomy"}" x="{frame.at(value, frame.y.low)[0]}" y="{down:g}">'
        f"{escaped(label)}</text>"
        for (value, label), (_, always) in zip(wide, narrow, strict=True)
        if label
    )


def _shade(frame: Frame, shaded: tuple[float, float] | None) -> str:
    if shaded is None:
        return ""
    start, end = (frame.at(edge, frame.y.low)[0] for edge in shaded)
    return f'<rect class="shaded" x="{start}" y="{frame.top:g}" width="{end - start:.1f}" height="{frame.bottom - frame.top:g}"/>'


def _line(series: Series, place: int, frame: Frame) -> str:
    """One series: a path to each unbroken stretch, marks on some points, and on every point that stands alone."""
    stretches = _stretches(series, frame)
    if not stretches:
        return ""
    path = "".join("M" + "L".join(f"{x} {y}" for x, y in (frame.at(*p) for p in s)) for s in stretches if len(s) > 1)
    every = max(1, sum(map(len, stretches)) // MOST_MARKS)
    marks = []
    for stretch in stretches:
        for index, (x, y) in enumerate(stretch):
            if index % every == 0 or index == len(stretch) - 1:
                over, down = frame.at(x, y)
                words = escaped(f"{series.name}: {_named(x, frame)}, {short(y)}")
                marks.append(
                    f'<path d="{MARKS[place % len(MARKS)]}" transform="translate({over} {down})"><title>{words}</title></path>'
                )
    return (
        f'<g class="series {_colour(place, series.dashed)}" data-series="{place}">'
        + (f'<path class="line" d="{path}"/>' if path else "")
        + f'<g class="marks">{"".join(marks)}</g></g>'
    )


def _stretches(series: Series, frame: Frame) -> list[list[tuple[float, float]]]:
    stretches: list[list[tuple[float, float]]] = [[]]
    for point in series.points:
        if _drawable(point, frame.x.log, frame.y.log):
            stretches[-1].append(point)
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]


def _drawable(point: tuple[float | None, float | None] | None, log_x: bool, log_y: bool) -> bool:
    return point is not None and drawable(point[0], log_x) and drawable(point[1], log_y)


def _summary(series: Sequence[Series], frame: Frame) -> str:
    """The chart in words, for those who cannot see it: where each line begins and ends."""
    parts = []
    for line in series:
        points = [point for stretch in _stretches(line, frame) for point in stretch]
        if points:
            (x0, y0), (x1, y1) = points[0], points[-1]
            parts.append(f"{line.name} from {short(y0)} at {_named(x0, frame)} to {short(y1)} at {_named(x1, frame)}")
    return "; ".join(parts)


def _named(x: float, frame: Frame) -> str:
    return dict(frame.x.ticks)[x] if frame.x.named else short(x)


def _legend(series: Sequence[Series], lines: Sequence[str]) -> str:
    """A key to a line; a click on it hides or shows the line."""
    return (
        f'<ul class="legend">{"".join(_key(line, place, bool(lines[place])) for place, line in enumerate(series))}</ul>'
    )


def _key(line: Series, place: int, drawn: bool) -> str:
    words = isolated(line.name) + ("" if drawn else " (no values)")
    return (
        f'<li><button type="button" class="key" data-series="{place}" aria-pressed="true">'
        f"{sign(place, line.dashed)}<span>{words}</span></button></li>"
    )


def sign(place: int, dashed: bool = False, reach: int = 17) -> str:
    """The short piece of line by which the series at `place` is known."""
    return (
        f'<svg class="sign {_colour(place, dashed)}" viewBox="{-reach} -7 {2 * reach} 14" width="{2 * reach}" height="14" aria-hidden="true">'
        f'<path class="line" d="M{1 - reach} 0H{reach - 1}"/><g class="marks"><path d="{MARKS[place % len(MARKS)]}"/></g></svg>'
    )


def _colour(place: int, dashed: bool) -> str:
    return f"s{place % COLOURS}" + (" dashed" if dashed else " dotted" if place >= COLOURS else "")


def bar_chart(bars: Sequence[tuple[str, float]], *, title: str, y: str, note: str = "") -> str:
    """One bar to a name, from zero, lying, so that names read as names; the number stands at its end."""
    values = [value for _, value in bars if drawable(value)]
    scale = axis([0.0, *values], count=5)
    names = [cut(name, 22) for name, _ in bars]
    left = 14 + LETTER * max((breadth(name) for name in names), default=1)
    room = LETTER * max((breadth(short(value)) for value in values), default=1) + 16
    low = left + (room if min(values, default=0.0) < 0 else 0)
    frame = Frame(scale, scale, low, WIDTH - room, 8, 0)
    height = 16 + 36 * max(len(bars), 1)
    rows = [_bar(frame, 8 + 36 * place, name, names[place], value, left) for place, (name, value) in enumerate(bars)]
    zero = frame.at(0.0, scale.low)[0]
    drawing = "".join(rows) + f'<path class="base" d="M{zero} 4V{height - 4}"/>'
    words = "; ".join(f"{name} {short(value) if drawable(value) else 'no value'}" for name, value in bars)
    svg = _svg(drawing, height, f"{title}: {y}. {words}")
    return _figure("chart bars", title, f'<p class="up">{escaped(y)}</p>{svg}', note)


def _bar(frame: Frame, top: float, name: str, shown: str, value: float, left: float) -> str:
    middle = top + 18
    label = f'<text class="left" x="{left - 8:g}" y="{middle}">{escaped(shown)}<title>{escaped(name)}</title></text>'
    zero = frame.at(0.0, frame.y.low)[0]
    if not drawable(value):
        return label + f'<text class="right" x="{zero + 8:g}" y="{middle}">no value</text>'
    end = frame.at(value, frame.y.low)[0]
    side, place = ("right", end + 8) if value >= 0 else ("left", end - 8)
    return (
        f'{label}<rect class="bar" x="{min(zero, end)}" y="{top + 6}" width="{abs(end - zero):.1f}" height="24">'
        f"<title>{escaped(name)}: {short(value)}</title></rect>"
        f'<text class="{side} value" x="{place:g}" y="{middle}">{short(value)}</text>'
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", note: str = "") -> str:
    """A table of plain text; columns that hold only numbers are right-aligned."""
    filled = [[row[place] for row in rows if row[place].strip()] for place in range(len(header))]
    numeric = [bool(entries) and all(map(is_number, entries)) for entries in filled]
    return table_html(header, [[cell(text) for text in row] for row in rows], numeric, caption=caption, note=note)
