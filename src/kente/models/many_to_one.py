"""A sequence of numbers in, one number out: the last state of a recurrence, or attention over all of its states (lecture 002).

without attention   y = V h_T + b               11 parameters: (1 + 2 + 1) 2 + (2 + 1) 1
with attention      y = V c + b                 33: 22 more for c, an average of h_1 ... h_T

The lecture counts 22 as 20 weights and 2 biases; the tutorial it cites counts them as 2 weights and 20 biases. These are two different
layers of the same size. Both are here: `ScoredSteps` is the tutorial's, `FreeSteps` the slide's.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kente.nn.linear import Linear
from kente.nn.recurrent import RNNCell, read

SPREAD = 0.05
"""Standard deviation of an attention layer's first weights; its biases begin at zero."""


class ScoredSteps(nn.Module):
    """c = sum_t a_t h_t,   a = softmax_t(e),   e_t = tanh(w . h_t + b_t): what is read decides where to look, and so does when."""

    def __init__(self, steps: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(SPREAD * torch.randn(width))
        self.bias = nn.Parameter(torch.zeros(steps))

    def weights(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B T"]:
        """a_t: positive, and they sum to one."""
        return torch.tanh(states @ self.weight + self.bias).softmax(dim=-1)

    def forward(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        return (self.weights(states)[..., None] * states).sum(dim=1)


class FreeSteps(nn.Module):
    """c = sum_t alpha_t h_t + b: alpha is learned as it stands, the same for every sequence, of any sign, and sums to anything."""

    def __init__(self, steps: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(SPREAD * torch.randn(steps))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, states: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        return (self.weight[:, None] * states).sum(dim=1) + self.bias


class ManyToOne(nn.Module):
    """y = V h_T + b: whatever the sequence was, its last state stands for it."""

    def __init__(self, inputs: int = 1, width: int = 2, outputs: int = 1):
        super().__init__()
        self.cell = RNNCell(inputs, width)
        self.dense = _dense(width, outputs)

    def forward(self, x: Float[Tensor, "B T X"]) -> Float[Tensor, "B Y"]:
        _, (last,) = read(self.cell, x, self.cell.initial(len(x)))
        return self.dense(last)


class AttentiveManyToOne(nn.Module):
    """y = V c + b: `attention` makes c of all the states."""

    def __init__(self, attention: ScoredSteps | FreeSteps, inputs: int = 1, width: int = 2, outputs: int = 1):
        super().__init__()
        self.cell = RNNCell(inputs, width)
        self.attention = attention
        self.dense = _dense(width, outputs)

    def forward(self, x: Float[Tensor, "B T X"]) -> Float[Tensor, "B Y"]:
        states, _ = read(self.cell, x, self.cell.initial(len(x)))
        return self.dense(self.attention(states))


def _dense(width: int, outputs: int) -> Linear:
    dense = Linear(width, outputs)
    nn.init.xavier_uniform_(dense.weight)
    nn.init.zeros_(dense.bias)
    return dense
