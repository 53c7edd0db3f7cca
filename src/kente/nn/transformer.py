"""The layers of the Transformer: attention and feed-forward, each with a residual connection and a norm.

Post-norm is the paper and the lectures:  x = norm(x + sublayer(x)).   Pre-norm is  x = x + sublayer(norm(x)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from kente.nn.attention import CrossAttention, MultiHead, SelfAttention, Turn, multi_head
from kente.nn.dropout import Dropout
from kente.nn.experts import Experts
from kente.nn.linear import Linear
from kente.nn.linear_attention import LinearAttention
from kente.nn.lists import Shape, in_lines, listed
from kente.nn.past import Column
from kente.nn.recompute import LayerCall, Passage, Sublayer, keep

KeysValues = tuple[Tensor, Tensor]
"""Of one layer, (B, H, S, K) each."""
LayerPast = tuple[Tensor, ...]
"""What one layer remembers of the words written: keys and values (past.Past), or the sums of linear attention."""


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": partial(F.relu, inplace=True),  # what it is given is needed by nobody else
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "swiglu": F.silu,  # that of its gate
}


class FeedForward(nn.Module):
    """FFN(x) = activation(x W1 + b1) W2 + b2, at each position alone; swiglu: (silu(x W1) * x W3) W2."""

    def __init__(self, width: int, inner: int, activation: str):
        super().__init__()
        self.gated = activation == "swiglu"
        self.activation = ACTIVATIONS[activation]
        self.inner = Linear(width, inner * 2 if self.gated else inner, bias=not self.gated)
        self.outer = Linear(inner, width, bias=not self.gated)
        for block in self.inner.weight.split(inner):
            nn.init.xavier_uniform_(block)
        nn.init.xavier_uniform_(self.outer.weight)
        if not self.gated:
            nn.init.zeros_(self.inner.bias)
            nn.init.zeros_(self.outer.bias)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        hidden = self.inner(x)
        if self.gated:
            gate, hidden = hidden.chunk(2, dim=-1)
            return self.outer(self.activation(gate) * hidden)
        return self.outer(self.activation(hidden))


class Residual(nn.Module):
    """Carries x around a sub-layer and normalises, after the sum (post) or before the sub-layer (pre).

    y = sublayer(residual.enter(x));  x = residual.leave(x, y)
    """

    def __init__(self, norm: nn.Module, dropout: float, *, pre: bool):
        super().__init__()
        self.norm, self.dropout, self.pre = norm, Dropout(dropout), pre

    def enter(self, x: Tensor) -> Tensor:
        return self.norm(x) if self.pre else x

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        x = self.dropout.add(x, y)
        return x if self.pre else self.norm(x)

    def around(self, sublayer: Callable[..., Tensor]) -> Sublayer:
        """(onto, x) -> onto + sublayer(x), normalised."""
        return lambda onto, x, *outside: self.leave(onto, sublayer(self.enter(x), *outside))


class LayerParts:
    """What layers are made of: constructors take parts, not flags.

    `turn` and `meet` are positions inside self-attention; `meet` is made anew for each layer, for it may learn.
    `attention`, when given, makes another self-attention altogether; `cross_meet` is how queries meet the source; `passage` is the way
    through a stack. With `experts`, each layer has so many feed-forward networks and every position goes to `experts_used` of them.
    `epsilon` is what norms add before they divide, 0 being torch's own; `biases` are those of attention's projections.
    """

    def __init__(
        self,
        *,
        width: int,
        heads: int,
        feedforward: int,
        dropout: float,
        attention_dropout: float,
        activation: str,
        norm: str,
        pre: bool,
        turn: Turn | None = None,
        meet: Callable[[], MultiHead] = lambda: multi_head,
        attention: Callable[[], LinearAttention] | None = None,
        cross_meet: MultiHead = multi_head,
        passage: Passage = keep,
        experts: int = 0,
        experts_used: int = 1,
        epsilon: float = 0.0,
        biases: bool = False,
    ):
        self.pre, self.passage = pre, passage

        def one_norm() -> nn.Module:
            return nn.LayerNorm(width, epsilon or 1e-5) if norm == "layer" else nn.RMSNorm(width, epsilon or None)

        self.norm: Callable[[], nn.Module] = one_norm
        self.residual = lambda: Residual(self.norm(), dropout, pre=pre)
        self.self_attention: Callable[[], SelfAttention | LinearAttention] = attention or (
            lambda: SelfAttention(width, heads, attention_dropout, turn, meet(), biases=biases)
        )
        self.cross_attention = lambda: CrossAttention(width, heads, attention_dropout, cross_meet, biases=biases)

        def one_expert() -> FeedForward:
            return FeedForward(width, feedforward, activation)

        def many_experts() -> Experts:
            return Experts(width, [one_expert() for _ in range(experts)], experts_used)

        self.feedforward: Callable[[], nn.Module] = many_experts if experts else one_expert


def noted(attention: tuple[Tensor, Tensor | None], seen: list[Tensor] | None) -> Tensor:
    """The context alone; its weights go to `seen`, when that is given."""
    context, weights = attention
    if seen is not None:
        assert weights is not None
        seen.append(weights)
    return context


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, parts: LayerParts):
        super().__init__()
        self.attention, self.attention_residual = parts.self_attention(), parts.residual()
        self.feedforward, self.feedforward_residual = parts.feedforward(), parts.residual()

    def reading(
        self,
        shape: Shape | None,
        mask: Bool[Tensor, "..."] | None,
        seen: list[Tensor] | None = None,
        *,
        causal: bool = False,
        read: list[KeysValues] | None = None,
    ) -> LayerCall:
        """Read texts, or a list of this `shape`. `seen`, when given, collects the attention weights (B, H, S, S); `read` keys and
        values."""
        visible = seen is not None

        def attention(x: Tensor) -> Tensor:
            return noted(self.attention(x, mask, shape=shape, causal=causal, visible=visible, read=read), seen)

        sublayers = [self.attention_residual.around(attention), self.feedforward_residual.around(self.feedforward)]
        return LayerCall(sublayers, list(self.parameters()))

    def writing(self, past: LayerPast, column: Column) -> LayerCall:
        """One more position in each row (N, D)."""

        def attention(x: Tensor) -> Tensor:
            return self.attention.step(x, past, column)

        return LayerCall(
            [self.attention_residual.around(attention), self.feedforward_residual.around(self.feedforward)]
        )


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the source, then feed-forward."""

    def __init__(self, parts: LayerParts):
        super().__init__()
        self.attention, self.attention_residual = parts.self_attention(), parts.residual()
        self.cross, self.cross_residual = parts.cross_attention(), parts.residual()
        self.feedforward, self.feedforward_residual = parts.feedforward(), parts.residual()

    def _around(
        self,
        attention: Callable[[Tensor], Tensor],
        cross: Callable[[Tensor, KeysValues], Tensor],
    ) -> list[Sublayer]:
        """The three sub-layers, of which only `cross` takes the keys and values of the source."""
        return [
            self.attention_residual.around(lambda x, *_: attention(x)),
            self.cross_residual.around(lambda x, keys, values: cross(x, (keys, values))),
            self.feedforward_residual.around(lambda x, *_: self.feedforward(x)),
        ]

    def reading(
        self,
        shape: Shape | None,
        memory: KeysValues,
        memory_mask: Bool[Tensor, "..."],
        seen: list[Tensor] | None = None,
    ) -> LayerCall:
        """Read texts, or a list of this `shape`; each position may look back only. `seen`, when given, collects the weights of both attentions."""
        visible = seen is not None

        def attention(x: Tensor) -> Tensor:
            return noted(self.attention(x, shape=shape, causal=True, visible=visible), seen)

        def cross(x: Tensor, source: KeysValues) -> Tensor:
            return noted(self.cross(x, source, memory_mask, shape=shape, visible=visible), seen)

        return LayerCall(self._around(attention, cross), list(self.parameters()), memory)

    def writing(self, memory: KeysValues, memory_mask: Tensor, past: LayerPast, column: Column) -> LayerCall:
        """One more position in each row (N, D)."""

        def attention(x: Tensor) -> Tensor:
            return self.attention.step(x, past, column)

        def cross(x: Tensor, source: KeysValues) -> Tensor:
            return self.cross.step(x, source, memory_mask)

        return LayerCall(self._around(attention, cross), outside=memory)


