"""A run as a model folder that Hugging Face's transformers loads: AutoModelForSeq2SeqLM and AutoTokenizer, no code of ours beside it.

Two of its layouts have what our Transformers have: Marian where norms come after the sum, Pegasus where they come before the sub-layer.
Both write sinusoids as a half of sines and a half of cosines where ours alternate, so every vector is put into that order; nothing else
in the network knows which of its values is which. Their projections have biases, which are zeros where ours have none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from kente.config import ModelConfig, TransformerConfig
from kente.data.tokenizer import BOS, EOS, PAD, UNK
from kente.decode.conversion import EPSILONS, SINUSOIDS
from kente.decode.weights import Array, Weights
from kente.export.parts import Parts, borrowed, duplicate, new_folder, only_here, write_json
from kente.export.tokenizer_json import Joined, tokenizer_config, tokenizer_json
from kente.reporting import SILENT, Reporter

Layout = Literal["marian", "pegasus"]
ARCHITECTURES = {"marian": "MarianMTModel", "pegasus": "PegasusForConditionalGeneration"}
ACTIVATIONS = {"gelu-tanh": "gelu_new"}
"""What transformers calls activations that have another name here."""
IMPOSSIBLE = -1e4
"""Added to the scores of source words in a joined vocabulary: they have no probability then, in half precision either."""

README = """\
# A translator for Hugging Face's transformers

