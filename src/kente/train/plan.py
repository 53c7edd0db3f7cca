"""How long a run is, counted in updates, and how it is bent to land on its minutes.

The learning rate follows progress from 0 to 1. A plan maps updates to progress; a correction starts a new line from the
point reached. Corrections are the only thing that depends on the clock, and each is written to plan.jsonl before it
takes effect: a resumed run reads them instead of measuring again, and so stays exact.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

MARKS = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94, 0.97, 0.99)
"""Shares of the run after which its pace is looked at again."""


@dataclass(frozen=True)
class Plan:
    """`total` updates; progress runs in a straight line from (anchor_step, anchor_progress) to (total, 1).

    Validations come every so many updates, or at even shares of the progress, so that a correction moves them too.
    """

    total: int
    validate_every: int = 0
    validations: int = 1
    anchor_step: int = 0
    anchor_progress: float = 0.0

    def progress(self, step: int) -> float:
        """Share of the run behind us after `step` updates, between 0 and 1."""
        span = max(self.total - self.anchor_step, 1)
        return min(1.0, self.anchor_progress + (1 - self.anchor_progress) * (step - self.anchor_step) / span)

    def landing_at(self, total: int, step: int) -> Plan:
        """The same run from `step` on, stretched or shortened to end after `total` updates."""
        return replace(self, total=max(total, step + 1), anchor_step=step, anchor_progress=self.progress(step))

    def validates(self, step: int) -> bool:
        """Whether a validation follows this update; the last one always has one."""
        return step == self.total or self._validations_by(step) > self._validations_by(step - 1)

    def _validations_by(self, step: int) -> int:
        """Validations done by then, the one after the last update aside."""
        if self.validate_every:
            return step // self.validate_every
        return int(self.progress(step) * self.validations + 1e-9)

    def validations_left(self, step: int) -> int:
        """Validations still to come, the final one included."""
        if step >= self.total:
            return 0
        marks = self._validations_by(self.total - 1) - self._validations_by(step)
        return min(marks, self.total - 1 - step) + 1  # one update may pass several marks, and is validated once

    def as_record(self, step: int) -> dict[str, Any]:
        """A line of plan.jsonl: from the update after `step` on, this plan holds."""
        return {"step": step, **asdict(self)}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Plan:
        return cls(**{key: value for key, value in record.items() if key != "step"})


class Pace:
    """Watches the clock of a run with a budget of seconds and says when the plan must change.

    Time spent on updates and on validations is kept apart, so that the few, long validations do not blur the pace.
    """

    def __init__(self, seconds: float, spent: float, update_seconds: float, validation_seconds: float):
        self.budget = seconds
        self.started = time.monotonic() - spent
        self.update_seconds = update_seconds
        self.validation_seconds = validation_seconds
        self._updates, self._update_time = 0, 0.0

    @property
    def left(self) -> float:
        """Seconds of the budget not yet spent."""
        return self.budget - (time.monotonic() - self.started)

    def updated(self, seconds: float) -> None:
        """An update took this long."""
        self._updates += 1
        self._update_time += seconds

    def validated(self, seconds: float) -> None:
        """A validation and the checkpoint after it took this long. Early ones babble to the cap, so the newest counts."""
        self.validation_seconds = seconds

    def total_for(self, plan: Plan, step: int) -> int:
        """The update at which the budget will be used up, at the pace seen since the last look."""
        if self._updates >= 3:
            self.update_seconds = self._update_time / self._updates
            self._updates, self._update_time = 0, 0.0
        for_updates = self.left - self.validation_seconds * plan.validations_left(step)
        return max(step + 1, step + int(for_updates / self.update_seconds))


def passed_mark(plan: Plan, step: int) -> bool:
    """Whether one of MARKS was crossed by this update."""
    before, now = plan.progress(step - 1), plan.progress(step)
    return any(before < mark <= now for mark in MARKS)
