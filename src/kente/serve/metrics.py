"""Counters in Prometheus' text form. No label holds anything about a person: no address, no key, no text."""

from __future__ import annotations

import bisect
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kente import __version__

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

Labels = tuple[tuple[str, str], ...]


@dataclass
class Counter:
    """Numbers that only grow, one for each combination of labels; a gauge if they may fall."""

    name: str
    help: str
    kind: str = "counter"
    values: dict[Labels, float] = field(default_factory=dict)

    def add(self, amount: float = 1, **labels: str) -> None:
        key = tuple(sorted(labels.items()))
        self.values[key] = self.values.get(key, 0) + amount

    def put(self, value: float, **labels: str) -> None:
        self.values[tuple(sorted(labels.items()))] = value

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.kind, self.help)
        for labels, value in list(self.values.items()):
            yield f"{self.name}{_labels(labels)} {_number(value)}"


@dataclass
class Histogram:
    """How often values were at most so large."""

    name: str
    help: str
    bounds: Sequence[float]
    values: dict[Labels, list[float]] = field(default_factory=dict)

    def see(self, value: float, **labels: str) -> None:
        counts = self.values.setdefault(tuple(sorted(labels.items())), [0.0] * (len(self.bounds) + 2))
        counts[bisect.bisect_left(self.bounds, value)] += 1
        counts[-1] += value

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, "histogram", self.help)
        for labels, counts in list(self.values.items()):
            total = 0.0
            for bound, count in zip((*self.bounds, None), counts[:-1], strict=True):
                total += count
                edge = "+Inf" if bound is None else _number(bound)
                yield f"{self.name}_bucket{_labels((*labels, ('le', edge)))} {_number(total)}"
            yield f"{self.name}_sum{_labels(labels)} {_number(counts[-1])}"
            yield f"{self.name}_count{_labels(labels)} {_number(total)}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _labels(labels: Labels) -> str:
    escaped = [(name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for name, value in labels]
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}" if labels else ""


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


class Metrics:
    """Everything that is counted."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # batches are counted in the worker's thread
        self.requests = Counter("kente_requests_total", "Requests answered, by route and status.")
        self.seconds = Histogram("kente_request_seconds", "Time from a request's head to its answer.", SECONDS)
        self.refused = Counter("kente_refused_total", "Requests refused, by reason.")
        self.left = Counter("kente_clients_left_total", "Clients that went away before their answer.")
        self.cut = Counter("kente_connections_cut_total", "Connections cut off, by reason.")
        self.characters = Counter("kente_characters_total", "Characters translated, by languages.")
        self.batches = Histogram("kente_batch_sentences", "Sentences in a batch.", SIZES)
        self.batch_seconds = Histogram("kente_batch_seconds", "Time a batch took.", SECONDS)
        self.corrections = Counter("kente_corrections_total", "Corrections taken, by languages.")
        self.state = Counter("kente_state", "What the server holds now.", "gauge")
        self.memory = Counter("process_resident_memory_bytes", "Memory held.", "gauge")
        self.about = Counter("kente_info", "Version.", "gauge", {(("version", __version__),): 1})

    def batch(self, sentences: int, seconds: float) -> None:
        with self.lock:
            self.batches.see(sentences)
            self.batch_seconds.see(seconds)

    def page(self, **now: float) -> str:
        """All of it as text; `now` are the values of the moment."""
        for name, value in now.items():
            self.state.put(value, what=name)
        resident = resident_bytes()
        if resident:
            self.memory.put(resident)
        with self.lock:
            parts = [part for part in vars(self).values() if isinstance(part, Counter | Histogram)]
            return "\n".join(line for part in parts if part.values for line in part.lines()) + "\n"


def resident_bytes() -> int:
    """Memory this process holds; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
