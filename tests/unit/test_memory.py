"""The peak of memory, as the system tells it."""

from __future__ import annotations

import numpy as np

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
