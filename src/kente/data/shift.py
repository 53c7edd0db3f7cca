"""Do two texts still run side by side? A cheap look at lengths, numbers and punctuation, line by line.

A line's features are compared with those of the lines across, at every offset from -OFFSETS to OFFSETS. If x and y are a feature of both
sides, brought to mean 0 and variance 1, and rho their correlation where the texts are parallel, then

    log P(x, y | parallel) / P(x, y | unrelated) = -ln(1 - rho^2) / 2 - (rho^2 (x^2 + y^2) - 2 rho x y) / (2 (1 - rho^2))

and the most likely path through the offsets, where each change of offset costs CHANGE, says where a text has lost or gained a line.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Features = NDArray[np.float16]  # (lines, FEATURES)
OFFSETS = 6
CHANGE = 25.0  # log odds asked for before a shift is believed
LOST = 45.0  # before it is believed that nothing across fits at all
_BLOCK = 8  # lines the path takes in one step; the place of a change is then refined to the line
_NEIGHBOURS = 25  # lines on each side that say what is usual here: sorted files must not look parallel at every offset
_CLIP = 2.5  # one odd line must not outweigh its neighbours
_WINDOW = 256  # lines over which an offset is chosen to measure the correlations
_LONGEST = 10_000  # characters of a line that are looked at
_FEWEST = 60  # lines below which nothing can be said
_WEAKEST = 0.08  # evidence per line (nats) below which nothing can be said


@dataclass(frozen=True)
class Part:
    """Lines that do not stand beside their translation: source line n fits target line n + offset, or none nearby (None)."""

    first: int
    last: int
    offset: int | None

    def sentence(self) -> str:
        if self.offset is None:
            return f"lines {self.first:,} to {self.last:,} fit nothing nearby"
        way = "later" if self.offset > 0 else "earlier"
        lines = "line" if abs(self.offset) == 1 else "lines"
        return f"lines {self.first:,} to {self.last:,} have their translation {abs(self.offset):,} {lines} {way}"


@dataclass(frozen=True)
class Shift:
    """What was found. `evidence` is what a line tells, in nats: near 0 when the texts are unrelated, or their lengths all alike."""

    parts: tuple[Part, ...] = ()
    evidence: float = 0.0
    judged: bool = True  # False when the texts are too short, or the evidence too weak, to say anything

    @property
    def line(self) -> int | None:
        """The first line that looks shifted."""
        return self.parts[0].first if self.parts else None

    @property
    def lines(self) -> int:
        return sum(part.last - part.first + 1 for part in self.parts)

    def sentence(self) -> str:
        """The clause that ends an error message about line counts."""
        if not self.judged:
            return "the texts are too short or too loosely alike to say where they part, so compare them from the start"
        if self.line is None:
            return "no pair looks shifted, so the lines too many are probably at the end"
        return f"the first pair that looks shifted is line {self.line:,}"


def find_shift(source: Iterable[str], target: Iterable[str]) -> Shift:
    """Where does the target stop running beside the source?"""
    return shift_of(gather_features(source), gather_features(target))


# ------------------------------------------------------------------------------------------------------------- features

_CLASSES = (",،、，፣;；؛፤", ".。።।…", "?？؟፧\u037e", "!！", "\"'«»“”„‘’()[]「」『』（）", ":：፡")
_DIGITS, _CAPITALS = len(_CLASSES) + 1, len(_CLASSES) + 2
FEATURES = len(_CLASSES) + 3  # the classes of marks, sum of digits, capitals, length


@functools.cache
def _tables() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """For each code point its class (0: none) and, for digits, its value."""
    classes, values = np.zeros(0x110000, np.uint8), np.zeros(0x110000, np.uint8)
    for code in range(0x3000):
        character = chr(code)
        if character.isupper():
            classes[code] = _CAPITALS
        elif character.isdecimal():
            classes[code], values[code] = _DIGITS, unicodedata.digit(character)
    for number, marks in enumerate(_CLASSES, 1):
        classes[[ord(mark) for mark in marks]] = number
    return classes, values


def line_features(lines: list[str]) -> Features:
    """log(1 + count) of each kind of mark, of the sum of digits, of capitals and of characters."""
    classes, values = _tables()
    lines = [line[:_LONGEST] for line in lines]
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    starts = np.concatenate([[0], np.cumsum(lengths[:-1] + 1)])
    codes = np.frombuffer(("\n".join(lines) + "\n").encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = classes[codes]
    places = np.flatnonzero(kinds)
    owners = np.searchsorted(starts, places, side="right") - 1
    weights = np.where(kinds[places] == _DIGITS, values[codes[places]], 1)
    counts = np.bincount(owners * FEATURES + kinds[places] - 1, weights, len(lines) * FEATURES).reshape(
        len(lines), FEATURES
    )
    counts[:, -1] = lengths
    return np.log1p(counts).astype(np.float16)


def gather_features(lines: Iterable[str]) -> Features:
    """Of a whole text, in half precision: 18 bytes a line."""
    stream: Iterator[str] = (line[:_LONGEST] for line in lines)
    parts = [np.zeros((0, FEATURES), np.float16)]
    while batch := list(itertools.islice(stream, 2048)):
        parts.append(line_features(batch))
    return np.concatenate(parts)


# ----------------------------------------------------------------------------------------------------------------- path


def shift_of(source: Features, target: Features) -> Shift:
    """The same from features gathered before."""
    if min(len(source), len(target)) < _FEWEST:
        return Shift(judged=False)
    texts = _Texts.of(source, target)
    evidence = texts.evidence()
    if evidence < _WEAKEST:
        return Shift(evidence=evidence, judged=False)
    offsets: list[int | None] = [*texts.offsets, None]
    path = _best_path(np.stack([texts.blocks(offset) for offset in offsets]), OFFSETS)
    changes = [int(place) for place in np.flatnonzero(np.diff(path)) + 1]
    if path[0] != OFFSETS:
        changes.insert(0, 0)
    if not changes:
        return Shift(evidence=evidence)
    states = [offsets[path[change]] for change in changes]
    befores: list[int | None] = [0, *states]
    firsts = [
        texts.refine(change, before, after) for change, before, after in zip(changes, befores, states, strict=False)
    ]
    ends = [*firsts[1:], len(source)]
    parts = [
        Part(first + 1, end, state)
        for first, end, state in zip(firsts, ends, states, strict=True)
        if state != 0 and end > first
    ]
    return Shift(tuple(parts), evidence)


@dataclass
class _Texts:
    """Both sides' features, standardised, and how strongly each is tied to the other side."""

    source: list[Floats]
    target: list[Floats]
    offsets: list[int]  # that come into question; place OFFSETS is 0, side by side
    ties: list[float]  # the correlations rho

    @classmethod
    def of(cls, source: Features, target: Features) -> _Texts:
        columns = range(FEATURES)
        offsets = list(range(-OFFSETS, OFFSETS + 1))
        if abs(len(target) - len(source)) > OFFSETS:
            offsets.append(len(target) - len(source))  # many lines lost at once
        sides = [_standard(source[:, n]) for n in columns], [_standard(target[:, n]) for n in columns]
        texts = cls(*sides, offsets, [0.0] * FEATURES)
        texts.ties = texts._correlations()
        return texts

    @property
    def block_count(self) -> int:
        return -(-len(self.source[0]) // _BLOCK)

    def evidence(self) -> float:
        """Nats per line by which parallel differs from unrelated: the mutual information of the features."""
        return float(sum(-0.5 * np.log1p(-(tie**2)) for tie in self.ties))

    def across(self, number: int, offset: int) -> tuple[slice, Floats, Floats]:
        """The source lines that have a line across at the offset, and the feature on both sides."""
        source, target = self.source[number], self.target[number]
        first, last = max(0, -offset), min(len(source), len(target) - offset)
        return slice(first, last), source[first:last], target[first + offset : last + offset]

    def _correlations(self) -> list[float]:
        """Of each feature, in the windows' best offsets: a shifted part must not hide how well the texts fit."""
        windows = -(-len(self.source[0]) // _WINDOW)
        products = np.zeros((len(self.offsets), FEATURES, windows), np.float32)
        sizes = np.maximum(_sums(np.ones(len(self.source[0]), np.float32), _WINDOW), 1)
        for place, offset in enumerate(self.offsets):
            for number in range(FEATURES):
                lines, x, y = self.across(number, offset)
                product = np.zeros(len(self.source[0]), np.float32)
                product[lines] = x * y
                products[place, number] = _sums(product, _WINDOW)
        best = np.argmax(products.sum(axis=1), axis=0)  # (windows,)
        chosen = np.take_along_axis(products, best[None, None, :], axis=0)[0].sum(axis=1) / sizes.sum()
        return [float(min(0.95, tie)) if tie > 0.05 else 0.0 for tie in chosen]

    def odds(self, offset: int | None) -> Floats:
        """For each source line the log odds that the line across at the offset is its translation; 0 where there is none."""
        total = np.zeros(len(self.source[0]), np.float32)
        if offset is None:
            return total
        for number, tie in enumerate(self.ties):
            if tie:
                lines, x, y = self.across(number, offset)
                total[lines] += -0.5 * np.log1p(-(tie**2)) - (tie**2 * (x * x + y * y) - 2 * tie * x * y) / (
                    2 * (1 - tie**2)
                )
        return np.clip(total, -_CLIP, _CLIP)

    def blocks(self, offset: int | None) -> Floats:
        return _sums(self.odds(offset), _BLOCK)

    def refine(self, block: int, before: int | None, after: int | None) -> int:
        """The line near the block where it is best to cut between two offsets."""
        first, last = max(0, (block - 6) * _BLOCK), min(len(self.source[0]), (block + 6) * _BLOCK)
        gain = np.concatenate([[0.0], np.cumsum(self.odds(before)[first:last] - self.odds(after)[first:last])])
        return first + int(np.argmax(gain))


def _standard(column: Features) -> Floats:
    """Above or below what is usual nearby, in standard deviations; zeros for a feature that never varies."""
    values = column.astype(np.float64)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(len(values))
    low, high = np.maximum(places - _NEIGHBOURS, 0), np.minimum(places + _NEIGHBOURS + 1, len(values))
    values -= (sums[high] - sums[low]) / (high - low)
    deviation = values.std()
    return np.clip(values / deviation if deviation > 1e-3 else values * 0, -4, 4).astype(np.float32)


def _sums(values: Floats, size: int) -> Floats:
    """Of each `size` values in a row."""
    return np.add.reduceat(values, np.arange(0, len(values), size))


def _best_path(odds: Floats, home: int) -> NDArray[np.int64]:
    """The state of each block on the likeliest path that starts at `home`. odds: (states, blocks); the last state is "nothing fits"."""
    states, blocks = odds.shape
    price = np.full(states, CHANGE)
    price[-1] = LOST
    score = -price
    score[home] = 0.0
    origin = np.zeros((blocks, states), np.int8)
    every = np.arange(states)
    for block in range(blocks):
        best = int(np.argmax(score))
        moved = score[best] - price
        moves = moved > score
        origin[block] = np.where(moves, best, every)
        score = np.where(moves, moved, score) + odds[:, block]
    path = np.zeros(blocks, np.int64)
    state = int(np.argmax(score))
    for block in range(blocks - 1, -1, -1):
        path[block] = state
        state = int(origin[block, state])
    return path
