"""What training minimises. Only here and in decode is a Batch unpacked into the tensors a model takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kente.data.batches import Batch
from kente.data.rows import RowBatch
from kente.data.skip_grams import Neighbours
from kente.nn.loss import linear_cross_entropy


@dataclass
class Loss:
    """A sum over target tokens and their count, so that any number of batches add up to one mean."""

    total: Tensor
    tokens: int


Objective = Callable[[nn.Module, Any], Loss]
"""(model, batch) -> loss; which batches it reads is its own affair, most read a `Batch`."""


@runtime_checkable
class HasSideLoss(Protocol):
    """A model that asks for something beside the right words, such as experts that are equally busy."""

    def side_loss(self, source_mask: Tensor, target_mask: Tensor) -> Tensor | None:
        """What to add to the mean loss for the batch just read, whose masks these are; None when nothing."""
        ...


class CrossEntropy:
    """-log p(target | source); of a language model, -log p(what comes next | what came before).

    `smoothing` of the probability is spread evenly over the vocabulary.

    For models whose logits are `hidden @ model.output.weight' + model.output.bias`, with or without a bias; padding never
    reaches that widest layer. While training, a side loss of the model counts once for each target token.
    """

    def __init__(self, smoothing: float = 0.0):
        self.smoothing = smoothing

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        hidden = model(batch.source, batch.source_mask, batch.target_input)
        real = batch.target_mask
        total = _words_loss(model, hidden[real], batch.target_output[real], self.smoothing)
        if model.training and isinstance(model, HasSideLoss):
            side = model.side_loss(batch.source_mask, real)
            total = total if side is None else total + side * batch.target_tokens
        return Loss(total, batch.target_tokens)


def _words_loss(model: nn.Module, hidden: Tensor, words: Tensor, smoothing: float = 0.0) -> Tensor:
    output: nn.Module = model.output  # type: ignore[assignment]
    weight: Tensor = output.weight  # type: ignore[assignment]
    bias: Tensor | None = getattr(output, "bias", None)
    return linear_cross_entropy(hidden, weight, words, smoothing, bias)


class Masked:
    """-log p(hidden words | the others): the head of a masked encoder is asked about the gaps alone."""

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        states = model.encode(batch.source, batch.source_mask)  # type: ignore[operator]
        gaps = batch.target_mask.nonzero(as_tuple=True)
        hidden = model.head(states[gaps])  # type: ignore[operator]
        return Loss(_words_loss(model, hidden, batch.target_output[gaps]), batch.target_tokens)


class NegativeSampling:
    """-log s(u_o . v_c) - sum_k log s(-u_k . v_c): a real neighbour told from words drawn at random."""

    def __call__(self, model: nn.Module, batch: Neighbours) -> Loss:
        scores = model.scores(batch.words, batch.others)  # type: ignore[operator]
        found = F.logsigmoid(scores[:, 0]).sum() + F.logsigmoid(-scores[:, 1:]).sum()
        return Loss(-found, batch.target_tokens)


class Classes:
    """-log p(class | text); `smoothing` of the probability is spread evenly over the classes."""

    def __init__(self, smoothing: float = 0.0):
        self.smoothing = smoothing

    def __call__(self, model: nn.Module, batch: RowBatch) -> Loss:
        logits = model.predict(model(*batch.sides[0]))  # type: ignore[operator]
        total = F.cross_entropy(logits, batch.labels, reduction="sum", label_smoothing=self.smoothing)
        return Loss(total, batch.target_tokens)


class Partners:
    """-log softmax_j(cos(a_i, b_j) / t)_i: each text must find its partner among those of the whole batch, and its partner must find it.

    Where rows have one text alone, it is read twice and is its own partner: dropout makes the two readings differ (SimCSE: Gao et al.,
    2021). Rows with the same label are not held against each other.
    """

    def __init__(self, temperature: float):
        self.temperature = temperature

    def __call__(self, model: nn.Module, batch: RowBatch) -> Loss:
        cosines = self.cosines(model, batch)
        right = torch.arange(len(batch), device=cosines.device)
        same = (batch.labels[:, None] == batch.labels) & ~torch.eye(len(batch), dtype=torch.bool, device=right.device)
        scores = (cosines / self.temperature).masked_fill(same, -torch.inf)
        both = F.cross_entropy(scores, right, reduction="sum") + F.cross_entropy(scores.T, right, reduction="sum")
        return Loss(both / 2, batch.target_tokens)

    def cosines(self, model: nn.Module, batch: RowBatch) -> Tensor:
        """(B, B) of every first text with every second one."""
        if len(batch.sides) == 1:
            ids, mask = batch.sides[0]
            one, other = model.directions(torch.cat([ids, ids]), torch.cat([mask, mask])).chunk(2)  # type: ignore[operator]
        else:
            one, other = (model.directions(*side) for side in batch.sides)  # type: ignore[operator]
        return one @ other.T


@torch.inference_mode()
def mean_loss(
    model: nn.Module,
    batches: Iterable[Any],
    device: torch.device | str = "cpu",
    objective: Objective | None = None,
) -> float:
    """Cross entropy for each target token in nats, no smoothing, no dropout; exp of it is the perplexity."""
    objective = objective or CrossEntropy()
    losses = [objective(model, batch.to(device)) for batch in batches]
    return sum(loss.total.item() for loss in losses) / sum(loss.tokens for loss in losses)
