"""Jobs in processes of their own, watched from outside: how long, how much memory, and what came back."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.environments import last_line

ROOT = Path(__file__).resolve().parent.parent
LOOK_EVERY = 0.5
"""Seconds between two looks at a job's memory."""


@dataclass(frozen=True)
class Outcome:
    """What a job gave: its result, or the last line of its error."""

    result: dict[str, Any] | None
    error: str | None
    wall_seconds: float
    peak_megabytes: float
    others_busy: float = 0.0
    """Share of all cores that other programs used meanwhile; those that were asked to be nice do not count."""


class Others:
    """How busy other programs keep the machine, from the kernel's own counts."""

    def __init__(self) -> None:
        self.began, self.busy, self.own = time.monotonic(), _busy_seconds(), _own_seconds()

    def share(self) -> float:
        """Of all cores, since this was made. Ask when the job has ended: only then is its own time known."""
        wall = max(time.monotonic() - self.began, 0.1)
        others = (_busy_seconds() - self.busy) - (_own_seconds() - self.own)
        return max(0.0, others / wall / (os.cpu_count() or 1))


def _busy_seconds() -> float:
    """Seconds that cores spent on programs (not on those that are nice) and on the kernel's work for them."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        user, _nice, system = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:4]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _own_seconds() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def environment(threads: int) -> dict[str, str]:
    """Kente from this checkout, so many threads, and nobody looks for a network."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONWARNINGS": "ignore",
        "CUDA_VISIBLE_DEVICES": "",
    }


@contextlib.contextmanager
def holding(lock: Path | None) -> Iterator[None]:
    """Hold a file while measuring, so that several who measure on one machine take turns."""
    if lock is None:
        yield
        return
    with open(lock, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_job(python: Path, module: str, job: dict[str, Any], threads: int, timeout: float, log: Path) -> Outcome:
    """One job of one adapter. Its standard error is kept in `log`: the whole story when something fails."""
    began = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w+", encoding="utf-8", errors="replace") as errors, tempfile.TemporaryFile("w+") as job_file:
        json.dump(job, job_file)
        job_file.seek(0)
        process = subprocess.Popen(
            [str(python), "-m", module],
            stdin=job_file,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=environment(threads),
            start_new_session=True,
        )
        memory = PeakMemory(process.pid)
        try:
            answer, _ = process.communicate(timeout=timeout)
        except BaseException as error:  # an interrupted benchmark leaves no job behind
            os.killpg(process.pid, 9)
            process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return Outcome(None, f"no answer within {timeout:.0f} s", time.monotonic() - began, memory.stop())
        wall, peak = time.monotonic() - began, memory.stop()
        if process.returncode:
            errors.seek(0)
            return Outcome(None, last_line(errors.read()), wall, peak)
    return Outcome(json.loads(answer), None, wall, peak)


def time_to_first_line(command: list[str], threads: int, timeout: float, log: Path) -> Outcome:
    """Seconds from the start of a process to its first line of output."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "w+", encoding="utf-8", errors="replace") as errors:
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=environment(threads)
        )
        memory = PeakMemory(process.pid)
        watchdog = threading.Timer(timeout, process.kill)
        watchdog.start()
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.monotonic() - began
        process.communicate()
        watchdog.cancel()
        peak = memory.stop()
        if process.returncode or not line:
            errors.seek(0)
            return Outcome(None, last_line(errors.read()), seconds, peak)
    return Outcome({"seconds": seconds, "texts": [line.rstrip("\n")]}, None, seconds, peak)


class PeakMemory:
    """The most resident memory of a process and its descendants together, by looking every so often.

    Pages that processes share count for each of them, so several processes look larger than they are, never smaller.
    """

    def __init__(self, pid: int):
        self.pid, self.peak = pid, 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_EVERY):
            self.peak = max(self.peak, sum(_resident(pid) for pid in _family(self.pid)))

    def stop(self) -> float:
        """Peak in megabytes (millions of bytes)."""
        self._ended.set()
        self._thread.join()
        return self.peak


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        with contextlib.suppress(OSError):  # it may end while we look
            for task in Path(f"/proc/{one}/task").glob("*/children"):
                waiting += map(int, task.read_text().split())
    return found


def _resident(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0
