"""Recurrent cells as equations, and layers that read a whole sequence with one (lectures 000 and 002).

A state is a tuple of tensors (B, D); its first is what the world sees, h. Every cell has a single bias vector, as the lectures count it.
Two paths lead through a sequence: `read` is the equation in a loop, `read_fused` hands the loop to torch. They are tested equal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from kente.nn.dropout import Dropout
from kente.nn.linear import Linear, many, repeated

State = tuple[Tensor, ...]


class Cell(nn.Module, ABC):
    """One step of a recurrence: state_t = f(x_t, state_{t-1}). W and U hold the matrices of all gates, one below the other."""

    gates: ClassVar[int]
    parts: ClassVar[int] = 1
    """Tensors in a state."""
    kernel: ClassVar[Callable[..., Any] | None] = None
    """torch's own loop over this very equation, where it has one."""

    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.width = width
        self.input = Linear(inputs, self.gates * width)
        self.recurrent = Linear(width, self.gates * width, bias=False)
        for gate in self.input.weight.split(width):
            nn.init.xavier_uniform_(gate)
        for gate in self.recurrent.weight.split(width):
            nn.init.orthogonal_(gate)
        nn.init.zeros_(self.input.bias)

    def initial(self, batch: int) -> State:
        """Nothing read yet: zeros."""
        return tuple(self.input.weight.new_zeros(batch, self.width) for _ in range(self.parts))

    def forward(self, x: Float[Tensor, "B X"], state: State) -> State:
        return self.advance(self.input(x), state)

    @abstractmethod
    def advance(self, projected: Float[Tensor, "B G"], state: State) -> State:
        """The state after a step whose W x + b is `projected`: that product needs no state, so a sequence takes it in one go."""

    def kernel_biases(self) -> tuple[Tensor, Tensor]:
        """torch's kernels add two biases where the equations have one; the second is zero."""
        return self.input.bias, torch.zeros_like(self.input.bias)


@final
class RNNCell(Cell):
    """h_t = tanh(W x_t + U h_{t-1} + b)      (lecture 000)"""

    gates = 1
    kernel = torch.rnn_tanh

    def advance(self, projected: Tensor, state: State) -> State:
        return (torch.tanh(projected + self.recurrent(state[0])),)


@final
class LSTMCell(Cell):
    """c_t = f_t c_{t-1} + i_t tanh(W x_t + U h_{t-1} + b),   h_t = o_t tanh(c_t)

    with gates i, f, o = sigmoid(W x_t + U h_{t-1} + b), each with matrices of its own      (lecture 000)
    """

    gates = 4
    parts = 2
    kernel = torch.lstm

    def __init__(self, inputs: int, width: int):
        super().__init__(inputs, width)
        with torch.no_grad():
            self.input.bias[width : 2 * width].fill_(1.0)  # begin by remembering (Jozefowicz et al., 2015)

    def advance(self, projected: Tensor, state: State) -> State:
        i, f, candidate, o = (projected + self.recurrent(state[0])).chunk(4, dim=-1)
        c = f.sigmoid() * state[1] + i.sigmoid() * candidate.tanh()
        return o.sigmoid() * c.tanh(), c


@final
class GRUCell(Cell):
    """h_t = u_t h_{t-1} + (1 - u_t) h~_t,   h~_t = tanh(W x_t + b + r_t (U h_{t-1} + b_r))

    with gates r, u = sigmoid(W x_t + U h_{t-1} + b), each with matrices of its own      (lecture 000: the additive update)

    b_r is there only with `reset_bias`, for weights trained elsewhere: torch and cuDNN have it, the lectures do not.
    """

    gates = 3
    kernel = torch.gru

    def __init__(self, inputs: int, width: int, *, reset_bias: bool = False):
        super().__init__(inputs, width)
        self.reset_bias = nn.Parameter(torch.zeros(width)) if reset_bias else None

    def advance(self, projected: Tensor, state: State) -> State:
        h = state[0]
        sizes = (2 * self.width, self.width)
        (gates, fresh), (recurrent, remembered) = projected.split(sizes, -1), self.recurrent(h).split(sizes, -1)
        r, u = (gates + recurrent).sigmoid().chunk(2, dim=-1)
        if self.reset_bias is not None:
            remembered = remembered + self.reset_bias
        candidate = torch.tanh(fresh + r * remembered)
        return (torch.lerp(candidate, h, u),)

    def kernel_biases(self) -> tuple[Tensor, Tensor]:
        one, other = super().kernel_biases()
        if self.reset_bias is not None:
            other = torch.cat([other[: 2 * self.width], self.reset_bias])
        return one, other


@final
class MinimalGateCell(Cell):
    """s_t = (1 - g_t) s_{t-1} + g_t tanh(W x_t + U s_{t-1} + b),   g_t = sigmoid(W x_t + U s_{t-1} + b), matrices of its own

    The gated unit as lecture 000's GRU slide writes it: one gate decides both what to forget and what to take in.
    """

    gates = 2

    def advance(self, projected: Tensor, state: State) -> State:
        gate, candidate = (projected + self.recurrent(state[0])).chunk(2, dim=-1)
        return (torch.lerp(state[0], candidate.tanh(), gate.sigmoid()),)


