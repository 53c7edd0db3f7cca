"""What every verb that computes is given: which device, how many threads."""

from __future__ import annotations

import os

import torch

from kente.errors import UsageError
from kente.memory import keep_freed_memory

DEVICES = ("auto", "cpu", "cuda", "mps")


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
    keep_freed_memory()
    torch.set_num_threads(threads or int(os.environ.get("OMP_NUM_THREADS") or cores))
    return torch.get_num_threads()
