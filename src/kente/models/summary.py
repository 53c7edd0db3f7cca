"""What a model is made of: one row for each layer with weights, its output shape and its parameters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kente.config import (
    ConvConfig,
    GraphConfig,
    IntraAttentionConfig,
    LanguageModelConfig,
    LayersConfig,
    MaskedConfig,
    ModelConfig,
    RecurrentConfig,
    RecurrentLanguageConfig,
    SkipGramConfig,
    TransformerConfig,
)
from kente.models.graph import GraphNetwork
from kente.models.language_model import LanguageModel, RecurrentLanguageModel
from kente.models.masked_lm import MaskedLM
from kente.models.skip_gram import SkipGram
from kente.models.text_reader import TextReader
from kente.nn.graph import Edges

LETTERS = {2: "B", 7: "S", 11: "T", 13: "N"}
"""A reading of 2 sentences of 7 source and 11 target tokens, or of 13 nodes, written in letters: odd sizes that no layer has."""


@dataclass(frozen=True)
class Row:
    """A layer: where it lives, what it is, the shape of its weights and of what it gives."""

    name: str
    kind: str
    weights: str
    output: str
    parameters: int


@dataclass(frozen=True)
class Summary:
    """The layer table of a model."""

    title: str
    rows: tuple[Row, ...]
    parameters: int

    def as_dict(self) -> dict[str, Any]:
        layers = [asdict(row) for row in self.rows]
        return {"title": self.title, "parameters": self.parameters, "layers": layers}

    def lines(self) -> list[str]:
        """A table for people."""
        cells = [("layer", "kind", "weights", "output", "parameters")]
        cells += [
            (r.name, r.kind, r.weights, r.output, f"{r.parameters:,}" if r.parameters else "shared") for r in self.rows
        ]
        widths = [max(len(row[i]) for row in cells) for i in range(5)]
        table = [
            "  ".join([*(c.ljust(w) for c, w in zip(row[:4], widths, strict=False)), row[4].rjust(widths[4])])
            for row in cells
        ]
        rule = "-" * len(table[0])
        return [self.title, rule, table[0], rule, *table[1:], rule, f"{self.parameters:,} parameters"]


CELLS = {"rnn": "plain RNN", "lstm": "LSTM", "gru": "GRU", "minimal": "one-gate unit"}


def describe(config: ModelConfig) -> str:
    """A model's architecture in a few words."""
    match config:
        case TransformerConfig():
            experts = f", {config.experts_used} of {config.experts} experts" if config.experts else ""
            positions = "no positions" if config.positions == "none" else f"{config.positions} positions"
            layers = f"{config.encoder_layers} + {config.decoder_layers} layers of {config.width}"
            return f"Transformer, {layers}, {positions}{experts}{_span(config)}"
        case RecurrentConfig():
            context = "one fixed vector" if config.attention == "none" else f"{config.attention} attention"
            return f"{CELLS[config.cell]}, {config.encoder_layers} + {config.decoder_layers} layers of {config.width}, {context}"
        case IntraAttentionConfig():
            return f"LSTM with intra-attention, width {config.width}"
        case ConvConfig():
            layers = f"{len(config.encoder_channels)} + {len(config.decoder_channels)} layers of {config.width}"
            return f"convolutions (ConvS2S), {layers}"
        case LanguageModelConfig() | MaskedConfig():
            what = "decoder-only Transformer" if config.kind == "language" else "Transformer encoder"
            positions = "no positions" if config.positions == "none" else f"{config.positions} positions"
            return f"{what}, {config.layers} layers of {config.width}, {positions}{_span(config)}"
        case RecurrentLanguageConfig():
            return f"{CELLS[config.cell]} language model, {config.layers} layers of {config.width}"
        case GraphConfig():
            names = {"gat": "graph attention (GAT)", "gatv2": "graph attention (GATv2)"}
            names |= {"dot": "dot-product attention over edges", "gcn": "graph convolutions (GCN)"}
            return f"{names[config.layer]}, {config.layers} layers, {config.heads} heads of {config.width}"
        case SkipGramConfig():
            return f"skip-gram word vectors of {config.width}"


def _span(config: LayersConfig) -> str:
    """What is looked at, if not everything, and how layers are kept, if it makes another network."""
    spans = {
        "full": "",
        "window": f", a window of {config.reach}",
        "memory": f", segments of {config.reach} with {config.remembered} remembered",
        "linear": ", linear attention",
    }
    return spans[config.span] + (", reversible" if config.activations == "reversible" else "")


def parameter_count(model: nn.Module) -> int:
    """Trainable numbers, shared ones counted once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def summarise(model: nn.Module, title: str = "") -> Summary:
    """Read the shapes off a real forward pass. Build the model on the "meta" device and even `big` costs nothing."""
    outputs: dict[str, str] = {}
    hooks = []
    for name, module in model.named_modules():
        if list(module.parameters(recurse=False)):
            hooks.append(module.register_forward_hook(partial(_note, outputs, name)))
    with torch.no_grad():
        hidden = model(*_reading(model, next(model.parameters()).device))
        logits = model.predict(hidden)  # type: ignore[operator]
    for hook in hooks:
        hook.remove()
    outputs.setdefault("output", _shape(logits))
    rows: list[Row] = []
    counted: set[int] = set()
    for name, module in model.named_modules(remove_duplicate=False):
        own = dict(module.named_parameters(recurse=False))
        if not own:
            continue
        fresh = [p for p in own.values() if id(p) not in counted]
        counted.update(id(p) for p in own.values())
        shapes = " ".join("x".join(map(str, p.shape)) for p in own.values())
        kind = type(module).__name__
        rows.append(Row(name, kind, shapes, outputs.get(name, ""), sum(p.numel() for p in fresh)))
    return Summary(title, tuple(rows), parameter_count(model))


def _reading(model: nn.Module, device: torch.device) -> tuple[Any, ...]:
    """What a model of its kind reads: a source, a target, or both; nodes and edges."""
    source = torch.zeros(2, 7, dtype=torch.long, device=device)
    mask, target = torch.ones_like(source, dtype=torch.bool), torch.zeros(2, 11, dtype=torch.long, device=device)
    match model:
        case LanguageModel() | RecurrentLanguageModel():
            return source[:, :0], mask[:, :0], target
        case MaskedLM() | SkipGram() | TextReader():
            return source, mask
        case GraphNetwork():
            ends, starts = (torch.zeros(size, dtype=torch.long, device=device) for size in (13, 14))
            return torch.zeros(13, model.features, device=device), Edges(ends, ends, starts, ends, ends, starts)
        case _:
            return source, mask, target


def _note(outputs: dict[str, str], name: str, _module: nn.Module, _inputs: Any, output: Any) -> None:
    outputs.setdefault(name, _shape(output))


def _shape(out: Any) -> str:
    tensor = out if isinstance(out, Tensor) else out[0]
    return "(" + ", ".join(LETTERS.get(size, str(size)) for size in tensor.shape) + ")"
