"""The life of a run, whatever it learns: begun with settings and a request, prepared, planned, trained, resumed, told about in a card.

What differs between translators, language models and the rest is asked of their `Task` (train/task.py).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kente.api.inputs import pick_device, use_threads
from kente.api.tasks import task_of
from kente.config import Config, TransferConfig
from kente.configfile import apply, load_recipe, override, recipe_settings
from kente.errors import RunError, UsageError
from kente.models.summary import parameter_count
from kente.reporting import SILENT, Reporter
from kente.runs import Checkpoint, Run, Score, environment, tensors_size
from kente.train.averaging import named_weights
from kente.train.budget import Chooser
from kente.train.card import card
from kente.train.kinds import KINDS, check_model, check_use, kind_of
from kente.train.optimiser import LANDING
from kente.train.plan import Pace, Plan
from kente.train.task import Task
from kente.train.trainer import Outcome, Trainer

CLOSING_SECONDS = 3.0
"""Kept back from a run's minutes for the last checkpoint and the model card."""


@dataclass(frozen=True)
class TrainResult:
    """A finished (or resumed and finished) training."""

    run: Run
    step: int
    stopped: str
    best: Score | None
    seconds: float
    told: dict[str, Any] = field(default_factory=dict)
    """What else its task has to say, such as scores before and after."""

    def as_dict(self) -> dict[str, Any]:
        best = asdict(self.best) if self.best else None
        return {
            "run": str(self.run.path),
            "step": self.step,
            "stopped": self.stopped,
            "best": best,
            "seconds": round(self.seconds, 1),
            **self.told,
        }

    def table(self) -> list[str]:
        """Scores on old and new text before and after, one line each, where a translator was adapted."""
        rows = [
            (f"{text} text, {name}", scores["before"][name], value)
            for text, scores in self.told.get("scores", {}).items()
            for name, value in scores["after"].items()
        ]
        heading = [f"{'':<16}{'before':>8}{'after':>8}"] if rows else []
        return heading + [f"{name:<16}{before:>8.1f}{after:>8.1f}" for name, before, after in rows]

    def next_commands(self) -> list[str]:
        """What one may want to type now."""
        return kind_of(self.run).uses(self.run.path)


def launch(
    base: Config,
    out: Path | str,
    request: dict[str, Any],
    *,
    recipe: str | Path | None = None,
    minutes: float | None = None,
    updates: int | None = None,
    save_every: int | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
    force: bool = False,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
    began: float | None = None,
    check: Callable[[Config, frozenset[str]], None] | None = None,
) -> TrainResult:
    """Begin a run of the task that `base` names, and train it. `request` says what it is to be made from; its task reads it.

    What neither recipe nor settings decide is chosen for the data, the machine and the minutes. `check` may refuse the settings, being told
    which of them were given, before a folder is made or replaced.
    """
    began = time.monotonic() if began is None else began
    task = base.train.task
    config = load_recipe(recipe, base=base) if recipe else base
    if minutes is not None:
        config = apply(config, {"train": {"updates": 0}})  # a recipe's updates give way to the minutes asked for
    given = {"train.minutes": minutes, "train.updates": updates, "train.save_every": save_every, "train.seed": seed}
    assignments = [*settings, *(f"{name}={value}" for name, value in given.items() if value is not None)]
    config = override(config, assignments)
    if config.train.task != task:
        wanted = KINDS[config.train.task]
        raise UsageError(
            f"train.task = {config.train.task} makes {wanted.name}, not {KINDS[task].name}: `{wanted.made_by}` does that"
        )
    by_hand = {assignment.partition("=")[0].strip() for assignment in assignments}
    by_recipe = recipe_settings(recipe) if recipe else frozenset[str]()
    given_settings = by_recipe | by_hand
    check_model(config)
    check_use(config, given_settings)
    _require_use_of_transfer(config, request)
    if check is not None:
        check(config, given_settings)
    where, used = pick_device(device), use_threads(threads)  # what cannot be had is said before a run is replaced
    run = Run.create(out, config, force=force)
    request = {
        **request,
        "by_hand": sorted(by_hand),
        "recipe": str(recipe) if recipe else None,
        "by_recipe": sorted(by_recipe),
    }
    run.write_json("request.json", request)
    run.write_json("environment.json", environment())
    with run.lock():
        return _fit(run, where, used, reporter, began)


