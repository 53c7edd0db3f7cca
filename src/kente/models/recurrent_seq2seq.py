"""Encoder and decoder of recurrent cells: one fixed context vector, or attention to every state of the encoder.

fixed context   c = h_S                                  s_i = f(s_{i-1}, y_{i-1})         (Sutskever et al., 2014; lectures 000, 002)
attention       c_i = sum_j softmax_j(e_ij) h_j          s_i = f(s_{i-1}, y_{i-1}, c_i)    (Bahdanau et al., 2015; lectures 001, 002, 003)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import RecurrentConfig, RecurrentLanguageConfig
from kente.errors import ConfigError
from kente.models.interface import SHARED, AttentionMap, Output, Step
from kente.nn.dropout import Dropout
from kente.nn.linear import Linear, filled, repeated
from kente.nn.recurrent import (
    RESIDUAL_FROM,
    Cell,
    GRUCell,
    Layer,
    LSTMCell,
    MakeCell,
    MinimalGateCell,
    RNNCell,
    Stack,
    State,
)
from kente.nn.scores import Additive, Bilinear, Dot, Projected, StateAttention
from kente.nn.words import OneHot, Words, word_tables

WHY_NO_ATTENTION = (
    "The encoder hands over one vector for the whole sentence: there is nothing to look at, and nowhere to look."
)


@dataclass
class FixedContextState:
    """What decoding remembers between two words: each layer's state, and the sentence as one vector."""

    layers: tuple[State, ...]
    context: Tensor  # (B, M)


@dataclass
class AttentiveState:
    """What decoding remembers between two words: each layer's state, and the source's keys and values (B, S, size)."""

    layers: tuple[State, ...]
    keys: Tensor = field(metadata=SHARED)
    values: Tensor = field(metadata=SHARED)
    mask: Tensor = field(metadata=SHARED)  # (B, S)


def make_cell(config: RecurrentConfig | RecurrentLanguageConfig) -> MakeCell:
    """Cells of the settings' kind, for inputs of any size."""

    def make(inputs: int) -> Cell:
        match config.cell:
            case "rnn":
                return RNNCell(inputs, config.width)
            case "lstm":
                return LSTMCell(inputs, config.width)
            case "gru":
                return GRUCell(inputs, config.width, reset_bias=getattr(config, "reset_bias", False))
            case "minimal":
                return MinimalGateCell(inputs, config.width)

    return make


def make_encoder(config: RecurrentConfig, make: MakeCell, inputs: int) -> Stack:
    layers: list[Layer] = []
    for index in range(config.encoder_layers):
        both_ways = config.bidirectional == "all" or (config.bidirectional == "first" and index == 0)
        layers.append(Layer(make, layers[-1].width if layers else inputs, both_ways=both_ways))
    return Stack(layers, config.dropout, residual=config.residual)


def make_attention(config: RecurrentConfig, memory: int) -> StateAttention:
    """The score of the settings, for encoder states of size `memory`."""
    match config.attention:
        case "additive":
            return Additive(config.width, memory, config.width)
        case "bilinear":
            return Bilinear(config.width, memory)
        case "projected":
            return Projected(config.width, memory, config.width)
        case _:
            if memory != config.width:
                raise ConfigError(
                    f"model.attention = dot compares vectors of one size, but the encoder's have {memory} values and the decoder's "
                    f"{config.width}; set model.bidirectional=none, or model.attention=bilinear"
                )
            return Dot(config.width, memory)


class Bridge(nn.Module):
    """The decoder's first states from the encoder's last vector: s_0 = tanh(W h + b), for each layer and part of a state."""

    def __init__(self, memory: int, layers: int, parts: int, width: int):
        super().__init__()
        self.shape = (layers, parts, width)
        self.map = Linear(memory, layers * parts * width)

    def forward(self, last: Float[Tensor, "B M"]) -> tuple[State, ...]:
        states = torch.tanh(self.map(last)).unflatten(-1, self.shape)  # (B, layers, parts, D)
        return tuple(tuple(layer.unbind(1)) for layer in states.unbind(1))


