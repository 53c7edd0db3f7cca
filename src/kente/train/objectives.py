"""What training minimises. Only here and in decode is a Batch unpacked into the tensors a model takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from kente.data.batches import Batch
from kente.nn.loss import linear_cross_entropy


@dataclass
class Loss:
    """A sum over target tokens and their count, so that any number of batches add up to one mean."""

    total: Tensor
    tokens: int


Objective = Callable[[nn.Module, Batch], Loss]


@runtime_checkable
class HasSideLoss(Protocol):
    """A model that asks for something beside the right words, such as experts that are equally busy."""

    def side_loss(self, source_mask: Tensor, target_mask: Tensor) -> Tensor | None:
        """What to add to the mean loss for the batch just read, whose masks these are; None when nothing."""
        ...


class CrossEntropy:
    """-log p(target | source), with `smoothing` of the probability spread evenly over the vocabulary.

    For models whose logits are `hidden @ model.output.weight' + model.output.bias`, with or without a bias; padding never
    reaches that widest layer. While training, a side loss of the model counts once for each target token.
    """

    def __init__(self, smoothing: float = 0.0):
        self.smoothing = smoothing

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        hidden = model(batch.source, batch.source_mask, batch.target_input)
        real = batch.target_mask
        output: nn.Module = model.output  # type: ignore[assignment]
        weight: Tensor = output.weight  # type: ignore[assignment]
        bias: Tensor | None = getattr(output, "bias", None)
        total = linear_cross_entropy(hidden[real], weight, batch.target_output[real], self.smoothing, bias)
        if model.training and isinstance(model, HasSideLoss):
            side = model.side_loss(batch.source_mask, real)
            total = total if side is None else total + side * batch.target_tokens
        return Loss(total, batch.target_tokens)


@torch.inference_mode()
def mean_loss(model: nn.Module, batches: list[Batch], device: torch.device | str = "cpu") -> float:
    """Cross entropy for each target token in nats, no smoothing, no dropout; exp of it is the perplexity."""
    objective = CrossEntropy()
    losses = [objective(model, batch.to(device)) for batch in batches]
    return sum(loss.total.item() for loss in losses) / sum(loss.tokens for loss in losses)
