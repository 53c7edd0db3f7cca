"""Tables: numbers right-aligned, sorted by what a cell is worth and not by how it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kente.show.text import escaped, isolated

NUMBER = re.compile(r"[-−+~<>=]*\s*\d[\d,. ]*([eE][-+−]?\d+)?\s*(%|[kMGT]?[A-Za-z/]{0,3})?")


@dataclass(frozen=True)
class Cell:
    """One cell: HTML that is shown, and what it is worth when its column is sorted."""

    html: str
    worth: float | str | None = None
    best: bool = False


def cell(text: str) -> Cell:
    return Cell(isolated(text))


def is_number(text: str) -> bool:
    return NUMBER.fullmatch(text.strip()) is not None


def table_html(
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    numeric: Sequence[bool],
    *,
    caption: str = "",
    label: str = "table",
    note: str = "",
    sortable: bool = False,
    row_class: Sequence[str] = (),
) -> str:
    """A whole figure; `numeric` says which columns are right-aligned, `label` names it aloud."""
    heads = "".join(
        f'<th scope="col"{_class("number" if right else "")}>{escaped(name)}</th>'
        for name, right in zip(header, numeric, strict=True)
    )
    body = "".join(_row(row, numeric, row_class[place] if row_class else "") for place, row in enumerate(rows))
    return (
        '<figure class="table">'
        + (f"<figcaption>{escaped(caption)}</figcaption>" if caption else "")
        + f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(caption or label)}">'
        + f"<table{_class('sortable' if sortable else '')}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
        + (f'<p class="note">{escaped(note)}</p>' if note else "")
        + "</figure>"
    )


def _row(row: Sequence[Cell], numeric: Sequence[bool], name: str) -> str:
    cells = []
    for place, (entry, right) in enumerate(zip(row, numeric, strict=True)):
        names = " ".join(word for word, holds in (("number", right), ("best", entry.best)) if holds)
        worth = "" if entry.worth is None else f' data-worth="{escaped(entry.worth)}"'
        tag = 'th scope="row"' if place == 0 else "td"
        cells.append(f"<{tag}{_class(names)}{worth}>{entry.html}</{tag[:2]}>")
    return f"<tr{_class(name)}>{''.join(cells)}</tr>"


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""
