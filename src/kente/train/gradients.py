"""The gradient of one update. Its batches are cut into shares, one for each core, and the shares' gradients added up in order.

A core that reads its own sentences from beginning to end beats several cores inside each operation: small matrices are too small
to be cut, and nobody waits for anybody until the end. What comes out depends on how many shares there are, never on who was first.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn

from kente.data.batches import Reading
from kente.nn.dropout import noise
from kente.nn.linear import rounding
from kente.train.objectives import Objective

SMALLEST_SHARE = 192
"""Tokens (of the target, if there is one) below which a share is not worth a thread of its own."""

Gradient = list[Tensor | None]


def dropout_seed(seed: int, step: int, share: int) -> int:
    """dropout = f(seed, step, share): mixed so that neighbouring numbers give unrelated streams."""
    return (seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + share * 0x94D049BB133111EB) % 2**63


def replica(model: nn.Module) -> nn.Module:
    """A model with the same weights, the very same tensors, and everything else its own: notes of one reading do not mix with another's."""
    return copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})


class Gradients:
    """Fills `parameter.grad` for all of a model's weights:  gradients(batches, seed, step) -> loss for each target token."""

    def __init__(
        self, model: nn.Module, objective: Objective, device: torch.device | str = "cpu", precision: str = "float32"
    ):
        self.objective, self.device = objective, torch.device(device)
        self.rounds = precision == "bfloat16"
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        self.models = [model] + [replica(model) for _ in range(self.threads - 1)]
        self.pool = ThreadPoolExecutor(self.threads, "kente-share") if self.threads > 1 else None

    def __call__(self, batches: Sequence[Reading], seed: int, step: int) -> float:
        tokens = sum(batch.target_tokens for batch in batches)
        loss = 0.0
        total: Gradient | None = None
        for place, batch in enumerate(batches):
            count = max(1, min(self.threads, batch.work // SMALLEST_SHARE))
            first = place * self.threads
            work = [
                (model, share, dropout_seed(seed, step, first + index), tokens)
                for index, (model, share) in enumerate(zip(self.models, batch.shares(count), strict=False))
            ]
            for share_loss, found in self._all(work):
                loss += share_loss
                total = found if total is None else _sum(total, found)
        for parameter, gradient in zip(self.parameters, total or [], strict=True):
            parameter.grad = gradient
        return loss

    def _all(self, work: list[tuple[Any, ...]]) -> list[tuple[float, Gradient]]:
        if self.pool is None or len(work) == 1:
            return [self._one(*item) for item in work]
        try:
            waiting = [self.pool.submit(self._alone, self.threads // len(work), *item) for item in work]
            return [future.result() for future in waiting]
        finally:
            torch.set_num_threads(self.threads)

    def _alone(self, threads: int, *item: Any) -> tuple[float, Gradient]:
        torch.set_num_threads(
            threads
        )  # for this thread of ours alone, but for MKL's products everywhere, until set back
        return self._one(*item)

    def _one(self, model: nn.Module, share: Reading, seed: int, tokens: int) -> tuple[float, Gradient]:
        if self.device.type != "cpu":
            torch.manual_seed(seed)
        with noise(seed), rounding(self.rounds):
            mean = self.objective(model, share.to(self.device)).total / tokens
        gradient = torch.autograd.grad(mean, self.parameters, allow_unused=True)
        return mean.item(), list(gradient)


def _sum(one: Gradient, other: Gradient) -> Gradient:
    both = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    torch._foreach_add_([a for a, _ in both], [b for _, b in both])
    return [b if a is None else a for a, b in zip(one, other, strict=True)]
