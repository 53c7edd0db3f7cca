"""LSTM with intra-attention, whole: Cheng, Dong and Lapata (2016), with the "shallow fusion" of their section 4; cited by lecture 003.

h_1 .. h_S = LSTMN(E[source])                                  each word looks back over the words before it
c_t = sum_j softmax_j(v' tanh(W s_{t-1} + U h_j + b)) h_j      the decoder looks at the source
s_t = LSTMN([E[target]_t; c_t])                                and back over what it has written
logits = tanh(W [s_t; c_t; E[target]_t] + b) E'

The decoder starts from the encoder's state at the last word of the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import IntraAttentionConfig
from kente.models.interface import SHARED, AttentionMap, Output, Step
from kente.nn.dropout import Dropout
from kente.nn.intra_attention import IntraAttentionCell, Tape, blank, intra_map
from kente.nn.linear import Linear
from kente.nn.scores import Additive
from kente.nn.words import word_tables


@dataclass
class IntraAttentionState:
    """What decoding remembers between two words: all that was written, and the source's keys and states (B, S, D)."""

    tape: Tape
    keys: Tensor = field(metadata=SHARED)
    values: Tensor = field(metadata=SHARED)
    mask: Tensor = field(metadata=SHARED)  # (B, S)


class IntraAttentionSeq2Seq(nn.Module):
    """An encoder that looks back over what it has read, a decoder that looks at the source and back over what it has written."""

    def __init__(self, config: IntraAttentionConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.config = config
        size, width = config.embedding, config.width
        tables = word_tables(source_vocabulary, target_vocabulary, size, config.tie)
        self.source_embedding, self.target_embedding, self.output = tables
        self.dropout = Dropout(config.dropout)
        self.encoder = IntraAttentionCell(size, width)
        self.attention = Additive(width, width, width)
        self.decoder = IntraAttentionCell(size, width)
        # W [y; c] = W_y y + W_c c: the first part needs no state and is taken for all words at once
        self.context = Linear(width, 5 * width, bias=False)
        self.readout = Linear(2 * width + size, size)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """The encoder's state after each word of the source."""
        states, _ = self.encoder(self.dropout(self.source_embedding(source)), source_mask)
        return states[..., : self.config.width]

    def _begin(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]
    ) -> tuple[IntraAttentionState, list[Tensor]]:
        """(the state before the first word, the encoder's weights)."""
        states, seen = self.encoder(self.dropout(self.source_embedding(source)), source_mask)
        places = torch.arange(source.shape[1], device=source.device)
        last = (places * source_mask).amax(dim=1)
        start = states[torch.arange(len(source), device=source.device), last]
        keys, values = self.attention.prepare(states[..., : self.config.width])
        return IntraAttentionState(blank(start), keys, values, source_mask), seen

    def _decode(
        self, target: Int[Tensor, "B T"], state: IntraAttentionState
    ) -> tuple[Float[Tensor, "B T E"], IntraAttentionState, list[Tensor], Float[Tensor, "B T S"]]:
        """Read any number of words further: (hidden, state, the decoder's weights, weights of the source)."""
        y = self.dropout(self.target_embedding(target))
        tape, states, contexts, intra, cross = state.tape, [], [], [], []
        for projected in self.decoder.project(y).unbind(1):
            context, looked = self.attention(tape.hidden, state.keys, state.values, state.mask)
            tape, looked_back = self.decoder.advance(projected + self.context(context), tape)
            states.append(tape.hidden)
            contexts.append(context)
            intra.append(looked_back)
            cross.append(looked)
        everything = torch.cat([torch.stack(states, 1), torch.stack(contexts, 1), y], dim=-1)
        hidden = self.dropout(torch.tanh(self.readout(everything)))
        return hidden, replace(state, tape=tape), intra, torch.stack(cross, 1)

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
        """How source words looked back, how target words looked back, and where the decoder looked in the source."""
        state, encoder = self._begin(source, source_mask)
        _, _, decoder, cross = self._decode(target, state)
        maps = {"encoder": intra_map(encoder), "decoder": intra_map(decoder), "cross": cross}
        return [AttentionMap(kind, 0, 0, weights) for kind, weights in maps.items()]

    # --- writing one word at a time: search ---

    def start(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> IntraAttentionState:
        return self._begin(source, source_mask)[0]

    def step(self, state: IntraAttentionState, tokens: Int[Tensor, "B"], output: Output | None = None) -> Step:
        hidden, state, _, looked = self._decode(tokens[:, None], state)
        return Step((output or self.output).scores(hidden[:, 0]), state, looked[:, 0])
