"""train and resume: from two text files to a run folder, and on from wherever it was interrupted."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from kente.api.corpora import Data
from kente.api.inputs import pick_device, use_threads
from kente.api.loading import shortlist_of, translator_with
from kente.config import Config, DecodeConfig
from kente.configfile import apply, load_recipe, override, recipe_settings
from kente.data.batches import Batches, validation_batches
from kente.data.tokenizer import Tokenizers
from kente.decode.answers import SLACK
from kente.decode.conversion import obstacle
from kente.decode.torch_engine import TorchEngine
from kente.decode.translator import Translator
from kente.errors import RunError, UsageError
from kente.measure.scores import corpus_bleu, corpus_chrf
from kente.models.build import build
from kente.models.summary import parameter_count
from kente.reporting import SILENT, Reporter
from kente.runs import Run, Score, environment, tensors_size
from kente.text.sentences import split_sentences
from kente.train.averaging import named_weights
from kente.train.beginnings import begin_with_associations
from kente.train.budget import Chooser, automatic, fit_to_corpus, fit_to_minutes
from kente.train.card import card
from kente.train.objectives import CrossEntropy, mean_loss
from kente.train.optimiser import LANDING
from kente.train.plan import Pace, Plan
from kente.train.prepare import CLEANED, Prepared, prepare, share_prepared
from kente.train.trainer import Outcome, Trainer, Validate

SAMPLES = 5
"""Validation sentences whose translation is written to samples.jsonl at each validation."""
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

    def as_dict(self) -> dict[str, Any]:
        best = asdict(self.best) if self.best else None
        return {
            "run": str(self.run.path),
            "step": self.step,
            "stopped": self.stopped,
            "best": best,
            "seconds": round(self.seconds, 1),
        }


def train(
    data: Data,
    out: Path | str,
    *,
    validation: Data | None = None,
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
    prepared: Path | str | None = None,
    corrections: Path | None = None,
) -> TrainResult:
    """Train a translator. What neither recipe nor settings decide is chosen for the corpus, the machine and the minutes.

    `began` is when the user's clock started (time.monotonic), if that was before this call. `prepared` is a folder made by
    `prepare_corpus` from the same data: several runs can share one cleaned corpus and one tokenizer. `corrections` is a TSV of pairs,
    as `kente serve` keeps them, to be mixed in.
    """
    assert not (prepared and corrections), "a prepared corpus holds its corrections already"
    began = time.monotonic() if began is None else began
    taught = Data(pairs=corrections) if corrections else None
    for given_data in filter(None, (data, validation, taught)):
        next(iter(given_data.corpus()), None)  # a file that cannot be read is said before a folder is made
    config = load_recipe(recipe, base=automatic()) if recipe else automatic()
    if minutes is not None:
        config = apply(config, {"train": {"updates": 0}})  # a recipe's updates give way to the minutes asked for
    given = {"train.minutes": minutes, "train.updates": updates, "train.save_every": save_every, "train.seed": seed}
    assignments = [*settings, *(f"{name}={value}" for name, value in given.items() if value is not None)]
    config = override(config, assignments)
    run = Run.create(out, config, force=force)
    request = {
        "data": data.as_dict(),
        "validation": validation.as_dict() if validation else None,
        "corrections": taught.as_dict() if taught else None,
        "by_hand": sorted({assignment.partition("=")[0].strip() for assignment in assignments}),
        "recipe": str(recipe) if recipe else None,
        "by_recipe": sorted(recipe_settings(recipe)) if recipe else [],
        "prepared": str(Path(prepared).resolve()) if prepared else None,
    }
    run.write_json("request.json", request)
    run.write_json("environment.json", environment())
    with run.lock():
        return _fit(run, pick_device(device), use_threads(threads), reporter, began)


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
    with opened.lock():
        checkpoint = opened.latest(reporter)
        if threads is None and checkpoint is not None:
            threads = int(checkpoint.manifest["threads"])  # the order of sums depends on it, and so does the last bit
        used = use_threads(threads)
        if checkpoint is not None and used != checkpoint.manifest["threads"]:
            before = checkpoint.manifest["threads"]
            reporter.warn(
                f"the run was trained with {before} threads, this goes on with {used}: last digits will differ"
            )
        return _fit(opened, pick_device(device), used, reporter, began, minutes=minutes, updates=updates)


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
    if not (run.path / "prepared.json").exists():
        _prepare(run, device, threads, reporter, began)
    prepared, config = Prepared.open(run), run.config
    torch.manual_seed(config.train.seed)
    tokenizers = prepared.tokenizers
    model = build(config.model, tokenizers.source.size, tokenizers.target.size, joint=tokenizers.joint).to(device)
    batches = Batches(prepared.train, config.batches, config.train.seed, config.tokenizer.sampling, tokenizers)
    checkpoint = run.latest(reporter)
    if checkpoint is None and config.train.begin == "associations":
        begin_with_associations(model, prepared.train)
    trainer = Trainer(
        model=model,
        objective=CrossEntropy(config.train.label_smoothing),
        batches=batches,
        run=run,
        config=config,
        plan=Plan.from_record(run.read("plan")[0]),
        validate=_validator(run, prepared, device),
        device=device,
        reporter=reporter,
        seconds_before=time.monotonic() - began,
    )
    weights = {"model": named_weights(model)}
    run.check_room(4 * tensors_size(weights), config.train.keep)  # weights, their average, and two moments of each
    if checkpoint is not None:
        trainer.restore(checkpoint)
        reporter.say(f"resuming {run.path} after update {checkpoint.step:,}")
    else:
        trainer.corrections = {r["step"]: Plan.from_record(r) for r in run.read("plan") if r["step"] > 0}
    _move_the_end(trainer, run, minutes, updates)
    if config.train.minutes:
        facts = _facts(run)
        trainer.pace = Pace(
            config.train.minutes * 60 - CLOSING_SECONDS,
            trainer.progress.seconds,
            facts["seconds_per_update"],
            facts["seconds_per_validation"],
        )
    outcome = trainer.fit()
    _write_card(run, model, outcome)
    return TrainResult(run, outcome.step, outcome.stopped, outcome.best, outcome.seconds)


def _move_the_end(trainer: Trainer, run: Run, minutes: float | None, updates: int | None) -> None:
    """--updates or --minutes given to a resume: the plan's end moves, and the move is recorded like any correction."""
    if minutes is None and updates is None:
        return
    step = trainer.progress.step
    if trainer.plan.progress(step) >= 1 and run.config.optimiser.schedule in LANDING:
        raise UsageError(
            f"{run.path} has finished: its learning rate has come down to its end at update {step:,}. "
            "Train a new run with more --minutes or --updates"
        )
    if updates is not None and updates <= step:
        raise UsageError(f"{run.path} stands at update {step:,} already; --updates must be larger")
    given = {"updates": updates or 0, "minutes": minutes or 0.0}
    run.write_config(apply(run.config, {"train": given}))
    trainer.config = run.config
    if updates is not None:
        trainer.plan = trainer.plan.landing_at(updates, step)
        trainer.corrections = {}
        run.append("plan", trainer.plan.as_record(step))


