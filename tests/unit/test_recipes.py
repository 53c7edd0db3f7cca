"""Recipes as a whole: each builds, and those of a comparison are of like size."""

from __future__ import annotations

import pytest
import torch

from kente.configfile import load_recipe, recipes
from kente.models.build import build
from kente.models.summary import describe, parameter_count, summarise
from kente.train.budget import automatic
from kente.train.language_budget import automatic_language

VOCABULARY = 4000
ROAD = [
    "rnn", "lstm", "gru", "minimal-gate", "gru-attention", "lstm-attention", "bilinear", "dot", "gnmt", "lstmn", "conv",
    "transformer", "transformer-none", "transformer-learned", "transformer-rotary", "transformer-relative",
    "transformer-alibi", "transformer-window", "transformer-memory", "transformer-linear", "transformer-reversible",
]  # fmt: skip
"""What `kente compare` puts side by side."""


def built(name):
    config = load_recipe(name, base=automatic())
    size = config.tokenizer.vocabulary or VOCABULARY
    with torch.device("meta"):
        return config, build(config.model, size, size)


@pytest.mark.parametrize("name", recipes())
def test_every_recipe_builds_describes_and_lists_its_layers(name):
    config, model = built(name)
    assert len(describe(config.model)) > 10
    assert summarise(model, name).parameters == parameter_count(model)


@pytest.mark.parametrize("name", ROAD)
def test_models_that_are_compared_have_close_parameter_counts(name):
    """Within a tenth of the Transformer's, so that none wins by size."""
    _, transformer = built("transformer")
    _, model = built(name)
    assert parameter_count(model) == pytest.approx(parameter_count(transformer), rel=0.1)


@pytest.mark.parametrize(
    "name",
    ["rnn-language", "gru-language", "lstm-language", "language-window", "language-memory", "language-linear"],
)
def test_language_models_that_are_compared_have_close_parameter_counts(name):
    sizes = [parameter_count(built(recipe)[1]) for recipe in ("language", name)]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


@pytest.mark.parametrize("name", ["language-window", "language-memory"])
def test_language_models_with_a_span_are_trained_on_texts_of_several_reaches(name):
    config = load_recipe(name, base=automatic_language("causal"))
    assert config.batches.max_length >= 4 * config.model.reach
    assert config.batches.tokens >= 2 * config.batches.max_length


def test_experts_have_more_weights_but_the_same_work():
    """2 of 4 experts of half the size: each word passes through as much as in the plain feed-forward network."""
    config, plain = built("experts")[0].model, built("transformer")[0].model
    assert config.experts_used * config.feedforward == plain.feedforward
