"""The loop, in full view.

    for each update:  batches = f(seed, step);  loss summed over them / their target tokens;  gradients;  guard;  move
    now and then:     validate with the averaged weights, save a checkpoint, look at the clock

Position is computed, never stored: update `step` reads the same sentences and drops the same values whenever it happens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kente.config import Config
from kente.data.batches import Feed, Reading, prefetch
from kente.errors import DiskFull, Interrupted
from kente.memory import forget_peak, peak_megabytes
from kente.reporting import SILENT, Reporter
from kente.runs import Checkpoint, Run, Score
from kente.train.averaging import ExponentialAverage, LastMean, named_weights, put, weights_of
from kente.train.gradients import Gradients
from kente.train.health import Health
from kente.train.objectives import Objective
from kente.train.optimiser import Optimiser, rate_at
from kente.train.plan import Pace, Plan, passed_mark
from kente.train.signals import StopRequest

Validate = Callable[[nn.Module, int], dict[str, Score]]
STALE = "no better for {} validations"
SAVE_SECONDS = 60.0
"""Without train.save_every, a checkpoint at least this often: what a power cut may cost."""


@dataclass
class Outcome:
    """How a run ended."""

    step: int
    stopped: str
    best: Score | None
    seconds: float


@dataclass
class Progress:
    """What the loop knows beside the weights; saved with every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    best: dict[str, Any] | None = None
    best_loss: float | None = None
    stale: int = 0
    """Validations since the last better one."""


