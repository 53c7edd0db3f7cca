"""The layouts: what their settings mean in ours, and where each tensor of ours comes from.

BERT        words + places + segments, normalised; norms after the sum                    (Devlin et al., 2019)
GPT-2       words + places; norms before each sub-layer; matrices kept as (in, out)       (Radford et al., 2019)
Marian      the paper's Transformer with biases, sines before cosines                     (Junczys-Dowmunt et al., 2018)
M2M100      norms before, fairseq's sinusoids, marks for languages                        (Fan et al., 2021)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kente.config import LanguageModelConfig, MaskedConfig, ModelConfig, TransformerConfig
from kente.errors import UsageError
from kente.imports.links import Link, linear, norm
from kente.imports.theirs import Settings, Tensors


@dataclass(frozen=True)
class Layout:
    """A kind of model elsewhere."""

    title: str
    task: str
    """What a run of it is for (train.task)."""
    prefix: str
    """What their names begin with where the model is part of a larger one."""
    config: Callable[[Settings, Tensors], ModelConfig]
    links: Callable[[ModelConfig, Tensors | None], list[Link]]
    """The second are the tensors there are; without them, names as their own program writes them."""
    of_no_use: re.Pattern[str]
    """Tensors that are computed, stored twice, or belong to a task that Kente learns anew."""


def layout_of(settings: Settings) -> Layout:
    """The layout that a config.json names."""
    kind = settings.get("model_type", default="nothing")
    if kind not in LAYOUTS:
        known = ", ".join(f"{name} ({layout.title})" for name, layout in LAYOUTS.items())
        raise UsageError(f"{settings.path}: model_type is {kind}; the layouts Kente reads are {known}")
    return LAYOUTS[kind]


# ---------------------------------------------------------------- BERT


def bert_config(theirs: Settings, tensors: Tensors) -> MaskedConfig:
    theirs.require("position_embedding_type", "absolute")
    theirs.require("is_decoder", False)
    theirs.require("add_cross_attention", False)
    gaps = "cls.predictions.transform.dense.weight" in tensors
    return MaskedConfig(
        layers=theirs.count("num_hidden_layers"),
        width=theirs.count("hidden_size"),
        feedforward=theirs.count("intermediate_size"),
        heads=theirs.count("num_attention_heads"),
        dropout=theirs.number("hidden_dropout_prob", default=0.1),
        attention_dropout=theirs.number("attention_probs_dropout_prob", default=0.1),
        norm_place="post",
        activation=theirs.activation("hidden_act", default="gelu"),
        positions="learned",
        max_length=theirs.count("max_position_embeddings"),
        tie=not gaps or theirs.truth("tie_word_embeddings", default=True),
        biases=True,
        norm_epsilon=theirs.number("layer_norm_eps", default=1e-12),
        scaled=False,
        embedding_norm=True,
        segments=theirs.count("type_vocab_size", default=2),
        gaps=gaps,
    )


def bert_links(config: ModelConfig, tensors: Tensors | None = None) -> list[Link]:
    assert isinstance(config, MaskedConfig)
    links = [
        Link("embedding.weight", ("embeddings.word_embeddings.weight",), words="target"),
        Link("positions.vectors.weight", ("embeddings.position_embeddings.weight",)),
        *norm("", "embeddings.LayerNorm"),
    ]
    segments = "embeddings.token_type_embeddings.weight"
    links += [Link("segments.vectors.weight", (segments,))] if config.segments > 1 else []
    for number in range(config.layers):
        ours, layer = f"encoder.layers.{number}", f"encoder.layer.{number}"
        parts = (f"{layer}.attention.self.{part}" for part in ("query", "key", "value"))
        links += linear(f"{ours}.attention.query_key_value", *parts)
        links += linear(f"{ours}.attention.output", f"{layer}.attention.output.dense")
        links += norm(f"{ours}.attention_residual", f"{layer}.attention.output.LayerNorm")
        links += linear(f"{ours}.feedforward.inner", f"{layer}.intermediate.dense")
        links += linear(f"{ours}.feedforward.outer", f"{layer}.output.dense")
        links += norm(f"{ours}.feedforward_residual", f"{layer}.output.LayerNorm")
    if config.gaps:
        links += linear("head.map", "cls.predictions.transform.dense")
        links += norm("head", "cls.predictions.transform.LayerNorm")
        table = "embedding" if config.tie else "output"
        links.append(Link(f"{table}.bias", ("cls.predictions.bias",), words="target"))
        if not config.tie:
            links.append(Link("output.weight", ("cls.predictions.decoder.weight",), words="target"))
    return links


# ---------------------------------------------------------------- GPT-2


def gpt2_config(theirs: Settings, tensors: Tensors) -> LanguageModelConfig:
    theirs.require("scale_attn_weights", True)
    theirs.require("scale_attn_by_inverse_layer_idx", False)
    theirs.require("add_cross_attention", False)
    width = theirs.count("n_embd", "hidden_size")
    return LanguageModelConfig(
        layers=theirs.count("n_layer", "num_hidden_layers"),
        width=width,
        feedforward=theirs.count("n_inner", default=4 * width),
        heads=theirs.count("n_head", "num_attention_heads"),
        dropout=theirs.number("resid_pdrop", default=0.1),
        attention_dropout=theirs.number("attn_pdrop", default=0.1),
        norm_place="pre",
        activation=theirs.activation("activation_function", default="gelu_new"),
        positions="learned",
        max_length=theirs.count("n_positions", "max_position_embeddings"),
        tie=theirs.truth("tie_word_embeddings", default=True),
        biases=True,
        norm_epsilon=theirs.number("layer_norm_epsilon", default=1e-5),
        scaled=False,
        output_bias=True,
    )


def gpt2_links(config: ModelConfig, tensors: Tensors | None = None) -> list[Link]:
    assert isinstance(config, LanguageModelConfig)
    words = ("wte.weight", "lm_head.weight") if config.tie else ("wte.weight",)
    links = [
        Link("embedding.weight", (tensors.first(*words) if tensors else words[0],), words="target"),
        Link(f"{'embedding' if config.tie else 'output'}.bias", (), words="target"),
        Link("positions.vectors.weight", ("wpe.weight",)),
        *norm("layers", "ln_f"),
    ]
    links += [] if config.tie else [Link("output.weight", ("lm_head.weight",), words="target")]
    for number in range(config.layers):
        ours, layer = f"layers.layers.{number}", f"h.{number}"
        links += linear(f"{ours}.attention.query_key_value", f"{layer}.attn.c_attn", transposed=True)
        links += linear(f"{ours}.attention.output", f"{layer}.attn.c_proj", transposed=True)
        links += norm(f"{ours}.attention_residual", f"{layer}.ln_1")
        links += linear(f"{ours}.feedforward.inner", f"{layer}.mlp.c_fc", transposed=True)
        links += linear(f"{ours}.feedforward.outer", f"{layer}.mlp.c_proj", transposed=True)
        links += norm(f"{ours}.feedforward_residual", f"{layer}.ln_2")
    return links


# ---------------------------------------------------------------- Marian and M2M100


def marian_config(theirs: Settings, tensors: Tensors) -> TransformerConfig:
    theirs.require("normalize_before", False)
    theirs.require("normalize_embedding", False)
    return _translator(
        theirs, "post", "sinusoid-halves", shared=theirs.truth("share_encoder_decoder_embeddings", default=True)
    )


def m2m100_config(theirs: Settings, tensors: Tensors) -> TransformerConfig:
    return _translator(theirs, "pre", "sinusoid-fairseq", shared=True)


def _translator(theirs: Settings, place: str, positions: str, *, shared: bool) -> TransformerConfig:
    tied = theirs.truth("tie_word_embeddings", default=True)
    return TransformerConfig(
        encoder_layers=theirs.count("encoder_layers"),
        decoder_layers=theirs.count("decoder_layers"),
        width=theirs.count("d_model"),
        feedforward=theirs.same("encoder_ffn_dim", "decoder_ffn_dim"),
        heads=theirs.same("encoder_attention_heads", "decoder_attention_heads"),
        dropout=theirs.number("dropout", default=0.1),
        attention_dropout=theirs.number("attention_dropout", default=0.0),
        norm_place=place,  # type: ignore[arg-type]
        activation=theirs.activation("activation_function", default="gelu"),
        positions=positions,  # type: ignore[arg-type]
        tie="none" if not tied else "all" if shared else "target",
        max_length=theirs.count("max_position_embeddings"),
        biases=True,
        scaled=theirs.truth("scale_embedding", default=False),
        output_bias=True,
    )


def marian_links(config: ModelConfig, tensors: Tensors | None = None) -> list[Link]:
    return _translator_links(config, tensors, bias=("final_logits_bias",))


def m2m100_links(config: ModelConfig, tensors: Tensors | None = None) -> list[Link]:
    return _translator_links(config, tensors, bias=())


def _translator_links(config: ModelConfig, tensors: Tensors | None, bias: tuple[str, ...]) -> list[Link]:
    assert isinstance(config, TransformerConfig)
    links = _word_links(config, tensors, bias)
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            layer = f"{side}.layers.{number}"
            links += _attention(f"{layer}.attention", f"{layer}.self_attn", ("query_key_value",))
            if side == "decoder":
                links += _attention(f"{layer}.cross", f"{layer}.encoder_attn", ("query", "key_value"))
            links += linear(f"{layer}.feedforward.inner", f"{layer}.fc1")
            links += linear(f"{layer}.feedforward.outer", f"{layer}.fc2")
            links += norm(f"{layer}.feedforward_residual", f"{layer}.final_layer_norm")
        if config.norm_place == "pre":
            links += norm(side, f"{side}.layer_norm")
    return links


def _attention(ours: str, theirs: str, stacked: tuple[str, ...]) -> list[Link]:
    projections = [f"{theirs}.{part}_proj" for part in "qkv"]
    links: list[Link] = []
    for part in stacked:
        count = part.count("_") + 1
        links += linear(f"{ours}.{part}", *projections[:count])
        projections = projections[count:]
    return [*links, *linear(f"{ours}.output", f"{theirs}.out_proj"), *norm(f"{ours}_residual", f"{theirs}_layer_norm")]


def _word_links(config: TransformerConfig, tensors: Tensors | None, bias: tuple[str, ...]) -> list[Link]:
    """Tables of words. What is tied may be stored under any of its names."""
    sides = {"source": "encoder.embed_tokens.weight", "target": "decoder.embed_tokens.weight"}
    names = ["shared.weight", *sides.values(), "lm_head.weight"]
    first = tensors.first if tensors else lambda *given: given[0]
    if config.tie == "all":
        tables = [Link("source_embedding.weight", (first(*names),), words="target")]
    else:
        tables = [
            Link("source_embedding.weight", (first(sides["source"], "shared.weight"),), words="source"),
            Link(
                "target_embedding.weight", (first(sides["target"], "shared.weight", "lm_head.weight"),), words="target"
            ),
        ]
    if config.tie == "none":
        tables.append(Link("output.weight", ("lm_head.weight",), words="target"))
    table = {"all": "source_embedding", "target": "target_embedding", "none": "output"}[config.tie]
    known = bias if tensors is None or all(name in tensors for name in bias) else ()
    return [*tables, Link(f"{table}.bias", known, words="target")]


COMPUTED = r"(encoder|decoder)\.embed_positions\.weights?"
TIED = r"shared\.weight|(encoder|decoder)\.embed_tokens\.weight|lm_head\.weight"
LAYOUTS = {
    "bert": Layout(
        "BERT",
        "masked",
        "bert.",
        bert_config,
        bert_links,
        re.compile(
            r"pooler\..*|cls\.seq_relationship\..*|cls\.predictions\.decoder\..*|embeddings\.position_ids"
            r"|embeddings\.token_type_ids|classifier\..*|qa_outputs\..*"
        ),
    ),
    "gpt2": Layout(
        "GPT-2",
        "causal",
        "transformer.",
        gpt2_config,
        gpt2_links,
        re.compile(r"h\.\d+\.attn\.(bias|masked_bias)|lm_head\.weight|score\.weight"),
    ),
    "marian": Layout("Marian", "translation", "model.", marian_config, marian_links, re.compile(f"{COMPUTED}|{TIED}")),
    "m2m_100": Layout(
        "M2M100",
        "translation",
        "model.",
        m2m100_config,
        m2m100_links,
        re.compile(f"{COMPUTED}|{TIED}|final_logits_bias"),
    ),
}
"""By the model_type of config.json."""
