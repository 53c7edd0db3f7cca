"""What one kind of training is made of. The lifecycle (api/lifecycle.py) is the same for all; what differs between them is asked here.

    prepare -> open -> choose -> [model, objective, batches] -> Trainer, which calls validate now and then -> card

A new task is a class like this one, a value of `train.task`, one `case` in api/tasks.py and one entry in `KINDS` (train/kinds.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import nn

from kente.config import Config
from kente.data.batches import Feed
from kente.reporting import Reporter
from kente.runs import Run, Score
from kente.train.budget import Chooser
from kente.train.card import About
from kente.train.objectives import Objective


class Task(ABC):
    """One kind of training of one run. Between `open` and the end nothing of it changes: all that happens is a function of the seed."""

    main: str = "loss"
    """The validation score that the best weights are chosen by."""

    def __init__(self, run: Run, device: torch.device, threads: int, reporter: Reporter) -> None:
        self.run, self.device, self.threads, self.reporter = run, device, threads, reporter

    # --- before the first update ---

    @abstractmethod
    def prepare(self, request: dict[str, Any], chooser: Chooser) -> dict[str, Any]:
        """From what was asked for (request.json) to what training reads, in the run folder. Safe to do again after a crash.

        Settings that follow from the data are chosen; facts for prepared.json are returned. Ends with `open`.
        """

    @abstractmethod
    def open(self) -> None:
        """Find what `prepare` left in the run folder."""

    @abstractmethod
    def fit_to_minutes(self, chooser: Chooser, seconds: float) -> tuple[int, float]:
        """Choose size, batch and schedule for so many seconds of training; (updates, seconds for each)."""

    @abstractmethod
    def fit_to_data(self, chooser: Chooser) -> None:
        """Choose them without a limit in minutes."""

    def validation_seconds(self, config: Config) -> float:
        """A first guess; the run measures its own."""
        return 2.0

    def epoch(self, config: Config) -> int:
        """Batches in which everything is read once."""
        return len(self.batches(config))

    # --- what the trainer is given ---

    @abstractmethod
    def model(self, config: Config) -> nn.Module:
        """A freshly initialised network; torch was seeded before."""

    @abstractmethod
    def objective(self, config: Config) -> Objective:
        """What is minimised."""

    @abstractmethod
    def batches(self, config: Config) -> Feed:
        """What is read, update after update."""

    def begin(self, model: nn.Module) -> None:  # noqa: B027 (most begin at random)
        """Where the weights begin, if not at random; called once, before the first update of a run."""

    @abstractmethod
    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        """How good the model is: at least a "loss", and the score called `main`."""

    # --- after the last ---

    def finishing_seconds(self, config: Config) -> float:
        """How long `finish` takes: kept back from the run's minutes."""
        return 0.0

    def finish(self) -> None:  # noqa: B027 (most are done then)
        """Find out what can only be known when the weights are there. Safe to do again."""

    def told(self, facts: dict[str, Any]) -> dict[str, Any]:
        """What there is to say of a finished run besides its best score."""
        return {}

    @abstractmethod
    def about(self, facts: dict[str, Any]) -> About:
        """What the model card says of this kind of model; `facts` are those of prepared.json."""
