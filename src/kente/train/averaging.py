"""Weights that are the mean of many: an exponential average over updates, or the mean of the last checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every trained tensor once, detached: what a checkpoint holds."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


class ExponentialAverage:
    """average <- decay * average + (1 - decay) * weights, after each update; young averages forget faster."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.tensors = {name: tensor.clone() for name, tensor in named_weights(model).items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.tensors.values()), list(named_weights(model).values()), 1 - decay)

    def load(self, tensors: dict[str, Tensor]) -> None:
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])


class LastMean:
    """The mean of the weights at the last `count` validations. It carries them along, so that a resumed run averages the same ones."""

    def __init__(self, count: int):
        self.count = count
        self.recent: list[dict[str, Tensor]] = []

    @property
    def tensors(self) -> dict[str, Tensor] | None:
        return mean_of(self.recent) if self.recent else None

    def add(self, model: nn.Module) -> None:
        """Take the weights as they are now; the oldest go when there are too many."""
        weights = {name: tensor.clone() for name, tensor in named_weights(model).items()}
        self.recent = [*self.recent, weights][-self.count :]

    def state(self) -> dict[str, Tensor]:
        return {
            f"{place}.{name}": tensor for place, weights in enumerate(self.recent) for name, tensor in weights.items()
        }

    def load(self, tensors: dict[str, Tensor], device: torch.device | str) -> None:
        places = sorted({int(name.partition(".")[0]) for name in tensors})
        self.recent = [
            {
                name.partition(".")[2]: t.to(device, copy=True)
                for name, t in tensors.items()
                if name.startswith(f"{place}.")
            }
            for place in places
        ]


def mean_of(weights: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, name by name."""
    return {name: torch.stack([w[name] for w in weights]).mean(dim=0) for name in weights[0]}


@contextmanager
def weights_of(model: nn.Module, tensors: dict[str, Tensor] | None) -> Iterator[None]:
    """The model with other weights for a while; its own come back bit for bit."""
    if tensors is None:
        yield
        return
    own = {name: tensor.clone() for name, tensor in named_weights(model).items()}
    put(model, tensors)
    try:
        yield
    finally:
        put(model, own)


@torch.no_grad()
def put(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy weights into the model."""
    for name, tensor in named_weights(model).items():
        tensor.copy_(tensors[name])
