"""What every verb is given: where the text is, which device, how many threads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kente.data.corpus import Corpus
from kente.errors import UsageError

DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class Data:
    """A parallel text named by a person: two files, or one file of pairs (TSV or JSONL, `fields` names its columns or keys)."""

    source: Path | None = None
    target: Path | None = None
    pairs: Path | None = None
    fields: tuple[str, str] | None = None

    def corpus(self) -> Corpus:
        """The text itself, ready to be read as often as needed."""
        if self.pairs is not None:
            if self.source or self.target:
                raise UsageError("give either --source and --target, or --pairs, not both")
            return Corpus.of_pairs(self.pairs, self.fields)
        if self.source is None or self.target is None:
            missing = "--target" if self.source else "--source" if self.target else "--source and --target (or --pairs)"
            raise UsageError(f"{missing} is missing: a translator learns from a text and its translation")
        return Corpus.of_files(self.source, self.target)

    def as_dict(self) -> dict[str, Any]:
        """Absolute paths, so that a resumed run finds its text from any folder."""
        paths = {name: str(path.resolve()) for name in ("source", "target", "pairs") if (path := getattr(self, name))}
        return paths | ({"fields": list(self.fields)} if self.fields else {})

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Data:
        paths = {name: Path(values[name]) for name in ("source", "target", "pairs") if name in values}
        fields = tuple(values["fields"]) if "fields" in values else None
        return cls(**paths, fields=fields)


def pick_device(name: str = "auto") -> torch.device:
    """The fastest device there is, or the one asked for."""
    if name not in DEVICES:
        raise UsageError(f"no device called {name}; there are {', '.join(DEVICES)}")
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    if not there[name]:
        raise UsageError(f"--device {name}: this machine or this build of torch has no {name}; use --device auto")
    return torch.device(name)


def use_threads(threads: int | None) -> int:
    """Compute with that many threads, or as OMP_NUM_THREADS says, or with one for each core we may use."""
    if threads is not None and threads < 1:
        raise UsageError(f"--threads must be at least 1, not {threads}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    torch.set_num_threads(threads or int(os.environ.get("OMP_NUM_THREADS") or cores))
    return torch.get_num_threads()