# --- a whole sequence ---


def read(
    cell: Cell, x: Float[Tensor, "B T X"], state: State, mask: Bool[Tensor, "B T"] | None = None
) -> tuple[Float[Tensor, "B T D"], State]:
    """Every h_t and the last state, step by step. Where `mask` is False there is no word: the state stays, the output is zero."""
    outputs = []
    words = cell.input(x).unbind(1)  # unbound once: the gradient of a slice is as large as the whole
    shortest = 0 if mask is None or x.is_meta else int(mask.sum(1).min())  # up to there all go on
    with repeated():
        for t, projected in enumerate(words):
            following = cell.advance(projected, state)
            if mask is not None and t >= shortest:
                following = tuple(
                    torch.where(mask[:, t, None], new, old) for new, old in zip(following, state, strict=True)
                )
            state = following
            outputs.append(state[0])
    hidden = torch.stack(outputs, dim=1)
    return (hidden if mask is None else hidden * mask[..., None]), state


def read_fused(
    cell: Cell, x: Float[Tensor, "B T X"], state: State, mask: Bool[Tensor, "B T"] | None = None
) -> tuple[Float[Tensor, "B T D"], State]:
    """What `read` gives, by torch's own loop where the equations allow. Padding stands at the end of a sequence, never inside."""
    kernel = type(cell).kernel
    if (
        kernel is None or x.is_meta or (torch.is_grad_enabled() and many(len(x)))
    ):  # on the meta device there are no lengths to pack by
        return read(cell, x, state, mask)
    weights = (cell.input.weight, cell.recurrent.weight, *cell.kernel_biases())
    single = cell.parts == 1
    if mask is None:
        begin = [part[None] for part in state]
        output, *ends = kernel(
            x, begin[0] if single else begin, weights, True, 1, 0.0, torch.is_grad_enabled(), False, True
        )
        return output, tuple(end[0] for end in ends)
    packed = pack_padded_sequence(x, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
    assert packed.sorted_indices is not None and packed.unsorted_indices is not None
    begin = [part[packed.sorted_indices][None] for part in state]
    output, *ends = kernel(
        packed.data,
        packed.batch_sizes,
        begin[0] if single else begin,
        weights,
        True,
        1,
        0.0,
        torch.is_grad_enabled(),
        False,
    )
    hidden, _ = pad_packed_sequence(packed._replace(data=output), batch_first=True, total_length=x.shape[1])
    return hidden, tuple(end[0][packed.unsorted_indices] for end in ends)


def reversed_within(x: Float[Tensor, "B T X"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T X"]:
    """Each sequence from its last word to its first, padding left where it is. Done twice it changes nothing."""
    places = torch.arange(x.shape[1], device=x.device).expand(mask.shape)
    mirrored = torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)
    return x.gather(1, mirrored[..., None].expand_as(x))


MakeCell = Callable[[int], Cell]
"""A cell for inputs of this size."""


@final
class Layer(nn.Module):
    """A cell carried along a sequence; `both_ways` adds a second one that reads from the right, their outputs side by side."""

    def __init__(self, make: MakeCell, inputs: int, *, both_ways: bool = False):
        super().__init__()
        self.forwards = make(inputs)
        self.backwards = make(inputs) if both_ways else None
        self.width = self.forwards.width * (2 if both_ways else 1)

    def forward(
        self, x: Float[Tensor, "B T X"], state: State | None = None, mask: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        """(every h_t, the last state). Read both ways, the last state is that of each direction side by side."""
        outputs, last = read_fused(self.forwards, x, state or self.forwards.initial(len(x)), mask)
        if self.backwards is None:
            return outputs, last
        assert mask is not None and state is None, "only a source, whole from its beginning, is read from the right"
        mirrored, first = read_fused(self.backwards, reversed_within(x, mask), self.backwards.initial(len(x)), mask)
        both = torch.cat([outputs, reversed_within(mirrored, mask)], dim=-1)
        return both, tuple(torch.cat(ends, dim=-1) for ends in zip(last, first, strict=True))


RESIDUAL_FROM = 2
"""The first layer (counted from 0) with its input carried around it: the third, as in GNMT."""


@final
class Stack(nn.Module):
    """Layers upon layers. With `residual`, from the third on, x^l = layer(x^{l-1}) + x^{l-1} where the sizes agree."""

    def __init__(self, layers: list[Layer], dropout: float, *, residual: bool = False):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = Dropout(dropout)
        self.residual = residual
        self.width = layers[-1].width

    def forward(
        self,
        x: Float[Tensor, "B T X"],
        mask: Bool[Tensor, "B T"] | None = None,
        states: tuple[State, ...] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], tuple[State, ...]]:
        """(outputs of the last layer, the last state of every layer)."""
        ends = []
        for index, layer in enumerate(self.layers):
            entering = self.dropout(x) if index else x
            leaving, end = layer(entering, None if states is None else states[index], mask)
            carried = self.residual and index >= RESIDUAL_FROM and leaving.shape == x.shape
            x = leaving + x if carried else leaving
            ends.append(end)
        return x, tuple(ends)
