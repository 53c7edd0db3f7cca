"""The LSTM with intra-attention of "Long Short-Term Memory-Networks for Machine Reading" (Cheng, Dong and Lapata, 2016; cited by lecture 003).

In place of one state that is overwritten there is a tape of all of them; before each word the cell looks back over it:

a_i^t = v' tanh(W_h h_i + W_x x_t + W_g h~_{t-1}),   s^t = softmax over i < t
h~_t = sum_i s_i^t h_i,   c~_t = sum_i s_i^t c_i
i, f, o = sigmoid(W x_t + U h~_t + b),   c_t = f c~_t + i tanh(W x_t + U h~_t + b),   h_t = o tanh(c_t)

At the first word the tape is empty: there h~ and c~ are the state the cell starts from, zero unless another is given.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from kente.nn.linear import Linear


@dataclass
class Tape:
    """Everything read so far, t words."""

    states: Tensor  # (B, t, 2D): h_i and c_i side by side
    keys: Tensor  # (B, t, D): W_h h_i
    summary: Tensor  # (B, 2D): h~ and c~ of the last word; before the first, the state to start from
    hidden: Tensor  # (B, D): h of the last word; before the first, that of the start


def blank(start: Float[Tensor, "B W"]) -> Tape:
    """An empty tape, and the state [h; c] to start from."""
    width = start.shape[-1] // 2
    return Tape(
        start.new_empty(len(start), 0, 2 * width), start.new_empty(len(start), 0, width), start, start[:, :width]
    )


class IntraAttentionCell(nn.Module):
    """One word further along the tape."""

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.width = width
        # W of the gates i, f, the candidate and o, and W_x: what needs no state is taken for all words at once
        self.input = Linear(inputs, 5 * width, bias=False)
        self.recurrent = Linear(width, 4 * width, bias=False)
        self.bias = nn.Parameter(torch.zeros(4 * width))
        self.key = Linear(width, width, bias=False)
        self.previous = Linear(width, width, bias=False)
        self.energy = nn.Parameter(torch.empty(width).uniform_(-1, 1) / width**0.5)
        for block in self.input.weight.split(width):
            nn.init.xavier_uniform_(block)
        for block in self.recurrent.weight.split(width):
            nn.init.orthogonal_(block)
        for matrix in (self.key.weight, self.previous.weight):
            nn.init.xavier_uniform_(matrix)
        with torch.no_grad():
            self.bias[width : 2 * width].fill_(1.0)  # begin by remembering (Jozefowicz et al., 2015)

    def project(self, x: Float[Tensor, "*B X"]) -> Float[Tensor, "*B G"]:
        """W x + b of the gates beside W_x x of the attention, which has no bias."""
        return self.input(x) + F.pad(self.bias, (0, self.width))

    def look_back(
        self, query: Float[Tensor, "B D"], tape: Tape, real: Bool[Tensor, "B t"] | None
    ) -> tuple[Float[Tensor, "B 2*D"], Float[Tensor, "B t"]]:
        """([h~; c~], weights over the tape); `real` is False where padding stands on it."""
        if not tape.keys.shape[1]:
            return tape.summary, query.new_empty(len(query), 0)
        query = query + self.previous(tape.summary[:, : self.width])
        energies = torch.tanh(tape.keys + query[:, None]) @ self.energy
        if real is None:
            weights = energies.softmax(dim=-1)
        else:  # a tape of nothing but padding is an empty one: weights of zero rather than 0/0
            weights = energies.masked_fill(~real, torch.finfo(energies.dtype).min).softmax(dim=-1) * real
        return (weights[:, None] @ tape.states)[:, 0], weights

    def advance(
        self, projected: Float[Tensor, "B G"], tape: Tape, real: Bool[Tensor, "B t"] | None = None
    ) -> tuple[Tape, Float[Tensor, "B t"]]:
        """The tape with one more word, of which `project` gave W x + b; and the weights of the words before it."""
        gates, query = projected[:, : 4 * self.width], projected[:, 4 * self.width :]
        summary, weights = self.look_back(query, tape, real)
        i, f, candidate, o = (gates + self.recurrent(summary[:, : self.width])).chunk(4, dim=-1)
        c = f.sigmoid() * summary[:, self.width :] + i.sigmoid() * candidate.tanh()
        h = o.sigmoid() * c.tanh()
        states = torch.cat([tape.states, torch.cat([h, c], dim=-1)[:, None]], dim=1)
        return Tape(states, torch.cat([tape.keys, self.key(h)[:, None]], dim=1), summary, h), weights

    def forward(
        self, x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T {2*self.width}"], list[Tensor]]:
        """A whole sequence from nothing: (every h_t and c_t side by side, for each word the weights of those before it)."""
        tape, seen = blank(x.new_zeros(len(x), 2 * self.width)), []
        for t, projected in enumerate(self.project(x).unbind(1)):
            tape, weights = self.advance(projected, tape, mask[:, :t])
            seen.append(weights)
        return tape.states, seen


def intra_map(seen: list[Tensor]) -> Float[Tensor, "B T T"]:
    """The weights over the tape at each word as one map. By convention a word that finds the tape empty looks at itself."""
    rows = []
    for t, weights in enumerate(seen):
        itself = (weights.sum(dim=-1, keepdim=True) == 0).to(weights.dtype)
        rows.append(F.pad(torch.cat([weights, itself], dim=-1), (0, len(seen) - t - 1)))
    return torch.stack(rows, dim=1)
