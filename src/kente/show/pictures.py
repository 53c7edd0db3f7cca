"""The pictures of a comparison: BLEU by the length of the source, and how each system learnt."""

from __future__ import annotations

import math
from collections.abc import Callable

from kente.measure.comparison import Bucket, Comparison, Point
from kente.show.axes import Axis, axis
from kente.show.charts import Series, line_chart, plot, table


def by_length(comparison: Comparison) -> str:
    """A line to a system over buckets of source length; what is longer than anything trained on is shaded."""
    buckets = comparison.buckets
    middles = [place + 0.5 for place in range(len(buckets))]
    lines = [
        Series(system.name, [(x, _or_gap(bleu)) for x, bleu in zip(middles, system.by_length, strict=False)])
        for system in comparison.systems
    ]
    across = Axis(
        0.0, float(max(len(buckets), 1)), tuple(zip(middles, (b.label for b in buckets), strict=True)), named=True
    )
    up = axis([0.0, *(y for line in lines for _, y in line.points)])
    beyond = [place for place, bucket in enumerate(buckets) if bucket.low > comparison.trained_length]
    chart = plot(
        lines,
        across,
        up,
        title="BLEU by length of the source sentence",
        x=f"{comparison.length_unit} in the source sentence; below, how many test sentences are so long",
        y="BLEU",
        under=[(x, f"{bucket.sentences:,}") for x, bucket in zip(middles, buckets, strict=True)],
        shaded=(float(beyond[0]), float(beyond[-1] + 1)) if beyond else None,
        note=_length_note(comparison, bool(beyond)),
    )
    return chart + _length_table(comparison)


def _length_note(comparison: Comparison, beyond: bool) -> str:
    trained = f"The longest source sentence trained on has {comparison.trained_length:,} {comparison.length_unit}"
    if beyond:
        return f"{trained}: shaded lengths are longer than anything the systems were shown."
    return f"{trained}; no bucket of the test set lies wholly beyond it."


def _length_table(comparison: Comparison) -> str:
    rows = [[system.name, *(_written(bleu) for bleu in system.by_length)] for system in comparison.systems]
    header = ["system", *(f"{bucket.label} ({_count(bucket)})" for bucket in comparison.buckets)]
    rows = [row + [""] * (len(header) - len(row)) for row in rows]
    return f"<details><summary>The same in numbers</summary>{table(header, rows)}</details>"


def _count(bucket: Bucket) -> str:
    return f"{bucket.sentences:,}"


def learning_curves(comparison: Comparison) -> str:
    """Validation BLEU and loss, by updates or by time: two panels with a switch that needs no script."""
    ways: tuple[tuple[str, Callable[[Point], float]], ...] = (
        ("updates", lambda point: point.step),
        ("minutes of training", lambda point: point.minutes),
    )
    switches, panels = [], []
    for place, (name, moment) in enumerate(ways):
        words = "by updates" if place == 0 else "by time"
        checked = " checked" if place == 0 else ""
        switches.append(
            f'<input type="radio" name="curves" id="curves-{place}"{checked}><label for="curves-{place}">{words}</label>'
        )
        bleu = _curves(comparison, moment, lambda point: _or_gap(point.bleu))
        loss = _curves(comparison, moment, lambda point: point.loss)
        panels.append(
            '<div class="panel"><div class="pair">'
            + line_chart(bleu, title="Validation BLEU", x=name, y="BLEU")
            + line_chart(loss, title="Validation loss", x=name, y="nats per token")
            + "</div></div>"
        )
    return f'<div class="tabs">{"".join(switches)}{"".join(panels)}</div>'


def _curves(comparison: Comparison, across: Callable[[Point], float], up: Callable[[Point], float]) -> list[Series]:
    return [Series(system.name, [(across(p), up(p)) for p in system.curve]) for system in comparison.systems]


def _or_gap(value: float | None) -> float:
    return math.nan if value is None else value


def _written(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.1f}"
