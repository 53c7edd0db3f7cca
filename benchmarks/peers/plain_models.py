"""What someone writes who takes torch as it is: `nn.Transformer`, or `nn.GRU` and `nn.GRUCell` with additive attention."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.shapes import BOS, EOS, PAD, Shape

MOST_POSITIONS = 2048


class PlainTransformer(nn.Module):
    """`nn.Transformer` between one tied table of words, pre-norm, with sinusoids."""

    positions: Tensor

    def __init__(self, shape: Shape, vocabulary: int, dropout: float, attention_dropout: bool = True):
        super().__init__()
        width = shape.width
        self.scale = math.sqrt(width)
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        layer = nn.TransformerEncoderLayer(
            width, shape.heads, shape.feedforward, dropout, batch_first=True, norm_first=True
        )
        # nested tensors are for post-norm only: saying so keeps torch from warning
        encoder = nn.TransformerEncoder(layer, shape.layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.transformer = nn.Transformer(
            width,
            shape.heads,
            shape.layers,
            shape.layers,
            shape.feedforward,
            dropout,
            custom_encoder=encoder,
            batch_first=True,
            norm_first=True,
        )
        if not attention_dropout:
            for module in self.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.dropout = 0.0
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", sinusoid(MOST_POSITIONS, width), persistent=False)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.shape[1]])

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        padding = source == PAD
        return self.transformer.encoder(self.embed(source), src_key_padding_mask=padding), padding

    def decode(self, target: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden: Tensor = self.transformer.decoder(
            self.embed(target), memory, tgt_mask=mask, memory_key_padding_mask=padding, tgt_is_causal=True
        )
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.embedding.weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, padding = self.encode(source)
        return self.logits(self.decode(target, memory, padding))


def sinusoid(length: int, width: int) -> Tensor:
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class PlainGRU(nn.Module):
    """Bahdanau's model as tutorials have it: a bidirectional `nn.GRU`, then `nn.GRUCell` and attention in a loop over the target."""

    def __init__(self, shape: Shape, vocabulary: int, dropout: float):
        super().__init__()
        width, embedding = shape.width, shape.embedding
        self.embedding = nn.Embedding(vocabulary, embedding)
        nn.init.normal_(self.embedding.weight, std=embedding**-0.5)
        self.encoder = nn.GRU(embedding, width, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * width, width)
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(2 * width, width)
        self.energy = nn.Linear(width, 1, bias=False)
        self.cell = nn.GRUCell(embedding + 2 * width, width)
        self.readout = nn.Linear(3 * width + embedding, embedding)
        self.dropout = nn.Dropout(dropout)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        lengths = (source != PAD).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.dropout(self.embedding(source)), lengths, batch_first=True, enforce_sorted=False
        )
        outputs, last = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
        keys, padding = self.key(memory), source == PAD
        state = torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=1)))
        words = self.dropout(self.embedding(target))
        readings = []
        for step in range(target.shape[1]):
            word = words[:, step]
            energies = self.energy(torch.tanh(self.query(state)[:, None] + keys))[..., 0]
            weights = energies.masked_fill(padding, -math.inf).softmax(dim=1)
            context = torch.bmm(weights[:, None], memory)[:, 0]
            state = self.cell(torch.cat([word, context], dim=1), state)
            readings.append(torch.cat([state, context, word], dim=1))
        hidden = torch.tanh(self.readout(torch.stack(readings, dim=1)))
        return F.linear(self.dropout(hidden), self.embedding.weight)


def build(shape: Shape, vocabulary: int, dropout: float, attention_dropout: bool = True) -> nn.Module:
    if shape.kind == "recurrent":
        return PlainGRU(shape, vocabulary, dropout)
    return PlainTransformer(shape, vocabulary, dropout, attention_dropout)