class FixedContextSeq2Seq(nn.Module):
    """The whole source in one vector: the encoder's last state is where the decoder begins."""

    joins = True

    def __init__(self, config: RecurrentConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        self.config = config
        make = make_cell(config)
        self.source_embedding: nn.Module
        self.target_embedding: nn.Module
        if config.embedding:
            self.source_embedding, self.target_embedding, self.output = word_tables(
                source_vocabulary, target_vocabulary, config.embedding, config.tie
            )
        else:
            self.source_embedding, self.target_embedding = OneHot(source_vocabulary), OneHot(target_vocabulary)
        source_size, target_size = config.embedding or source_vocabulary, config.embedding or target_vocabulary
        self.dropout = Dropout(config.dropout)
        self.encoder = make_encoder(config, make, source_size)
        memory = self.encoder.width
        context = memory if config.repeat_context else 0
        layers = [
            Layer(make, target_size + context if index == 0 else config.width) for index in range(config.decoder_layers)
        ]
        self.decoder = Stack(layers, config.dropout, residual=config.residual)
        handed_over = config.bidirectional == "none" and config.encoder_layers == config.decoder_layers
        parts = layers[0].forwards.parts
        self.bridge = None if handed_over else Bridge(memory, config.decoder_layers, parts, config.width)
        self.readout: nn.Module = nn.Identity()
        if config.tie == "none":  # scores come straight from the state, as in lecture 002
            self.output = Words(target_vocabulary, config.width + context, bias=True)
        else:
            self.readout = nn.Sequential(Linear(config.width + context, config.embedding), nn.Tanh())

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S M"]:
        """The encoder's state after each word of the source."""
        return self.encoder(self.dropout(self.source_embedding(source)), source_mask)[0]

    def _begin(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> FixedContextState:
        _, ends = self.encoder(self.dropout(self.source_embedding(source)), source_mask)
        last = ends[-1][0]
        return FixedContextState(ends if self.bridge is None else self.bridge(last), last)

    def _decode(self, target: Int[Tensor, "B T"], state: FixedContextState) -> tuple[Tensor, FixedContextState]:
        """Read any number of words further."""
        y = self.dropout(self.target_embedding(target))
        every_step = state.context[:, None].expand(-1, target.shape[1], -1)
        if self.config.repeat_context:
            y = torch.cat([y, every_step], dim=-1)
        hidden, layers = self.decoder(y, states=state.layers)
        if self.config.repeat_context:
            hidden = torch.cat([hidden, every_step], dim=-1)
        return self.dropout(self.readout(hidden)), FixedContextState(layers, state.context)

    def forward(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """The decoder's hidden vectors for target input; `predict` turns them into logits."""
        return self._decode(target, self._begin(source, source_mask))[0]

    def predict(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits over the target vocabulary."""
        return self.output.scores(hidden)

    def narrowed(self, ids: Int[Tensor, "*B A"]) -> Output:
        """The output over these words alone."""
        return self.output.narrowed(ids)

    def look(self, source: Tensor, source_mask: Tensor, target: Tensor) -> list[AttentionMap]:
        """Nothing: a fixed context does not attend."""
        return []

    def start(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> FixedContextState:
        return self._begin(source, source_mask)

    def step(self, state: FixedContextState, tokens: Int[Tensor, "B"], output: Output | None = None) -> Step:
        hidden, state = self._decode(tokens[:, None], state)
        return Step((output or self.output).scores(hidden[:, 0]), state)


class AttentiveSeq2Seq(nn.Module):
    """The decoder looks at every state of the encoder before each word.

    The first decoder layer attends and reads [y; c]; the layers above read what it says (and c, with context_to = all), so only the
    first must go word by word. That is how GNMT (Wu et al., 2016) is built: LSTM, 8 layers, the first encoder layer bidirectional,
    residual, context to all. The word is read off t_i = tanh(W [s_i; c_i; y_{i-1}]).
    """

    joins = True

    def __init__(self, config: RecurrentConfig, source_vocabulary: int, target_vocabulary: int):
        super().__init__()
        if not config.embedding:
            raise ConfigError("model.embedding = 0 is for a fixed context (model.attention=none); give it a size")
        self.config = config
        make = make_cell(config)
        self.source_embedding, self.target_embedding, self.output = word_tables(
            source_vocabulary, target_vocabulary, config.embedding, config.tie
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = make_encoder(config, make, config.embedding)
        memory = self.encoder.width
        self.attention = make_attention(config, memory)
        context = self.attention.context
        self.cell = make(config.embedding)
        # W [y; c] = W_y y + W_c c: the first part needs no state and is taken for all words at once
        self.context = Linear(context, self.cell.gates * config.width, bias=False)
        above = config.width + (context if config.context_to == "all" else 0)
        self.layers = nn.ModuleList(Layer(make, above) for _ in range(config.decoder_layers - 1))
        self.bridge = Bridge(memory, config.decoder_layers, self.cell.parts, config.width)
        self.readout = Linear(config.width + context + config.embedding, config.embedding)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S M"]:
        """The encoder's state after each word of the source."""
        return self.encoder(self.dropout(self.source_embedding(source)), source_mask)[0]

    def _begin(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> AttentiveState:
        memory, ends = self.encoder(self.dropout(self.source_embedding(source)), source_mask)
        keys, values = self.attention.prepare(memory)
        return AttentiveState(self.bridge(ends[-1][0]), keys, values, source_mask)

    def _attend(self, y: Float[Tensor, "B T E"], begin: AttentiveState) -> tuple[Tensor, Tensor, Tensor, State]:
        """The first layer, word by word: (states (B, T, D), contexts (B, T, C), weights (B, T, S), last state)."""
        state = begin.layers[0]
        states, contexts, maps = [], [], []
        words = self.cell.input(y).unbind(1)
        with repeated():
            for projected in words:
                context, weights = self.attention(state[0], begin.keys, begin.values, begin.mask)
                state = self.cell.advance(projected + self.context(context), state)
                states.append(state[0])
                contexts.append(context)
                maps.append(weights)
        return torch.stack(states, 1), torch.stack(contexts, 1), torch.stack(maps, 1), state

    def _decode(self, target: Int[Tensor, "B T"], state: AttentiveState) -> tuple[Tensor, AttentiveState, Tensor]:
        """Read any number of words further: (hidden, state, weights)."""
        y = self.dropout(self.target_embedding(target))
        x, contexts, weights, first = self._attend(y, state)
        ends = [first]
        for index, layer in enumerate(self.layers, start=1):
            entering = torch.cat([x, contexts], dim=-1) if self.config.context_to == "all" else x
            leaving, end = layer(self.dropout(entering), state.layers[index])
            x = leaving + x if self.config.residual and index >= RESIDUAL_FROM else leaving
            ends.append(end)
        hidden = torch.tanh(self.readout(torch.cat([x, contexts, y], dim=-1)))
        return self.dropout(hidden), AttentiveState(tuple(ends), state.keys, state.values, state.mask), weights

    def forward(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T E"]:
        """The decoder's hidden vectors for target input; `predict` turns them into logits."""
        pairs, target = (
            len(target),
            filled(target),
        )  # by pairs that nobody asks about: each step is a product of so many rows
        begin = self._begin(filled(source), filled(source_mask, True))
        return self._decode(target, begin)[0][:pairs]

    def predict(self, hidden: Float[Tensor, "*B E"]) -> Float[Tensor, "*B V"]:
        """Logits over the target vocabulary."""
        return self.output.scores(hidden)

    def narrowed(self, ids: Int[Tensor, "*B A"]) -> Output:
        """The output over these words alone."""
        return self.output.narrowed(ids)

    def look(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> list[AttentionMap]:
        """Where the first decoder layer looked before each word."""
        weights = self._decode(target, self._begin(source, source_mask))[2]
        return [AttentionMap("cross", 0, 0, weights)]

    def start(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> AttentiveState:
        return self._begin(source, source_mask)

    def step(self, state: AttentiveState, tokens: Int[Tensor, "B"], output: Output | None = None) -> Step:
        hidden, state, weights = self._decode(tokens[:, None], state)
        return Step((output or self.output).scores(hidden[:, 0]), state, weights[:, 0])
