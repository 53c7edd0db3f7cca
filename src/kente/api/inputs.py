"""What verbs are given, and whether it can be: which device, how many threads, a folder for what is made.

torch is imported only where it is asked for something.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kente.errors import UsageError
from kente.memory import keep_freed_memory
from kente.runs import cores

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda", "mps")
ACCELERATORS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""What stands there where a driver for a graphics card is at work: NVIDIA's, Windows's for Linux inside it, AMD's."""


def pick_device(name: str = "auto") -> torch.device:
    """The fastest device there is, or the one asked for."""
    import torch

    if name not in DEVICES:
        raise UsageError(f"no device called {name}; there are {', '.join(DEVICES)}")
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if there[kind])
    if not there[name]:
        raise UsageError(f"--device {name}: this machine or this build of torch has no {name}; use --device auto")
    return torch.device(name)


def has_torch() -> bool:
    """Whether torch is installed; a server that only translates does without."""
    return importlib.util.find_spec("torch") is not None


def has_accelerator() -> bool:
    """Whether there is a device faster than the processor; torch is asked only where there may be one."""
    maybe = sys.platform == "darwin" or any(map(os.path.exists, ACCELERATORS))
    return maybe and has_torch() and pick_device("auto").type != "cpu"


def thread_count(threads: int | None) -> int:
    """That many threads, or as OMP_NUM_THREADS says, or one for each core we may use."""
    if threads is not None and threads < 1:
        raise UsageError(f"--threads must be at least 1, not {threads}")
    return threads or int(os.environ.get("OMP_NUM_THREADS") or cores())


def use_threads(threads: int | None) -> int:
    """Let torch compute with `thread_count` threads."""
    import torch

    keep_freed_memory()
    torch.set_num_threads(thread_count(threads))
    return torch.get_num_threads()


def require_free_tokenizer(settings: Sequence[str], given: Path | str | None, option: str) -> None:
    """Refuse settings of a tokenizer that is there already."""
    for setting in (assignment.partition("=")[0].strip() for assignment in settings):
        if given and setting.startswith("tokenizer."):
            raise UsageError(
                f"{setting} cannot be set: the tokenizer of {given} is taken as it is; leave the setting out, or leave out {option}"
            )


def require_elsewhere(out: Path | str, what: str, *used: Path | str | None) -> None:
    """Refuse to put a new run where one stands that it is made from: --force would remove it first."""
    folder = Path(out).resolve()
    if any(Path(path).resolve() in (folder, folder / "tokenizer") for path in used if path):
        raise UsageError(f"--out {out} is the run {what}; choose another folder")
