"""Where values stand on an axis, and the round numbers beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kente.show.text import breadth

LARGEST = 1e300
"""Beyond this, or below its inverse on a log scale, sums and powers leave what floats can hold: not drawn."""
UNITS = ("", "k", "M", "G", "T")
FLAT = 1e-9
"""Values that differ by less than this share of themselves are drawn as equal: ticks between them would be noise."""


@dataclass(frozen=True)
class Axis:
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False
    named: bool = False
    """Ticks are names and stand for their places, as buckets do."""

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high one."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)


def drawable(value: float | None, log: bool = False) -> bool:
    """Is it a number that has a place on such an axis?"""
    if value is None or not math.isfinite(value) or abs(value) > LARGEST:
        return False
    return value >= 1 / LARGEST if log else True


def axis(values: Iterable[float | None], *, log: bool = False, count: int = 6, tight: bool = False) -> Axis:
    """The axis from one round number to another that holds all drawable `values`, with about `count` ticks.

    A tight one ends with the largest value, round or not.
    """
    usable = [value for value in values if value is not None and drawable(value, log)]
    if log:
        return _log_axis(min(usable, default=1.0), max(usable, default=10.0), count)
    found = _linear_axis(min(usable, default=0.0), max(usable, default=1.0), count)
    if tight and usable and max(usable) > found.ticks[1][0]:
        return replace(found, high=max(usable), ticks=tuple(t for t in found.ticks if t[0] <= max(usable) * (1 + FLAT)))
    return found


def _linear_axis(low: float, high: float, count: int) -> Axis:
    size = max(abs(low), abs(high))
    if high - low <= FLAT * size:
        margin = 0.1 * size if size > 1 / LARGEST else 1.0
        low, high = low - margin, high + margin
    step = round_step((high - low) / max(count - 1, 1))
    first, last = math.floor(low / step + FLAT), math.ceil(high / step - FLAT)
    ticks = [number * step for number in range(first, last + 1)]
    return Axis(ticks[0], ticks[-1], tuple(zip(ticks, tick_labels(ticks, step), strict=True)))


def round_step(wanted: float) -> float:
    """The least of 1, 2, 2.5, 5 or 10 times a power of ten that is no smaller than `wanted`."""
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step for step in (power, 2 * power, 2.5 * power, 5 * power, 10 * power, 20 * power) if step >= wanted)


def _log_axis(low: float, high: float, count: int) -> Axis:
    first, last = math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1
    stands = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    start = max(stand for stand in stands if stand <= low * (1 + FLAT))
    end = min(stand for stand in stands if stand >= high * (1 - FLAT))
    if start == end:
        place = stands.index(start)
        start, end = stands[place - 1], stands[place + 1]
    ticks = [stand for stand in stands if start <= stand <= end]
    if len(ticks) > count + 1:
        decades = [power for power in range(first, last + 1) if start <= 10.0**power <= end]
        stride = math.ceil((len(decades) - 1) / count)
        ticks = [10.0**power for power in decades if power % stride == 0]
    return Axis(start, end, tuple((tick, tick_labels([tick], tick)[0]) for tick in ticks), log=True)


def tick_labels(ticks: Sequence[float], step: float) -> list[str]:
    """Numbers a `step` apart with as many digits as tell them apart: 0.25, 2,000, 40k, 3e-7."""
    size = max((abs(tick) for tick in ticks), default=0.0)
    if size >= 1000.0 ** len(UNITS) or 0 < step < 1e-4:
        digits = _power(max(size, step)) - _power(step) + _decimals(step / 10.0 ** _power(step))
        return [_scientific(tick, digits) for tick in ticks]
    unit = int(math.log10(size) // 3) if size >= 10_000 else 0
    factor = 1000.0**unit
    decimals = _decimals(step / factor)
    return [_signed(f"{tick / factor:,.{decimals}f}", UNITS[unit]) for tick in ticks]


def _power(value: float) -> int:
    return math.floor(math.log10(value) + FLAT)


def _decimals(step: float) -> int:
    return next((n for n in range(12) if abs(round(step, n) - step) <= 1e-6 * step), 12)


def _signed(digits: str, unit: str) -> str:
    plain = digits.lstrip("-")
    if not plain.strip("0.,"):
        return "0"
    return ("−" if digits.startswith("-") else "") + plain + unit


def _scientific(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.{min(digits, 12)}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return ("−" if value < 0 else "") + f"{mantissa}e{int(exponent)}"


def thinned(ticks: Sequence[tuple[float, str]], most: int) -> list[tuple[float, str]]:
    """Every tick, with labels left out evenly until the widest fits beside its neighbours."""
    widest = max((breadth(label) for _, label in ticks), default=0) + 1
    stride = max(1, math.ceil(widest * len(ticks) / most))
    return [(tick, label if place % stride == 0 else "") for place, (tick, label) in enumerate(ticks)]


def short(value: float, digits: int = 4) -> str:
    """A value for reading, not for an axis: `digits` significant ones."""
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        decimals = max(0, digits - 1 - (math.floor(math.log10(abs(value))) if value else 0))
        text = f"{value:,.{decimals}f}"
        return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")
    return _scientific(value, digits - 1)
