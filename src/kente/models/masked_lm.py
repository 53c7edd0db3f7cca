"""A masked encoder, whole: BERT (Devlin et al., 2019), section 3.1, task 1; lecture 004.

states = Encoder(E[words, some of them hidden] sqrt(D) + P), each position looking both ways
logits = norm(activation(W states + b)) E' + b'

BERT's own has no sqrt(D), adds a vector for first and second text, and normalises before the first layer: settings of `MaskedConfig`.
"""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import MaskedConfig
from kente.models.interface import AttentionMap
from kente.models.layers import layer_parts, position_codes, word_scale
from kente.nn.dropout import Dropout
from kente.nn.linear import Linear
from kente.nn.masks import padding_mask
from kente.nn.transformer import ACTIVATIONS, Encoder
from kente.nn.words import Words

END = 3
"""The id of the mark that ends a text, in every vocabulary (data.pieces.EOS)."""


class GapHead(nn.Module):
    """norm(activation(W x + b)): from a state in its context to a vector that is compared with words."""

    def __init__(self, width: int, norm: nn.Module, activation: Callable[[Tensor], Tensor] = F.gelu):
        super().__init__()
        self.map, self.norm, self.activation = Linear(width, width), norm, activation
        nn.init.xavier_uniform_(self.map.weight)
        nn.init.zeros_(self.map.bias)

    def forward(self, states: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.norm(self.activation(self.map(states)))


class Segments(nn.Module):
    """Adds a vector that tells the text before the first end mark from what stands behind it."""

    def __init__(self, kinds: int, width: int):
        super().__init__()
        self.vectors = nn.Embedding(kinds, width)
        nn.init.normal_(self.vectors.weight, std=0.02)

    def forward(self, x: Float[Tensor, "B S D"], ids: Int[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        ends = (ids == END).long()
        behind = ends.cumsum(1) - ends  # end marks before each word
        return x + self.vectors(behind.clamp(max=self.vectors.num_embeddings - 1))


class MaskedLM(nn.Module):
    """An encoder, and a head that says which word stands in a gap."""

    def __init__(self, config: MaskedConfig, vocabulary: int):
        super().__init__()
        self.config = config
        self.scale = word_scale(config)
        parts = layer_parts(config)
        self.embedding = Words(vocabulary, config.width, bias=config.tie and config.gaps)
        self.output = self.embedding if config.tie else Words(vocabulary, config.width, bias=True)
        self.positions = position_codes(config)
        self.segments = Segments(config.segments, config.width) if config.segments > 1 else None
        self.norm = parts.norm() if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config.layers, parts)
        self.head: nn.Module = nn.Identity()
        if config.gaps:
            activation = "gelu" if config.activation == "swiglu" else config.activation  # the head has no gate
            self.head = GapHead(config.width, parts.norm(), ACTIVATIONS[activation])

    def encode(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], seen: list[Tensor] | None = None
    ) -> Float[Tensor, "B S D"]:
        """A vector for each word in its context."""
        x = self.positions(self.embedding(source) * self.scale)
        if self.segments is not None:
            x = self.segments(x, source)
        return self.encoder(self.dropout(self.norm(x)), padding_mask(source_mask), seen)

    def forward(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """What the head makes of each word; `predict` turns it into logits. Training asks the head about gaps alone."""
        return self.head(self.encode(source, source_mask))

    def predict(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits over the vocabulary."""
        return self.output.scores(hidden)

    def look(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Tensor | None = None
    ) -> list[AttentionMap]:
        """Every attention weight of every layer and head; an encoder has no target to look from."""
        seen: list[Tensor] = []
        self.encode(source, source_mask, seen)
        return [
            AttentionMap("encoder", layer, head, weights[:, head])
            for layer, weights in enumerate(seen)
            for head in range(weights.shape[1])
        ]