def _require_use_of_transfer(config: Config, request: dict[str, Any]) -> None:
    """What only runs that go on from others have a use for is refused elsewhere."""
    begun = request.get("encoder_from") or request.get("decoder_from")
    useful = {"freeze"} if begun else set(asdict(config.transfer)) if "parent" in request else set()
    for name, value in asdict(config.transfer).items():
        if name not in useful and value != getattr(TransferConfig(), name):
            raise UsageError(
                f"transfer.{name} is for `kente adapt`"
                + (", and with --encoder-from or --decoder-from" if name == "freeze" else "")
            )


def resume(
    run: Path | str,
    *,
    minutes: float | None = None,
    updates: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
    began: float | None = None,
) -> TrainResult:
    """Go on with a run from its newest good checkpoint, to the same end bit for bit; `updates` moves the end further out."""
    began = time.monotonic() if began is None else began
    opened = Run.open(run)
    if opened.request().get("imported"):
        raise UsageError(f"{opened.path} was imported: there is no training of it to go on with")
    with opened.lock():
        before = _threads_before(opened, opened.latest(reporter))
        # the order of sums depends on how many there are, and so does the last bit
        used = use_threads(before if threads is None else threads)
        if before is not None and used != before:
            reporter.warn(
                f"the run was trained with {before} threads, this goes on with {used}: last digits will differ"
            )
        return _fit(opened, pick_device(device), used, reporter, began, minutes=minutes, updates=updates)


def _threads_before(run: Run, checkpoint: Checkpoint | None) -> int | None:
    """How many threads the run was trained with; before its first checkpoint, those it was prepared with."""
    if checkpoint is not None:
        return int(checkpoint.manifest["threads"])
    if (run.path / "prepared.json").exists():
        return int(read_json(run, "prepared.json")["environment"]["threads"])
    return None


def _fit(
    run: Run,
    device: torch.device,
    threads: int,
    reporter: Reporter,
    began: float,
    *,
    minutes: float | None = None,
    updates: int | None = None,
) -> TrainResult:
    task = task_of(run, device, threads, reporter)
    if (run.path / "prepared.json").exists():
        task.open()
    else:
        _prepare(task, began)
    config = run.config
    torch.manual_seed(config.train.seed)
    model = task.model(config).to(device)
    batches = task.batches(config)
    checkpoint = run.latest(reporter)
    if checkpoint is None:
        task.begin(model)
    trainer = Trainer(
        model=model,
        objective=task.objective(config),
        batches=batches,
        run=run,
        config=config,
        plan=Plan.from_record([record for record in run.read("plan") if record["step"] == 0][-1]),
        validate=task.validate,
        device=device,
        reporter=reporter,
        seconds_before=time.monotonic() - began,
        main=task.main,
    )
    weights = {"model": named_weights(model)}
    copies = 4 + (config.train.average_last if config.train.average == "last" else 0)
    run.check_room(copies * tensors_size(weights), config.train.keep)  # weights, two moments of each, what is averaged
    if checkpoint is not None:
        trainer.restore(checkpoint)
        reporter.say(f"resuming {run.path} after update {checkpoint.step:,}")
    else:
        trainer.corrections = {r["step"]: Plan.from_record(r) for r in run.read("plan") if r["step"] > 0}
    facts = read_json(run, "prepared.json")
    if minutes is not None or updates is not None:
        _move_the_end(trainer, task, facts, minutes, updates)
    elif config.train.minutes:
        trainer.pace = _pace(trainer, task, facts)
    outcome = trainer.fit()
    task.finish()
    _write_card(task, facts, model, outcome)
    return TrainResult(run, outcome.step, outcome.stopped, outcome.best, outcome.seconds, task.told(facts))


def _pace(trainer: Trainer, task: Task, facts: dict[str, Any]) -> Pace:
    """The clock of a run with minutes. One that had none when it was prepared goes by what its updates have taken."""
    spent = trainer.progress.seconds
    per_update = facts["seconds_per_update"] or spent / max(1, trainer.progress.step)
    return Pace(_seconds(task, task.run.config), spent, per_update, facts["seconds_per_validation"])


