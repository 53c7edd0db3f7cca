"""A Transformer of Kente as a model folder of CTranslate2: the same numbers under other names.

Tokens are named by their ids ("4", "5", ...): an engine speaks ids, and names without blanks are safe in every file of the folder.
Positions that CTranslate2 has otherwise are given as tables: sinusoids as position vectors, ALiBi as one number for each distance.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kente.config import ModelConfig, TransformerConfig
from kente.data.tokenizer import BOS, EOS, UNK
from kente.decode.library import specifications
from kente.decode.weights import Array, Weights
from kente.errors import UsageError

Numbers = Literal["float32", "int8"]

EPSILONS = {"layer": 1e-5, "rms": float(np.finfo(np.float32).eps)}
"""What torch's norms add before they divide; the second is RMSNorm's own default."""


def obstacle(config: ModelConfig) -> str | None:
    """Why CTranslate2 cannot carry a model with these settings; None if it can."""
    if not isinstance(config, TransformerConfig):
        return f"it carries Transformers, and this is a {config.kind} model"
    if config.experts:
        return f"it has no mixture of experts (model.experts = {config.experts})"
    if config.span != "full":
        return f"it looks at everything (model.span = {config.span})"
    if config.activations == "reversible":
        return "it has no reversible layers (model.activations = reversible)"
    if config.positions == "xl":
        return "it has no positions of Transformer-XL (model.positions = xl)"
    return None


def names_of(vocabulary: int) -> list[str]:
    """What the tokens of a vocabulary are called in the folder of an engine."""
    return [str(number) for number in range(vocabulary)]


def convert(
    config: TransformerConfig,
    weights: Mapping[str, Array],
    vocabularies: tuple[Sequence[str], Sequence[str]],
    folder: Path,
    *,
    numbers: Numbers = "float32",
    vocabulary_map: str | None = None,
) -> None:
    """Write a model folder of CTranslate2 into `folder`, which exists and is empty.

    `weights` are a checkpoint's, by the names they have there. `vocabularies` name every source and every target token, in the order of
    their ids. `vocabulary_map`, the text of a vmap.txt, narrows the words an answer may be made of (see `vocabulary_map`).
    """
    why = obstacle(config)
    if why is not None:
        raise UsageError(f"CTranslate2 cannot carry this model: {why}")
    spec = _specification(config)
    left = Weights(weights)
    _fill(spec, config, left)
    left.require_all_taken()
    source, target = (list(names) for names in vocabularies)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    marks = {"unk_token": target[UNK], "bos_token": target[BOS], "eos_token": target[EOS]}
    settings = {**marks, "decoder_start_token": target[BOS], "add_source_eos": True}
    for name, value in {**settings, "layer_norm_epsilon": config.norm_epsilon or EPSILONS[config.norm]}.items():
        setattr(spec.config, name, value) if hasattr(spec.config, name) else spec.config.add_attribute(name, value)
    with tempfile.TemporaryDirectory() as scratch:
        if vocabulary_map is not None:
            path = Path(scratch) / "vmap.txt"
            path.write_text(vocabulary_map, encoding="utf-8", newline="\n")
            spec.register_vocabulary_mapping(str(path))
        spec.validate()
        spec.optimize(quantization=numbers)
        spec.save(str(folder))


# ---------------------------------------------------------------- the shape


def _specification(config: TransformerConfig) -> Any:
    specs = specifications()
    activations = {
        "relu": specs.Activation.RELU,
        "gelu": specs.Activation.GELU,
        "gelu-tanh": specs.Activation.GELUTanh,
        "silu": specs.Activation.SWISH,
        "swiglu": specs.Activation.SWISH,
    }
    alike = {
        "num_heads": config.heads,
        "pre_norm": config.norm_place == "pre",
        "activation": activations[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.norm == "rms",
        "relative_position": config.positions == "relative",
        "relative_attention_bias": config.positions in ("alibi", "none"),
        "rotary_dim": config.width // config.heads if config.positions == "rotary" else None,
        "rotary_interleave": True,
    }
    return specs.TransformerSpec(
        specs.TransformerEncoderSpec(num_layers=config.encoder_layers, **alike),
        specs.TransformerDecoderSpec(
            num_layers=config.decoder_layers,
            alignment_layer=max(0, config.decoder_layers - 2),  # whose attention may be asked for: that of `ReadBack`
            alignment_heads=config.heads,
            **alike,
        ),
    )


# ---------------------------------------------------------------- the numbers


def _fill(spec: Any, config: TransformerConfig, left: Weights) -> None:
    tables = left.tables(config.tie)
    spec.encoder.embeddings[0].weight, spec.decoder.embeddings.weight, spec.decoder.projection.weight = tables
    if config.output_bias:
        spec.decoder.projection.bias = left.output_bias(config.tie)
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = config.scaled
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        _fill_positions(stack, side, config, left)
        for number, layer in enumerate(stack.layer):
            _fill_layer(layer, f"{side}.layers.{number}", config, left)
            _fill_distances(layer.self_attention, side, number, config, left)
        if config.norm_place == "pre":
            _fill_norm(stack.layer_norm, f"{side}.norm", left)


def _fill_layer(layer: Any, name: str, config: TransformerConfig, left: Weights) -> None:
    attention = layer.self_attention
    _fill_linear(attention.linear[0], f"{name}.attention.query_key_value", config, left)
    _fill_linear(attention.linear[1], f"{name}.attention.output", config, left)
    _fill_norm(attention.layer_norm, f"{name}.attention_residual.norm", left)
    if hasattr(layer, "attention"):
        for linear, part in zip(layer.attention.linear, ("query", "key_value", "output"), strict=True):
            _fill_linear(linear, f"{name}.cross.{part}", config, left)
        _fill_norm(layer.attention.layer_norm, f"{name}.cross_residual.norm", left)
    inner = left.take(f"{name}.feedforward.inner.weight")
    if config.activation == "swiglu":  # the gate and what it lets through lie in one matrix
        layer.ffn.linear_0.weight, layer.ffn.linear_0_noact.weight = np.split(inner, 2)
    else:
        layer.ffn.linear_0.weight = inner
        layer.ffn.linear_0.bias = left.take(f"{name}.feedforward.inner.bias")
        layer.ffn.linear_1.bias = left.take(f"{name}.feedforward.outer.bias")
    layer.ffn.linear_1.weight = left.take(f"{name}.feedforward.outer.weight")
    _fill_norm(layer.ffn.layer_norm, f"{name}.feedforward_residual.norm", left)


def _fill_linear(linear: Any, name: str, config: TransformerConfig, left: Weights) -> None:
    """One projection of attention."""
    linear.weight = left.take(f"{name}.weight")
    if config.biases:
        linear.bias = left.take(f"{name}.bias")


def _fill_norm(norm: Any, name: str, left: Weights) -> None:
    norm.gamma = left.take(f"{name}.weight")
    if hasattr(norm, "beta"):
        norm.beta = left.take(f"{name}.bias")


def _fill_positions(stack: Any, side: str, config: TransformerConfig, left: Weights) -> None:
    """Positions that are added to the words."""
    table = position_table(config, "source" if side == "encoder" else "target", left)
    if table is not None:
        stack.position_encodings.encodings = table


def position_table(config: TransformerConfig, side: str, left: Weights) -> Array | None:
    """(max_length, width) what is added to the words of one side at each place; None for positions that act elsewhere."""
    if config.positions in SINUSOIDS:
        return SINUSOIDS[config.positions](config.max_length, config.width)
    if config.positions != "learned":
        return None
    table = left.take(f"{side}_positions.vectors.weight")
    beyond = max(0, config.max_length - len(table))  # where all places share the last vector, as in nn.positions
    return np.pad(table, ((0, beyond), (0, 0)), "edge")


def _fill_distances(attention: Any, side: str, layer: int, config: TransformerConfig, left: Weights) -> None:
    """Positions that act inside self-attention."""
    match config.positions:
        case "relative":
            name = f"{side}.layers.{layer}.attention.meet"
            attention.relative_position_keys = left.take(f"{name}.keys.weight")
            attention.relative_position_values = left.take(f"{name}.values.weight")
        case "alibi" | "none":
            slopes = alibi_slopes(config.heads) if config.positions == "alibi" else np.zeros(config.heads)
            attention.relative_attention_bias = distance_table(slopes, config.max_length, both=side == "encoder")
            attention.relative_attention_max_distance = np.dtype("int32").type(2 * config.max_length)


def sinusoid(length: int, width: int) -> Array:
    """As nn.positions.sinusoid, in numpy."""
    angles = np.arange(length)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, width).astype(np.float32)


def sinusoid_halves(length: int, width: int) -> Array:
    """As nn.positions.sinusoid_halves, in numpy."""
    code = sinusoid(length, width)
    return np.concatenate([code[:, 0::2], code[:, 1::2]], axis=1)


def sinusoid_fairseq(length: int, width: int) -> Array:
    """As nn.positions.sinusoid_fairseq, in numpy."""
    half = width // 2
    angles = np.arange(2, 2 + length)[:, None] * 10_000 ** (-np.arange(half) / max(1, half - 1))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


SINUSOIDS = {"sinusoid": sinusoid, "sinusoid-halves": sinusoid_halves, "sinusoid-fairseq": sinusoid_fairseq}


def alibi_slopes(heads: int) -> NDArray[np.float64]:
    """As nn.positions.alibi_slopes, in numpy."""
    below = 2 ** (heads.bit_length() - 1)
    first = [2 ** (-8 * h / below) for h in range(1, below + 1)]
    between = [2 ** (-4 * h / below) for h in range(1, 2 * below, 2)]
    return np.array((first + between)[:heads])


def distance_table(slopes: NDArray[np.float64], length: int, *, both: bool) -> Array:
    """-slope |i - j| for every distance below `length`, laid out in the buckets of T5, of which the first half is exact: (buckets, heads).

    A decoder looks back only; an encoder looks `both` ways and has the distances ahead in a second such half.
    """
    behind = -np.arange(2 * length)[:, None] * slopes
    return (np.concatenate([behind, behind]) if both else behind).astype(np.float32)


# ---------------------------------------------------------------- fewer words to choose from


def vocabulary_map(always: Iterable[str], candidates: Mapping[str, Iterable[str]]) -> str:
    """The text of a vmap.txt: target tokens that are `always` possible, and those that each source token makes possible.

    One line for each source token: it, a tab, its target tokens with blanks between them; the line of no token at all holds those for
    every sentence. CTranslate2 takes the union over a batch, adds the marks for unknown, begin and end by itself, and reads a token that
    the target vocabulary lacks as unknown. It knows no escapes, so a token may hold neither blank, tab nor line end. Padding must not be named:
    CTranslate2 4.8 remembers the places of the marks from its first batch, and they hold only if nothing comes before them.
    """
    lines = [("", list(always)), *((source, list(targets)) for source, targets in candidates.items())]
    for source, targets in lines[1:]:
        for token in (source, *targets):
            _require_plain(token)
    for token in lines[0][1]:
        _require_plain(token)
    return "".join(f"{source}\t{' '.join(targets)}\n" for source, targets in lines)


def _require_plain(token: str) -> None:
    if not token or any(mark in token for mark in " \t\n\r"):
        raise UsageError(
            f"the token {token!r} cannot stand in a vocabulary map, which has no way to write blanks in it"
        )
