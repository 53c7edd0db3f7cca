"""The systems of a comparison in one table: what each cost, how good it is, and whether the difference is more than chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kente.measure.comparison import Comparison, Significance, System
from kente.runs import Score
from kente.show.charts import sign
from kente.show.tables import Cell, table_html
from kente.show.text import escaped, isolated

LEVEL = 0.05
NOTHING = '<span class="soft">–</span>'
HEADER = (
    ("system", False),
    ("description", False),
    ("parameters", True),
    ("updates", True),
    ("minutes", True),
    ("tokens/s, training", True),
    ("sentences/s, decoding", True),
    ("peak memory, MB", True),
    ("BLEU", True),
    ("chrF", True),
    ("to the best", True),
    ("alignment errors", True),
)


def systems_table(comparison: Comparison) -> str:
    """A row to a system, in the order of the comparison; the best of a column is marked where best has a meaning."""
    systems = comparison.systems
    fast = _bests(systems, lambda system: system.tokens_per_second, max)
    quick = _bests(systems, lambda system: system.sentences_per_second, max)
    small = _bests(systems, lambda system: system.peak_memory, min)
    bleu = _bests(systems, lambda system: system.bleu.value, max)
    chrf = _bests(systems, lambda system: system.chrf.value, max)
    aligned = _bests(systems, lambda system: system.alignment.error_rate if system.alignment else math.nan, min)
    rows = [
        [
            Cell(f'<span class="named">{sign(place, reach=9)}{isolated(system.name)}</span>', system.name),
            Cell(isolated(system.description)),
            _number(system.parameters, ",.0f"),
            _number(system.updates, ",.0f"),
            _number(system.minutes, ",.1f"),
            _number(system.tokens_per_second, ",.0f", place in fast),
            _number(system.sentences_per_second, ",.1f", place in quick),
            _number(system.peak_memory, ",.0f", place in small),
            _score(system.bleu, place in bleu),
            _score(system.chrf, place in chrf),
            _difference(system.significance),
            _alignment(system, place in aligned),
        ]
        for place, system in enumerate(systems)
    ]
    header = list(HEADER)
    if not any(system.alignment for system in systems):  # nothing is known to compare attention with
        header, rows = header[:-1], [row[:-1] for row in rows]
    names = [name if name != "chrF" else systems[0].chrf.name or name for name, _ in header] if systems else []
    return table_html(
        names or [name for name, _ in header],
        rows,
        [numeric for _, numeric in header],
        label="all systems",
        note=_note(comparison),
        sortable=True,
    ) + _signatures(systems)


def _bests(systems: Sequence[System], of: Callable[[System], float], choose: Callable[..., float]) -> set[int]:
    """The places of the systems that share the best value; nobody is best alone."""
    values = {place: of(system) for place, system in enumerate(systems) if not math.isnan(of(system))}
    return {place for place, value in values.items() if value == choose(values.values())} if len(values) > 1 else set()


def _number(value: float, form: str, best: bool = False) -> Cell:
    if math.isnan(value):
        return Cell(NOTHING, "")
    return Cell(format(value, form), value, best)


def _score(score: Score, best: bool) -> Cell:
    spread = ""
    if score.low is not None and score.high is not None:
        spread = f"<small>{score.low:.1f}–{score.high:.1f}</small>"
    return Cell(f"{score.value:.1f}{spread}", "" if math.isnan(score.value) else score.value, best)


def _difference(significance: Significance | None) -> Cell:
    if significance is None:
        return Cell('<span class="soft">best</span>', 0.0)
    mark = " ✱" if significance.p < LEVEL else ""
    difference = f"{significance.difference:+.1f}".replace("-", "−")
    return Cell(f"{difference}{mark}<small>{_chance(significance.p)}</small>", significance.difference)


def _chance(p: float) -> str:
    return "p &lt; 0.001" if p < 0.001 else f"p = {p:.3f}"


def _alignment(system: System, best: bool) -> Cell:
    found = system.alignment
    if found is None:
        return Cell(NOTHING, "")
    return Cell(
        f"{100 * found.error_rate:.1f} %<small>layer {found.layer + 1} of {found.layers}</small>",
        found.error_rate,
        best,
    )


def _note(comparison: Comparison) -> str:
    parts = ["Marked cells are the best of their column."]
    if any(system.bleu.low is not None for system in comparison.systems):
        parts.append("Small numbers are 95 % intervals.")
    if any(system.significance for system in comparison.systems):
        parts.append(f"✱ differs from {comparison.best.name} by more than chance (paired bootstrap, p below {LEVEL}).")
    if any(system.alignment for system in comparison.systems):
        parts.append("Alignment errors compare attention with the gold alignments; lower is better.")
    return " ".join(parts)


def _signatures(systems: Sequence[System]) -> str:
    """Each way of counting, once; with the systems it was used for if it was not used for all."""
    lines = []
    for scores in ([system.bleu for system in systems], [system.chrf for system in systems]):
        for signature in dict.fromkeys(score.signature for score in scores):
            users = [system.name for system, score in zip(systems, scores, strict=True) if score.signature == signature]
            who = "" if len(users) == len(systems) else f" ({', '.join(users)})"
            if signature:
                lines.append(f"{escaped(scores[0].name)}{escaped(who)}: <code>{escaped(signature)}</code>")
    return f'<p class="note signatures">sacreBLEU signatures<br>{"<br>".join(lines)}</p>' if lines else ""
