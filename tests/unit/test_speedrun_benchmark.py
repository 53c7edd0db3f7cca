"""The trials behind docs/speedrun.md: settings that exist, optimisers that optimise, a table that says what was found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmark is a package beside src, not a part of what is installed

from benchmarks import speedrun  # noqa: E402

from kente.configfile import override  # noqa: E402
from kente.train.budget import automatic  # noqa: E402


@pytest.mark.parametrize("name", speedrun.TRIALS)
def test_every_trial_changes_settings_that_there_are(name: str) -> None:
    trial = speedrun.TRIALS[name]
    settings = [*speedrun.TINY, *(setting.format(tenth=80) for setting in trial.settings)]
    assert override(automatic(), settings).model.kind == "transformer"
    assert (trial == speedrun.Trial(trial.group)) == (name == speedrun.USUAL)  # all but the usual one change something


@pytest.mark.parametrize("name", ["lion", "schedule-free"])
def test_other_optimisers_find_the_bottom_of_a_bowl(name: str) -> None:
    begin, step = speedrun.OTHERS[name]
    place, updates = torch.nn.Parameter(torch.tensor([3.0, -2.0])), 400
    memory, config = begin(place), SimpleNamespace(rate=0.05, warmup=10)
    with torch.no_grad():
        for count in range(1, updates + 1):
            place.grad = place * torch.tensor([1.0, 10.0])
            step(place, memory, 0.05 * (1 - count / updates), count, updates, config)
    assert float(place.detach().abs().max()) < 0.2


def test_the_table_sets_each_trial_beside_the_usual_one_of_its_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speedrun, "FOLDER", tmp_path)
    found = [
        {"trial": speedrun.USUAL, "seed": 1, "updates": 800, "loss": 2.0, "bleu": 30.0},
        {"trial": speedrun.USUAL, "seed": 2, "updates": 800, "loss": 2.2, "bleu": 31.0},
        {"trial": "cosine", "seed": 1, "updates": 800, "loss": 2.5, "bleu": 29.0},
        {"trial": "cosine", "seed": 2, "updates": 800, "loss": 2.7, "bleu": 29.6},
        {"trial": "batches of 512, twice the updates", "seed": 2, "updates": 1600, "loss": 2.1, "bleu": 31.5},
        {"trial": "cosine", "seed": 3, "updates": 40, "loss": 9.0, "bleu": 0.0},
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(record) + "\n" for record in found))
    lines = speedrun.table(800).splitlines()
    assert lines[2] == "|  | as `--minutes` does | 2.100 | 30.5 |  | 2 |"
    assert lines[3] == "| schedule | cosine | 2.600 | 29.3 | -1.2 (-1.4 to -1.0) | 2 |"
    assert lines[4] == "| batches | batches of 512, twice the updates | 2.100 | 31.5 | +0.5 (+0.5 to +0.5) | 1 |"
    assert len(lines) == 5
