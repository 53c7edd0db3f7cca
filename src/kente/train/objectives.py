"""What training minimises. Only here and in decode is a Batch unpacked into the tensors a model takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


class CrossEntropy:
    """-log p(target | source), with `smoothing` of the probability spread evenly over the vocabulary.

    For models whose logits are `hidden @ model.output.weight'`; padding never reaches that widest layer.
    """

    def __init__(self, smoothing: float = 0.0):
        self.smoothing = smoothing

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        hidden = model(batch.source, batch.source_mask, batch.target_input)
        real = batch.target_mask
        output: Tensor = model.output.weight  # type: ignore[union-attr, assignment]
        total = linear_cross_entropy(hidden[real], output, batch.target_output[real], self.smoothing)
        return Loss(total, batch.target_tokens)


@torch.inference_mode()
def mean_loss(model: nn.Module, batches: list[Batch], device: torch.device | str = "cpu") -> float:
    """Cross entropy for each target token in nats, no smoothing, no dropout; exp of it is the perplexity."""
    objective = CrossEntropy()
    losses = [objective(model, batch.to(device)) for batch in batches]
    return sum(loss.total.item() for loss in losses) / sum(loss.tokens for loss in losses)