# --- before the first update ---


def prepare_corpus(
    data: Data,
    out: Path | str,
    *,
    validation: Data | None = None,
    settings: Sequence[str] = (),
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Path:
    """Clean a corpus, learn its tokenizer and store its ids once, for several trainings to share."""
    run = Run.create(out, override(automatic(), settings), force=True)
    with run.lock():
        held_out = validation.corpus() if validation else None
        report = prepare(run, data.corpus(), held_out, run.config, use_threads(threads), reporter, data.languages())
        run.write_json(CLEANED, report.as_dict())  # last: without it, nothing here is whole
    return run.path


def _prepare(run: Run, device: torch.device, threads: int, reporter: Reporter, began: float) -> None:
    """Corpus, tokenizers, settings and plan. prepared.json is written last: without it, all of this is done again."""
    request = _read_json(run, "request.json")
    data = Data.from_dict(request["data"])
    validation = Data.from_dict(request["validation"]).corpus() if request["validation"] else None
    (run.path / "plan.jsonl").unlink(missing_ok=True)
    chooser = Chooser(
        run.config, frozenset(request["by_hand"]), reporter, recipe=frozenset(request.get("by_recipe", ()))
    )
    if request.get("prepared"):
        report = share_prepared(Run.open(request["prepared"]), run)
    else:
        taught = Data.from_dict(request["corrections"]).corpus() if request.get("corrections") else None
        where = run.config, threads, reporter, data.languages()
        report = prepare(run, data.corpus(), validation, *where, corrections=taught).as_dict()
    prepared = Prepared.open(run)
    chooser.choose("tokenizer.vocabulary", prepared.tokenizers.target.size, f"for {len(prepared.train):,} pairs")
    several = _several_sentences(prepared)
    if several > 0.05:
        reason = f"{several:.0%} of the lines hold several sentences, so the model learns them whole"
        chooser.choose("decode.split_sentences", False, reason)
    chooser.choose("decode.max_ratio", _usual_ratio(prepared), "almost no training pair is longer for its source")
    if run.config.decode.shortlist < 0 and obstacle(chooser.config.model) is None:
        run.shortlist(prepared.tokenizers, reporter)  # now, so that its seconds are among the run's minutes
    plan, facts = _plan(chooser, prepared, device, began)
    run.write_config(chooser.config)
    run.append("plan", plan.as_record(0))
    run.write_json(
        "prepared.json",
        {
            "choices": [asdict(choice) for choice in chooser.choices],
            "cleaning": report,
            "validation_pairs": len(prepared.validation_pairs),
            "environment": environment(),
            **facts,
        },
    )


def _plan(chooser: Chooser, prepared: Prepared, device: torch.device, began: float) -> tuple[Plan, dict[str, float]]:
    """How many updates, and how often to validate."""
    sentences = min(len(prepared.validation_pairs), chooser.config.train.validate_sentences)
    validation = 0.5 + 0.008 * sentences  # a first guess; the run measures its own
    pace = 0.0
    if chooser.config.train.minutes:
        left = chooser.config.train.minutes * 60 - CLOSING_SECONDS - (time.monotonic() - began)
        validations = max(1, min(6, int(0.1 * left / validation)))
        total, pace = fit_to_minutes(
            chooser, prepared.train, prepared.tokenizers, left - validations * validation, device
        )
        plan = Plan(total, validations=validations)
    else:
        fit_to_corpus(chooser, prepared.train)
        total = chooser.config.train.updates or chooser.config.train.max_updates
        epoch = len(Batches(prepared.train, chooser.config.batches, seed=1)) // chooser.config.batches.accumulation
        ends = bool(chooser.config.train.updates)
        plan = Plan(total, validations=8) if ends else Plan(total, validate_every=min(2000, max(200, epoch)))
    if chooser.config.train.validate_every:
        plan = replace(plan, validate_every=chooser.config.train.validate_every)
    return plan, {"seconds_per_update": pace, "seconds_per_validation": validation}


def _several_sentences(prepared: Prepared, sample: int = 500) -> float:
    """Share of (validation) lines with more than one sentence: what a line was in training, it should be in use."""
    pairs = prepared.validation_pairs[:sample]
    return sum(len(split_sentences(pair.source)) > 1 for pair in pairs) / len(pairs)


def _usual_ratio(prepared: Prepared) -> float:
    """Target tokens for each source token that 99 pairs in a hundred stay well below, SLACK aside."""
    store = prepared.train
    ratios = (store.target_lengths - SLACK) / (store.source_lengths + 1)
    return round(min(4.0, max(1.2, 1.3 * float(np.quantile(ratios, 0.99)))), 2)


# --- along the way and after ---


def _validator(run: Run, prepared: Prepared, device: torch.device) -> Validate:
    """What the trainer calls to see how good the model is: loss over all pairs, BLEU and chrF of greedy translations of some."""
    config: Config = run.config
    batches = list(validation_batches(prepared.validation, max(config.batches.tokens, 2048)))
    pairs = prepared.validation_pairs
    stride = max(1, len(pairs) / config.train.validate_sentences)
    scored = [pairs[int(i * stride)] for i in range(min(len(pairs), config.train.validate_sentences))]
    greedy = replace(config.decode, beam=1, sample=False)

    def validate(model: nn.Module, step: int) -> dict[str, Score]:
        loss = mean_loss(model, batches, device)
        translator = translator_of(model, run, prepared.tokenizers, greedy, device)
        texts = [t.text for t in translator.translate([pair.source for pair in scored])]
        for pair, text in list(zip(scored, texts, strict=True))[:SAMPLES]:
            run.append("samples", {"step": step, "source": pair.source, "reference": pair.target, "translation": text})
        references = [pair.target for pair in scored]
        bleu, chrf = corpus_bleu(texts, references), corpus_chrf(texts, references)
        return {"loss": Score("loss", loss, higher_is_better=False), "bleu": bleu, "chrf": chrf}

    return validate


def translator_of(
    model: nn.Module, run: Run, tokenizers: Tokenizers, decode: DecodeConfig, device: torch.device | str
) -> Translator:
    """A translator over a network that is there already."""
    engine = TorchEngine(model, device, shortlist_of(run, tokenizers, decode))  # type: ignore[arg-type]  # build() makes Generators; the contract tests hold it to that
    return translator_with(engine, run, tokenizers, decode)


def _write_card(run: Run, model: nn.Module, outcome: Outcome) -> None:
    best = run.best(groups=())
    scores = {"best": best.score} if best and best.score else {}
    text = card(
        run,
        facts=_facts(run),
        scores=scores,
        parameters=parameter_count(model),
        step=outcome.step,
        seconds=outcome.seconds,
    )
    run.write_text("README.md", text)


def _facts(run: Run) -> dict[str, Any]:
    return _read_json(run, "prepared.json")


def _read_json(run: Run, name: str) -> dict[str, Any]:
    try:
        return dict(json.loads((run.path / name).read_bytes()))
    except FileNotFoundError:
        raise RunError(f"{run.path} was interrupted before it had begun; start it again with --force") from None
