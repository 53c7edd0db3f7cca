"""What search hands back, whichever engine searches, and the rules every answer keeps. No torch in here.

An answer has a length it may not exceed, and does not say the same thing over and over unless its source does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

CUT = "cut at its greatest length"
LOOPED = "a repetition was broken off"
LATE = "stopped before its end, out of time"
NOTHING = "the model gave no answer"

WORST = -1e9  # score of no answer at all; finite, so that it can be written as JSON

SLACK = 10
"""Tokens an answer may always have beyond `max_ratio` times its source."""

PERIODS = 16  # longest loop watched for, in tokens
LOOP_REPEATS = 4  # the same run of tokens this often in a row is a loop ...
LOOP_TOKENS = 8  # ... if it is at least this long: "no no no no" and 10,000 spelt in digits are answers

Number = TypeVar("Number", float, "Tensor")


@dataclass(frozen=True)
class Hypothesis:
    """One answer. `score` is what answers are ranked by; `log_probability` is the model's, over ids and the end of the sentence."""

    ids: list[int]
    score: float
    log_probability: float
    finished: bool = True
    warnings: tuple[str, ...] = ()


def no_answer() -> Hypothesis:
    """What is left when no token was possible: a model whose logits are not numbers."""
    return Hypothesis([], WORST, WORST, False, (NOTHING,))


def too_late() -> Hypothesis:
    """An answer that time ran out for before a word of it was written."""
    return Hypothesis([], 0.0, 0.0, False, (LATE,))


def length_penalty(length: Number, power: float) -> Number:
    """((5 + length) / 6) ^ power, by which a log-probability is divided (Wu et al. 2016, equation 14)."""
    return ((5 + length) / 6) ** power


def most_tokens(source: int, max_ratio: float, limit: int | None = None) -> int:
    """Tokens an answer may have at most, for a source of so many (its end mark counted); `limit` lowers it."""
    cap = int(source * max_ratio) + SLACK
    return cap if limit is None else min(cap, limit)


def run_of_a_loop(period: int) -> int:
    """Tokens in a row that equal the one `period` before them, from which on they are a loop."""
    return max((LOOP_REPEATS - 1) * period, LOOP_TOKENS - period)


def end_of_loop(ids: Sequence[int], beyond: int = 0, start: int = 0) -> tuple[int, int] | None:
    """(place, period) of the first token from `start` on that makes a loop, or carries one on for `beyond` tokens; None without one.

    A guarded search never writes a token that carries a loop on by one.
    """
    if len(ids) - len(set(ids)) < FEWEST_REPEATED + beyond:
        return None
    runs = [0] * (PERIODS + 1)
    for place, token in enumerate(ids):
        for period in range(1, min(PERIODS, place) + 1):
            runs[period] = runs[period] + 1 if ids[place - period] == token else 0
            if runs[period] >= LOOP_RUNS[period] + beyond and place >= start:
                return place, period
    return None


LOOP_RUNS = tuple(map(run_of_a_loop, range(PERIODS + 1)))
FEWEST_REPEATED = min(LOOP_RUNS[1:])
"""Tokens of any loop that stood there before: with fewer, there is none to look for."""
