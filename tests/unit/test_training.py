"""Training as a user meets it, on toy tasks: resuming, stopping, guarding, averaging, landing on the clock."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kente import api
from kente.api.training import prepare_corpus
from kente.config import BatchConfig, Config
from kente.data.batches import Batches
from kente.data.toys import toy
from kente.errors import ConfigError, DiskFull, Diverged, Interrupted, RunError, UsageError
from kente.models.build import build
from kente.reporting import Reporter
from kente.runs import Run, Score
from kente.train.averaging import LastMean, mean_of
from kente.train.objectives import CrossEntropy, Loss
from kente.train.plan import Plan
from kente.train.prepare import Prepared
from kente.train.trainer import Trainer

SETTINGS = (
    "tokenizer.kind=characters",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.width=32",
    "model.feedforward=64",
    "model.heads=2",
    "batches.tokens=512",
    "batches.max_length=64",
    "train.log_every=2",
)


class Listener(Reporter):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


@pytest.fixture
def data(tmp_path: Path) -> api.Data:
    pairs = toy("reverse", 400, seed=1)
    (tmp_path / "a.txt").write_text("".join(f"{source}\n" for source, _ in pairs))
    (tmp_path / "b.txt").write_text("".join(f"{target}\n" for _, target in pairs))
    return api.Data(tmp_path / "a.txt", tmp_path / "b.txt")


def train(data, out, *more, **options):
    return api.train(data, out, settings=(*SETTINGS, *more), threads=1, **({"updates": 12} | options))


def sha(run) -> str:
    return api.info(run)["weights_sha256"]


def test_the_same_seed_trains_the_same_weights_and_another_does_not(data, tmp_path):
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        train(data, tmp_path / name, seed=seed)
    assert sha(tmp_path / "one") == sha(tmp_path / "two") != sha(tmp_path / "three")


@pytest.mark.parametrize("kind", ["muon", "adamw"])
@pytest.mark.parametrize("average", ["ema", "last", "none"])
def test_a_run_stopped_half_way_ends_where_the_unbroken_one_ends(data, tmp_path, kind, average):
    more = (f"optimiser.kind={kind}", f"train.average={average}", "train.validate_every=4", "batches.accumulation=2")
    train(data, tmp_path / "whole", *more)
    run = tmp_path / "halved"
    train(data, run, *more)
    opened = Run.open(run)
    for checkpoint in opened.checkpoints()[-1:]:  # as if the last save had never happened
        for file in checkpoint.path.iterdir():
            file.unlink()
        checkpoint.path.rmdir()
    before = opened.latest().step
    assert before < 12
    result = api.resume(run)
    assert result.step == 12 and sha(run) == sha(tmp_path / "whole")
    kept = [r["step"] for r in opened.read("metrics") if "loss" in r]
    assert kept == sorted(set(kept))
    best = opened.best()
    averaged = best.load("average") if average != "none" else None
    whole = Run.open(tmp_path / "whole").best()
    if averaged is not None:
        assert all(torch.equal(tensor, whole.load("average")[name]) for name, tensor in averaged.items())


def test_resuming_a_finished_run_changes_nothing(data, tmp_path):
    train(data, tmp_path / "run")
    before = sha(tmp_path / "run")
    assert api.resume(tmp_path / "run").step == 12
    assert sha(tmp_path / "run") == before


def test_the_run_folder_holds_what_was_promised(data, tmp_path):
    result = train(data, tmp_path / "run", "train.validate_every=6")
    run = result.run
    names = {path.name for path in run.path.iterdir()}
    assert {
        "config.toml",
        "tokenizer",
        "checkpoints",
        "metrics.jsonl",
        "samples.jsonl",
        "environment.json",
        "README.md",
        "plan.jsonl",
    } <= names
    card = (run.path / "README.md").read_text()
    assert "kente translate run" in card and "BLEU" in card and "nrefs:1" in card and "## What it is not" in card
    samples = run.read("samples")
    assert {"step", "source", "reference", "translation"} == set(samples[0]) and {s["step"] for s in samples} == {6, 12}
    metrics = [record for record in run.read("metrics") if "validation" in record]
    assert [m["step"] for m in metrics] == [6, 12] and {"loss", "bleu", "chrf"} == set(metrics[0]["validation"])
    assert run.config.tokenizer.vocabulary > 4 and run.config.train.updates == 12
    assert result.as_dict()["step"] == 12


def test_a_second_run_in_the_same_folder_is_refused_and_forced(data, tmp_path):
    train(data, tmp_path / "run")
    with pytest.raises(RunError, match="already holds a run; continue it with `kente train --resume"):
        train(data, tmp_path / "run")
    train(data, tmp_path / "run", "train.seed=9", updates=3, force=True)
    assert api.info(tmp_path / "run")["step"] == 3


def test_more_updates_on_resume_move_the_end_of_a_run_that_has_no_fixed_landing(data, tmp_path):
    run = tmp_path / "run"
    train(data, run, "optimiser.schedule=inverse-sqrt", updates=6)
    assert api.resume(run, updates=9).step == 9
    with pytest.raises(UsageError, match=r"stands at update 9 already; --updates must be larger"):
        api.resume(run, updates=9)
    train(data, tmp_path / "linear", updates=6)
    with pytest.raises(UsageError, match=r"has finished: its learning rate has come down to its end at update 6"):
        api.resume(tmp_path / "linear", updates=9)


def test_minutes_land_on_the_clock_and_every_choice_is_told(data, tmp_path):
    listener = Listener()
    result = train(data, tmp_path / "run", updates=None, minutes=0.25, reporter=listener)
    assert (
        result.stopped == "planned updates done" and result.step == Run.open(tmp_path / "run").read("plan")[-1]["total"]
    )
    assert any(line.startswith("chosen: optimiser.warmup") for line in listener.said)
    facts = json.loads((tmp_path / "run" / "prepared.json").read_text())
    assert {choice["setting"] for choice in facts["choices"]} >= {"optimiser.rate", "train.ema_decay", "model.dropout"}
    assert not {choice["setting"] for choice in facts["choices"]} & {
        "model.width",
        "batches.tokens",
    }  # set by hand above


def test_corrections_of_the_plan_are_replayed_not_measured_again(data, tmp_path):
    run = tmp_path / "run"
    train(data, run, updates=20, save_every=5)
    opened = Run.open(run)
    opened.append("plan", Plan(20, 20).landing_at(14, 7).as_record(7))
    for checkpoint in opened.checkpoints():
        for file in checkpoint.path.iterdir():
            file.unlink()
        checkpoint.path.rmdir()
    assert api.resume(run).step == 14
    once = sha(run)
    for checkpoint in opened.checkpoints()[-1:]:
        for file in checkpoint.path.iterdir():
            file.unlink()
        checkpoint.path.rmdir()
    assert api.resume(run).step == 14 and sha(run) == once


OPEN = ("optimiser.schedule=inverse-sqrt", "train.save_every=4")


def robbed(run: Path, to: int) -> Run:
    """The run as it stands when everything after update `to` was lost."""
    opened = Run.open(run)
    for checkpoint in opened.checkpoints():
        if checkpoint.step > to:
            shutil.rmtree(checkpoint.path)
    return opened


def test_minutes_on_resume_are_those_of_the_whole_run(data, tmp_path):
    run = tmp_path / "run"
    train(data, run, *OPEN, updates=8)
    spent = Run.open(run).latest().state["progress"]["seconds"] / 60
    with pytest.raises(
        UsageError, match=r"has trained for 0\.\d minutes already; --minutes, of the whole run, must be more"
    ):
        api.resume(run, minutes=spent / 2)
    asked = spent + 0.15
    result = api.resume(run, minutes=asked)
    assert result.step > 8 and Run.open(run).config.train.minutes == asked
    assert result.step == Run.open(run).read("plan")[-1]["total"]
    robbed(run, 8)
    assert api.resume(run).step > 8, "the end stays where it was moved to"


def test_updates_on_resume_hold_against_the_minutes_of_before(data, tmp_path):
    run = tmp_path / "run"
    train(data, run, *OPEN, updates=None, minutes=0.1)
    before = Run.open(run).latest().step
    assert api.resume(run, updates=before + 300).step == before + 300
    assert Run.open(run).config.train.minutes == 0


def test_an_end_moved_before_the_first_checkpoint_stays_moved(data, tmp_path):
    run = tmp_path / "run"
    train(data, run, *OPEN, updates=8)
    robbed(run, 0)
    assert api.resume(run, updates=12).step == 12
    robbed(run, 0)
    assert api.resume(run).step == 12


def test_corrections_on_the_way_to_an_end_that_was_moved_are_forgotten(data, tmp_path):
    run = tmp_path / "run"
    train(data, run, *OPEN, updates=8)
    opened = robbed(run, 4)
    opened.append("plan", Plan(8).landing_at(7, 6).as_record(6))  # a correction that was not reached again
    assert api.resume(run, updates=12).step == 12
    robbed(run, 4)
    assert api.resume(run).step == 12


def test_before_the_first_checkpoint_a_run_goes_on_with_the_threads_it_was_begun_with(data, tmp_path):
    run = tmp_path / "run"
    train(data, run)
    whole = sha(run)
    robbed(run, 0)
    facts = json.loads((run / "prepared.json").read_text())
    assert facts["environment"]["threads"] == 1
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        listener = Listener()
        api.resume(run, reporter=listener)
        assert torch.get_num_threads() == 1 and sha(run) == whole and not listener.warned
        robbed(run, 0)
        api.resume(run, threads=2, reporter=listener)
        assert "was trained with 1 threads, this goes on with 2" in listener.warned[0]
    finally:
        torch.set_num_threads(before)


def test_minutes_that_preparing_takes_up_are_said(data, tmp_path):
    listener = Listener()
    train(data, tmp_path / "run", updates=None, minutes=0.005, reporter=listener)
    assert any("take up all 0.005 minutes: hardly anything will be learnt" in said for said in listener.warned)


def test_a_save_that_a_full_disk_prevented_is_not_called_saved(data, tmp_path, monkeypatch):
    train(data, tmp_path / "run", updates=2)
    trainer = trainer_of(tmp_path / "run")

    def full(*_, **__):
        raise DiskFull("no room")

    monkeypatch.setattr(Run, "save", full)
    update = trainer._update
    trainer._update = lambda batches, step: (signal.raise_signal(signal.SIGTERM), update(batches, step))[1]
    with pytest.raises(Interrupted, match=r"SIGTERM at update 1: not saved, the disk is full\. Go on with"):
        trainer.fit()


def test_recent_weights_are_taken_to_the_device_they_are_averaged_on():
    mean = LastMean(2)
    mean.load({"0.a": torch.ones(2), "1.a": torch.ones(2)}, "meta")
    assert [weights["a"].device.type for weights in mean.recent] == ["meta", "meta"]


def test_early_stopping_ends_a_run_that_no_longer_improves(data, tmp_path):
    more = (
        "train.patience=2",
        "train.validate_every=2",
        "optimiser.rate=1e-9",
        "train.average=none",
        "train.max_updates=60",
    )
    result = train(data, tmp_path / "run", *more, updates=None)
    assert result.stopped == "no better for 2 validations" and result.step < 60
    assert api.resume(tmp_path / "run").step == result.step  # it stays stopped


def trainer_of(run_path: Path, objective=None, **settings) -> Trainer:
    run = Run.open(run_path)
    prepared = Prepared.open(run)
    config: Config = replace(run.config, train=replace(run.config.train, **settings))
    torch.manual_seed(0)
    model = build(config.model, prepared.tokenizers.source.size, prepared.tokenizers.target.size)
    batches = Batches(prepared.train, config.batches, seed=1)
    for checkpoint in run.checkpoints():
        for file in checkpoint.path.iterdir():
            file.unlink()
        checkpoint.path.rmdir()
    return Trainer(
        model=model, objective=objective or CrossEntropy(), batches=batches, run=run, config=config, plan=Plan(10, 100)
    )


def poisoned(at: set[int]):
    """An objective whose loss is not a number at some calls."""
    calls = iter(range(1, 10_000))

    def objective(model, batch) -> Loss:
        loss = CrossEntropy()(model, batch)
        return Loss(loss.total * float("nan"), loss.tokens) if next(calls) in at else loss

    return objective


def test_a_loss_that_is_not_a_number_never_reaches_the_weights(data, tmp_path):
    train(data, tmp_path / "run", updates=2)
    trainer = trainer_of(tmp_path / "run", poisoned({4}))
    seen = []
    original = trainer._update
    trainer._update = lambda batches, step: (seen.append((step, batches)), original(batches, step))[1]
    trainer.fit()
    assert all(torch.isfinite(p).all() for p in trainer.model.parameters())
    bad = trainer.run.read("bad-steps")
    assert [record["step"] for record in bad] == [4]
    assert bad[0]["rows"] == [int(row) for row in seen[3][1][0].rows] and bad[0]["loss"] == "nan"


def test_three_in_a_row_end_the_run_with_its_own_exit_code(data, tmp_path):
    train(data, tmp_path / "run", updates=2)
    trainer = trainer_of(tmp_path / "run", poisoned({3, 4, 5}), save_every=1)
    with pytest.raises(Diverged, match="updates 3 to 5") as caught:
        trainer.fit()
    assert caught.value.exit_code == 3
    assert (
        Run.open(tmp_path / "run").latest().step == 4
    )  # weights as after update 2: the skipped updates changed nothing


def test_gradients_are_of_the_mean_over_all_target_tokens_of_an_update(data, tmp_path):
    """Accumulating two batches is reading one batch twice as large, whatever their token counts."""
    train(data, tmp_path / "run", updates=2)
    trainer = trainer_of(tmp_path / "run")
    trainer.model.eval()
    one, two = trainer.batches.batch(0), trainer.batches.batch(5)
    loss = trainer.gradients([one, two], seed=1, step=1)
    gradients = [p.grad.clone() for p in trainer.model.parameters()]
    trainer.optimiser.zero()
    objective = CrossEntropy()
    total = objective(trainer.model, one).total + objective(trainer.model, two).total
    (total / (one.target_tokens + two.target_tokens)).backward()
    assert loss == pytest.approx(total.item() / (one.target_tokens + two.target_tokens), rel=1e-5)
    for mine, parameter in zip(gradients, trainer.model.parameters(), strict=True):
        torch.testing.assert_close(mine, parameter.grad, atol=1e-6, rtol=1e-4)


def test_the_mean_of_checkpoints_is_a_mean():
    sets = [{"a": torch.tensor([float(i)])} for i in (1, 2, 6)]
    assert mean_of(sets)["a"].item() == 3.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_leaves_and_the_run_goes_on_bit_for_bit(data, tmp_path, number):
    train(data, tmp_path / "whole", updates=200)
    run = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "kente",
        "train",
        "--source",
        str(data.source),
        "--target",
        str(data.target),
        "--out",
        str(run),
    ]
    command += ["--updates", "200", "--threads", "1", *(part for s in SETTINGS for part in ("--set", s))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while not (run / "metrics.jsonl").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    if process.returncode == 130:
        assert "saved. Go on with  kente train --resume" in said
        assert 0 < api.info(run)["step"] < 200
    else:
        assert process.returncode == 0, said  # it was done before the signal came
    api.resume(run)
    assert sha(run) == sha(tmp_path / "whole")


def test_two_trainers_do_not_share_a_run(data, tmp_path):
    train(data, tmp_path / "run", updates=2)
    with Run.open(tmp_path / "run").lock(), pytest.raises(RunError, match=r"is being trained by process \d+"):
        api.resume(tmp_path / "run")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.widht=3", "no setting called model.widht; did you mean model.width?"),
        ("model.width=abc", "model.width should be a whole number, not 'abc'"),
        ("optimiser.schedule=liner", "optimiser.schedule must be one of"),
    ],
)
def test_settings_that_cannot_be_are_said_before_a_folder_is_made(data, tmp_path, setting, message):
    with pytest.raises(ConfigError) as caught:
        train(data, tmp_path / "run", setting)
    assert message in str(caught.value) and not (tmp_path / "run").exists()


def test_a_missing_file_is_said_before_a_folder_is_made(data, tmp_path):
    with pytest.raises(UsageError, match=r"nothere\.txt"):
        train(api.Data(tmp_path / "nothere.txt", data.target), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="--target is missing"):
        train(api.Data(data.source), tmp_path / "run")


def test_batches_of_the_embedded_budget_hold_their_words():
    with pytest.raises(ConfigError, match=r"batches\.tokens \(10\) must be at least batches\.max_length \(20\)"):
        BatchConfig(tokens=10, max_length=20)


def test_scores_know_which_way_is_up():
    assert Score("BLEU", 3.0).better_than(Score("BLEU", 2.0))
    assert Score("loss", 1.0, higher_is_better=False).better_than(Score("loss", 2.0, higher_is_better=False))


def test_runs_can_share_a_prepared_corpus(tmp_path):
    source, target = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text("".join(f"w{i} is good\n" for i in range(120)))
    target.write_text("".join(f"w{i} est bon\n" for i in range(120)))
    shared = prepare_corpus(api.Data(source, target), tmp_path / "shared", settings=["tokenizer.kind=words"], threads=1)
    tiny = ["tokenizer.kind=words", "model.width=16", "model.heads=2", "model.feedforward=16", "model.encoder_layers=1"]
    how = {"updates": 2, "prepared": shared, "threads": 1}
    run = api.train(api.Data(source, target), tmp_path / "one", settings=tiny, **how).run
    assert run.tokenizers().sha256 == Run.open(shared).tokenizers().sha256
    with pytest.raises(RunError, match=r"wants another tokenizer or other cleaning than .*shared was made with"):
        api.train(api.Data(source, target), tmp_path / "two", settings=tiny[1:], **how)
    (shared / "cleaning.json").unlink()
    with pytest.raises(RunError, match="shared holds no prepared corpus: its making was interrupted"):
        api.train(api.Data(source, target), tmp_path / "three", settings=tiny, **how)


FAMILIES = {
    "fixed": ["model.kind=recurrent", "model.attention=none", "model.cell=lstm", "model.width=12", "model.embedding=12"],
    "attention": ["model.kind=recurrent", "model.width=12", "model.embedding=12"],
    "lstmn": ["model.kind=lstmn", "model.width=12", "model.embedding=12"],
    "conv": [
        "model.kind=conv", "model.embedding=12", "model.encoder_channels=12", "model.encoder_kernels=3",
        "model.decoder_channels=12", "model.decoder_kernels=3",
    ],
    "experts": [
        "model.width=16", "model.heads=2", "model.feedforward=16", "model.encoder_layers=1", "model.decoder_layers=1",
        "model.experts=3", "model.positions=relative",
    ],
}  # fmt: skip


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_resumes_to_the_same_weights(tmp_path, name, precision):
    """The run is robbed of its last checkpoint, as if the power had failed, and goes on from the one before."""
    source, target = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text("".join(f"w{i} is good\n" for i in range(200)))
    target.write_text("".join(f"w{i} est bon\n" for i in range(200)))
    settings = [
        "tokenizer.kind=words",
        "model.dropout=0.2",
        "train.keep=5",
        "train.validate_every=100",
        f"train.precision={precision}",
        *FAMILIES[name],
    ]
    out = tmp_path / "run"
    api.train(api.Data(source, target), out, settings=settings, updates=6, save_every=3, threads=1)
    whole = api.info(out)["weights_sha256"]
    shutil.rmtree(Run.open(out).latest().path)
    assert Run.open(out).latest().step == 3 and api.info(out)["weights_sha256"] != whole
    api.resume(out, threads=1)
    assert api.info(out)["weights_sha256"] == whole
