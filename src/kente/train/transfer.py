"""What one network hands on to another: parts by their names, words by their text, and which parts then stay as they are.

weights of the parent  ->  those of a translator  ->  RUN/start.safetensors  ->  where the new run begins
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from kente.config import (
    Config,
    LanguageModelConfig,
    LayersConfig,
    MaskedConfig,
    ModelConfig,
    RecurrentConfig,
    RecurrentLanguageConfig,
    TransferConfig,
    TransformerConfig,
)
from kente.data.byte_level import ByteLevel
from kente.data.pieces import SPECIALS, Symbols, Tokenizer
from kente.data.sampling import SPACE
from kente.data.tags import bare
from kente.data.tokenizer import Tokenizers
from kente.data.wordpiece import WordPiece
from kente.durable import replace_file
from kente.errors import ConfigError, RunError
from kente.models.text_reader import TextReader
from kente.nn.low_rank import linear_maps, plain_names, with_low_rank
from kente.reporting import SILENT, Reporter
from kente.runs import START, Run

Part = Literal["encoder", "decoder"]
TABLES = ("source_embedding", "target_embedding", "output", "embedding")
"""Where words have their vectors: in translators, and in models of one text."""
READING = ("encoder.", "source_positions.")
"""How the names of a translator's encoder begin. What is neither this nor a table belongs to its decoder."""
OPEN = ("kind", "encoder_layers", "decoder_layers", "dropout", "attention_dropout", "balance", "tie", "cross")
"""Settings of Transformers that two may differ in and weights of one still mean the same in the other, or that are settled elsewhere."""
READ_BY = {
    "max_length": ("positions", ("learned",)),
    "relative_distance": ("positions", ("relative",)),
    "reach": ("span", ("window", "memory")),
    "remembered": ("span", ("memory",)),
}
"""Settings that mean something only where another one has certain values."""


@dataclass(frozen=True)
class Parent:
    """A run whose weights are handed on: the best ones, averaged where they are."""

    run: Run
    tokenizers: Tokenizers
    model: nn.Module
    step: int

    @classmethod
    def open(cls, path: Path | str, reporter: Reporter = SILENT) -> Parent:
        run = Run.open(path)
        checkpoint = run.chosen(reporter)
        model = run.model(checkpoint)
        if isinstance(model, TextReader):  # what stands upon an encoder stays behind
            model = model.encoder
        return cls(run, run.tokenizers(checkpoint), model, checkpoint.step)

    @property
    def config(self) -> ModelConfig:
        return self.run.config.model

    @property
    def tie(self) -> bool | str:
        """Which of its tables of words are one."""
        tie: bool | str = getattr(self.config, "tie", "none")
        return tie

    @property
    def weights(self) -> dict[str, Tensor]:
        """Tied ones under each of their names."""
        return {name: tensor.detach() for name, tensor in self.model.named_parameters(remove_duplicate=False)}

    def tokenizer(self, part: Part) -> Tokenizer:
        """What cuts the text that this part reads or writes."""
        return self.tokenizers.source if part == "encoder" else self.tokenizers.target

    def table(self, part: Part) -> Tensor:
        """The vectors of the words that this part reads or writes."""
        names = ("source_embedding", "embedding") if part == "encoder" else ("target_embedding", "embedding")
        for name in names:
            if f"{name}.weight" in self.weights:
                return self.weights[f"{name}.weight"]
        raise RunError(
            f"{self.run.path} has no vectors of the words that its {part} would need: it has none to hand on"
        )

    def output(self) -> Tensor:
        """The vectors that its answers are compared with."""
        return self.weights.get("output.weight", self.table("decoder"))


# ---------------------------------------------------------------- parts, by their names


def part_of(name: str) -> str:
    """To which part of a translator a weight belongs: words, encoder or decoder."""
    if name.split(".")[0] in TABLES:
        return "words"
    return "encoder" if name.startswith(READING) else "decoder"


def handed_on(parent: Parent, part: Part, model: ModelConfig) -> dict[str, Tensor]:
    """The parent's weights that can be this part of a translator with the settings `model`, under their names there."""
    renamed = {}
    for name, tensor in parent.weights.items():
        new = _renamed(name, parent.config, part, model)
        if new is not None:
            renamed[new] = tensor
    return renamed


def _renamed(name: str, config: ModelConfig, part: Part, model: ModelConfig) -> str | None:
    match config:
        case LanguageModelConfig() | MaskedConfig():
            stack = "layers." if isinstance(config, LanguageModelConfig) else "encoder."
            side = "source" if part == "encoder" else "target"
            if name.startswith(stack):
                return f"{part}.{name.removeprefix(stack)}"
            return f"{side}_{name}" if name.startswith("positions.") else None
        case RecurrentLanguageConfig():
            if not name.startswith("layers."):
                return None
            if part == "encoder" or (isinstance(model, RecurrentConfig) and model.attention == "none"):
                return f"{part}.{name.removeprefix('layers.')}"
            return _attending(name.removeprefix("layers.layers."))
        case _:
            return name if part_of(name) == part else None


