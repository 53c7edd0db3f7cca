"""Settings check themselves, in the words of the file."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kente.config import (
    BatchConfig,
    CleaningConfig,
    Config,
    ConvConfig,
    DecodeConfig,
    GraphConfig,
    IntraAttentionConfig,
    LanguageModelConfig,
    MaskedConfig,
    OptimiserConfig,
    RecurrentConfig,
    RecurrentLanguageConfig,
    TextConfig,
    TokenizerConfig,
    TrainConfig,
    TransformerConfig,
)
from kente.configfile import help_texts, listed_settings
from kente.errors import ConfigError, KenteError


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (TransformerConfig, {"width": 100, "heads": 8}, "model.width (100) must be a multiple of model.heads (8)"),
        (TransformerConfig, {"heads": 0}, "model.width (512) must be a multiple of model.heads (0)"),
        (
            TransformerConfig,
            {"width": 24, "heads": 8, "positions": "rotary"},
            "model.positions = rotary needs an even width per head, not 3",
        ),
        (TransformerConfig, {"width": 7, "heads": 7}, "model.positions = sinusoid needs an even model.width, not 7"),
        (TransformerConfig, {"encoder_layers": 0}, "model.encoder_layers"),
        (TransformerConfig, {"dropout": 1.0}, "model.dropout (1.0) must be at least 0 and below 1"),
        (TransformerConfig, {"attention_dropout": -0.1}, "model.attention_dropout (-0.1)"),
        (TokenizerConfig, {"vocabulary": -1}, "tokenizer.vocabulary (-1) must be 0 (choose) or more"),
        (TokenizerConfig, {"sampling": 1.5}, "tokenizer.sampling (1.5)"),
        (CleaningConfig, {"max_words": 0}, "cleaning.max_words (0) must be at least 1"),
        (CleaningConfig, {"max_ratio": -2.0}, "cleaning.max_ratio (-2.0)"),
        (BatchConfig, {"tokens": 100}, "batches.tokens (100) must be at least batches.max_length (256)"),
        (BatchConfig, {"max_length": 1}, "batches.max_length (1) must be at least 2"),
        (BatchConfig, {"accumulation": 0}, "batches.accumulation (0)"),
        (OptimiserConfig, {"rate": 0.0}, "optimiser.rate (0.0) must be above 0"),
        (OptimiserConfig, {"warmup": -1}, "optimiser.warmup (-1)"),
        (OptimiserConfig, {"decay_share": 0.0}, "optimiser.decay_share (0.0)"),
        (OptimiserConfig, {"betas": (0.9, 1.0)}, "optimiser.betas (0.9, 1.0)"),
        (OptimiserConfig, {"momentum": 1.0}, "optimiser.momentum (1.0)"),
        (OptimiserConfig, {"clip": -1.0}, "optimiser.clip (-1.0)"),
        (TrainConfig, {"label_smoothing": 1.0}, "train.label_smoothing (1.0)"),
        (TrainConfig, {"ema_decay": 1.0}, "train.ema_decay (1.0)"),
        (TrainConfig, {"updates": -1}, "train.updates"),
        (TrainConfig, {"keep": 0}, "train.keep"),
        (TrainConfig, {"updates": 10, "minutes": 1.0}, "give train.updates or train.minutes, not both"),
        (DecodeConfig, {"beam": 0}, "decode.beam (0) must be at least 1"),
        (DecodeConfig, {"temperature": 0.0}, "decode.temperature (0.0)"),
        (DecodeConfig, {"top_p": 0.0}, "decode.top_p (0.0)"),
        (DecodeConfig, {"top_k": -1}, "decode.top_k (-1)"),
        (DecodeConfig, {"no_repeat": -1}, "decode.no_repeat (-1)"),
        (TransformerConfig, {"relative_distance": 0}, "model.relative_distance (0) must be at least 1"),
        (
            TransformerConfig,
            {"experts": 2, "experts_used": 3},
            "model.experts_used (3) must be from 1 to model.experts (2)",
        ),
        (TransformerConfig, {"balance": -1.0}, "model.balance (-1.0) must be 0 or more"),
        (TransformerConfig, {"reach": 0}, "model.reach (0) must be at least 1"),
        (TransformerConfig, {"remembered": 0}, "model.remembered (0) must be at least 1"),
        (
            TransformerConfig,
            {"span": "linear", "positions": "alibi"},
            "set model.positions to sinusoid, learned or none, not alibi",
        ),
        (
            TransformerConfig,
            {"span": "linear", "attention_dropout": 0.1},
            "no weights to drop; set model.attention_dropout=0, not 0.1",
        ),
        (
            TransformerConfig,
            {"activations": "reversible"},
            "cannot undo a norm after the sum; set model.norm_place=pre",
        ),
        (
            TransformerConfig,
            {"activations": "reversible", "norm_place": "pre", "experts": 4},
            "cannot balance experts; set model.activations=recompute or model.experts=0",
        ),
        (
            TransformerConfig,
            {"width": 7, "heads": 7, "positions": "xl"},
            "model.positions = xl needs an even model.width, not 7",
        ),
        (RecurrentConfig, {"width": 0}, "width must be at least 1"),
        (RecurrentConfig, {"embedding": -1}, "model.embedding (-1) must be 0 (none) or more"),
        (
            RecurrentConfig,
            {"cell": "lstm", "reset_bias": True},
            "model.reset_bias is a part of gru cells; lstm has no such bias",
        ),
        (RecurrentConfig, {"dropout": 1.0}, "model.dropout (1.0) must be at least 0 and below 1"),
        (IntraAttentionConfig, {"width": 0}, "model.width and model.embedding must be at least 1"),
        (ConvConfig, {"encoder_kernels": (3,)}, "model.encoder_channels has 4 layers but model.encoder_kernels has 1"),
        (ConvConfig, {"encoder_kernels": (3, 3, 2, 3)}, "model.encoder_kernels (3, 3, 2, 3) must be odd"),
        (
            ConvConfig,
            {"decoder_kernels": (3, 0, 3)},
            "model.decoder_channels and decoder_kernels must hold numbers from 1",
        ),
        (LanguageModelConfig, {"width": 100, "heads": 8}, "model.width (100) must be a multiple of model.heads (8)"),
        (MaskedConfig, {"layers": 0}, "model.layers (0) must be at least 1"),
        (RecurrentLanguageConfig, {"embedding": 0}, "model.layers, width and embedding must be at least 1"),
        (GraphConfig, {"heads": 0}, "model.layers, width, heads and output_heads must be at least 1"),
        (GraphConfig, {"penalty": -1.0}, "model.penalty (-1.0) must be 0 or more"),
        (GraphConfig, {"attention_dropout": 1.0}, "model.attention_dropout (1.0) must be at least 0 and below 1"),
        (TextConfig, {"mask_share": 0.0}, "text.mask_share (0.0) must be above 0 and below 1"),
        (DecodeConfig, {"min_p": 1.5}, "decode.min_p (1.5) must be from 0 to 1"),
        (DecodeConfig, {"max_ratio": 0.0}, "decode.max_ratio (0.0)"),
        (DecodeConfig, {"batch_tokens": 0}, "decode.batch_tokens (0)"),
        (DecodeConfig, {"shortlist": -2}, "decode.shortlist (-2) must be -1 (the engine decides), 0 (off) or more"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name_and_value(
    section: Any, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        section(**values)
    assert message in str(error.value)


def test_a_config_error_is_a_usage_error_with_exit_code_2() -> None:
    assert issubclass(ConfigError, KenteError) and ConfigError.exit_code == 2


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().model.width = 3  # type: ignore[misc]


def test_the_defaults_are_the_papers_base_model() -> None:
    model = Config().model
    assert (model.encoder_layers, model.decoder_layers, model.width, model.feedforward, model.heads) == (
        6,
        6,
        512,
        2048,
        8,
    )
    assert (model.norm_place, model.norm, model.activation, model.positions) == ("post", "layer", "relu", "sinusoid")


KINDS = ("transformer", "recurrent", "lstmn", "conv", "language", "recurrent-language", "masked", "graph", "skip-gram")


def test_every_setting_has_its_help_beneath_it() -> None:
    listed = listed_settings()
    assert {name for name, *_ in listed} == set(help_texts())
    assert [name for name, _, text, _ in listed if not text.strip().endswith(".")] == []
    assert {condition for *_, condition in listed} == {
        "",
        *(f"model.kind = {kind}" for kind in KINDS),
    }
