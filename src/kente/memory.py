"""How memory is kept, and how much of it this process has held at most."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
import resource
import sys
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of malloc.h


def keep_freed_memory() -> None:
    """Let what is freed wait for its next use instead of going back to the system, where the C library can (GNU).

    A training step frees all it made and the next makes the same again. Given back each time, every page of it would be
    zeroed and mapped anew: a tenth of the time and more. One arena for all threads, since the others give back sooner.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 2**30)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_ARENA_MAX, 1)


def forget_peak() -> None:
    """Let the peak begin anew at what is held now, where the system can (Linux); elsewhere it stays that of the whole process.

    What was freed but kept for later use is given back first: it belongs to whatever ran before.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # a GNU libc has it
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5")


def peak_megabytes() -> float:
    """The most memory held at once, in millions of bytes."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", _STATUS.read_text())
        if found:
            return int(found[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
