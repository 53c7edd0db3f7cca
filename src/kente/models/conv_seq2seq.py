"""ConvS2S, whole: "Convolutional Sequence to Sequence Learning" (Gehring et al., 2017), section 3.

e = E[source] + P,   z = Encoder(e)
g = E[target] + P',  hidden = Decoder(g, z, z + e)
logits = hidden E'

As in the authors' program, attention stands inside a block's residual connection: it asks with what the gate let through. The
output is the table of words, which has neither bias nor weight normalisation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import ConvConfig
from kente.models.interface import SHARED, AttentionMap, Output, Step
from kente.nn.convolution import Decoder, Encoder, Memory, remember, scale_gradient
from kente.nn.dropout import Dropout
from kente.nn.positions import Learned
from kente.nn.words import word_tables


@dataclass
class ConvState:
    """What decoding remembers between two words: the source, the last k - 1 inputs of each layer, and how many words were read."""

    memory: Memory = field(metadata=SHARED)
    past: tuple[Tensor, ...]  # (B, k - 1, channels) for each layer
    length: Tensor  # (B,)


class ConvSeq2Seq(nn.Module):
    """An encoder and a decoder of gated convolutions; every decoder layer looks at the source."""

    joins = True

    def __init__(self, config: ConvConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.config = config
        size, dropout = config.embedding, config.dropout
        tables = word_tables(source_vocabulary, target_vocabulary, size, config.tie)
        self.source_embedding, self.target_embedding, self.output = tables
        self.source_positions = Learned(config.max_length, size)
        self.target_positions = Learned(config.max_length, size)
        self.dropout = Dropout(dropout)
        self.encoder = Encoder(size, config.encoder_channels, config.encoder_kernels, dropout)
        self.decoder = Decoder(size, config.decoder_channels, config.decoder_kernels, dropout)
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Words and positions of one size, 0.1 (section 3.5); an output of its own like any layer behind dropout."""
        if self.config.tie == "none":
            self.output.weight.normal_(std=math.sqrt((1 - self.config.dropout) / self.config.embedding))
        for table in (self.source_embedding, self.target_embedding):
            table.weight.normal_(std=0.1)
        for positions in (self.source_positions, self.target_positions):
            positions.vectors.weight.normal_(std=0.1)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S E"]:
        """Contextual vectors of the source words."""
        return self.encoder(self.dropout(self.source_positions(self.source_embedding(source))), source_mask)

    def _remember(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Memory:
        """The source as the decoder sees it.

        Every decoder layer sends a gradient back; the encoder takes their mean, which keeps learning stable (section 3.4).
        """
        words = self.dropout(self.source_positions(self.source_embedding(source)))
        encoded = scale_gradient(self.encoder(words, source_mask), 1 / len(self.decoder.layers))
        return remember(encoded, words, source_mask)

    def _decode(
        self, target: Int[Tensor, "B T"], state: ConvState
    ) -> tuple[Float[Tensor, "B T E"], ConvState, list[Tensor]]:
        """Read any number of words further: (hidden, state, for each layer the weights of the source (B, T, S))."""
        positions = state.length[:, None] + torch.arange(target.shape[1], device=target.device)
        words = self.dropout(self.target_positions(self.target_embedding(target), positions))
        hidden, past, seen = self.decoder(words, list(state.past), state.memory)
        return self.dropout(hidden), ConvState(state.memory, tuple(past), state.length + target.shape[1]), seen

    # --- reading in one go: training, scoring, looking ---

    def forward(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T E"]:
        """The decoder's hidden vectors for target input; `predict` turns them into logits."""
        return self._decode(target, self.start(source, source_mask))[0]

    def predict(self, hidden: Float[Tensor, "*B E"]) -> Float[Tensor, "*B V"]:
        """Logits over the target vocabulary."""
        return self.output.scores(hidden)

    def narrowed(self, ids: Int[Tensor, "*B A"]) -> Output:
        """The output over these words alone."""
        return self.output.narrowed(ids)

    def look(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> list[AttentionMap]:
        """Where each decoder layer looked in the source. Words of one side meet in convolutions, which have no map."""
        seen = self._decode(target, self.start(source, source_mask))[2]
        return [AttentionMap("cross", layer, 0, weights) for layer, weights in enumerate(seen)]

    # --- writing one word at a time: search ---

    def start(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> ConvState:
        memory = self._remember(source, source_mask)
        return ConvState(memory, tuple(self.decoder.edge(memory.keys)), source.new_zeros(len(source)))

    def step(self, state: ConvState, tokens: Int[Tensor, "B"], output: Output | None = None) -> Step:
        """The attention shown is the mean over layers."""
        hidden, state, seen = self._decode(tokens[:, None], state)
        return Step((output or self.output).scores(hidden[:, 0]), state, torch.stack(seen).mean(dim=0)[:, 0])
