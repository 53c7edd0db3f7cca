"""Settings fit for the corpus, the machine and the minutes. Every choice has a reason, is printed, and is written to the run.

The rules were tuned on validation sets (docs/log.md tells how); what a person sets by hand is never touched.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from kente.config import BatchConfig, Config, LayersConfig, TransformerConfig
from kente.configfile import apply
from kente.data.batches import Batches, Feed
from kente.data.store import Store
from kente.data.tokenizer import Tokenizers
from kente.models.build import build
from kente.nn.linear import rounds_fast
from kente.reporting import Reporter
from kente.train.gradients import Gradients
from kente.train.objectives import CrossEntropy, Objective
from kente.train.optimiser import LANDING, Optimiser, rate_at

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"encoder_layers": 4, "decoder_layers": 4, "width": 128, "feedforward": 256, "heads": 4},
    "small": {"encoder_layers": 4, "decoder_layers": 4, "width": 256, "feedforward": 1024, "heads": 4},
    "base": {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "feedforward": 2048, "heads": 8},
}
"""From small to large; `big` is never chosen for anyone."""

ENOUGH_UPDATES = 3000
"""A larger model is chosen only if it still gets this many updates in the time there is."""
UPDATES_WANTED = 3500
"""Batches grow beyond the smallest size only when there is time for more updates than this; from there on both grow alike."""
LARGEST_BATCH = 8192
DROPOUT = ((2.5, 0.0), (5, 0.05), (9, 0.1), (15, 0.15), (30, 0.2))
"""(readings of the corpus below which it holds, dropout); with more readings, MOST_DROPOUT. On Multi30k the best is about 0 for 2 readings, 0.07 for
5.5 and 0.16 for 12 (docs/speedrun.md)."""
MOST_DROPOUT = 0.3
FASTER = 1.05
"""How many times as many updates bfloat16 must give to be taken."""
MEASURING = 0.02
"""Share of the seconds there are that one measurement may take, if two updates take no longer."""


OF_THE_CORPUS = ("tokenizer.vocabulary", "decode.max_ratio", "decode.split_sentences")
"""Facts about the text rather than choices of taste: found out even where a recipe names them."""


@dataclass(frozen=True)
class Choice:
    """One setting decided for the user."""

    setting: str
    value: Any
    reason: str


class Chooser:
    """Collects choices on a config. What a recipe settles stays as it is, except where a run must be bent to its minutes;
    what it leaves open is chosen. What was set by hand stays in any case."""

    def __init__(
        self, config: Config, by_hand: frozenset[str], reporter: Reporter, *, recipe: frozenset[str] = frozenset()
    ):
        self.config, self.by_hand, self.recipe, self.reporter = config, by_hand, recipe, reporter
        self.choices: list[Choice] = []

    def free(self, setting: str) -> bool:
        """Whether this setting is ours to choose."""
        return setting not in self.by_hand and (setting not in self.recipe or setting in OF_THE_CORPUS)

    def free_shape(self) -> bool:
        """Whether the size of the model is ours to choose: it is a Transformer, and nobody gave a part of its shape."""
        return isinstance(self.config.model, TransformerConfig) and all(
            self.free(f"model.{field}") for field in SIZES["tiny"]
        )

    def hold(self, *settings: str) -> None:
        """These are settled by something else, and no longer ours to choose."""
        self.by_hand = self.by_hand | set(settings)

    def choose(self, setting: str, value: Any, reason: str) -> None:
        """Set one value unless the user did; say so."""
        if self._set(setting, value, reason):
            self.reporter.say(f"chosen: {setting} = {value}  ({reason})")

    def choose_size(self, name: str, reason: str) -> None:
        """Set the shape of the model to one of SIZES."""
        self.choose_shape(name, SIZES[name], reason)

    def choose_shape(self, name: str, size: dict[str, Any], reason: str) -> None:
        """Set the shape of the model; one line says so."""
        for field, value in size.items():
            self._put(f"model.{field}", value, reason)
        shape = ", ".join(f"{field} {value}" for field, value in size.items())
        self.reporter.say(f"chosen: model size {name}: {shape.replace('_', ' ')}  ({reason})")

    def bend(self, setting: str, value: Any, reason: str) -> None:
        """Set one value even against a recipe, though never against the user's hand."""
        if setting not in self.by_hand and self._value(setting) != value:
            self._put(setting, value, reason)
            self.reporter.say(f"bent: {setting} = {value}  ({reason})")

    def _value(self, setting: str) -> Any:
        section, name = setting.split(".")
        return getattr(getattr(self.config, section), name)

    def _set(self, setting: str, value: Any, reason: str) -> bool:
        if not self.free(setting):
            return False
        self._put(setting, value, reason)
        return True

    def _put(self, setting: str, value: Any, reason: str) -> None:
        section, name = setting.split(".")
        self.config = apply(self.config, {section: {name: value}})
        self.choices.append(Choice(setting, value, reason))


