"""The page of a clustering: a map, and what each cluster is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kente.show.charts import table
from kente.show.page import Section, page
from kente.show.scatter import Points, scatter
from kente.show.text import escaped, isolated


@dataclass(frozen=True)
class Group:
    """A cluster: its number (-1: what is in none), the words that mark it, the texts in its middle, its commonest labels if known."""

    number: int
    size: int
    words: tuple[str, ...]
    examples: tuple[str, ...]
    labels: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        return "none" if self.number < 0 else str(self.number)

    @property
    def title(self) -> str:
        return f"{self.name}: {', '.join(self.words[:4])}" if self.words else self.name


@dataclass(frozen=True)
class Dot:
    """A text on the map."""

    x: float
    y: float
    cluster: int
    text: str


@dataclass(frozen=True)
class Grouping:
    """Everything the page tells."""

    run: str
    texts: int
    groups: Sequence[Group]
    dots: Sequence[Dot]
    purity: float | None = None
    nmi: float | None = None


def cluster_page(grouping: Grouping) -> str:
    """A whole HTML document that needs nothing beside it."""
    sections = [
        Section("Map", _map(grouping)),
        Section("Clusters", _table(grouping)),
        Section("Texts", _texts(grouping)),
    ]
    return page("Clusters of texts", sections, lead=_lead(grouping))


def _lead(grouping: Grouping) -> str:
    facts = [
        ("encoder", grouping.run),
        ("texts", f"{grouping.texts:,}"),
        ("clusters", f"{sum(group.number >= 0 for group in grouping.groups):,}"),
    ]
    if grouping.purity is not None and grouping.nmi is not None:
        facts += [("purity", f"{grouping.purity:.3f}"), ("NMI", f"{grouping.nmi:.3f}")]
    entries = "".join(f"<div><dt>{name}</dt><dd>{isolated(value)}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{entries}</dl>'


def _map(grouping: Grouping) -> str:
    some = "" if len(grouping.dots) == grouping.texts else f", {len(grouping.dots):,} of {grouping.texts:,} texts"
    groups = [
        Points(group.title, [(dot.x, dot.y, dot.text) for dot in grouping.dots if dot.cluster == group.number])
        for group in grouping.groups
    ]
    note = "Neighbours on the map are neighbours among the vectors (t-SNE); large distances on it mean little."
    return scatter(groups, title=f"Texts by what they mean{some}", note=note)


def _table(grouping: Grouping) -> str:
    known = any(group.labels for group in grouping.groups)
    rows = [
        [
            group.name,
            f"{group.size:,}",
            ", ".join(group.words),
            *(
                [", ".join(f"{name} ({100 * count / group.size:.0f} %)" for name, count in group.labels)]
                if known
                else []
            ),
        ]
        for group in grouping.groups
    ]
    header = ["cluster", "texts", "words that mark it", *(["commonest labels"] if known else [])]
    note = "Words that stand in these texts far more often than in the others: log-odds with a prior (Monroe et al., 2008)."
    return table(header, rows, note=note)


def _texts(grouping: Grouping) -> str:
    """The texts in the middle of each cluster."""
    parts = []
    for group in grouping.groups:
        listed = "".join(f"<li>{isolated(text)}</li>" for text in group.examples)
        parts.append(f'<details class="sample"><summary>{escaped(group.title)}</summary><ul>{listed}</ul></details>')
    return "".join(parts)
