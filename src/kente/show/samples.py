"""Sample sentences: what every system made of them, and where it looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kente.measure.comparison import Answer, Comparison, Sample
from kente.show.charts import heatmap, sign
from kente.show.heatmaps import SMALLEST, natural_width
from kente.show.text import escaped, isolated

NARROWEST, WIDEST = 320.0, 620.0
"""Pixels of a card: as many stand in a row as leave each room for its map."""
MEANING = {
    "best": "sentences the systems translate best, by their mean chrF++",
    "worst": "sentences they translate worst",
    "random": "sentences drawn at random",
}


def sample_sentences(comparison: Comparison) -> str:
    """All samples, those chosen alike together; the first of each kind is open."""
    places = {system.name: place for place, system in enumerate(comparison.systems)}
    reasons = {system.name: system.why_no_attention for system in comparison.systems}
    parts = []
    for choice in dict.fromkeys(sample.choice for sample in comparison.samples):
        chosen = [sample for sample in comparison.samples if sample.choice == choice]
        meaning = MEANING.get(choice, "")
        parts.append(f"<h3>{escaped(choice.capitalize())}<small>{escaped(meaning)}</small></h3>")
        parts.extend(_sample(sample, places, reasons, is_open=number == 0) for number, sample in enumerate(chosen))
    return "".join(parts)


def _sample(sample: Sample, places: Mapping[str, int], reasons: Mapping[str, str], *, is_open: bool) -> str:
    """Source, reference, and a card to a system; cards without a map stand together, or they would leave holes between maps."""
    most = max((answer.chrf for answer in sample.answers), default=0.0)
    grids = ""
    for answers in ([a for a in sample.answers if not a.attention], [a for a in sample.answers if a.attention]):
        cards = "".join(_card(answer, places, reasons, answer.chrf == most) for answer in answers)
        grids += f'<div class="cards" style="--room:{_room(answers):.0f}px">{cards}</div>' if cards else ""
    return (
        f'<details class="sample"{" open" if is_open else ""}><summary>{_running(sample.source)}</summary>'
        f'<p class="reference"><small>reference</small>{_running(sample.reference)}</p>{grids}</details>'
    )


def _room(answers: Sequence[Answer]) -> float:
    """Pixels a card needs for its map."""
    maps = [answer.attention for answer in answers if answer.attention]
    widths = [SMALLEST * natural_width(seen.target_pieces, seen.source_pieces) for seen in maps]
    return min(max([NARROWEST, *widths]), WIDEST)


def _card(answer: Answer, places: Mapping[str, int], reasons: Mapping[str, str], best: bool) -> str:
    mark = ' class="best"' if best else ""
    return (
        f'<article class="card"><header>{sign(places.get(answer.system, 0), reach=9)}{isolated(answer.system)}'
        f"<span{mark}>chrF {answer.chrf:.1f}</span></header>"
        f"<p>{_running(answer.text) if answer.text else '<small>nothing</small>'}</p>{_map(answer, reasons)}</article>"
    )


def _map(answer: Answer, reasons: Mapping[str, str]) -> str:
    seen = answer.attention
    if seen is None:
        reason = reasons.get(answer.system) or "No attention was recorded for this sentence."
        return f'<p class="note">{escaped(reason)}</p>'
    return heatmap(seen.weights, seen.target_pieces, seen.source_pieces, title=f"attention, layer {seen.layer + 1}")


def _running(text: str) -> str:
    """Text of any language, in its own direction."""
    return f'<span dir="auto">{escaped(text)}</span>'