def _translator(store: Store, tokenizers: Tokenizers) -> Callable[[Config], Parts]:
    def parts(config: Config) -> Parts:
        model = build(config.model, tokenizers.source.size, tokenizers.target.size, joint=tokenizers.joint)
        batches = Batches(store, config.batches, seed=config.train.seed)
        return model, CrossEntropy(config.train.label_smoothing), batches

    return parts


Parts = tuple[nn.Module, Objective, Feed]
"""What the trainer puts together: a fresh model, what it minimises, what it reads."""


def measured_pace(
    config: Config,
    parts: Callable[[Config], Parts],
    device: torch.device | str,
    seconds: float = 2.0,
    most: float = math.inf,
) -> float:
    """The median time of real updates of a throw-away model, over so many seconds or eight updates; where these take more than `most`
    seconds, of the second and what followed.

    The first ones, which set kernels up for new shapes, do not count, and the median forgives a neighbour who wakes up.
    """
    torch.manual_seed(0)
    model, objective, batches = parts(config)
    model.to(device).train()
    optimiser = Optimiser(model, config.optimiser)
    gradients = Gradients(model, objective, device, config.train.precision)
    times: list[float] = []
    while len(times) < 8 or (sum(times) < seconds and len(times) < 40):
        begun = time.monotonic()
        first = len(times) * config.batches.accumulation
        several = range(first, first + config.batches.accumulation)
        gradients([batches.batch(place % len(batches)) for place in several], seed=0, step=len(times))
        optimiser.step(1e-6, optimiser.gradient_norm())
        optimiser.zero()
        times.append(time.monotonic() - begun)
        if sum(times) > most and len(times) > 1:
            break
    return statistics.median(times[3:] or times[1:])


def choose_precision(
    chooser: Chooser, parts: Callable[[Config], Parts], device: torch.device | str, exact: float, most: float
) -> float:
    """Rounded factors, where this processor multiplies them so much faster that whole updates are. Takes the seconds of an exact
    update, returns those of one as chosen; `most` is what measuring may take."""
    now = chooser.config.train.precision
    if not (chooser.free("train.precision") and now == "float32" and rounds_fast(torch.device(device).type)):
        return exact
    trial = apply(chooser.config, {"train": {"precision": "bfloat16"}})
    rounded = measured_pace(trial, parts, device, most=most)
    if exact <= FASTER * rounded:
        return exact
    chooser.choose("train.precision", "bfloat16", f"{exact / rounded:.2g} times as many updates as float32 here")
    return rounded


