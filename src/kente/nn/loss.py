"""Cross entropy of an output layer without ever holding tokens x vocabulary: the widest tensor of a training step, cut into strips.

Each strip of logits is made, turned into its gradient p - q in place while it is still in the cache, and let go.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from kente.nn.linear import add_outer_product, factor, filled, linear, many

STRIP = 512
"""Tokens at a time: enough for products at full speed, few enough for the cache (512 x 8,000 logits are 16 MB)."""


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
        count, hidden = len(hidden), filled(hidden)
        targets = F.pad(targets, (0, len(hidden) - count))
        hidden_gradient = torch.empty_like(hidden) if learning else None
        weight_gradient = weight.new_zeros(weight.shape[::-1]).T if learning else None
        bias_gradient = torch.zeros_like(bias) if learning and bias is not None else None
        spread = smoothing / len(weight)
        # if anything is: a table and probabilities once, not for each of their products. Only a CPU's rows are filled up, to suit them all
        rounded = hidden.is_cpu and many(len(hidden))
        table = factor(weight) if rounded else weight
        exact = (
            torch.float32 if hidden.device.type == "mps" else torch.float64
        )  # many small terms; Apple's cards know no float64
        total = hidden.new_zeros((), dtype=exact)
        for start in range(0, count, STRIP):
            rows, answers, real = hidden[start : start + STRIP], targets[start : start + STRIP, None], count - start
            logits = linear(rows, table, bias)
            wanted = (1 - smoothing) * logits.gather(1, answers)
            if smoothing:
                wanted += spread * logits.sum(dim=1, keepdim=True)
            peak = logits.amax(dim=1, keepdim=True)
            p = torch.softmax(logits, dim=1, out=logits)
            log_sum = peak - p.amax(dim=1, keepdim=True).log_()  # for the likeliest word has p = exp(peak - log_sum)
            total += (log_sum - wanted)[:real].sum(dtype=exact)
            if hidden_gradient is not None and weight_gradient is not None:
                p.scatter_add_(1, answers, p.new_full((), smoothing - 1).expand_as(answers))
                if bias_gradient is not None:
                    bias_gradient += p[:real].sum(dim=0)
                p = factor(p) if rounded else p
                hidden_gradient[start : start + STRIP] = linear(p, table.T)
                add_outer_product(weight_gradient, p, rows)
        if hidden_gradient is not None and weight_gradient is not None and smoothing:
            # what smoothing takes from every word alike needs no pass over all words
            hidden_gradient -= spread * weight.sum(dim=0)
            weight_gradient -= spread * hidden.sum(dim=0)
            if bias_gradient is not None:
                bias_gradient -= spread * count
        hidden_gradient = None if hidden_gradient is None else hidden_gradient[:count]
        weight_gradient = None if weight_gradient is None else weight_gradient.contiguous()
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