def _attending(name: str) -> str:
    """A decoder that attends keeps its first layer apart: 0.forwards.x is cell.x, 1.x is layers.0.x."""
    number, _, rest = name.partition(".")
    return f"cell.{rest.removeprefix('forwards.')}" if number == "0" else f"layers.{int(number) - 1}.{rest}"


def started_model(encoder: Parent | None, decoder: Parent | None, base: TransformerConfig) -> ModelConfig:
    """Settings of a translator whose encoder and decoder can begin with these; what they do not settle is as in `base`."""
    kind, settings = _settled_by(encoder, decoder)
    settings["tie"] = _tie(encoder, decoder)
    fresh: ModelConfig = base if kind == "transformer" else RecurrentConfig(bidirectional="none")
    return type(fresh)(**{**{name: getattr(fresh, name) for name in fresh.__dataclass_fields__}, **settings})


def require_kept(model: ModelConfig, encoder: Parent | None, decoder: Parent | None) -> None:
    """Weights mean something else under other settings, whether they fit them or not."""
    parents = " and ".join(str(parent.run.path) for parent in (encoder, decoder) if parent)
    for name, value in _settled_by(encoder, decoder)[1].items():
        if getattr(model, name, None) != value:
            raise ConfigError(
                f"model.{name} = {getattr(model, name, None)} does not go with the weights of {parents}, which were trained with {value}; "
                "leave settings of [model] to the run it begins from"
            )


def _settled_by(encoder: Parent | None, decoder: Parent | None) -> tuple[str, dict[str, Any]]:
    """(the kind of translator, the settings that these parts leave no choice about)."""
    given = {part: p for part, p in (("encoder", encoder), ("decoder", decoder)) if p is not None}
    shapes = [_shape(parent, part) for part, parent in given.items()]  # type: ignore[arg-type]
    kinds = {kind for kind, _ in shapes}
    if len(kinds) > 1:
        raise ConfigError(f"{_paths(given)} are of different kinds: a translator has one, {' or '.join(sorted(kinds))}")
    settings: dict[str, Any] = {}
    for _, shape in shapes:
        for name, value in shape.items():
            if settings.setdefault(name, value) != value:
                raise ConfigError(
                    f"{_paths(given)} do not fit together: model.{name} is {settings[name]} in one and {value} in the other"
                )
    return kinds.pop(), settings


def _tie(encoder: Parent | None, decoder: Parent | None) -> str:
    """One table for all only where both parts come from a run that has one."""
    one = encoder is not None and decoder is not None and encoder.run.path.resolve() == decoder.run.path.resolve()
    if one and encoder is not None and encoder.tokenizers.joint and encoder.tie in (True, "all"):
        return "all"
    return "none" if decoder is not None and decoder.tie in (False, "none") else "target"


def _paths(given: Mapping[str, Parent]) -> str:
    return " and ".join(str(parent.run.path) for parent in given.values())


def _shape(parent: Parent, part: Part) -> tuple[str, dict[str, Any]]:
    """(the kind of translator it can be a part of, the settings that this asks for)."""
    config = parent.config
    match config:
        case TransformerConfig():
            own = {f"{part}_layers": getattr(config, f"{part}_layers")}
            layers = _layers_of(config)
            if part == "encoder":
                del layers["output_bias"]  # what it reads with has no output
            return "transformer", layers | own
        case MaskedConfig(embedding_norm=True):
            raise ConfigError(
                f"{parent.run.path} normalises words before its first layer (model.embedding_norm), which no part of a translator does; "
                "begin from an encoder without that"
            )
        case LanguageModelConfig() | MaskedConfig():
            return "transformer", _layers_of(config) | {f"{part}_layers": config.layers}
        case RecurrentLanguageConfig():
            settled = {name: getattr(config, name) for name in ("cell", "width", "embedding", "residual")}
            return "recurrent", settled | {"bidirectional": "none", f"{part}_layers": config.layers}
        case RecurrentConfig():
            settled = {name: getattr(config, name) for name in ("cell", "width", "embedding", "residual", "attention")}
            settled |= {"bidirectional": config.bidirectional, "context_to": config.context_to}
            settled |= {"repeat_context": config.repeat_context, "reset_bias": config.reset_bias}
            return "recurrent", settled | {f"{part}_layers": getattr(config, f"{part}_layers")}
        case _:
            raise ConfigError(
                f"{parent.run.path} is a {config.kind} model, whose parts stay together; `kente adapt` goes on from all of it"
            )


