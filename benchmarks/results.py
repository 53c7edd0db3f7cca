"""Every sample in one JSON file, with what it was measured on; medians and spreads are made from it, never stored instead of it."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Sample = dict[str, Any]
FORMAT = 1


def fingerprint(*parts: Any) -> str:
    """A short name for values that JSON can hold; changes with any of them."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def code_hash(paths: Iterable[Path]) -> str:
    """A short name for the text of source files, whatever their order."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


class Results:
    """The samples of a results file. Written after each one: an interrupted benchmark goes on where it stopped."""

    def __init__(self, path: Path, *, fresh: bool = False):
        self.path = path
        self.about: dict[str, Any] = {}
        self.samples: list[Sample] = []
        if path.is_file() and not fresh:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.get("format") == FORMAT:
                self.about, self.samples = content["about"], content["samples"]

    def of(self, table: str, variant: str | None = None) -> list[Sample]:
        return [s for s in self.samples if s["table"] == table and variant in (None, s["variant"])]

    def find(self, table: str, variant: str, turn: int) -> Sample | None:
        """The finished sample of a round, if there is one; an error is not finished."""
        found = [s for s in self.of(table, variant) if s["round"] == turn and s.get("error") is None]
        return found[0] if found else None

    def stale(self, table: str, prints: dict[str, str]) -> list[str]:
        """Variants of a table whose samples come from another job or from other code than now."""
        return sorted({s["variant"] for s in self.of(table) if prints.get(s["variant"], s["code"]) != s["code"]})

    def drop(self, table: str) -> None:
        self.samples = [s for s in self.samples if s["table"] != table]

    def add(self, sample: Sample) -> None:
        """Keep a sample, in place of an earlier one of the same round."""
        same = ("table", "variant", "round")
        self.samples = [s for s in self.samples if any(s[k] != sample[k] for k in same)]
        self.samples.append({**sample, "time": now()})
        self.save()

    def save(self) -> None:
        content = {"format": FORMAT, "about": self.about, "samples": self.samples}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_name(self.path.name + ".part")
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(part, self.path)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Figure:
    """The median of some samples, the lowest and the highest of them, and how many there were."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Figure | None:
        ranked = sorted(values)
        if not ranked:
            return None
        return cls(statistics.median(ranked), ranked[0], ranked[-1], len(ranked))

    def text(self, digits: int = 0) -> str:
        """1,234 (1,200 to 1,300)"""
        spread = f" ({self.low:,.{digits}f} to {self.high:,.{digits}f})" if self.count > 1 else ""
        return f"{self.median:,.{digits}f}{spread}"
