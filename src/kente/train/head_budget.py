"""Settings fit for labelled texts or pairs of them: what `budget` does for translators, for what stands upon an encoder.

An encoder that has learnt something is moved gently and not for long; one that begins at random needs larger steps and more readings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kente.config import BatchConfig, Config, DecodeConfig, HeadConfig, MaskedConfig, SkipGramConfig
from kente.configfile import apply
from kente.data.rows import RowStore
from kente.train.budget import Chooser, Parts, bend_schedule, measured_pace

SCRATCH: dict[str, Any] = {"layers": 2, "width": 128, "feedforward": 256, "heads": 4}
"""The encoder of whoever names none: labelled texts are few."""
TOGETHER = {"classes": 32, "vectors": 64}
"""Rows in a batch, of texts of middling length. Texts that are compared with each other want more company."""
FEWEST_UPDATES, MOST_UPDATES = 300, 20_000
READINGS = {"classes": 4, "vectors": 3}
"""How often all rows are read when nobody says how long, if the encoder is wide and has learnt something; from nothing, three times as often."""
WIDE = 256
"""Narrower encoders have learnt less and read faster: they read as much more often as they are narrower."""
LONGEST = 128
"""Tokens of a text read at most, unless set."""


def automatic_head(task: str, head: HeadConfig) -> Config:
    """The settings that fit best when nobody names an encoder or a recipe."""
    config = Config(model=MaskedConfig(**SCRATCH), head=head, batches=BatchConfig(tokens=1024, max_length=LONGEST))
    return _trained_as(config, task)


def upon(encoder: Config, task: str, head: HeadConfig) -> Config:
    """The same for an encoder that exists, of a run with these settings."""
    longest = min(LONGEST, encoder.batches.max_length, getattr(encoder.model, "max_length", LONGEST))
    batches = BatchConfig(tokens=max(1024, longest), max_length=longest)
    spoken = encoder.decode  # an encoder of many languages is told which one it reads
    decode = DecodeConfig(source_language=spoken.source_language, target_language=spoken.target_language)
    config = Config(encoder.model, head, encoder.tokenizer, text=encoder.text, batches=batches, decode=decode)
    return _trained_as(config, task)


def _trained_as(config: Config, task: str) -> Config:
    optimiser = {"kind": "adamw", "schedule": "linear", "warmup": 50, "betas": (0.9, 0.98), "epsilon": 1e-8}
    settings = {"task": task, "label_smoothing": 0.0, "average": "ema", "ema_decay": 0.99}
    changed: Config = apply(config, {"optimiser": {**optimiser, "weight_decay": 0.01}, "train": settings})
    return changed


def choose_batches(chooser: Chooser, store: RowStore) -> None:
    """About TOGETHER rows in a batch, and no room for texts longer than there are."""
    longest = max(int(lengths.max()) for lengths in store.lengths)
    usual = sum(float(lengths.mean()) for lengths in store.lengths) / len(store.lengths)
    rows = TOGETHER["vectors" if chooser.config.head.kind == "vectors" else "classes"]
    tokens = max(longest, int(rows * usual), chooser.config.batches.max_length)
    chooser.choose("batches.tokens", tokens, f"about {rows} texts of {usual:.0f} tokens each")


def fit_head_to_data(chooser: Chooser, epoch: Callable[[Config], int], learnt: bool) -> None:
    """How long and how fast, without a limit in minutes."""
    if not chooser.config.train.updates:
        more = max(1.0, WIDE / chooser.config.model.width) if learnt else 3
        readings = READINGS["vectors" if chooser.config.head.kind == "vectors" else "classes"] * more
        each = -(-epoch(chooser.config) // chooser.config.batches.accumulation)
        updates = min(MOST_UPDATES, max(FEWEST_UPDATES, round(readings * each)))
        chooser.choose("train.updates", updates, f"all rows are read {updates / each:.1f} times")
    _choose_rates(chooser, chooser.config.train.updates or chooser.config.train.max_updates, learnt)


def fit_head_to_minutes(
    chooser: Chooser, parts: Callable[[Config], Parts], seconds: float, device: torch.device, learnt: bool
) -> tuple[int, float]:
    """The same for `seconds` of training; returns (updates, seconds for each)."""
    pace = measured_pace(chooser.config, parts, device)
    updates = max(1, int(seconds / pace))
    _choose_rates(chooser, updates, learnt)
    bend_schedule(chooser, updates)
    return updates, pace


def _choose_rates(chooser: Chooser, updates: int, learnt: bool) -> None:
    for setting, value, reason in head_choices(chooser.config, updates, learnt):
        chooser.choose(setting, value, reason)


def head_choices(config: Config, updates: int, learnt: bool) -> list[tuple[str, Any, str]]:
    """Rate, warm-up and averaging: wider encoders want smaller steps, word vectors larger ones."""
    width = config.model.width
    if isinstance(config.model, SkipGramConfig):
        rate, reason = 1e-2, "word vectors take large steps"
    elif learnt:
        rate, reason = (
            round(5e-4 * (128 / width) ** 1.8, 7),
            f"gently, for an encoder of width {width} that has learnt something",
        )
    else:
        rate, reason = round(1e-3 * (128 / width) ** 0.5, 6), f"for a width of {width}, from nothing"
    dropout = [("model.dropout", 0.1 if learnt else 0.2, "few texts, read several times")]
    decay = round(1 - 1 / min(1000, max(10, updates / 12)), 5)
    return [
        *(dropout if hasattr(config.model, "dropout") else []),
        ("optimiser.rate", rate, reason),
        ("optimiser.warmup", max(10, updates // 10), f"a tenth of {updates:,} updates"),
        ("train.ema_decay", decay, "averages about the last twelfth of the run"),
    ]