Exported from a run of Kente in the {layout} layout.

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModelForSeq2SeqLM.from_pretrained(".")
answer = model.generate(**tokenizer("A sentence.", return_tensors="pt"))
print(tokenizer.batch_decode(answer, skip_special_tokens=True)[0])
```
"""
JOINED = """
Source and target have words of their own here: in the one vocabulary that the tokenizer has, those of the target come first. It cuts text of
the source language only, so labels to train on must be made otherwise.
"""


def obstacle(config: ModelConfig) -> str | None:
    """Why no layout of transformers carries a model with these settings; None if one does."""
    if not isinstance(config, TransformerConfig):
        return f"its translation models are Transformers, and this is a {config.kind} model"
    if (missing := only_here(config)) is not None:
        return f"neither Marian nor Pegasus has {missing}"
    if config.norm != "layer":
        return f"Marian and Pegasus have LayerNorm alone (model.norm = {config.norm})"
    if config.norm_epsilon not in (0, EPSILONS["layer"]):
        return f"Marian and Pegasus add 1e-5 before a norm divides, and nothing else (model.norm_epsilon = {config.norm_epsilon:g})"
    if config.activation == "swiglu":
        return "Marian and Pegasus have no gate in their feed-forward layers (model.activation = swiglu)"
    if config.positions in ("rotary", "relative", "alibi"):
        return f"Marian and Pegasus add positions to words and feel no distances (model.positions = {config.positions})"
    if layout_of(config) == "marian" and config.positions not in ("sinusoid", "sinusoid-halves"):
        return (
            "Marian, the layout for norms after the sum, computes its sinusoids and keeps no other positions "
            f"(model.positions = {config.positions})"
        )
    return None


def layout_of(config: TransformerConfig) -> Layout:
    return "pegasus" if config.norm_place == "pre" else "marian"


def export(run: Path | str, out: Path | str, *, reporter: Reporter = SILENT) -> Path:
    """Write the best weights of `run` to the new folder `out`, with its tokenizer."""
    parts = Parts.of(run, reporter)
    model, tokenizers = parts.config.model, parts.tokenizers
    parts.refuse("Hugging Face", obstacle(model) or borrowed(parts.config.tokenizer))
    assert isinstance(model, TransformerConfig)
    joined = Joined.of(tokenizers, model.tie)
    parts.refuse("Hugging Face", duplicate(joined.pieces()))
    with new_folder(Path(out), 2 * parts.size) as folder:
        save_file(weights(model, parts.weights, joined), folder / "model.safetensors", {"format": "pt"})
        write_json(folder / "config.json", configuration(model, joined))
        write_json(folder / "generation_config.json", _generation(parts))
        write_json(folder / "tokenizer.json", tokenizer_json(joined))
        write_json(folder / "tokenizer_config.json", tokenizer_config(parts.longest_source))
        readme = README.format(layout=layout_of(model).capitalize()) + ("" if joined.same else JOINED)
        (folder / "README.md").write_text(readme, encoding="utf-8")
    return Path(out)


# ---------------------------------------------------------------- settings


def configuration(config: TransformerConfig, joined: Joined) -> dict[str, Any]:
    """config.json"""
    layout = layout_of(config)
    marian = {"decoder_vocab_size": joined.size, "share_encoder_decoder_embeddings": True}
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", getattr(config, f"{side}_layers")),
            ("attention_heads", config.heads),
            ("ffn_dim", config.feedforward),
            ("layerdrop", 0.0),
        )
    }
    return {
        "architectures": [ARCHITECTURES[layout]],
        "model_type": layout,
        "is_encoder_decoder": True,
        "vocab_size": joined.size,
        **(marian if layout == "marian" else {}),
        "d_model": config.width,
        **sides,
        "activation_function": ACTIVATIONS.get(config.activation, config.activation),
        "max_position_embeddings": config.max_length,
        "scale_embedding": config.scaled,
        "tie_word_embeddings": config.tie != "none",
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": 0.0,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,
        "use_cache": True,
        "dtype": "float32",
    }


def _generation(parts: Parts) -> dict[str, Any]:
    """generation_config.json: the run's beam, and what an answer never holds."""
    return {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,
        "max_length": parts.positions,
        "num_beams": parts.config.decode.beam,
        "suppress_tokens": [PAD, UNK, BOS],
    }


# ---------------------------------------------------------------- weights


def weights(config: TransformerConfig, arrays: dict[str, Array], joined: Joined) -> dict[str, Array]:
    """model.safetensors, by name."""
    left, found = Weights(arrays), dict[str, Array]()
    order = np.arange(config.width) if config.positions == "sinusoid-halves" else halves(config.width)
    _fill_words(found, left.tables(config.tie), config, joined, order)
    if config.output_bias:
        bias = left.output_bias(config.tie)
        found["final_logits_bias"][:, : len(bias)] = bias
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        found[f"model.{side}.embed_positions.weight"] = _positions(side, config, left)[:, order]
        for number in range(layers):
            layer = _Layer(found, left, f"model.{side}.layers.{number}", f"{side}.layers.{number}", order)
            layer.fill(decoder=side == "decoder", biases=config.biases)
        if config.norm_place == "pre":
            _norm(found, left, f"model.{side}.layer_norm", f"{side}.norm", order)
    left.require_all_taken()
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def halves(width: int) -> NDArray[np.int64]:
    """Where the values of a vector come from: those at even places, then those at odd ones."""
    return np.concatenate([np.arange(0, width, 2), np.arange(1, width, 2)])


def _fill_words(
    found: dict[str, Array],
    tables: tuple[Array, Array, Array],
    config: TransformerConfig,
    joined: Joined,
    order: NDArray[np.int64],
) -> None:
    """The tables of words. Where all is one table there is no more to it; otherwise the source's rows follow the target's, and are
    made impossible to write."""
    source, target, output = (table[:, order] for table in tables)
    found["model.shared.weight"] = source if joined.same else np.concatenate([target, source])
    found["final_logits_bias"] = np.zeros((1, joined.size), np.float32)
    found["final_logits_bias"][:, len(target) :] = IMPOSSIBLE
    if config.tie == "none":
        found["lm_head.weight"] = np.concatenate([output, np.zeros_like(source)])
        for side in ("encoder", "decoder"):  # where output words are apart, transformers keeps the sides apart too
            found[f"model.{side}.embed_tokens.weight"] = found["model.shared.weight"].copy()


def _positions(side: str, config: TransformerConfig, left: Weights) -> Array:
    match config.positions:
        case "sinusoid" | "sinusoid-halves" | "sinusoid-fairseq":
            return SINUSOIDS[config.positions](config.max_length, config.width)
        case "learned":
            return left.take(f"{'source' if side == 'encoder' else 'target'}_positions.vectors.weight")
        case _:
            return np.zeros((config.max_length, config.width), np.float32)


class _Layer:
    """One layer: our tensors `under` a name, under the names that transformers has for them."""

    def __init__(self, found: dict[str, Array], left: Weights, name: str, under: str, order: NDArray[np.int64]) -> None:
        self.found, self.left, self.name, self.under, self.order = found, left, name, under, order

    def fill(self, *, decoder: bool, biases: bool) -> None:
        self._attention("self_attn", "attention", ("query_key_value",), biases)
        if decoder:
            self._attention("encoder_attn", "cross", ("query", "key_value"), biases)
        inner, outer = (f"{self.under}.feedforward.{part}" for part in ("inner", "outer"))
        self._put("fc1", self.left.take(f"{inner}.weight")[:, self.order], self.left.take(f"{inner}.bias"))
        weight, bias = self.left.take(f"{outer}.weight"), self.left.take(f"{outer}.bias")
        self._put("fc2", weight[self.order], bias[self.order])
        self._norm("final_layer_norm", "feedforward_residual")

    def _attention(self, name: str, ours: str, stacked: tuple[str, ...], biases: bool) -> None:
        """Queries, keys and values, which we keep stacked; and what is made of them."""
        under, order = f"{self.under}.{ours}", self.order
        matrices = np.concatenate([self.left.take(f"{under}.{part}.weight") for part in stacked])
        added: list[Array | None] = [None, None, None]
        if biases:
            added = [*np.split(np.concatenate([self.left.take(f"{under}.{part}.bias") for part in stacked]), 3)]
        for part, matrix, bias in zip(("q_proj", "k_proj", "v_proj"), np.split(matrices, 3), added, strict=True):
            self._put(f"{name}.{part}", matrix[:, order], bias)
        bias = self.left.take(f"{under}.output.bias")[order] if biases else None
        self._put(f"{name}.out_proj", self.left.take(f"{under}.output.weight")[order], bias)
        self._norm(f"{name}_layer_norm", f"{ours}_residual")

    def _put(self, name: str, weight: Array, bias: Array | None = None) -> None:
        self.found[f"{self.name}.{name}.weight"] = weight
        self.found[f"{self.name}.{name}.bias"] = np.zeros(len(weight), np.float32) if bias is None else bias

    def _norm(self, name: str, ours: str) -> None:
        _norm(self.found, self.left, f"{self.name}.{name}", f"{self.under}.{ours}.norm", self.order)


def _norm(found: dict[str, Array], left: Weights, name: str, ours: str, order: NDArray[np.int64]) -> None:
    found[f"{name}.weight"], found[f"{name}.bias"] = (left.take(f"{ours}.{part}")[order] for part in ("weight", "bias"))
