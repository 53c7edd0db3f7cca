"""The peak of memory, as the system tells it."""

from __future__ import annotations

import platform
import subprocess
import sys

import numpy as np
import pytest

from kente import memory


def test_a_large_array_is_seen_and_a_forgotten_peak_begins_anew():
    memory.forget_peak()
    before = memory.peak_megabytes()
    held = np.ones(25_000_000)  # 200 MB
    with_it = memory.peak_megabytes()
    assert held[0] == 1 and with_it - before > 150
    del held
    assert memory.peak_megabytes() >= with_it - 1, "a peak stays"
    memory.forget_peak()
    assert memory.peak_megabytes() < with_it - 100


def test_without_proc_the_peak_is_that_of_the_process(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "none")
    monkeypatch.setattr(memory, "_CLEAR", tmp_path / "no" / "such")
    memory.forget_peak()
    assert memory.peak_megabytes() > 10


FAULTS = """
import resource, sys
from kente.memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
for round in range(40):
    if round == 20:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [bytearray(40_000_000) for _ in range(2)]
    del held
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(keep: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, keep], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such setting")
def test_freed_memory_is_used_again_without_asking_the_system():
    assert faults("") > 10_000, "each time anew, as a C library does with large blocks"
    assert faults("keep") < 1_000
