"""The Transformer, whole: "Attention is all you need" (Vaswani et al., 2017), section 3; lectures 000, 001, 003 and 004.

memory = Encoder(E[source] sqrt(D) + P)
hidden = Decoder(E[target] sqrt(D) + P, memory)
logits = hidden E'
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import TransformerConfig
from kente.models.interface import SHARED, AttentionMap, Output, Step
from kente.models.layers import layer_parts, position_codes, span_of, word_scale
from kente.nn.dropout import Dropout
from kente.nn.experts import Experts
from kente.nn.linear_attention import no_sums
from kente.nn.masks import LEAST, as_numbers, padding_mask, up_to_least
from kente.nn.past import Past, no_past, open_column
from kente.nn.transformer import Decoder, Encoder
from kente.nn.words import word_tables


@dataclass
class TransformerState:
    """What decoding remembers between two words: for each layer, keys and values of the source and of what was written (nn/past.py)."""

    memory: tuple[tuple[Tensor, Tensor], ...] = field(metadata=SHARED)  # (B, H, S, K) each
    memory_mask: Tensor = field(metadata=SHARED)  # (B, S)
    past: Past = field(metadata=SHARED)
    kin: Tensor  # (rows, entries) which entries of its sentence's past are a row's own
    sums: tuple[Tensor, ...] = ()  # of linear attention, in place of the past: (rows, H, K, K + 1) for each layer


class Transformer(nn.Module):
    """An encoder that reads the source, a decoder that writes the target."""

    joins = True

    def __init__(self, config: TransformerConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.config = config
        self.scale = word_scale(config)
        parts = layer_parts(config)
        self.span = span_of(config)
        sizes = (source_vocabulary, target_vocabulary, config.width)
        tables = word_tables(*sizes, config.tie, bias=config.output_bias)
        self.source_embedding, self.target_embedding, self.output = tables
        self.source_positions = position_codes(config)
        self.target_positions = position_codes(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config.encoder_layers, parts)
        self.decoder = Decoder(config.decoder_layers, parts)

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
        source_mask = up_to_least(source_mask, -1)
        memory = tuple(
            (up_to_least(keys, -2).contiguous(), up_to_least(values, -2).contiguous()) for keys, values in projected
        )  # read at every step
        linear, nothing = self.config.span == "linear", memory[0][0][:, :, :0]
        past = no_past(0 if linear else len(memory), nothing)
        sums = no_sums(len(memory) if linear else 0, nothing)
        return TransformerState(memory, source_mask, past, source_mask[:, :0], sums)

    def trimmed(self, state: TransformerState, width: int) -> TransformerState:
        width = max(width, LEAST)
        memory = tuple((keys[:, :, :width], values[:, :, :width]) for keys, values in state.memory)
        return replace(state, memory=memory, memory_mask=state.memory_mask[:, :width])

    def step(self, state: TransformerState, tokens: Int[Tensor, "B"], output: Output | None = None) -> Step:
        past, kin, column = open_column(state.past, state.kin, self.span.first if self.span else None)
        where = column.position.repeat_interleave(len(tokens) // len(column.position))
        x = self.target_positions(self.target_embedding(tokens)[:, None] * self.scale, where[:, None])[:, 0]
        memory_mask = as_numbers(padding_mask(state.memory_mask), x)
        sums = tuple(layer.clone() for layer in state.sums)  # a state stays as it is
        written = [(layer,) for layer in sums] or past.layers
        hidden = self.decoder.step(x, state.memory, memory_mask, written, column)
        logits = (output or self.output).scores(hidden)
        return Step(logits, replace(state, past=past, kin=kin, sums=sums))
