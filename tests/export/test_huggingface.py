"""Runs in the layouts of Hugging Face's transformers: read by a few lines of torch, and by transformers where it is installed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from kente.config import ConvConfig, RecurrentConfig, TokenizerConfig, TransformerConfig
from kente.errors import UsageError
from kente.export.huggingface import export, obstacle

PAD, UNK, BOS, EOS = 0, 1, 2, 3
PAPER = TransformerConfig(encoder_layers=2, decoder_layers=3, width=24, feedforward=40, heads=4, max_length=64)
PRE = replace(PAPER, norm_place="pre")
APART = TokenizerConfig(vocabulary=360, joint=False)
MODELS: dict[str, tuple[TransformerConfig, TokenizerConfig]] = {
    "paper": (PAPER, TokenizerConfig(vocabulary=380)),
    "pre": (PRE, TokenizerConfig(vocabulary=380)),
    "pre gelu learned": (replace(PRE, activation="gelu", positions="learned"), TokenizerConfig(vocabulary=380)),
    "pre without positions": (replace(PRE, positions="none"), TokenizerConfig(kind="bpe", vocabulary=380)),
    "target tied": (replace(PAPER, tie="target"), TokenizerConfig(vocabulary=380)),
    "post apart": (replace(PAPER, tie="target"), APART),
    "pre apart": (replace(PRE, tie="target"), APART),
    "pre untied": (replace(PRE, tie="none"), APART),
    "post untied": (replace(PAPER, tie="none"), replace(APART, kind="bpe")),
    "biases": (
        replace(PAPER, biases=True, output_bias=True, positions="sinusoid-halves", activation="silu"),
        TokenizerConfig(vocabulary=380),
    ),
    "biases apart": (
        replace(PRE, biases=True, output_bias=True, tie="target", positions="sinusoid-fairseq", scaled=False),
        APART,
    ),
    "output bias untied": (replace(PRE, output_bias=True, tie="none", activation="gelu-tanh"), APART),
    "words": (PRE, TokenizerConfig(kind="words")),
    "characters": (replace(PAPER, tie="none"), TokenizerConfig(kind="characters", joint=False)),
}


@pytest.fixture(scope="module")
def exported(make: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Path]]:
    """(the run, where it was exported to)"""
    folders: dict[str, tuple[Any, Path]] = {}

    def of(name: str) -> tuple[Any, Path]:
        if name not in folders:
            made = make(*MODELS[name])
            folders[name] = made, export(made.path, tmp_path_factory.mktemp("huggingface") / "model")
        return folders[name]

    return of


class Layout:
    """Marian and Pegasus as their papers and weights' names tell: norms after the sum, or before each sub-layer and at the end."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.w = load_file(folder / "model.safetensors")
        self.pre = self.config["model_type"] == "pegasus"
        acts = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "gelu_new": partial(F.gelu, approximate="tanh")}
        self.act = acts[self.config["activation_function"]]
        shared = self.w["model.shared.weight"]
        self.words = {side: self.w.get(f"model.{side}.embed_tokens.weight", shared) for side in ("encoder", "decoder")}
        self.output = self.w.get("lm_head.weight", shared)
        assert ("lm_head.weight" in self.w) != self.config["tie_word_embeddings"]

    def linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    def norm(self, x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    def around(self, x: Tensor, norm: str, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return x + sublayer(self.norm(x, norm)) if self.pre else self.norm(x + sublayer(x), norm)

    def attention(self, x: Tensor, memory: Tensor | None, name: str, heads: int, causal: bool) -> Tensor:
        memory = x if memory is None else memory
        parts = (self.linear(y, f"{name}.{part}_proj") for y, part in ((x, "q"), (memory, "k"), (memory, "v")))
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(0, 1) for part in parts)
        weights = q @ k.mT / math.sqrt(q.shape[-1])
        if causal:
            weights = weights + torch.full_like(weights, -torch.inf).triu(1)
        return self.linear((weights.softmax(-1) @ v).transpose(0, 1).flatten(-2), f"{name}.out_proj")

    def read(self, side: str, ids: list[int], memory: Tensor | None = None) -> Tensor:
        heads = self.config[f"{side}_attention_heads"]
        x = self.words[side][ids] * (math.sqrt(self.config["d_model"]) if self.config["scale_embedding"] else 1.0)
        x = x + self.w[f"model.{side}.embed_positions.weight"][: len(ids)]
        for number in range(self.config[f"{side}_layers"]):
            n = f"model.{side}.layers.{number}"
            looks_back = side == "decoder"

            def itself(y: Tensor, n: str = n, causal: bool = looks_back) -> Tensor:
                return self.attention(y, None, f"{n}.self_attn", heads, causal)

            def others(y: Tensor, n: str = n) -> Tensor:
                return self.attention(y, memory, f"{n}.encoder_attn", heads, False)

            def feedforward(y: Tensor, n: str = n) -> Tensor:
                return self.linear(self.act(self.linear(y, f"{n}.fc1")), f"{n}.fc2")

            x = self.around(x, f"{n}.self_attn_layer_norm", itself)
            if side == "decoder":
                x = self.around(x, f"{n}.encoder_attn_layer_norm", others)
            x = self.around(x, f"{n}.final_layer_norm", feedforward)
        return self.norm(x, f"model.{side}.layer_norm") if self.pre else x

    def log_probabilities(self, source: list[int], target: list[int]) -> Tensor:
        hidden = self.read("decoder", target, self.read("encoder", source))
        return torch.log_softmax(hidden @ self.output.T + self.w["final_logits_bias"], dim=-1)


def sinusoids(length: int, width: int) -> Tensor:
    """As both layouts compute them: a half of sines, a half of cosines."""
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


@pytest.mark.parametrize("name", MODELS)
def test_the_weights_mean_in_that_layout_what_they_mean_in_the_run(name: str, exported: Any) -> None:
    made, folder = exported(name)
    layout, sizes = Layout(folder), (made.tokenizers.source.size, made.tokenizers.target.size)
    begin = 0 if made.config.model.tie == "all" else sizes[1]
    draw = torch.Generator().manual_seed(2)
    source = torch.randint(EOS + 1, sizes[0], (17,), generator=draw).tolist()
    target = torch.randint(EOS + 1, sizes[1], (9,), generator=draw).tolist()
    found = layout.log_probabilities([begin + i for i in (*source, EOS)], [BOS, *target])
    assert torch.allclose(found[:, : sizes[1]], made.log_probabilities(source, target), atol=1e-4)
    assert not found[:, sizes[1] :].exp().any(), "source words are never written"


@pytest.mark.parametrize("name", ["paper", "pre"])
def test_positions_are_those_the_layout_would_compute(name: str, exported: Any) -> None:
    weights = load_file(exported(name)[1] / "model.safetensors")
    for side in ("encoder", "decoder"):
        found = weights[f"model.{side}.embed_positions.weight"]
        assert torch.allclose(found, sinusoids(64, 24), atol=1e-5)


def test_settings_say_what_transformers_must_know(exported: Any) -> None:
    made, folder = exported("post apart")
    config, generation = (json.loads((folder / f"{name}.json").read_text()) for name in ("config", "generation_config"))
    size = made.tokenizers.source.size + made.tokenizers.target.size
    assert config["architectures"] == ["MarianMTModel"] and config["vocab_size"] == config["decoder_vocab_size"] == size
    assert (config["pad_token_id"], config["eos_token_id"], config["decoder_start_token_id"]) == (PAD, EOS, BOS)
    assert generation["num_beams"] == 2 and generation["max_length"] == 64
    assert generation["suppress_tokens"] == [PAD, UNK, BOS]
    assert "the source language only" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (RecurrentConfig(), "its translation models are Transformers, and this is a recurrent model"),
        (ConvConfig(), "its translation models are Transformers, and this is a conv model"),
        (replace(PRE, experts=4), "neither Marian nor Pegasus has a mixture of experts (model.experts = 4)"),
        (replace(PRE, span="window"), "has attention to less than everything (model.span = window)"),
        (replace(PRE, span="linear"), "has attention to less than everything (model.span = linear)"),
        (replace(PRE, activations="reversible"), "has reversible layers (model.activations = reversible)"),
        (replace(PRE, positions="xl"), "has positions of Transformer-XL (model.positions = xl)"),
        (
            replace(PRE, norm_epsilon=1e-6),
            "add 1e-5 before a norm divides, and nothing else (model.norm_epsilon = 1e-06)",
        ),
        (replace(PAPER, positions="sinusoid-fairseq"), "keeps no other positions (model.positions = sinusoid-fairseq)"),
        (replace(PRE, norm="rms"), "Marian and Pegasus have LayerNorm alone (model.norm = rms)"),
        (replace(PRE, activation="swiglu"), "no gate in their feed-forward layers (model.activation = swiglu)"),
        (replace(PRE, positions="rotary"), "feel no distances (model.positions = rotary)"),
        (replace(PAPER, positions="relative"), "feel no distances (model.positions = relative)"),
        (replace(PAPER, positions="alibi"), "feel no distances (model.positions = alibi)"),
        (replace(PAPER, positions="learned"), "keeps no other positions (model.positions = learned)"),
        (replace(PAPER, positions="none"), "keeps no other positions (model.positions = none)"),
    ],
)
def test_what_no_layout_carries_is_refused_with_the_reason(config: Any, why: str) -> None:
    assert why in str(obstacle(config))


