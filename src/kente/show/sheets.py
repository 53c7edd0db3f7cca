"""Attention as a table of numbers: CSV with one weight in a line, as statistics programs like it."""

from __future__ import annotations

import csv
import io

from kente.measure.explored import Explored
from kente.show.views import View, shown

HEADER = ("model", "map", "row", "row_text", "column", "column_text", "weight")


def sheet(explored: Explored, view: View) -> str:
    """The view of every model that has it. Rows and columns count from 1."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for reading in explored.readings:
        found = shown(reading, view)
        if found is None:
            continue
        for i, (row, line) in enumerate(zip(found.rows, found.weights.tolist(), strict=True), 1):
            for j, (column, weight) in enumerate(zip(found.columns, line, strict=True), 1):
                writer.writerow((reading.name, found.title, i, row, j, column, f"{weight:.6f}"))
    return out.getvalue()
