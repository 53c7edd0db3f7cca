"""Attention on a terminal: a shade to a weight, and beside each row where it looks most. For those who work over ssh."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kente.measure.explored import Explored, Reading
from kente.show.text import breadth, cut, visible
from kente.show.views import Shown, View, shown

SHADES = " ░▒▓█"
LONGEST = 16
"""Letters of a word beside its row."""
LEVELS = "▁▂▃▄▅▆▇█"
VALUES = 64
"""Values of a vector in a line."""


def terminal(explored: Explored, view: View, width: int = 100) -> list[str]:
    """Lines for a terminal so many columns wide."""
    lines = _wrapped("source", explored.sentence.split(), width)
    for reading in explored.readings:
        lines += ["", *_reading(reading, view, width)]
    return lines


def _reading(reading: Reading, view: View, width: int) -> list[str]:
    lines = [visible(f"{reading.name}: {reading.description}"), f"  {visible(reading.text)}"]
    if reading.given and reading.answer != reading.text:
        lines.append(f"  of itself it writes: {visible(reading.answer)}")
    lines += [f"  note: {visible(warning)}" for warning in reading.warnings]
    found = shown(reading, view)
    if found is None:
        return [*lines, f"  {reading.absent[view.kind]}", *_vector(reading.vector, width)]
    return [*lines, "", f"  {found.title}", *_map(found, width)]


def _map(found: Shown, width: int) -> list[str]:
    """Numbered columns, what the numbers stand for below, and at the end of each row the word it looks at most."""
    rows = [cut(visible(row), LONGEST) for row in found.rows]
    margin = max(map(breadth, rows)) + 2
    digits = len(str(len(found.columns)))
    cell = digits + 1
    fits = margin + cell * len(found.columns) + LONGEST + 8 <= width
    lines = [" " * margin + "".join(f"{n:>{cell}}" for n in range(1, len(found.columns) + 1))] if fits else []
    for row, weights in zip(rows, found.weights.tolist(), strict=True):
        most = max(range(len(weights)), key=weights.__getitem__)
        shades = "".join(" " + _shade(weight) * digits for weight in weights) + "  " if fits else ""
        word = cut(visible(found.columns[most]), LONGEST)
        lines.append(f"{' ' * (margin - 1 - breadth(row))}{row} {shades}{word} {weights[most]:.2f}")
    numbered = [f"{n} {visible(column)}" for n, column in enumerate(found.columns, 1)]
    return lines + (["", *_wrapped("columns", numbered, width)] if fits else [])


def _shade(weight: float) -> str:
    """From nothing to full in as many steps as there are shades; a weight of a hundredth or more is never nothing."""
    return SHADES[min(len(SHADES) - 1, math.ceil(weight * (len(SHADES) - 1) - 0.04))]


def _vector(vector: Sequence[float], width: int) -> list[str]:
    if not vector:
        return []
    largest = max(map(abs, vector)) or 1.0
    drawn = "".join(LEVELS[round((value / largest + 1) / 2 * (len(LEVELS) - 1))] for value in vector)
    across = max(8, min(VALUES, width - 4))
    lines = [f"    {drawn[begin : begin + across]}" for begin in range(0, len(drawn), across)]
    return [f"  its {len(vector)} values, from −{largest:.2f} to {largest:.2f}:", *lines]


def _wrapped(name: str, words: Sequence[str], width: int) -> list[str]:
    """Words in lines that fit, the first after a name."""
    lines, line = [], f"{name}: "
    for word in map(visible, words):
        if breadth(line) + breadth(word) > width and line.strip():
            lines.append(line.rstrip())
            line = " " * (len(name) + 2)
        line += word + ("   " if name == "columns" else " ")
    return [*lines, line.rstrip()]