def _layers_of(config: LayersConfig) -> dict[str, Any]:
    """What its layers are made of, as far as a translator's can be made of it too."""
    names = config.__dataclass_fields__.keys() & TransformerConfig.__dataclass_fields__.keys()
    idle = {name for name, (setting, values) in READ_BY.items() if getattr(config, setting) not in values}
    return {name: getattr(config, name) for name in sorted(names.difference(OPEN, idle))}


# ---------------------------------------------------------------- words, by their text


def carried(table: Tensor, old: Tokenizer, new: Tokenizer) -> Tensor:
    """Rows for the words of `new` from those of `old`: a word known by its text keeps its vector, another one begins as the mean of the
    vectors of the pieces that spell it."""
    if old.sha256 == new.sha256:
        return table.clone()
    ids = {text: number for number, text in reversed(list(enumerate(written(old))))}
    longest = max(map(len, ids))
    middle = table.mean(0)
    rows = []
    for text in written(new):
        spelling = [ids[text]] if text in ids else spelled(text, ids, longest)
        rows.append(table[spelling].mean(0) if spelling else middle)
    return torch.stack(rows)


def written(tokenizer: Tokenizer) -> list[str]:
    """What each id stands for in a way that all kinds of tokenizers share: U+2581 for a space, <0x0A> for a byte."""
    pieces = tokenizer.pieces(range(tokenizer.size))
    base = bare(tokenizer)
    special = len(SPECIALS)
    if isinstance(base, Symbols):
        begin = SPACE if base.kind == "words" else ""
        own = [begin + piece.replace(" ", SPACE) for piece in base.symbols]
        return [*pieces[:special], *own, *pieces[base.size :]]
    if isinstance(base, WordPiece):
        own = [
            piece.removeprefix("##") if base.goes_on(piece) else SPACE + piece for piece in pieces[special : base.size]
        ]
        return [*pieces[:special], *own, *pieces[base.size :]]
    if isinstance(base, ByteLevel):
        own = [_of_bytes(base, number, pieces[number]) for number in range(special, base.size)]
        return [*pieces[:special], *own, *pieces[base.size :]]
    return pieces


def _of_bytes(tokenizer: ByteLevel, number: int, piece: str) -> str:
    text = tokenizer.decode([number])
    if "\ufffd" not in text and (text.isprintable() or len(piece) > 1):
        return text.replace(" ", SPACE)
    return f"<0x{tokenizer.byte(piece):02X}>" if len(piece) == 1 else piece  # bytes that are no whole character


def spelled(text: str, ids: Mapping[str, int], longest: int) -> list[int]:
    """The text in known pieces, from the left the longest that fits; characters without one in bytes, or left out where there are none."""
    found: list[int] = []
    place = 0
    while place < len(text):
        for end in range(min(len(text), place + longest), place, -1):
            if (number := ids.get(text[place:end])) is not None:
                found.append(number)
                break
        else:
            end = place + 1
            found += [ids[name] for byte in text[place].encode() if (name := f"<0x{byte:02X}>") in ids]
        place = end
    return found


# ---------------------------------------------------------------- where a run begins


def adapted_start(parent: Parent, tokenizers: Tokenizers) -> dict[str, Tensor]:
    """All of the parent's weights, its tables carried over to these tokenizers."""
    weights = {name: tensor for name, tensor in parent.weights.items() if part_of(name) != "words"}
    return weights | _tables(parent, parent, tokenizers)


def combined_start(
    encoder: Parent | None, decoder: Parent | None, model: ModelConfig, tokenizers: Tokenizers
) -> dict[str, Tensor]:
    """An encoder's weights and a decoder's, of one or two parents, and their tables carried over to these tokenizers."""
    weights: dict[str, Tensor] = {}
    if encoder is not None:
        weights |= handed_on(encoder, "encoder", model)
    if decoder is not None:
        weights |= handed_on(decoder, "decoder", model)
    return weights | _tables(encoder, decoder, tokenizers)


def _tables(encoder: Parent | None, decoder: Parent | None, tokenizers: Tokenizers) -> dict[str, Tensor]:
    tables: dict[str, Tensor] = {}
    if encoder is not None:
        source = carried(encoder.table("encoder"), encoder.tokenizer("encoder"), tokenizers.source)
        tables["source_embedding.weight"] = source
    if decoder is not None:
        old = decoder.tokenizer("decoder")
        tables["target_embedding.weight"] = carried(decoder.table("decoder"), old, tokenizers.target)
        tables["output.weight"] = carried(decoder.output(), old, tokenizers.target)
        bias = decoder.weights.get("output.bias")
        if bias is not None:
            tables["output.bias"] = carried(bias[:, None], old, tokenizers.target)[:, 0]
    return tables


