"""Settings fit for a text, the machine and the minutes: what `budget` does for translators, for language models and masked encoders.

Rate, warm-up and averaging follow the translators' rules; what a person sets by hand is never touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from kente.config import BatchConfig, Config, LanguageModelConfig, MaskedConfig, StackConfig
from kente.configfile import apply
from kente.models.summary import parameter_count
from kente.train.budget import (
    MEASURING,
    Chooser,
    Parts,
    bend_schedule,
    choose_precision,
    measured_pace,
    training_choices,
)

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"layers": 4, "width": 128, "feedforward": 512, "heads": 4},
    "small": {"layers": 6, "width": 256, "feedforward": 1024, "heads": 4},
    "base": {"layers": 8, "width": 512, "feedforward": 2048, "heads": 8},
}
"""From small to large."""
ENOUGH_UPDATES = 2500
"""A larger model is chosen only if it still gets this many updates in the time there is, and as many more as it learns from fewer of its words."""
BATCH_TOKENS = 1024
"""Small batches: in a few minutes the number of updates counts."""
UPDATES_WANTED = 5000
"""Batches grow only when there is time for more updates than this."""
LARGEST_BATCH = 8192


def automatic_language(kind: str) -> Config:
    """The settings that fit best when nobody names a recipe; size, batch and schedule are then chosen from the text."""
    model = LanguageModelConfig(**SIZES["tiny"]) if kind == "causal" else MaskedConfig(**SIZES["tiny"])
    config = Config(model=model, batches=BatchConfig(tokens=BATCH_TOKENS, max_length=128))
    return apply(
        config,
        {
            "optimiser": {
                "kind": "muon",
                "rate": 4e-3,
                "schedule": "linear",
                "warmup": 100,
                "epsilon": 1e-8,
                "turns": 2,
            },
            "train": {"task": kind, "label_smoothing": 0.0, "average": "ema"},
        },
    )


def fit_text_to_minutes(
    chooser: Chooser,
    parts: Callable[[Config], Parts],
    epoch: Callable[[Config], int],
    seconds: float,
    device: torch.device,
) -> tuple[int, float]:
    """Choose size, batch, dropout and schedule for `seconds` of training; returns (updates, seconds for each)."""
    most = MEASURING * seconds
    pace = choose_precision(chooser, parts, device, _choose_size(chooser, parts, seconds, device), most)
    updates = seconds / pace
    if updates > UPDATES_WANTED * 1.25 and chooser.free("batches.tokens"):
        tokens = min(LARGEST_BATCH, int(chooser.config.batches.tokens * updates / UPDATES_WANTED) // 256 * 256)
        tokens = max(tokens, chooser.config.batches.max_length)
        chooser.choose("batches.tokens", tokens, "there is time for larger, steadier batches")
        pace = measured_pace(chooser.config, parts, device, most=most)
        updates = seconds / pace
    batches = epoch(chooser.config)
    epochs = updates * chooser.config.batches.accumulation / batches
    weights = parameter_count(parts(chooser.config)[0]) / (batches * chooser.config.batches.tokens)
    reason = f"all of it will be read about {epochs:.1f} times, with {weights:.2g} weights for each of its tokens"
    chooser.choose("model.dropout", dropout_for(epochs, weights), reason)
    chooser.hold("model.dropout")
    for setting, value, reason in training_choices(chooser.config, int(updates), epochs):
        chooser.choose(setting, value, reason)
    bend_schedule(chooser, max(1, int(updates)))
    return max(1, int(updates)), pace


def dropout_for(epochs: float, weights: float) -> float:
    """The more often a text is read, and the more weights there are for each of its tokens, the sooner it is learnt by heart.

    Validation losses behind it (docs/log.md), by readings x weights: Tiny Shakespeare, 2: 1.59 without, 1.74 with 0.1; 14: 1.56 with 0.2, probably too
    much; tales by words, 180: LSTM 3.64, 3.62 with 0.3, 0.5, Transformer 3.83, 3.85 with 0.1, 0.3, of which 0.1 overfits towards its end.
    """
    steps = ((6, 0.0), (25, 0.05), (60, 0.1), (120, 0.2), (250, 0.3))
    return next((dropout for most, dropout in steps if epochs * weights < most), 0.5)


def _choose_size(chooser: Chooser, parts: Callable[[Config], Parts], seconds: float, device: torch.device) -> float:
    """The largest model that still gets ENOUGH_UPDATES; returns its seconds for each update.

    Eight minutes of a masked encoder, 106,571 lines: 6,558 updates of tiny came to 4.14, 2,013 of small to 5.30 (docs/log.md).
    """
    model = chooser.config.model
    enough = ENOUGH_UPDATES / (chooser.config.text.mask_share if isinstance(model, MaskedConfig) else 1)
    if not _free_shape(chooser) or not isinstance(model, StackConfig):
        return measured_pace(chooser.config, parts, device, most=MEASURING * seconds)
    chosen, chosen_pace = "", 0.0
    for name, size in SIZES.items():
        trial = replace(chooser.config, model=replace(model, **size))
        pace = measured_pace(trial, parts, device, most=MEASURING * seconds)
        if chosen and seconds / pace < enough:
            break
        chosen, chosen_pace = name, pace
        if seconds / pace < 2 * enough:  # the next is more than twice as slow: no need to measure it
            break
    chooser.choose_shape(chosen, SIZES[chosen], f"{1 / chosen_pace:.1f} updates a second measured here")
    return chosen_pace


def _free_shape(chooser: Chooser) -> bool:
    return isinstance(chooser.config.model, StackConfig) and all(
        chooser.free(f"model.{field}") for field in SIZES["tiny"]
    )


def fit_to_text(chooser: Chooser, tokens: int, epoch: Callable[[Config], int]) -> None:
    """Without a limit in minutes: size and dropout from the text alone, and a schedule that needs no end if none is planned."""
    size = "tiny" if tokens < 5_000_000 else "small" if tokens < 50_000_000 else "base"
    if _free_shape(chooser):
        chooser.choose_shape(size, SIZES[size], f"for {tokens:,} tokens")
    if updates := chooser.config.train.updates:
        epochs = updates * chooser.config.batches.accumulation / epoch(chooser.config)
        for setting, value, reason in training_choices(chooser.config, updates, epochs):
            chooser.choose(setting, value, reason)
        return
    chooser.choose(
        "model.dropout", 0.2 if tokens < 5_000_000 else 0.1, "it will be read until validation no longer improves"
    )
    chooser.choose("optimiser.schedule", "inverse-sqrt", "nobody knows yet when training will end")
    chooser.choose("optimiser.warmup", 400, "with inverse-sqrt")
    chooser.choose("train.ema_decay", 0.999, "averages about the last thousand updates")
