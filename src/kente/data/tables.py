"""Tables on disk: .csv (commas, quotes), .tsv (tabs), or columns between spaces; gzipped or not, read as `corpus` reads text."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kente.data.corpus import read_lines, shorten
from kente.errors import CorpusError

csv.field_size_limit(10_000_000)

Row = tuple[int, list[str]]
"""The number of a line, from 1, and its cells."""


@dataclass(frozen=True)
class Table:
    """Named columns, all of one length; `lines` are the numbers of the rows in the file."""

    path: Path
    columns: dict[str, list[str]]
    lines: list[int]

    def __len__(self) -> int:
        return len(self.lines)


def read_rows(path: Path | str) -> Iterator[Row]:
    """The rows of a table that are not blank, as they stand, a header too."""
    path = Path(path)
    separator = _separator(path)
    if separator == ",":
        rows: Iterable[Row] = _quoted(path)
    else:
        rows = ((number, line.split(separator)) for number, line in enumerate(read_lines(path), 1))
    for number, cells in rows:
        stripped = [cell.strip() for cell in cells]
        if any(stripped):
            yield number, stripped


def _quoted(path: Path) -> Iterator[Row]:
    reader = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
    before = 0
    try:
        for cells in reader:
            yield before + 1, cells  # where the row begins: a quoted cell may run over several lines
            before = reader.line_num
    except csv.Error as error:
        raise CorpusError(f"{path}:{before + 1}: not CSV ({error}); check the quotes there") from None


def _separator(path: Path) -> str | None:
    """By the name, and where the name does not say, by the first line; None is any run of spaces."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    if last in (".tsv", ".tab"):
        return "\t"
    if last == ".csv":
        return ","
    first = next((line for line in read_lines(path) if line.strip()), "")
    return "\t" if "\t" in first else "," if "," in first else None


def read_table(
    path: Path | str,
    names: Sequence[str] | None,
    *,
    marker: Sequence[str],
    usual: dict[int, str],
    known: Sequence[str] = (),
) -> Table:
    """A table with named columns.

    The names are those given, or the first row where it holds one of the `marker` names, or, in a file without such a row, the
    `usual` ones for so many columns ("id,label" for 2). A first row that holds another name that is `known` may be either, and is refused.
    """
    path = Path(path)
    rows = read_rows(path)
    first = next(rows, None)
    if first is None:
        raise CorpusError(f"{path} is empty; a table of one row for each node is wanted")
    header = [name.lower() for name in first[1]]
    headed = any(name in marker for name in header) or (names is not None and header == [n.lower() for n in names])
    if names is None:
        if not headed:
            _require_no_names(path, first, marker, usual, known)
        names = header if headed else _usual(path, first[1], marker, usual)
    elif len(names) != len(first[1]):
        raise CorpusError(f"{path}:{first[0]}: {len(first[1])} columns, but {len(names)} names: {', '.join(names)}")
    names = [name.lower() for name in names]
    twice = {name for name in names if names.count(name) > 1 and name}
    if twice:
        raise CorpusError(f"{path}:1: two columns are called {min(twice)!r}; give each a name of its own")
    return _filled(path, names, rows if headed else _again(first, rows))


def _again(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _require_no_names(
    path: Path, first: Row, marker: Sequence[str], usual: dict[int, str], known: Sequence[str]
) -> None:
    """A header whose column of ids goes by a name nobody knows must not be taken for the first row."""
    line, cells = first
    seen = next((cell for cell in cells if cell.lower() in known), None)
    if seen is not None:
        raise CorpusError(
            f"{path}:{line}: {seen!r} stands in a row that has no column called {marker[0]!r}; if the row names the columns, call the one "
            f"of ids {' or '.join(marker)} (others that are known: {', '.join(known)}); if it is a row like the others, name the columns: "
            f"--columns {max(usual.values(), key=len)}"
        )


def _usual(path: Path, cells: Sequence[str], marker: Sequence[str], usual: dict[int, str]) -> list[str]:
    if len(cells) in usual:
        return usual[len(cells)].split(",")
    seen = ", ".join(shorten(cell, 20) for cell in cells[:6])
    raise CorpusError(
        f"{path}:1: no header row with a column called {marker[0]!r}, and what {len(cells)} columns ({seen}"
        f"{', ...' if len(cells) > 6 else ''}) mean cannot be guessed; add a header row, or name them: "
        f"--columns {max(usual.values(), key=len)}"
    )


def _filled(path: Path, names: Sequence[str], rows: Iterable[Row]) -> Table:
    """The columns under their names; those without a name have to be empty, as behind the last comma of a spreadsheet."""
    columns: dict[str, list[str]] = {name: [] for name in names if name}
    lists, lines = [columns.get(name) for name in names], []
    for number, cells in rows:
        if len(cells) > len(names):
            raise CorpusError(f"{path}:{number}: {len(cells)} columns where {len(names)} are named: {', '.join(names)}")
        cells += [""] * (len(names) - len(cells))
        for place, (column, value) in enumerate(zip(lists, cells, strict=True), 1):
            if column is not None:
                column.append(value)
            elif value:
                raise CorpusError(
                    f"{path}:{number}: {shorten(value)!r} stands in column {place}, which has no name in the header; "
                    "give it one, or leave the column out (row numbers that a program wrote are no feature)"
                )
        lines.append(number)
    if not lines:
        raise CorpusError(f"{path} holds a header and nothing below it")
    return Table(path, columns, lines)