def _move_the_end(
    trainer: Trainer, task: Task, facts: dict[str, Any], minutes: float | None, updates: int | None
) -> None:
    """--updates or --minutes, of the whole run, given to a resume: its end moves, and the move is recorded like any correction."""
    run, step = task.run, trainer.progress.step
    finished = trainer.plan.progress(step) >= 1
    if finished and run.config.optimiser.schedule in LANDING:
        raise UsageError(
            f"{run.path} has finished: its learning rate has come down to its end at update {step:,}. "
            "Train a new run with more --minutes or --updates"
        )
    if updates is not None and updates <= step:
        raise UsageError(f"{run.path} stands at update {step:,} already; --updates must be larger")
    if minutes is not None and 60 * minutes <= trainer.progress.seconds:
        spent = trainer.progress.seconds / 60
        raise UsageError(
            f"{run.path} has trained for {spent:.1f} minutes already; --minutes, of the whole run, must be more"
        )
    given = {"updates": updates or 0, "minutes": minutes or 0.0}
    run.write_config(apply(run.config, {"train": given}))
    trainer.config = run.config
    if minutes is not None:
        trainer.pace = _pace(trainer, task, facts)
        updates = trainer.pace.total_for(trainer.plan, step)
    assert updates is not None
    trainer.plan = trainer.plan.landing_at(updates, step)
    if finished:  # what was all of the run is a part of it now
        trainer.plan = replace(trainer.plan, anchor_progress=step / trainer.plan.total)
    trainer.corrections = {}
    run.truncate_after("plan", step)  # corrections on the way to the old end
    run.append("plan", trainer.plan.as_record(step))


# --- before the first update ---


def _prepare(task: Task, began: float) -> None:
    """Data, settings and plan. prepared.json is written last: without it, all of this is done again."""
    run = task.run
    request = read_json(run, "request.json")
    (run.path / "plan.jsonl").unlink(missing_ok=True)
    by_hand, by_recipe = frozenset(request["by_hand"]), frozenset(request.get("by_recipe", ()))
    chooser = Chooser(run.config, by_hand, task.reporter, recipe=by_recipe)
    facts = task.prepare(request, chooser)
    plan, paces = _plan(task, chooser, began)
    run.write_config(chooser.config)
    run.append("plan", plan.as_record(0))
    choices = [asdict(choice) for choice in chooser.choices]
    run.write_json("prepared.json", {"choices": choices, **facts, "environment": environment(), **paces})


def _plan(task: Task, chooser: Chooser, began: float) -> tuple[Plan, dict[str, float]]:
    """How many updates, and how often to validate."""
    validation, pace = task.validation_seconds(chooser.config), 0.0
    if chooser.config.train.minutes:
        left = _seconds(task, chooser.config) - (time.monotonic() - began)
        validations = max(1, min(6, int(0.1 * left / validation)))
        if left <= validations * validation:
            task.reporter.warn(
                f"preparing and validating take up all {chooser.config.train.minutes:g} minutes: hardly anything will be "
                "learnt; give more --minutes, or less text"
            )
        total, pace = task.fit_to_minutes(chooser, max(1.0, left - validations * validation))
        plan = Plan(total, validations=validations)
    else:
        task.fit_to_data(chooser)
        total = chooser.config.train.updates or chooser.config.train.max_updates
        epoch = task.epoch(chooser.config) // chooser.config.batches.accumulation
        ends = bool(chooser.config.train.updates)
        plan = Plan(total, validations=8) if ends else Plan(total, validate_every=min(2000, max(200, epoch)))
    if chooser.config.train.validate_every:
        plan = replace(plan, validate_every=chooser.config.train.validate_every)
    return plan, {"seconds_per_update": pace, "seconds_per_validation": validation}


def _seconds(task: Task, config: Config) -> float:
    """Of the run's minutes, those before its last update."""
    return config.train.minutes * 60 - CLOSING_SECONDS - task.finishing_seconds(config)


# --- after the last ---


def _write_card(task: Task, facts: dict[str, Any], model: nn.Module, outcome: Outcome) -> None:
    best = task.run.best(groups=())
    text = card(
        task.run,
        task.about(facts),
        facts=facts,
        scores={"best": best.score} if best and best.score else {},
        parameters=parameter_count(model),
        step=outcome.step,
        seconds=outcome.seconds,
    )
    task.run.write_text("README.md", text)


def read_json(run: Run, name: str) -> dict[str, Any]:
    """A JSON file of the run."""
    try:
        return dict(json.loads((run.path / name).read_bytes()))
    except FileNotFoundError:
        raise RunError(f"{run.path} was interrupted before it had begun; start it again with --force") from None