def put_weights(model: PlainTransformer, arrays: Mapping[str, np.ndarray]) -> None:
    """Weights as `benchmarks.weights` names them, into `nn.Transformer`; what Kente does not have (biases of attention) is zero."""
    state = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}

    def fill(name: str, *parts: str) -> None:
        state[name] = torch.cat([torch.from_numpy(arrays[part]) for part in parts])

    fill("embedding.weight", "embedding")
    for side in ("encoder", "decoder"):
        for kind in ("weight", "bias"):
            fill(f"transformer.{side}.norm.{kind}", f"{side}.norm.{kind}")
        for layer in range(len(getattr(model.transformer, side).layers)):
            ours, theirs = f"{side}.{layer}", f"transformer.{side}.layers.{layer}"
            fill(f"{theirs}.self_attn.in_proj_weight", f"{ours}.self.query_key_value")
            fill(f"{theirs}.self_attn.out_proj.weight", f"{ours}.self.output")
            if side == "decoder":
                fill(f"{theirs}.multihead_attn.in_proj_weight", f"{ours}.cross.query", f"{ours}.cross.key_value")
                fill(f"{theirs}.multihead_attn.out_proj.weight", f"{ours}.cross.output")
            norms = ("self", "feedforward") if side == "encoder" else ("self", "cross", "feedforward")
            for kind in ("weight", "bias"):
                for place, norm in enumerate(norms, 1):
                    fill(f"{theirs}.norm{place}.{kind}", f"{ours}.{norm}.norm.{kind}")
                fill(f"{theirs}.linear1.{kind}", f"{ours}.feedforward.inner.{kind}")
                fill(f"{theirs}.linear2.{kind}", f"{ours}.feedforward.outer.{kind}")
    model.load_state_dict(state)


# --- decoding: the encoder's output is kept, the decoder reads its prefix anew at every step, for nn.Transformer keeps no keys ---


def longest_answers(source: Tensor) -> Tensor:
    """Tokens each answer may have, from the length of its own source."""
    return 2 * (source != PAD).sum(1) + 10


@torch.inference_mode()
def greedy(model: PlainTransformer, source: Tensor) -> list[list[int]]:
    memory, padding = model.encode(source)
    tokens = torch.full((len(source), 1), BOS)
    limits = longest_answers(source)
    ended = torch.zeros(len(source), dtype=torch.bool)
    for length in range(1, int(limits.max()) + 1):
        best = model.logits(model.decode(tokens, memory, padding)[:, -1]).argmax(dim=-1)
        best = best.masked_fill(ended, PAD)
        tokens = torch.cat([tokens, best[:, None]], dim=1)
        ended |= (best == EOS) | (length >= limits)
        if bool(ended.all()):
            break
    return [without_end(row) for row in tokens[:, 1:].tolist()]


def without_end(row: list[int]) -> list[int]:
    return row[: row.index(EOS)] if EOS in row else [token for token in row if token != PAD]


@torch.inference_mode()
def beam_search(model: PlainTransformer, source: Tensor, beam: int) -> list[list[int]]:
    """The beam of every sentence side by side; scores are divided by ((5 + length) / 6), as Kente's are."""
    rows = len(source)
    memory, padding = model.encode(source)
    memory, padding = memory.repeat_interleave(beam, 0), padding.repeat_interleave(beam, 0)
    tokens = torch.full((rows * beam, 1), BOS)
    scores = torch.full((rows, beam), -math.inf)
    scores[:, 0] = 0.0  # all rows of a beam start equal: one speaks for them
    answers: list[list[tuple[float, list[int]]]] = [[] for _ in range(rows)]
    for length in range(1, int(longest_answers(source).max()) + 1):
        logits = model.logits(model.decode(tokens, memory, padding)[:, -1])
        candidates = scores[..., None] + logits.log_softmax(dim=-1).view(rows, beam, -1)
        best, flat = candidates.flatten(1).topk(2 * beam, dim=1)
        parents, words = flat // logits.shape[-1], flat % logits.shape[-1]
        kept: list[tuple[int, int]] = []
        for row in range(rows):
            alive = 0
            for place in range(2 * beam):
                parent, word = row * beam + int(parents[row, place]), int(words[row, place])
                if word == EOS:
                    if place < beam and len(answers[row]) < beam:
                        penalised = float(best[row, place]) / ((5 + length) / 6)
                        answers[row].append((penalised, tokens[parent, 1:].tolist()))
                elif alive < beam:
                    scores[row, alive] = best[row, place]
                    kept.append((parent, word))
                    alive += 1
        origin, words_kept = torch.tensor([k[0] for k in kept]), torch.tensor([k[1] for k in kept])
        tokens = torch.cat([tokens[origin], words_kept[:, None]], dim=1)
        if all(len(found) >= beam for found in answers):
            break
    for row, found in enumerate(answers):
        if not found:
            found.append((0.0, tokens[row * beam, 1:].tolist()))
    return [max(found)[1] for found in answers]
