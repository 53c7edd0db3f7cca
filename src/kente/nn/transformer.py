"""The layers of the Transformer: attention and feed-forward, each with a residual connection and a norm.

Post-norm is the paper and the lectures:  x = norm(x + sublayer(x)).   Pre-norm is  x = x + sublayer(norm(x)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from kente.nn.attention import CrossAttention, MultiHead, SelfAttention, Turn, multi_head
from kente.nn.dropout import Dropout
from kente.nn.experts import Experts
from kente.nn.past import Column

KeysValues = tuple[Tensor, Tensor]
"""Of one layer, (B, H, S, K) each."""


class FeedForward(nn.Module):
    """FFN(x) = activation(x W1 + b1) W2 + b2, at each position alone; swiglu: (silu(x W1) * x W3) W2."""

    def __init__(self, width: int, inner: int, activation: str):
        super().__init__()
        self.gated = activation == "swiglu"
        activations: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu}
        self.activation = activations[activation]
        self.inner = nn.Linear(width, inner * 2 if self.gated else inner, bias=not self.gated)
        self.outer = nn.Linear(inner, width, bias=not self.gated)
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


class LayerParts:
    """What layers are made of: constructors take parts, not flags.

    `turn` and `meet` are positions inside self-attention; `meet` is made anew for each layer, for it may learn.
    With `experts`, each layer has so many feed-forward networks and every position goes to `experts_used` of them.
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
        experts: int = 0,
        experts_used: int = 1,
    ):
        self.pre = pre
        self.norm: Callable[[], nn.Module] = lambda: nn.LayerNorm(width) if norm == "layer" else nn.RMSNorm(width)
        self.residual = lambda: Residual(self.norm(), dropout, pre=pre)
        self.self_attention = lambda: SelfAttention(width, heads, attention_dropout, turn, meet())
        self.cross_attention = lambda: CrossAttention(width, heads, attention_dropout)

        def one_expert() -> FeedForward:
            return FeedForward(width, feedforward, activation)

        def many_experts() -> Experts:
            return Experts(width, [one_expert() for _ in range(experts)], experts_used)

        self.feedforward: Callable[[], nn.Module] = many_experts if experts else one_expert


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, parts: LayerParts):
        super().__init__()
        self.attention, self.attention_residual = parts.self_attention(), parts.residual()
        self.feedforward, self.feedforward_residual = parts.feedforward(), parts.residual()

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "..."], seen: list[Tensor] | None = None
    ) -> Float[Tensor, "B S D"]:
        """`seen`, when given, collects the attention weights (B, H, S, S)."""
        context, weights = self.attention(self.attention_residual.enter(x), mask, visible=seen is not None)
        x = self.attention_residual.leave(x, context)
        if seen is not None:
            seen.append(weights)
        return self.feedforward_residual.leave(x, self.feedforward(self.feedforward_residual.enter(x)))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the source, then feed-forward."""

    def __init__(self, parts: LayerParts):
        super().__init__()
        self.attention, self.attention_residual = parts.self_attention(), parts.residual()
        self.cross, self.cross_residual = parts.cross_attention(), parts.residual()
        self.feedforward, self.feedforward_residual = parts.feedforward(), parts.residual()

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        memory: KeysValues,
        memory_mask: Bool[Tensor, "..."],
        *,
        seen: list[Tensor] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Read positions that may look back only. `seen`, when given, collects the weights of both attentions."""
        visible = seen is not None
        context, weights = self.attention(self.attention_residual.enter(x), causal=True, visible=visible)
        x = self.attention_residual.leave(x, context)
        context, source_weights = self.cross(self.cross_residual.enter(x), memory, memory_mask, visible=visible)
        x = self.cross_residual.leave(x, context)
        if seen is not None:
            seen += [weights, source_weights]
        return self.feedforward_residual.leave(x, self.feedforward(self.feedforward_residual.enter(x)))

    def step(
        self, x: Float[Tensor, "N D"], memory: KeysValues, memory_mask: Tensor, past: KeysValues, column: Column
    ) -> Float[Tensor, "N D"]:
        """One more position in each row."""
        x = self.attention_residual.leave(x, self.attention.step(self.attention_residual.enter(x), past, column))
        x = self.cross_residual.leave(x, self.cross.step(self.cross_residual.enter(x), memory, memory_mask))
        return self.feedforward_residual.leave(x, self.feedforward(self.feedforward_residual.enter(x)))


class Encoder(nn.Module):
    """A stack of layers; pre-norm stacks end with a norm of their own."""

    def __init__(self, layers: int, parts: LayerParts):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(parts) for _ in range(layers))
        self.norm = parts.norm() if parts.pre else nn.Identity()

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "..."], seen: list[Tensor] | None = None
    ) -> Float[Tensor, "B S D"]:
        for layer in self.layers:
            x = layer(x, mask, seen)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of layers over the target, each looking at the same source."""

    def __init__(self, layers: int, parts: LayerParts):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(parts) for _ in range(layers))
        self.norm = parts.norm() if parts.pre else nn.Identity()

    def project(self, memory: Float[Tensor, "B S D"]) -> list[KeysValues]:
        """Each layer's keys and values of the source."""
        return [layer.cross.project(memory) for layer in self.layers]  # type: ignore[union-attr, operator]

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        memory: list[KeysValues],
        memory_mask: Bool[Tensor, "..."],
        *,
        seen: list[Tensor] | None = None,
    ) -> Float[Tensor, "B T D"]:
        for layer, source in zip(self.layers, memory, strict=True):
            x = layer(x, source, memory_mask, seen=seen)
        return self.norm(x)

    def step(
        self,
        x: Float[Tensor, "N D"],
        memory: Sequence[KeysValues],
        memory_mask: Float[Tensor, "B 1 1 S"],
        past: Sequence[KeysValues],
        column: Column,
    ) -> Float[Tensor, "N D"]:
        """One more position in each row, written into each layer's `past` at `column`. A sentence has several rows side by side."""
        for layer, source, written in zip(self.layers, memory, past, strict=True):
            x = layer.step(x, source, memory_mask, written, column)  # type: ignore[operator]
        return self.norm(x)