def keep_start(run: Run, model: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, int]:
    """Write weights to the run for `begin_with` to find; what would not fit is an error. Returns how many are carried over and how many new."""
    own = plain_names(model)
    fitting = {}
    for name, tensor in weights.items():
        if name not in own:
            if part_of(name) == "words":  # a bias of theirs, say
                continue
            raise ConfigError(f"the weights to begin with do not fit: the new model has no {name}")
        if tensor.shape != own[name].shape:
            raise ConfigError(
                f"the weights to begin with do not fit: {name} has shape {tuple(tensor.shape)}, and in the new model "
                f"{tuple(own[name].shape)}; leave settings of [model] to the run it begins from"
            )
        fitting[name] = tensor
    filled = {id(own[name]) for name in fitting}
    replace_file(run.path / START, save({name: tensor.contiguous().clone() for name, tensor in fitting.items()}))
    new = sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in filled)
    return {"carried": sum(p.numel() for p in model.parameters()) - new, "new": new}


@torch.no_grad()
def begin_with(model: nn.Module, run: Run) -> None:
    """Put the weights in place that `keep_start` kept. A decoder that had no source to look at begins as if there still were none."""
    path = run.path / START
    if not path.exists():
        raise RunError(f"{path} is gone, and the run has not begun without it; start it again with --force")
    weights = load_file(path)
    own = plain_names(model)
    for name, tensor in weights.items():
        own[name].copy_(tensor)
    decoding = any(name.startswith("decoder.") for name in weights)
    for name, parameter in own.items():
        if decoding and name.endswith("cross.output.weight") and name not in weights:
            parameter.zero_()


# ---------------------------------------------------------------- what stays as it is

GROUPS: dict[str, Callable[[str], bool]] = {
    "words": lambda name: part_of(name) == "words",
    "encoder": lambda name: part_of(name) == "encoder",
    "decoder": lambda name: part_of(name) == "decoder",
    "attention": lambda name: ".attention." in f".{name}" or ".cross." in f".{name}",
    "cross": lambda name: ".cross." in f".{name}",
    "feedforward": lambda name: ".feedforward." in f".{name}",
    "norms": lambda name: re.search(r"(^|[._])norm\.", name) is not None,
}
"""What `transfer.freeze` may name, besides weights themselves."""


def restrict(model: nn.Module, config: TransferConfig) -> nn.Module:
    """Let only those weights learn that the settings leave free, in place."""
    if config.lora:
        if not linear_maps(model):
            raise ConfigError(
                "this model has no plain linear maps for others of low rank to stand beside (those of convolutions are normalised); "
                "leave transfer.lora at 0, and freeze parts of it instead"
            )
        with_low_rank(model, config.lora)
        if config.grow_vocabulary:  # new words have nothing to go on but their own vectors
            for name, parameter in plain_names(model).items():
                if part_of(name) == "words":
                    parameter.requires_grad_(True)
    for name in frozen(model, config):
        plain_names(model)[name].requires_grad_(False)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(f"transfer.freeze = {config.freeze} leaves nothing to learn; freeze less")
    return model


def frozen(model: nn.Module, config: TransferConfig) -> list[str]:
    """The names of the weights that `transfer.freeze` means; maps of low rank go with what they stand beside."""
    names = list(plain_names(model))
    found: list[str] = []
    for wanted in filter(None, (part.strip() for part in config.freeze.split(","))):
        group = GROUPS.get(wanted)
        hits = [name for name in names if (group(name) if group else f"{name}.".startswith(f"{wanted}."))]
        if not hits:
            parts = sorted({*GROUPS, *(".".join(name.split(".")[:3]) for name in names)})
            near = difflib.get_close_matches(wanted, parts, 1)
            hint = (
                f"did you mean {near[0]}?" if near else f"there are {', '.join(GROUPS)}, and names such as {names[-1]}"
            )
            raise ConfigError(f"transfer.freeze: this model has no {wanted}; {hint}")
        found += hits
    return found


def learning(model: nn.Module) -> tuple[int, int]:
    """(weights that learn, all of them)."""
    counts = [(parameter.numel(), parameter.requires_grad) for parameter in model.parameters()]
    return sum(count for count, learns in counts if learns), sum(count for count, _ in counts)


def settled(config: Config) -> Iterator[str]:
    """Names of the settings of [model] that weights handed on leave no choice about."""
    return (
        f"model.{name}" for name in config.model.__dataclass_fields__ if name not in ("dropout", "attention_dropout")
    )
