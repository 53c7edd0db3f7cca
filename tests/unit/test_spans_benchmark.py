"""The benchmark of longer spans: its tasks have the answers it says, its jobs run, its page is filled."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmark is a package beside src, not a part of what is installed

from benchmarks import spans, spans_job  # noqa: E402
from benchmarks.results import Results  # noqa: E402

TINY = {"layers": 1, "width": 16, "feedforward": 32, "heads": 2, "dropout": 0.0}


def test_what_is_to_be_copied_stands_so_far_before_the_answer():
    batch = spans_job.copy_at_distance(random.Random(1), 3, 20)
    for source, answer in zip(batch.source.tolist(), batch.target_output.tolist(), strict=True):
        assert [token for token in source if token in spans_job.SYMBOLS] == answer[: spans_job.COPIED]
        assert sum(token in spans_job.FILLER for token in source) == 20


def test_a_needle_is_the_symbol_behind_the_key_that_is_asked_for():
    batch = spans_job.needle_in_a_text(random.Random(1), 8, 40)
    for source, answer in zip(batch.source.tolist(), batch.target_output.tolist(), strict=True):
        *words, first = [token for token in source if token >= 4]
        asked = [first, *(token for token in answer if token in spans_job.KEYS)]
        symbols = [token for token in answer if token in spans_job.SYMBOLS]
        assert len(words) == 40 and sorted(asked) == list(spans_job.KEYS)
        assert [words[words.index(key) + 1] for key in asked] == symbols


@pytest.mark.parametrize("variant", spans.SPANS)
def test_jobs_measure_and_learn(variant):
    job = {"model": TINY | spans.SPANS[variant] | {"reach": 16}, "length": 70, "repeat": 1, "words": 2}
    assert spans_job.train(job)["seconds"] > 0
    written = spans_job.write(job)
    longer = spans_job.write(job | {"length": 700})
    assert written["seconds"] > 0 and written["kept_megabytes"] > 0
    grown = longer["kept_megabytes"] / written["kept_megabytes"]
    assert grown > 5 if variant == "full" else grown < 2, (
        "what is kept grows with the text only where all of it is looked at"
    )
    learnt = spans_job.learn(
        job | {"task": "copy", "size": 8, "rows": 4, "updates": 2, "judged": 1, "rate": 1e-3, "seed": 1}
    )
    assert 0 <= learnt["accuracy"] <= 1


def test_characters_are_judged_in_bits_over_text_held_out(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("abcd" * 500)
    job = {"task": "characters", "text": str(text), "size": 32, "rows": 2, "updates": 60, "judged": 3}
    learnt = spans_job.learn(job | {"model": TINY, "rate": 8e-3, "seed": 1})
    assert (
        0 < learnt["late_bits"] < learnt["bits"] < 1.5
    )  # any of four letters would be 2 bits; the first cannot be known


def test_the_page_is_filled_from_the_samples(tmp_path):
    results = Results(tmp_path / "spans.json")
    results.about = {"processor": "P", "cores": 2, "threads": 2, "torch": "2", "date": "today", "rounds": 1}
    for length, seconds in ((256, 0.5), (512, 1.5)):
        results.add({"table": f"train {length}", "variant": "full", "round": 0, "code": "", "error": None,
                     "seconds": seconds, "megabytes": 10.0 * seconds})  # fmt: skip
    results.add({"table": "copy 32", "variant": "window", "round": 0, "code": "", "error": None, "accuracy": 0.5})
    page = tmp_path / "spans.md"
    page.write_text((ROOT / "docs" / "spans.md").read_text(encoding="utf-8"), encoding="utf-8")
    spans.report(results, page, tmp_path / "images")
    text = page.read_text(encoding="utf-8")
    assert "| full | 500 | 1,500 |" in text and "| window | 50 % |" in text and "P, 2 cores" in text
    assert (tmp_path / "images" / "spans-train.svg").read_text().startswith("<svg")


def test_what_seeds_learnt_is_told_by_their_median_and_where_they_differ_by_their_range(tmp_path):
    results = Results(tmp_path / "spans.json")
    for seed, accuracy in enumerate((0.9, 1.0, 0.5)):
        results.add({"table": "needle 128", "variant": "full", "round": seed, "code": "", "error": None,
                     "accuracy": accuracy})  # fmt: skip
        results.add({"table": "copy 32", "variant": "full", "round": seed, "code": "", "error": None, "accuracy": 1.0})
    assert spans.learnt(results, "needle 128", "full", "accuracy") == "90 % (50 to 100)"
    assert spans.learnt(results, "copy 32", "full", "accuracy") == "100 %"
    assert spans.learnt(results, "copy 32", "linear", "accuracy") == "-"
    assert spans.seeds_of(results) == "copy 3 seeds, needle 3 seeds"


def test_tasks_are_learnt_with_distances_felt_wherever_they_can_be():
    positions = {task.variant: task.job["model"].get("positions", "sinusoid") for task in spans.tasks(False, 1)}
    assert positions == {"full": "rotary", "window": "rotary", "memory": "xl", "linear": "sinusoid"}
    assert {task.job["seed"] for task in spans.tasks(False, 3)} == {3}
