"""The Transformer, whole: "Attention is all you need" (Vaswani et al., 2017), section 3; lectures 000, 001, 003 and 004.

memory = Encoder(E[source] sqrt(D) + P)
hidden = Decoder(E[target] sqrt(D) + P, memory)
logits = hidden E'
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import TransformerConfig
from kente.models.interface import SHARED, AttentionMap, Output, Step
from kente.nn.attention import MultiHead, multi_head
from kente.nn.dropout import Dropout
from kente.nn.experts import Experts
from kente.nn.masks import as_numbers, padding_mask
from kente.nn.past import Past, no_past, open_column
from kente.nn.positions import Alibi, Learned, Relative, Rotary, Sinusoid, Unplaced
from kente.nn.transformer import Decoder, Encoder, LayerParts
from kente.nn.words import word_tables


@dataclass
class TransformerState:
    """What decoding remembers between two words: for each layer, keys and values of the source and of what was written (nn/past.py)."""

    memory: tuple[tuple[Tensor, Tensor], ...] = field(metadata=SHARED)  # (B, H, S, K) each
    memory_mask: Tensor = field(metadata=SHARED)  # (B, S)
    past: Past = field(metadata=SHARED)
    kin: Tensor  # (rows, entries) which entries of its sentence's past are a row's own


class Transformer(nn.Module):
    """An encoder that reads the source, a decoder that writes the target."""

    refills = True

    def __init__(self, config: TransformerConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.config = config
        self.scale = math.sqrt(config.width)
        parts = LayerParts(
            width=config.width,
            heads=config.heads,
            feedforward=config.feedforward,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation=config.activation,
            norm=config.norm,
            pre=config.norm_place == "pre",
            turn=Rotary(config.width // config.heads) if config.positions == "rotary" else None,
            meet=self._meeting(config),
            experts=config.experts,
            experts_used=config.experts_used,
        )
        tables = word_tables(source_vocabulary, target_vocabulary, config.width, config.tie)
        self.source_embedding, self.target_embedding, self.output = tables
        self.source_positions = self._positions(config)
        self.target_positions = self._positions(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config.encoder_layers, parts)
        self.decoder = Decoder(config.decoder_layers, parts)

    @staticmethod
    def _positions(config: TransformerConfig) -> nn.Module:
        match config.positions:
            case "sinusoid":
                return Sinusoid(config.width)
            case "learned":
                return Learned(config.max_length, config.width)
            case _:
                return Unplaced()

    @staticmethod
    def _meeting(config: TransformerConfig) -> Callable[[], MultiHead]:
        """How queries meet keys in self-attention, for one layer after the other."""
        match config.positions:
            case "relative":
                return lambda: Relative(config.relative_distance, config.width // config.heads)
            case "alibi":
                return lambda: Alibi(config.heads)
            case _:
                return lambda: multi_head

    # --- reading in one go: training, scoring, looking ---

    def encode(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], seen: list[Tensor] | None = None
    ) -> Float[Tensor, "B S D"]:
        """Contextual vectors of the source words."""
        x = self.dropout(self.source_positions(self.source_embedding(source) * self.scale))
        return self.encoder(x, padding_mask(source_mask), seen)

    def forward(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """The decoder's hidden vectors for target input; `predict` turns them into logits."""
        memory = self.decoder.project(self.encode(source, source_mask))
        x = self.dropout(self.target_positions(self.target_embedding(target) * self.scale))
        return self.decoder(x, memory, padding_mask(source_mask))

    def predict(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits over the target vocabulary."""
        return self.output.scores(hidden)

    def narrowed(self, ids: Int[Tensor, "*B A"]) -> Output:
        """The output over these words alone."""
        return self.output.narrowed(ids)

    def side_loss(self, source_mask: Bool[Tensor, "B S"], target_mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""] | None:
        """How unevenly the last reading kept the experts busy: config.balance times the mean of all layers' balances, real words alone.

        None without experts, and after a reading that was not to train. The masks come from outside, as `forward` has none of the target.
        """
        stacks = ((self.encoder, source_mask), (self.decoder, target_mask))
        mixtures = [(m, mask) for stack, mask in stacks for m in stack.modules() if isinstance(m, Experts)]
        balances = [mixture.take_balance(mask) for mixture, mask in mixtures]
        known = [balance for balance in balances if balance is not None]
        return self.config.balance * torch.stack(known).mean() if known else None

    def look(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> list[AttentionMap]:
        """Every attention weight of every layer and head."""
        encoder_seen: list[Tensor] = []
        decoder_seen: list[Tensor] = []
        memory = self.decoder.project(self.encode(source, source_mask, encoder_seen))
        x = self.dropout(self.target_positions(self.target_embedding(target) * self.scale))
        self.decoder(x, memory, padding_mask(source_mask), seen=decoder_seen)
        kinds = {"encoder": encoder_seen, "decoder": decoder_seen[0::2], "cross": decoder_seen[1::2]}
        return [
            AttentionMap(kind, layer, head, weights[:, head])
            for kind, layers in kinds.items()
            for layer, weights in enumerate(layers)
            for head in range(weights.shape[1])
        ]

    # --- writing one word at a time: search ---

    def start(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> TransformerState:
        projected = self.decoder.project(self.encode(source, source_mask))
        memory = tuple((keys.contiguous(), values.contiguous()) for keys, values in projected)  # read at every step
        return TransformerState(memory, source_mask, no_past(len(memory), memory[0][0]), source_mask[:, :0])

    def step(self, state: TransformerState, tokens: Int[Tensor, "B"], output: Output | None = None) -> Step:
        past, kin, column = open_column(state.past, state.kin)
        where = column.position.repeat_interleave(len(tokens) // len(column.position))
        x = self.target_positions(self.target_embedding(tokens)[:, None] * self.scale, where[:, None])[:, 0]
        memory_mask = as_numbers(padding_mask(state.memory_mask), x)
        hidden = self.decoder.step(x, state.memory, memory_mask, past.layers, column)
        logits = (output or self.output).scores(hidden)
        return Step(logits, replace(state, past=past, kin=kin))
