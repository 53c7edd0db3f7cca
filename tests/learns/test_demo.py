"""`kente demo` from end to end, in seconds instead of minutes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kente.api import demo

pytestmark = [pytest.mark.learns, pytest.mark.slow]


def test_the_demo_trains_three_models_and_ends_with_their_page(tmp_path: Path):
    result = demo(tmp_path / "runs" / "demo", minutes=0.3, threads=1)
    page = Path(result["page"])
    assert page.read_text().startswith("<!doctype html>") or "<!DOCTYPE html>" in page.read_text()
    numbers = json.loads((page.parent / "comparison.json").read_bytes())
    assert [system["name"] for system in numbers["systems"]] == ["gru", "gru-attention", "transformer"]
    fixed, attentive, transformer = numbers["systems"]
    assert fixed["why_no_attention"] and attentive["alignment"] and transformer["alignment"]
    assert 0 <= result["test"]["bleu"] <= 100 and "nrefs:1" in result["test"]["signature"]
    assert any(str(page) in line for line in result["lines"]) and result["samples"][0]["source"] == "I am good"
    assert all(command.startswith("kente ") for command in result["next"])
