"""What adapters share. Only the standard library: it runs in every peer's environment.

    echo '{"action": "train", ...}' | python -m benchmarks.peers.plain        prints one line, {"tokens": ..., "seconds": ...}

A job is small, one measurement in a process of its own: so peers take turns (A B C, A B C, ...) and memory is each one's own.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Job = dict[str, Any]
Result = dict[str, Any]
Action = Callable[[Job], Result]


def serve(**actions: Action) -> None:
    """Do the one job on standard input. Whatever the peer prints goes to standard error; standard output is the result's alone."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.load(sys.stdin)
    if job["action"] not in actions:
        sys.exit(f"this adapter does {', '.join(actions)}, not {job['action']}")
    result = actions[job["action"]](job)
    answer.write(json.dumps(result) + "\n")
    answer.flush()


class Meter:
    """Real tokens and seconds of training updates, once the first `warmup` of them are over.

    `cells` are the places of a batch, padding included. The clock starts when the warm-up's last update ends: what a peer does between two
    updates (reading, collating, logging) is on it.
    """

    def __init__(self, warmup: int, updates: int):
        self.left_to_warm, self.wanted = warmup, updates
        self.updates = self.source = self.target = self.cells = 0
        self.began = self.ended = time.perf_counter()

    def updated(self, source: int, target: int, cells: int) -> bool:
        """An update over so many tokens has ended; True when enough were seen."""
        if self.left_to_warm > 0:
            self.left_to_warm -= 1
            self.began = time.perf_counter()
            return False
        self.ended = time.perf_counter()
        self.updates, self.cells = self.updates + 1, self.cells + cells
        self.source, self.target = self.source + source, self.target + target
        return self.updates >= self.wanted

    def result(self, **more: Any) -> Result:
        return {
            "tokens": self.source + self.target,
            "source_tokens": self.source,
            "target_tokens": self.target,
            "seconds": self.ended - self.began,
            "updates": self.updates,
            "padding": 1 - (self.source + self.target) / self.cells,
            **more,
        }


class Enough(Exception):
    """Raised out of a peer's own training loop when the meter has seen enough."""


def read_lines(path: str | Path, most: int | None = None) -> list[str]:
    return Path(path).read_text(encoding="utf-8").split("\n")[:-1][:most]


def timed_translation(job: Job, translate: Callable[[list[str]], list[str]]) -> Result:
    """Text in, text out: cutting into pieces and joining them is on the clock of every peer. A small part first, to warm up."""
    lines = read_lines(job["source"], job.get("sentences"))
    translate(lines[: job.get("warmup_sentences", 64)])
    began = time.perf_counter()
    texts = translate(lines)
    seconds = time.perf_counter() - began
    return {"sentences": len(lines), "seconds": seconds, "texts": texts}


def timed_latency(job: Job, translate: Callable[[list[str]], list[str]]) -> Result:
    """Milliseconds for one sentence after the other, each alone."""
    lines = read_lines(job["source"], job["sentences"])
    for line in lines[:5]:
        translate([line])
    times, texts = [], []
    for line in lines:
        began = time.perf_counter()
        texts += translate([line])
        times.append(1000 * (time.perf_counter() - began))
    return {"milliseconds": times, "p50": quantile(times, 0.5), "p95": quantile(times, 0.95), "texts": texts}


def quantile(values: Iterable[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    ranked = sorted(values)
    if len(ranked) == 1:
        return ranked[0]
    return statistics.quantiles(ranked, n=100, method="inclusive")[round(100 * share) - 1]


def length_rule(job: Job) -> dict[str, float]:
    """The length penalty to search with, under the name that all engines have for it; nothing where each keeps its own."""
    return {name: job[name] for name in ("length_penalty",) if name in job}


def in_length_order(
    lines: Sequence[list[int]], rows: int, work: Callable[[list[list[int]]], list[list[int]]]
) -> list[list[int]]:
    """Work through sentences in batches of like length, `rows` at a time, and put the answers back in their order."""
    order = sorted(range(len(lines)), key=lambda place: len(lines[place]))
    answers: list[list[int]] = [[] for _ in lines]
    for start in range(0, len(order), rows):
        places = order[start : start + rows]
        for place, answer in zip(places, work([lines[place] for place in places]), strict=True):
            answers[place] = answer
    return answers


class MinutesMarks:
    """A training clock that stands still while someone validates, with marks at which they should."""

    def __init__(self, minutes: Sequence[float]):
        self.marks = sorted(60 * minute for minute in minutes)
        self.began, self.paused = time.perf_counter(), 0.0
        self.points: list[dict[str, Any]] = []

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began - self.paused

    def look(self, updates: int, translate: Callable[[], list[str]]) -> bool:
        """Translate the validation set if a mark was passed; True when it was the last one."""
        seconds = self.seconds
        while self.marks and seconds >= self.marks[0]:
            mark = self.marks.pop(0)
            stopped = time.perf_counter()
            self.points.append({"minutes": mark / 60, "updates": updates, "texts": translate()})
            self.paused += time.perf_counter() - stopped
        return not self.marks
