"""The Transformer's size and shape, as the paper and the lectures give them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from kente.config import TransformerConfig
from kente.configfile import load_recipe
from kente.data.batches import collate
from kente.errors import ConfigError
from kente.models.build import build
from kente.models.summary import parameter_count, summarise
from kente.nn.words import Words
from kente.train.objectives import CrossEntropy

ONE_LAYER = TransformerConfig(encoder_layers=1, decoder_layers=1, width=32, feedforward=64, heads=2)


def count_by_hand(vocabulary: int, width: int, inner: int, layers: int) -> int:
    """Attention 4 D^2, feed-forward 2 D F + F + D, norms 2 D each; one embedding for everything."""
    attention, feedforward, norm = 4 * width**2, 2 * width * inner + inner + width, 2 * width
    encoder = attention + feedforward + 2 * norm
    decoder = 2 * attention + feedforward + 3 * norm
    return vocabulary * width + layers * (encoder + decoder)


@pytest.mark.parametrize(("name", "paper"), [("base", 65e6), ("big", 213e6)])
def test_base_and_big_have_the_papers_parameter_counts(name, paper):
    """Table 3 of the paper says 65 and 213 million with a shared vocabulary of about 37,000 (lecture 001: N = 6)."""
    config = load_recipe(name).model
    with torch.device("meta"):
        model = build(config, 37_000, 37_000)
    assert config.encoder_layers == config.decoder_layers == 6
    assert parameter_count(model) == count_by_hand(37_000, config.width, config.feedforward, 6)
    assert parameter_count(model) == pytest.approx(paper, rel=0.035)


def test_the_defaults_are_the_base_model_of_the_paper():
    assert TransformerConfig() == load_recipe("base").model


@pytest.mark.parametrize(("name", "shape"), [("tiny", (4, 4, 128, 256, 4)), ("small", (4, 4, 256, 1024, 4))])
def test_small_sizes(name, shape):
    model = load_recipe(name).model
    assert (model.encoder_layers, model.decoder_layers, model.width, model.feedforward, model.heads) == shape


def test_the_summary_adds_up_and_shows_shapes():
    with torch.device("meta"):
        model = build(ONE_LAYER, 100, 100)
    summary = summarise(model, "toy")
    assert summary.parameters == sum(row.parameters for row in summary.rows) == parameter_count(model)
    rows = {row.name: row for row in summary.rows}
    assert rows["source_embedding"].weights == "100x32" and rows["source_embedding"].output == "(B, S, 32)"
    assert rows["output"].output == "(B, T, 100)" and rows["output"].parameters == 0
    assert rows["decoder.layers.0.cross.key_value"].output == "(B, S, 64)"
    text = "\n".join(summary.lines())
    assert "toy" in text and f"{summary.parameters:,} parameters" in text and "shared" in text
    assert summary.as_dict()["parameters"] == summary.parameters


def test_tying_all_needs_one_vocabulary():
    with pytest.raises(ConfigError, match=r"model\.tie = all .* tokenizer\.joint = true; set model\.tie=target"):
        build(TransformerConfig(), 100, 200, joint=False)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"width": 100, "heads": 3}, r"model\.width \(100\) must be a multiple of model\.heads \(3\)"),
        ({"width": 6, "heads": 2, "positions": "rotary"}, "rotary needs an even width per head, not 3"),
        ({"width": 7, "heads": 1}, r"sinusoid needs an even model\.width, not 7"),
        ({"dropout": 1.0}, r"model\.dropout \(1\.0\) must be at least 0 and below 1"),
    ],
)
def test_impossible_shapes_are_refused_in_the_words_of_the_file(setting, message):
    with pytest.raises(ConfigError, match=message):
        TransformerConfig(**setting)


def test_dropout_only_acts_while_training():
    torch.manual_seed(0)
    model = build(replace(ONE_LAYER, dropout=0.5), 50, 50)
    source = torch.randint(4, 50, (2, 5))
    mask, target = torch.ones_like(source, dtype=torch.bool), torch.randint(4, 50, (2, 4))
    assert not torch.equal(model(source, mask, target), model(source, mask, target))
    model.eval()
    assert torch.equal(model(source, mask, target), model(source, mask, target))


def test_weights_keep_the_names_that_runs_were_saved_with():
    names = set(build(replace(ONE_LAYER, tie="none"), 50, 50).state_dict())
    attention = ["attention.query_key_value.weight", "attention.output.weight"]
    cross = ["cross.query.weight", "cross.key_value.weight", "cross.output.weight"]
    feedforward = [f"feedforward.{part}" for part in ("inner.weight", "inner.bias", "outer.weight", "outer.bias")]
    norms = [f"{part}_residual.norm.{kind}" for part in ("attention", "feedforward") for kind in ("weight", "bias")]
    cross_norm = ["cross_residual.norm.weight", "cross_residual.norm.bias"]
    assert names == {
        *(f"{table}.weight" for table in ("source_embedding", "target_embedding", "output")),
        *(f"encoder.layers.0.{name}" for name in attention + feedforward + norms),
        *(f"decoder.layers.0.{name}" for name in attention + cross + feedforward + norms + cross_norm),
    }


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_tied_tables_are_one(tie):
    model = build(replace(ONE_LAYER, tie=tie), 50, 50)
    source, target, output = model.source_embedding.weight, model.target_embedding.weight, model.output.weight
    assert (source is target, target is output) == (tie == "all", tie != "none")


def test_the_objective_counts_a_bias_of_the_output():
    torch.manual_seed(0)
    model = build(replace(ONE_LAYER, tie="none", dropout=0.0), 50, 50)
    model.output = Words(50, 32, bias=True)
    nn.init.normal_(model.output.bias)
    batch = collate([[5, 6, 7], [8]], [[9, 10], [11, 12, 13]])
    loss = CrossEntropy(0.1)(model, batch)
    loss.total.backward()
    gradient, model.output.bias.grad = model.output.bias.grad, None
    logits = model.predict(model(batch.source, batch.source_mask, batch.target_input))
    expected = nn.functional.cross_entropy(
        logits[batch.target_mask], batch.target_output[batch.target_mask], reduction="sum", label_smoothing=0.1
    )
    expected.backward()
    torch.testing.assert_close(loss.total, expected)
    torch.testing.assert_close(gradient, model.output.bias.grad, atol=1e-5, rtol=1e-4)