class Encoder(nn.Module):
    """A stack of layers over one text; pre-norm stacks end with a norm of their own.

    Read `causal`, each position looks back only: that is all a decoder without a source is, and `step` goes on from there.
    """

    def __init__(self, layers: int, parts: LayerParts):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(parts) for _ in range(layers))
        self.norm = parts.norm() if parts.pre else nn.Identity()
        self.passage = parts.passage

    def forward(
        self,
        x: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "..."] | None = None,
        seen: list[Tensor] | None = None,
        *,
        causal: bool = False,
        read: list[KeysValues] | None = None,
    ) -> Float[Tensor, "B S D"]:
        x, shape = listed(x)
        readings = [layer.reading(shape, mask, seen, causal=causal, read=read) for layer in self.layers]  # type: ignore[operator]
        return in_lines(self.norm(self.passage(readings, x)), shape)

    def step(self, x: Float[Tensor, "N D"], past: Sequence[LayerPast], column: Column) -> Float[Tensor, "N D"]:
        """One more position in each row, written into each layer's `past` at `column`."""
        steps = [layer.writing(written, column) for layer, written in zip(self.layers, past, strict=True)]  # type: ignore[operator]
        return self.norm(self.passage(steps, x))


class Decoder(nn.Module):
    """A stack of layers over the target, each looking at the same source."""

    def __init__(self, layers: int, parts: LayerParts):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(parts) for _ in range(layers))
        self.norm = parts.norm() if parts.pre else nn.Identity()
        self.passage = parts.passage

    def project(self, memory: Float[Tensor, "B S D"]) -> list[KeysValues]:
        """Each layer's keys and values of the source."""
        memory, shape = listed(memory)
        return [layer.cross.project(memory, shape) for layer in self.layers]  # type: ignore[union-attr, operator]

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        memory: list[KeysValues],
        memory_mask: Bool[Tensor, "..."],
        *,
        seen: list[Tensor] | None = None,
    ) -> Float[Tensor, "B T D"]:
        x, shape = listed(x)
        readings = [
            layer.reading(shape, source, memory_mask, seen)  # type: ignore[operator]
            for layer, source in zip(self.layers, memory, strict=True)
        ]
        return in_lines(self.norm(self.passage(readings, x)), shape)

    def step(
        self,
        x: Float[Tensor, "N D"],
        memory: Sequence[KeysValues],
        memory_mask: Float[Tensor, "B 1 1 S"],
        past: Sequence[LayerPast],
        column: Column,
    ) -> Float[Tensor, "N D"]:
        """One more position in each row, written into each layer's `past` at `column`. A sentence has several rows side by side."""
        steps = [
            layer.writing(source, memory_mask, written, column)  # type: ignore[operator]
            for layer, source, written in zip(self.layers, memory, past, strict=True)
        ]
        return self.norm(self.passage(steps, x))
