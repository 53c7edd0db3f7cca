"""Language models, whole: p(x_1 ... x_T) = prod_t p(x_t | x_1 ... x_{t-1}), by attention or by recurrence (lectures 000 and 001).

attention    hidden = Layers(E[x] sqrt(D) + P), each position looking back only        (Radford et al., 2018)
recurrence   hidden_t = f(hidden_{t-1}, E[x_t])                                        (Mikolov et al., 2010)

logits = hidden E'

To search and to the objectives they are what translators are: the source is a text's beginning, the target is how it goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import LanguageModelConfig, RecurrentLanguageConfig
from kente.models.interface import SHARED, AttentionMap, Output, Step
from kente.models.layers import layer_parts, position_codes, span_of, word_scale
from kente.models.recurrent_seq2seq import make_cell
from kente.nn.dropout import Dropout
from kente.nn.linear import Linear
from kente.nn.linear_attention import no_sums, summed
from kente.nn.past import Past, no_past, open_column
from kente.nn.recurrent import Layer, Stack, State
from kente.nn.transformer import Encoder
from kente.nn.words import Words


def follow(
    source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B T"]]:
    """(each target right behind its source, where the target's words then stand).

    What was padding between them stands at the end of a row, where a model that looks back only never sees it.
    """
    width, length = source.shape[1], target.shape[1]
    lengths = source_mask.sum(1, keepdim=True)  # (B, 1)
    columns = torch.arange(width + length, device=source.device)
    order = torch.where(columns < lengths, columns, columns + width - lengths).clamp(max=width + length - 1)
    ids = torch.cat([source, target], dim=1).gather(1, order)
    return ids, lengths + torch.arange(length, device=source.device)


@dataclass
class LanguageState:
    """What writing remembers between two words: each layer's keys and values of all that came before (nn/past.py)."""

    past: Past = field(metadata=SHARED)
    kin: Tensor  # (rows, entries) which entries of its text's past are a row's own
    sums: tuple[Tensor, ...] = ()  # of linear attention, in place of the past: (rows, H, K, K + 1) for each layer


class LanguageModel(nn.Module):
    """A decoder-only Transformer."""

    joins = True

    def __init__(self, config: LanguageModelConfig, vocabulary: int):
        super().__init__()
        self.config = config
        self.scale = word_scale(config)
        self.embedding = Words(vocabulary, config.width, bias=config.output_bias and config.tie)
        self.output = self.embedding if config.tie else Words(vocabulary, config.width, bias=config.output_bias)
        self.positions = position_codes(config)
        self.dropout = Dropout(config.dropout)
        self.layers = Encoder(config.layers, layer_parts(config))
        self.span = span_of(config)

    # --- reading in one go: training, scoring, looking ---

    def read(
        self,
        ids: Int[Tensor, "B T"],
        seen: list[Tensor] | None = None,
        read: list[tuple[Tensor, Tensor]] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Hidden vectors of a text: each knows what stands before it. `seen` collects weights, `read` keys and values."""
        x = self.dropout(self.positions(self.embedding(ids) * self.scale))
        return self.layers(x, seen=seen, causal=True, read=read)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """The same, of texts that may be padded at their end."""
        return self.read(source)

    def forward(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """Hidden vectors of the target, read as what follows the source; `predict` turns them into logits."""
        if not source.shape[1]:
            return self.read(target)
        ids, places = follow(source, source_mask, target)
        hidden = self.read(ids)
        return hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))

    def predict(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits over the vocabulary."""
        return self.output.scores(hidden)

    def narrowed(self, ids: Int[Tensor, "*B A"]) -> Output:
        """The output over these words alone."""
        return self.output.narrowed(ids)

    def look(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> list[AttentionMap]:
        """Every attention weight of every layer and head, over source and target as one text."""
        seen: list[Tensor] = []
        self.read(follow(source, source_mask, target)[0], seen)
        return [
            AttentionMap("decoder", layer, head, weights[:, head])
            for layer, weights in enumerate(seen)
            for head in range(weights.shape[1])
        ]

    # --- writing one word at a time: search ---

    def start(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> LanguageState:
        heads, layers = self.config.heads, self.config.layers
        nothing = self.output.weight.new_empty(len(source), heads, 0, self.config.width // heads)
        read: list[tuple[Tensor, Tensor]] = []
        if source.shape[1]:
            self.read(source, read=read)
        lengths = source_mask.sum(1)
        if self.config.span == "linear":
            sums = tuple(summed(*layer, source_mask) for layer in read) or no_sums(layers, nothing)
            return LanguageState(replace(no_past(0, nothing), position=lengths), source_mask[:, :0], sums)
        if not read:
            return LanguageState(no_past(layers, nothing), source_mask)
        places = torch.arange(source.shape[1], device=source.device).repeat(len(source), 1)
        return LanguageState(Past(tuple(read), places, torch.full_like(lengths, source.shape[1]), lengths), source_mask)

    def step(self, state: LanguageState, tokens: Int[Tensor, "B"], output: Output | None = None) -> Step:
        past, kin, column = open_column(state.past, state.kin, self.span.first if self.span else None)
        where = column.position.repeat_interleave(len(tokens) // len(column.position))
        x = self.positions(self.embedding(tokens)[:, None] * self.scale, where[:, None])[:, 0]
        sums = tuple(layer.clone() for layer in state.sums)  # a state stays as it is
        hidden = self.layers.step(x, [(layer,) for layer in sums] or past.layers, column)
        return Step((output or self.output).scores(hidden), replace(state, past=past, kin=kin, sums=sums))


@dataclass
class RecurrentLanguageState:
    """What writing remembers between two words: the state of each layer."""

    layers: tuple[State, ...]


class RecurrentLanguageModel(nn.Module):
    """A language model of recurrent cells."""

    joins = True

    def __init__(self, config: RecurrentLanguageConfig, vocabulary: int):
        super().__init__()
        self.config = config
        make = make_cell(config)
        self.embedding = Words(vocabulary, config.embedding, bias=config.tie)
        self.dropout = Dropout(config.dropout)
        sizes = [config.embedding] + [config.width] * (config.layers - 1)
        self.layers = Stack([Layer(make, size) for size in sizes], config.dropout, residual=config.residual)
        self.readout: nn.Module = nn.Identity()
        if config.tie:
            self.output = self.embedding
            self.readout = nn.Sequential(Linear(config.width, config.embedding), nn.Tanh())
        else:
            self.output = Words(vocabulary, config.width, bias=True)

    def _read(
        self, ids: Int[Tensor, "B T"], states: tuple[State, ...] | None = None, mask: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], tuple[State, ...]]:
        """Any number of words further: (what each layer above has said last, the states at the end)."""
        return self.layers(self.dropout(self.embedding(ids)), mask, states)

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """The state after each word."""
        return self._read(source, mask=source_mask)[0]

    def forward(
        self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """Hidden vectors of the target, read as what follows the source; `predict` turns them into logits."""
        hidden, _ = self._read(target, self.start(source, source_mask).layers)
        return self.dropout(self.readout(hidden))

    def predict(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Logits over the vocabulary."""
        return self.output.scores(hidden)

    def narrowed(self, ids: Int[Tensor, "*B A"]) -> Output:
        """The output over these words alone."""
        return self.output.narrowed(ids)

    def look(self, source: Tensor, source_mask: Tensor, target: Tensor) -> list[AttentionMap]:
        """Nothing: a recurrence does not attend."""
        return []

    def start(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> RecurrentLanguageState:
        if source.shape[1]:
            return RecurrentLanguageState(self._read(source, mask=source_mask)[1])
        return RecurrentLanguageState(
            tuple(layer.forwards.initial(len(source)) for layer in self.layers.layers)  # type: ignore[union-attr, operator]
        )

    def step(self, state: RecurrentLanguageState, tokens: Int[Tensor, "B"], output: Output | None = None) -> Step:
        hidden, layers = self._read(tokens[:, None], state.layers)
        hidden = self.dropout(self.readout(hidden[:, 0]))
        return Step((output or self.output).scores(hidden), RecurrentLanguageState(layers))
