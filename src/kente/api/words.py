"""The task of word vectors: which words stand near each other."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from torch import nn

from kente.api.language import OfText
from kente.config import BatchConfig, Config, SkipGramConfig
from kente.configfile import apply
from kente.data.skip_grams import Neighbours, SkipGrams
from kente.data.texts import TextStore
from kente.errors import ConfigError
from kente.runs import Score
from kente.train.budget import Chooser, bend_schedule, measured_pace
from kente.train.card import About
from kente.train.objectives import NegativeSampling, Objective, mean_loss

VALIDATED = 20
"""Batches of held-out text that a validation reads."""
WORDS_WANTED, FEWEST, MOST = 4_000_000, 3, 40
"""Words looked at in all when nobody says how long, within these numbers of readings."""


def automatic_words() -> Config:
    """The settings that fit best when nobody names a recipe."""
    config = Config(model=SkipGramConfig(), batches=BatchConfig(tokens=2048, max_length=128))
    optimiser = {"kind": "adamw", "rate": 5e-3, "schedule": "linear", "warmup": 20, "epsilon": 1e-8}
    changed: Config = apply(
        config,
        {
            "optimiser": {**optimiser, "betas": (0.9, 0.98), "clip": 0.0},
            "tokenizer": {"kind": "words"},
            "train": {"task": "words", "label_smoothing": 0.0, "average": "none"},
        },
    )
    return changed


class WordVectors(OfText):
    """Which words stand near each other, wherever they stand."""

    def fit_to_minutes(self, chooser: Chooser, seconds: float) -> tuple[int, float]:
        def parts(config: Config) -> tuple[nn.Module, Objective, SkipGrams]:
            return self.model(config), self.objective(config), self.batches(config)

        pace = measured_pace(chooser.config, parts, self.device)
        updates = max(1, int(seconds / pace))
        bend_schedule(chooser, updates)
        return updates, pace

    def fit_to_data(self, chooser: Chooser) -> None:
        if chooser.config.train.updates:
            return
        each = self.epoch(chooser.config)
        readings = min(MOST, max(FEWEST, WORDS_WANTED // len(self.prepared.train)))
        chooser.choose("train.updates", readings * each, f"the text is read {readings} times")

    def objective(self, config: Config) -> Objective:
        return NegativeSampling()

    def batches(self, config: Config) -> SkipGrams:  # type: ignore[override]
        return self._pairs(self.prepared.train, config)

    def _pairs(self, store: TextStore, config: Config) -> SkipGrams:
        if not isinstance(config.model, SkipGramConfig):
            raise ConfigError(
                f"model.kind = {config.model.kind} has no window of neighbours; word vectors are skip-gram"
            )
        return SkipGrams(store, self.prepared.tokenizer.size, config.model, config.batches, config.train.seed)

    @cached_property
    def _held_out(self) -> list[Neighbours]:
        pairs = self._pairs(self.prepared.validation, self.run.config)
        return [pairs.batch(step) for step in range(min(VALIDATED, len(pairs)))]

    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        loss = mean_loss(model, self._held_out, self.device, NegativeSampling())
        return {"loss": Score("loss", loss, higher_is_better=False)}

    def about(self, facts: dict[str, Any]) -> About:
        name = self.run.path.name
        return About(
            what="Word vectors",
            use=f'```\nkente match {name} "bank"\nkente embed {name} --text F --out vectors.npy\n```',
            vocabulary=self._vocabulary(),
            read=self._read(facts),
            measured="Validation, in nats for each pair of neighbours and the words they are told from.",
            limits="A word has one vector, whatever it means where it stands.",
        )