class Trainer:
    """Trains any model whose objective fits it: Trainer(model=..., objective=..., batches=..., run=..., ...).fit()."""

    def __init__(
        self,
        *,
        model: nn.Module,
        objective: Objective,
        batches: Feed,
        run: Run,
        config: Config,
        plan: Plan,
        validate: Validate | None = None,
        pace: Pace | None = None,
        device: torch.device | str = "cpu",
        reporter: Reporter = SILENT,
        seconds_before: float = 0.0,
        main: str = "bleu",
    ):
        """`main` is the validation score that the best weights are chosen by; where there is none such, the loss."""
        self.model, self.batches, self.run, self.config = model, batches, run, config
        self.plan, self.pace, self.validate = plan, pace, validate
        self.reporter, self.main = reporter, main
        self.gradients = Gradients(model, objective, device, config.train.precision)
        self.optimiser = Optimiser(model, config.optimiser)
        self.average: ExponentialAverage | LastMean | None = None
        if config.train.average == "ema":
            self.average = ExponentialAverage(model, config.train.ema_decay)
        elif config.train.average == "last":
            self.average = LastMean(config.train.average_last)
        self.health, self.progress = Health(), Progress(seconds=seconds_before)
        self.corrections: dict[int, Plan] = {}
        self.width = getattr(config.model, "width", 1)
        self.validated_score: Score | None = None
        self._failed_saves = 0

    # --- one update ---

    def _update(self, batches: list[Reading], step: int) -> tuple[float, float, float]:
        """One step of the optimiser; returns (loss, gradient norm, rate). Numbers that are not finite go no further."""
        self.optimiser.zero()
        loss = self.gradients(batches, self.config.train.seed, step)
        norm = self.optimiser.gradient_norm()
        rate = rate_at(self.config.optimiser, step, self.plan.progress(step - 1), self.width)
        if not (math.isfinite(loss) and bool(torch.isfinite(norm))):
            rows = [int(row) for batch in batches for row in batch.rows]
            self.run.append("bad-steps", {"step": step, "loss": str(loss), "norm": str(norm.item()), "rows": rows})
            self.reporter.warn(f"update {step:,} skipped: the loss or its gradient is not a finite number")
            self.health.skipped(step)
            return loss, norm.item(), rate
        self.optimiser.step(rate, norm)
        if isinstance(self.average, ExponentialAverage):
            self.average.update(self.model, step)
        self.health.saw(loss, step, watch=self.config.train.divergence)
        return loss, norm.item(), rate

    # --- the loop ---

    def fit(self) -> Outcome:
        """Train from wherever the run stands to where the plan ends."""
        if self._patience_is_over():
            return self._outcome(STALE.format(self.config.train.patience))
        parts = self.config.batches.accumulation
        feed = prefetch(self.batches, self.progress.step * parts)
        started = time.monotonic() - self.progress.seconds
        saved_at = time.monotonic()
        seen_tokens, seen_time = 0, 0.0
        self.model.train()
        forget_peak()
        try:
            with StopRequest() as stop:
                while self.progress.step < self.plan.total:
                    begun = time.monotonic()
                    step = self.progress.step + 1
                    batches = [next(feed) for _ in range(parts)]
                    loss, norm, rate = self._update(batches, step)
                    self.progress.step, now = step, time.monotonic()
                    self.progress.seconds = now - started
                    seen_tokens += sum(batch.tokens for batch in batches)
                    seen_time += now - begun
                    if self.pace:
                        self.pace.updated(now - begun)
                    if step % self.config.train.log_every == 0 or step == self.plan.total:
                        self._log(step, loss, norm, rate, seen_tokens / seen_time)
                        seen_tokens, seen_time = 0, 0.0
                    stale = self.plan.validates(step) and self._validate(step)
                    if self.plan.validates(step) or self._save_due(step, saved_at):
                        self._save(step)
                        saved_at = time.monotonic()
                        self.progress.seconds = saved_at - started
                        if self.pace and self.plan.validates(step):
                            self.pace.validated(saved_at - now)
                    self._look_at_the_clock(step)
                    if stop.received:
                        done = "saved" if self._save(step) else "not saved, the disk is full"
                        raise Interrupted(
                            f"{stop.received} at update {step:,}: {done}. Go on with  kente train --resume {self.run.path}"
                        )
                    if stale:
                        return self._outcome(STALE.format(self.config.train.patience))
        finally:
            feed.close()
            self.reporter.finish()
        return self._outcome("planned updates done")

    def _outcome(self, stopped: str) -> Outcome:
        best = Score(**self.progress.best) if self.progress.best else None
        return Outcome(self.progress.step, stopped, best, self.progress.seconds)

    def _log(self, step: int, loss: float, norm: float, rate: float, speed: float) -> None:
        epoch = (step * self.config.batches.accumulation) / len(self.batches)
        record = {"step": step, "loss": loss, "norm": norm, "rate": rate, "epoch": round(epoch, 3)}
        self.run.append(
            "metrics",
            {
                **record,
                "tokens_per_second": round(speed),
                "peak_megabytes": round(peak_megabytes()),
                "seconds": round(self.progress.seconds, 1),
            },
        )
        best = f"  best {Score(**self.progress.best)}" if self.progress.best else ""
        self.reporter.progress("training", step, self.plan.total, f"loss {loss:.3f}{best}  {speed:,.0f} tokens/s")

    def _look_at_the_clock(self, step: int) -> None:
        """A correction recorded earlier is taken as it was; otherwise, at a mark, the pace decides."""
        if step in self.corrections:
            self.plan = self.corrections[step]
        elif self.pace and step < self.plan.total and passed_mark(self.plan, step):
            total = self.pace.total_for(self.plan, step)
            if abs(total - self.plan.total) > 0.002 * self.plan.total:
                plan = self.plan.landing_at(total, step)
                self.run.append("plan", plan.as_record(step))
                self.plan = plan

    # --- validation, averages, checkpoints ---

    def _averaged(self) -> dict[str, Tensor] | None:
        """The weights to translate with, when they are not simply the newest."""
        return self.average.tensors if self.average else None

    def _validate(self, step: int) -> bool:
        """Score the averaged weights; True when patience has run out."""
        if self.validate is None:
            return False
        if isinstance(self.average, LastMean):
            self.average.add(self.model)
        self.model.eval()
        with weights_of(self.model, self._averaged()):
            scores = self.validate(self.model, step)
        self.model.train()
        record = {name: score.value for name, score in scores.items()}
        self.run.append("metrics", {"step": step, "validation": record, "seconds": round(self.progress.seconds, 1)})
        better = False
        loss = scores["loss"].value
        if self.progress.best_loss is None or loss < self.progress.best_loss:
            self.progress.best_loss, better = loss, True
        main = scores.get(self.main, scores["loss"])
        if self.progress.best is None or main.better_than(Score(**self.progress.best)):
            self.progress.best, better = asdict(main), True
        self.progress.stale = 0 if better else self.progress.stale + 1
        self.validated_score = main
        figures = "  ".join(map(str, scores.values()))
        self.reporter.say(f"update {step:,}: validation {figures}")
        return self._patience_is_over()

    def _patience_is_over(self) -> bool:
        return bool(self.config.train.patience and self.progress.stale >= self.config.train.patience)

    def _save_due(self, step: int, saved_at: float) -> bool:
        if self.config.train.save_every:
            return step % self.config.train.save_every == 0
        return time.monotonic() - saved_at > SAVE_SECONDS

    def _save(self, step: int) -> bool:
        """Write a checkpoint; a full disk is a warning twice, and no checkpoint, and an end the third time."""
        tensors = {"model": named_weights(self.model), "optim": self.optimiser.state()}
        averaged = self._averaged()
        if averaged is not None:
            tensors["average"] = averaged
        if isinstance(self.average, LastMean) and self.average.recent:
            tensors["recent"] = self.average.state()
        validated = self.plan.validates(step) and self.validate is not None
        state = {
            "progress": asdict(self.progress),
            "health": self.health.as_dict(),
            "plan": asdict(self.plan),
            "score": asdict(self.validated_score) if validated and self.validated_score else None,
        }
        try:
            self.run.save(step, tensors, state, keep=self.config.train.keep, reporter=self.reporter)
            self._failed_saves = 0
            return True
        except DiskFull as error:
            self._failed_saves += 1
            if self._failed_saves >= 3:
                raise
            self.reporter.warn(f"{error}; training goes on and will try again")
            return False

    def restore(self, checkpoint: Checkpoint) -> None:
        """Stand where the checkpoint stood, bit for bit."""
        put(self.model, checkpoint.load("model"))
        self.optimiser.load(checkpoint.load("optim"))
        if isinstance(self.average, ExponentialAverage):
            self.average.load(checkpoint.load("average"))
        elif isinstance(self.average, LastMean) and checkpoint.has("recent"):
            self.average.load(checkpoint.load("recent"), self.gradients.device)
        self.progress = Progress(**checkpoint.state["progress"])
        self.health = Health(**checkpoint.state["health"])
        self.plan = Plan(**checkpoint.state["plan"])
        records = [r for r in self.run.read("plan") if r["step"] >= checkpoint.step]
        self.corrections = {r["step"]: Plan.from_record(r) for r in records}
        # a correction made at the very update that was saved came after the save
        self.plan = self.corrections.get(checkpoint.step, self.plan)
        for name in ("metrics", "samples", "bad-steps"):
            self.run.truncate_after(name, checkpoint.step)
