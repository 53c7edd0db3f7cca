"""Cross entropy of an output layer without ever holding tokens x vocabulary: the widest tensor of a training step, cut into strips.

Each strip of logits is made, turned into its gradient in place while it is still in the processor's cache, and let go.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

STRIP = 256
"""Tokens at a time: a strip of 256 x 4,000 logits is 4 MB."""


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        learning: bool,
    ) -> Tensor:
        hidden_gradient = torch.empty_like(hidden) if learning else None
        weight_gradient = torch.zeros_like(weight) if learning else None
        bias_gradient = torch.zeros_like(bias) if learning and bias is not None else None
        spread = smoothing / len(weight)
        total = hidden.new_zeros((), dtype=torch.float64)  # many small terms
        for start in range(0, len(hidden), STRIP):
            rows, answers = hidden[start : start + STRIP], targets[start : start + STRIP, None]
            logits = F.linear(rows, weight, bias)
            log_sum = logits.logsumexp(dim=1, keepdim=True)
            wanted = (1 - smoothing) * logits.gather(1, answers)
            if smoothing:
                wanted += spread * logits.sum(dim=1, keepdim=True)
            total += (log_sum - wanted).sum(dtype=torch.float64)
            if hidden_gradient is not None and weight_gradient is not None:
                gradient = logits.sub_(log_sum).exp_()  # p, and then p - q for the smoothed answer q
                if smoothing:
                    gradient.sub_(spread)
                gradient.scatter_add_(1, answers, gradient.new_full((), smoothing - 1).expand_as(answers))
                torch.mm(gradient, weight, out=hidden_gradient[start : start + STRIP])
                weight_gradient.addmm_(gradient.T, rows)
                if bias_gradient is not None:
                    bias_gradient += gradient.sum(dim=0)
        ctx.save_for_backward(hidden_gradient, weight_gradient, bias_gradient)
        return total.to(hidden.dtype)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None, None, None]:
        hidden_gradient, weight_gradient, bias_gradient = ctx.saved_tensors
        bias_gradient = None if bias_gradient is None else bias_gradient * outer[0]
        return hidden_gradient * outer[0], weight_gradient * outer[0], bias_gradient, None, None, None


def linear_cross_entropy(
    hidden: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    targets: Int[Tensor, "N"],
    smoothing: float = 0.0,
    bias: Float[Tensor, "V"] | None = None,
) -> Float[Tensor, ""]:
    """sum_n -log q_n . softmax(h_n W' + b)  where q gives 1 - smoothing to the answer and spreads the rest evenly over all V."""
    inputs = (hidden, weight) if bias is None else (hidden, weight, bias)
    learning = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)
    total: Tensor = _LinearCrossEntropy.apply(hidden, weight, bias, targets, smoothing, learning)
    return total