def test_a_refusal_names_the_run_and_leaves_nothing_behind(make: Callable[..., Any], tmp_path: Path) -> None:
    run = make(replace(PRE, norm="rms")).path
    with pytest.raises(
        UsageError, match=f"{run} cannot be exported to Hugging Face: Marian and Pegasus have LayerNorm"
    ):
        export(run, tmp_path / "out")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- with transformers itself


@pytest.fixture(scope="module")
def loaded(exported: Any) -> Callable[[str], tuple[Any, Any, Any]]:
    """(the run, tokenizer, model), as anyone would load them, without a network."""
    reason = "transformers is not installed (benchmarks/peers/huggingface.txt)"
    transformers = pytest.importorskip("transformers", reason=reason)

    def of(name: str) -> tuple[Any, Any, Any]:
        made, folder = exported(name)
        offline = {"local_files_only": True}
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **offline)
        model, about = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True, **offline)
        assert not any(about[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), about
        return made, tokenizer, model.eval()

    return of


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_transformers_generates_what_the_run_writes(name: str, loaded: Any, lines: list[str]) -> None:
    made, tokenizer, model = loaded(name)
    begin = 0 if made.config.model.tie == "all" else made.tokenizers.target.size
    for line in lines[:6]:
        ids = made.source_ids(line)
        batch = tokenizer(line, return_tensors="pt")
        assert batch["input_ids"][0].tolist() == [begin + i for i in (*ids, EOS)]
        answer = made.greedy(ids, 20)
        with torch.inference_mode():
            written = model.generate(**batch, num_beams=1, max_new_tokens=len(answer) + 1)[0].tolist()
            scores = model(**batch, decoder_input_ids=torch.tensor([[BOS, *answer]])).logits[0].log_softmax(-1)
        assert written == [BOS, *answer, EOS]  # the last one is made an end, if it is none
        wanted = made.log_probabilities(ids, answer)
        assert torch.allclose(scores[:, : wanted.shape[1]], wanted, atol=1e-4)
        text = made.tokenizers.target.decode(answer)
        if "\ufffd" not in text:  # of bytes that are no text the library keeps less
            assert tokenizer.decode([BOS, *answer, EOS], skip_special_tokens=True).strip() == text.strip()
