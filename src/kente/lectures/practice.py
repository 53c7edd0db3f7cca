"""The training that experiments share: small models on small tasks, the same numbers every time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from kente.config import DecodeConfig, OptimiserConfig
from kente.data.batches import Batch
from kente.data.tokenizer import SPECIALS
from kente.decode.search import search
from kente.models.interface import Generator
from kente.reporting import Reporter
from kente.train.objectives import CrossEntropy, Objective
from kente.train.optimiser import Optimiser, rate_at

FIRST = len(SPECIALS)
"""The first id that is a symbol of the task; those below are the padding and the marks."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """The same random numbers every time, and the caller's own undisturbed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def practise(
    model: nn.Module,
    batch_of: Callable[[int], Any],
    updates: int,
    reporter: Reporter,
    label: str,
    *,
    rate: float = 2e-3,
    smoothing: float = 0.0,
    objective: Objective | None = None,
) -> None:
    """Train on batch_of(0), batch_of(1), ...: AdamW, a short warm-up, and a rate that falls to zero with the last update."""
    config = OptimiserConfig(rate=rate, schedule="linear", warmup=min(50, updates // 4))
    objective, optimiser = objective or CrossEntropy(smoothing), Optimiser(model, config)
    model.train()
    for step in range(updates):
        optimiser.zero()
        loss = objective(model, batch_of(step))
        mean = loss.total / loss.tokens
        mean.backward()
        optimiser.step(rate_at(config, step + 1, step / updates, 0), optimiser.gradient_norm())
        if step % 20 == 0:
            reporter.progress(label, step, updates, f"loss {mean.item():.3f}")
    reporter.finish()
    model.eval()


@torch.inference_mode()
def next_right(model: nn.Module, batch: Batch, after: int = 0) -> float:
    """Share of target symbols, from place `after` on, foreseen when all before them are given; the end mark is not counted."""
    hidden = model(batch.source, batch.source_mask, batch.target_input)
    symbols = batch.target_output >= FIRST
    symbols[:, :after] = False
    return float((model.predict(hidden).argmax(-1) == batch.target_output)[symbols].double().mean())  # type: ignore[operator]


def whole_right(model: Generator, batch: Batch, targets: Sequence[Sequence[int]]) -> float:
    """Share of answers, written freely and greedily, that are right from the first symbol to the end mark."""
    answers = search(model, batch.source, batch.source_mask, DecodeConfig(beam=1))
    return sum(found[0].ids == list(target) for found, target in zip(answers, targets, strict=True)) / len(targets)