def fit_to_minutes(
    chooser: Chooser, store: Store, tokenizers: Tokenizers, seconds: float, device: torch.device | str
) -> tuple[int, float]:
    """Choose size, batch, dropout and schedule for `seconds` of training; returns (updates, seconds for each)."""
    batch_tokens = chooser.config.batches.tokens
    if chooser.free("batches.tokens"):
        batch_tokens = max(1024, chooser.config.batches.max_length)
        chooser.config = replace(chooser.config, batches=replace(chooser.config.batches, tokens=batch_tokens))
    parts, most = _translator(store, tokenizers), MEASURING * seconds
    pace = _choose_size(chooser, parts, len(store), seconds, device)
    pace = choose_precision(chooser, parts, device, pace, most)
    updates = seconds / pace
    if updates > UPDATES_WANTED * 1.6 and chooser.free("batches.tokens"):
        tokens = min(LARGEST_BATCH, int(batch_tokens * (updates / UPDATES_WANTED) ** 0.5) // 256 * 256)
        tokens = max(tokens, chooser.config.batches.max_length)
        chooser.choose("batches.tokens", tokens, "there is time for larger, steadier batches")
        pace = measured_pace(chooser.config, parts, device, most=most)
        updates = seconds / pace
    else:
        chooser.choose(
            "batches.tokens",
            batch_tokens,
            f"small batches give the most updates: about {updates:,.0f} in the time there is",
        )
    epochs = updates * chooser.config.batches.accumulation / len(Batches(store, chooser.config.batches, seed=1))
    for setting, value, reason in training_choices(chooser.config, int(updates), epochs):
        chooser.choose(setting, value, reason)
    bend_schedule(chooser, max(1, int(updates)))
    return max(1, int(updates)), pace


def bend_schedule(chooser: Chooser, updates: int) -> None:
    """A schedule without an end gets one, at its own peak; a warm-up longer than a tenth of the run is shortened to it."""
    optimiser = chooser.config.optimiser
    if optimiser.schedule not in LANDING:
        peak = rate_at(optimiser, max(optimiser.warmup, 1), 0.0, getattr(chooser.config.model, "width", 1))
        chooser.bend("optimiser.rate", peak, f"the peak of {optimiser.schedule}")
        chooser.bend("optimiser.schedule", "linear", "so that the rate lands with the minutes")
    if optimiser.warmup > updates // 10:
        chooser.bend("optimiser.warmup", max(1, updates // 10), f"a tenth of {updates:,} updates")


def _choose_size(
    chooser: Chooser, parts: Callable[[Config], Parts], pairs: int, seconds: float, device: torch.device | str
) -> float:
    """The largest model that still gets ENOUGH_UPDATES and is not too large for the corpus; returns its seconds for each update."""
    model, most = chooser.config.model, MEASURING * seconds
    if not (chooser.free_shape() and isinstance(model, TransformerConfig)):
        return measured_pace(chooser.config, parts, device, most=most)
    chosen, chosen_pace, largest = "", 0.0, size_for(pairs)
    for name, size in SIZES.items():
        trial = replace(chooser.config, model=replace(model, **size))
        pace = measured_pace(trial, parts, device, most=most)
        if chosen and seconds / pace < ENOUGH_UPDATES:
            break
        chosen, chosen_pace = name, pace
        if name == largest:
            break
    reason = f"for {pairs:,} pairs; " if chosen == largest else ""
    chooser.choose_size(chosen, f"{reason}{1 / chosen_pace:.1f} updates a second measured here")
    return chosen_pace


def size_for(pairs: int) -> str:
    """The largest model that so many pairs can teach: on Multi30k's 29,000 the literature's tiny one beats small and base."""
    return "tiny" if pairs < 150_000 else "small" if pairs < 1_500_000 else "base"


def training_choices(config: Config, updates: int, epochs: float) -> list[tuple[str, Any, str]]:
    """Regularisation and schedule from how often each sentence will be seen and how many updates there are."""
    dropout = next((share for most, share in DROPOUT if epochs < most), MOST_DROPOUT)
    rate = _peak_rate(config, updates)
    warmup = max(10, min(200, updates // 20))
    decay = round(1 - 1 / min(2000, max(20, updates / 12)), 5)
    return [
        ("model.dropout", dropout, f"all of it will be read about {epochs:.1f} times"),
        ("optimiser.rate", rate, f"for a width of {config.model.width} and {updates:,} updates"),
        ("optimiser.warmup", warmup, f"a twentieth of {updates:,} updates"),
        ("train.ema_decay", decay, "averages about the last twelfth of the run"),
    ]


def _peak_rate(config: Config, updates: int) -> float:
    """A peak for runs that land: wider models and longer runs want a lower one, networks without norms a higher one (see docs/log.md)."""
    if config.optimiser.kind == "adamw":
        peak = 3e-3
    else:
        peak = 8e-3 if isinstance(config.model, LayersConfig) else 16e-3
    return round(peak * (128 / config.model.width) ** 0.5 * min(1.0, (1000 / max(1, updates)) ** 0.25), 5)


def fit_to_corpus(chooser: Chooser, store: Store) -> None:
    """Without a limit in minutes: size and dropout from the corpus alone, and a schedule that needs no end if none is planned."""
    pairs = len(store)
    if chooser.free_shape():
        chooser.choose_size(size_for(pairs), f"for {pairs:,} pairs")
    tokens = max(2048 if pairs < 150_000 else 4096, chooser.config.batches.max_length)
    chooser.choose("batches.tokens", tokens, f"for {pairs:,} pairs")
    updates = chooser.config.train.updates
    if updates:
        epochs = updates * chooser.config.batches.accumulation / len(Batches(store, chooser.config.batches, seed=1))
        for setting, value, reason in training_choices(chooser.config, updates, epochs):
            chooser.choose(setting, value, reason)
        return
    chooser.choose(
        "model.dropout", 0.3 if pairs < 150_000 else 0.1, "it will be read until validation no longer improves"
    )
    chooser.choose("optimiser.schedule", "inverse-sqrt", "nobody knows yet when training will end")
    chooser.choose("optimiser.warmup", 400, "with inverse-sqrt")
    chooser.choose("train.ema_decay", 0.999, "averages about the last thousand updates")


def automatic() -> Config:
    """The settings that fit best when nobody names a recipe; size, batch and schedule are then chosen from the data."""
    model = TransformerConfig(norm_place="pre", dropout=0.1, **SIZES["tiny"])
    config = Config(model=model, batches=BatchConfig(tokens=1024, max_length=256))
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
            "train": {"label_smoothing": 0.1, "average": "ema", "begin": "associations"},
        },
    )
