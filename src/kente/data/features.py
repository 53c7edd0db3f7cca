"""What the columns of a table say about its rows, as features.

    number      every cell is a number                   one feature, shifted and scaled to mean 0 and spread 1
    flag        every cell is 0 or 1                     one feature, there or not
    features    the column called "features"             names between spaces, each maybe with a value: 19 81 146, or word:0.5
    text        mostly several words to a cell           the pieces that the run's tokenizer cuts it into
    category    anything else                            one feature for each value

Numbers stand as they are; all the others of a row are shares of one, so that a long text does not speak louder than a short one.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kente.errors import CorpusError

Columns = Mapping[str, Sequence[str]]
Encode = Callable[[str], list[int]]
SEVERAL_WORDS = 0.5
"""Share of a column's cells that must hold a space for it to be text."""


@dataclass(frozen=True)
class Bags:
    """What is not zero of a matrix: row i holds values[starts[i]:starts[i + 1]] in the columns `places`, which rise."""

    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Features:
    """Which features there are: learned from one table, and asked of every other."""

    kinds: dict[str, str]
    """Columns, and how each is read."""
    numbers: dict[str, tuple[float, float]]
    """Mean and spread of the columns of numbers, which are the first features."""
    names: dict[str, int]
    """The named features after them, "column=value", and the place of each."""
    pieces: int = 0
    """Pieces of the tokenizer, which are the last."""

    @property
    def size(self) -> int:
        return len(self.numbers) + len(self.names) + self.pieces

    @property
    def text_columns(self) -> list[str]:
        return [column for column, kind in self.kinds.items() if kind == "text"]

    @classmethod
    def learn(cls, columns: Columns, pieces: int = 0) -> Features:
        """The features of these columns; `pieces` is the size of the tokenizer, where a column is text."""
        kinds = {column: kind for column, cells in columns.items() if (kind := _kind(column, cells))}
        numbers = {column: _mean_and_spread(columns[column]) for column, kind in kinds.items() if kind == "number"}
        found: dict[str, None] = {}
        for column, kind in kinds.items():
            if kind in ("flag", "features", "category"):
                values = dict.fromkeys(name for cell in columns[column] for name, _ in _named(column, kind, cell))
                found |= dict.fromkeys(sorted(values, key=_naturally))
        places = {name: len(numbers) + place for place, name in enumerate(found)}
        return cls(kinds, numbers, places, pieces if "text" in kinds.values() else 0)

    def read(self, columns: Columns, rows: int, encode: Encode | None = None) -> tuple[Bags, int]:
        """(the rows of a table as bags of features, how many features they name that nobody learned)."""
        missing = [column for column in self.kinds if column not in columns]
        if missing:
            raise CorpusError(
                f"no column called {missing[0]!r}, which the model learned from; there are {', '.join(columns) or 'none'}"
            )
        bag, unknown = _Entries(), 0
        for column, kind in self.kinds.items():
            for row, cell in enumerate(columns[column]):
                if kind == "text":
                    assert encode is not None, "text needs a tokenizer"
                    first = len(self.numbers) + len(self.names)
                    bag.add(row, ((first + piece, 1.0) for piece in encode(cell)))
                elif kind != "number":
                    named = [(self.names.get(name), value) for name, value in _named(column, kind, cell)]
                    unknown += sum(place is None for place, _ in named)
                    bag.add(row, ((place, value) for place, value in named if place is not None))
        numbers = _Entries()
        for place, (column, (mean, spread)) in enumerate(self.numbers.items()):
            for row, cell in enumerate(columns[column]):
                if cell:  # a missing number counts as the mean
                    numbers.add(row, [(place, (_number(column, cell) - mean) / spread)])
        return _bags([bag.shares(rows), numbers.arrays()], rows, self.size), unknown

    def describe(self) -> str:
        """How the columns were read, in one line."""

        def values(column: str) -> str:
            return f" of {sum(name.startswith(f'{column}=') for name in self.names):,} values"

        words = [
            f"{column}: {kind}" + (values(column) if kind in ("features", "category") else "")
            for column, kind in self.kinds.items()
            if kind in ("features", "category", "text")
        ]
        for kind in ("number", "flag"):
            same = [column for column, other in self.kinds.items() if other == kind]
            if same:
                words.append(f"{', '.join(same[:3])}{', ...' if len(same) > 3 else ''}: {len(same):,} {kind}s")
        return "; ".join(words)

    def as_dict(self) -> dict[str, Any]:
        numbers = {column: list(both) for column, both in self.numbers.items()}
        return {"kinds": self.kinds, "numbers": numbers, "names": list(self.names), "pieces": self.pieces}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Features:
        numbers = {column: (float(mean), float(spread)) for column, (mean, spread) in values["numbers"].items()}
        names = {name: len(numbers) + place for place, name in enumerate(values["names"])}
        return cls(dict(values["kinds"]), numbers, names, int(values["pieces"]))


def _kind(column: str, cells: Sequence[str]) -> str:
    """How a column is read; "" for one that holds nothing."""
    filled = [cell for cell in cells if cell]
    if not filled:
        return ""
    if column in ("features", "text"):
        return column
    if all(cell in ("0", "1") for cell in filled):
        return "flag"
    if all(map(_is_number, filled)):
        return "number"
    return "text" if sum(" " in cell for cell in filled) > SEVERAL_WORDS * len(filled) else "category"


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _number(column: str, cell: str) -> float:
    if not _is_number(cell):
        raise CorpusError(f"the column {column!r} held only numbers where the model learned; here it holds {cell!r}")
    return float(cell)


def _mean_and_spread(cells: Sequence[str]) -> tuple[float, float]:
    values = np.array([float(cell) for cell in cells if cell])
    return float(values.mean()), float(values.std()) if values.min() < values.max() else 1.0


def _named(column: str, kind: str, cell: str) -> list[tuple[str, float]]:
    """The features that a cell names, each with its value."""
    if kind == "flag" and _is_number(cell) and float(cell) in (0, 1):
        return [(column, 1.0)] if float(cell) else []
    if kind in ("flag", "category"):
        return [(f"{column}={cell}", 1.0)] if cell else []
    named = []
    for word in cell.split():
        name, colon, value = word.rpartition(":")
        weighted = bool(colon and name) and _is_number(value)
        named.append((f"{column}={name}", float(value)) if weighted else (f"{column}={word}", 1.0))
    return named


def _naturally(name: str) -> list[tuple[int, int, str]]:
    """A key that puts 9 before 10 and both before words."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


class _Entries:
    """Entries of a matrix as they are found."""

    def __init__(self) -> None:
        self.rows, self.places, self.values = array("q"), array("q"), array("d")

    def add(self, row: int, entries: Any) -> None:
        for place, value in entries:
            self.rows.append(row)
            self.places.append(place)
            self.values.append(value)

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        return np.array(self.rows, np.int64), np.array(self.places, np.int64), np.array(self.values, np.float64)

    def shares(self, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The same, each row's values divided by the sum of their sizes."""
        which, places, values = self.arrays()
        totals = np.bincount(which, weights=np.abs(values), minlength=rows)
        return which, places, values / np.where(totals == 0, 1, totals)[which]


def _bags(parts: Sequence[tuple[Any, Any, Any]], rows: int, size: int) -> Bags:
    """Entries in any order as rows; those of one row and place are added up."""
    which, places, values = (np.concatenate([part[field] for part in parts]) for field in range(3))
    keys, inverse = np.unique(which * max(size, 1) + places, return_inverse=True)
    summed = np.bincount(inverse, weights=values, minlength=len(keys)).astype(np.float32)
    starts = np.searchsorted(keys, np.arange(rows + 1) * max(size, 1))
    return Bags(starts.astype(np.int64), keys % max(size, 1), summed)
