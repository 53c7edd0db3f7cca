"""Gradients of what was not kept are those of what was: recomputed layers, layers run backwards, dropout drawn again."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from kente.config import TransformerConfig
from kente.models.build import build
from kente.nn import recompute as ways
from kente.nn.dropout import Moment, drop, noise
from kente.nn.linear import is_rounding, rounding

TINY = TransformerConfig(
    encoder_layers=3, decoder_layers=3, width=16, feedforward=32, heads=2, dropout=0.2, norm_place="pre"
)
SOURCE, TARGET = torch.randint(4, 23, (3, 7)), torch.randint(4, 23, (3, 6))
MASK = torch.arange(7)[None] < torch.tensor([[7], [4], [5]])


def gradients(model, seed=None):
    """By name, of one reading in training; with a seed dropout follows from it, else from torch's own."""
    if seed is None:
        torch.manual_seed(5)
        hidden = model(SOURCE, MASK, TARGET)
    else:
        with noise(seed):
            hidden = model(SOURCE, MASK, TARGET)
    side = model.side_loss(MASK, torch.ones_like(TARGET, dtype=torch.bool))
    loss = hidden.square().sum() * 1e-2 + (0.0 if side is None else side)
    parameters = dict(model.named_parameters())
    found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return dict(zip(parameters, found, strict=True))


def pair(activations, other, **settings):
    """Two models of the same weights."""
    config = replace(TINY, **settings)
    torch.manual_seed(0)
    one = build(replace(config, activations=activations), 23, 23).train()
    two = build(replace(config, activations=other), 23, 23).train()
    two.load_state_dict(one.state_dict())
    return one, two


@pytest.mark.parametrize("seed", [None, 3], ids=["torch's noise", "own noise"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"norm_place": "post", "attention_dropout": 0.1}, {"experts": 3}, {"span": "window", "reach": 2}],
    ids=str,
)
def test_recomputing_changes_no_gradient(settings, seed):
    """Bit for bit, dropout and the balance of experts included."""
    kept, again = pair("keep", "recompute", **settings)
    expected, found = gradients(kept, seed), gradients(again, seed)
    for name, gradient in expected.items():
        assert (gradient is None) == (found[name] is None), name
        assert gradient is None or torch.equal(gradient, found[name]), name


@pytest.mark.parametrize("way", [ways.recompute, ways.reversible])
def test_what_is_computed_again_rounds_as_it_did(way):
    """Gradients may be taken outside of `rounding`."""
    rounded = []

    def add(onto, x):
        rounded.append(is_rounding())
        return onto + x.square()

    for on in (True, False):
        x = torch.ones(2, requires_grad=True)
        with rounding(on):
            found = way([ways.LayerCall([add, add])], x)
        torch.autograd.grad(found.sum(), x)
        assert rounded == [on] * 4
        rounded.clear()


def two_streams(layers, x):
    """The definition, left to autograd."""
    a, b = x, x
    for layer in layers:
        for add in layer.sublayers:
            a, b = b, add(a, b, *layer.outside)
    return a + b


@pytest.mark.parametrize("seed", [None, 3], ids=["torch's noise", "own noise"])
@pytest.mark.parametrize(
    "settings", [{}, {"span": "memory", "reach": 2, "positions": "xl"}, {"span": "linear"}], ids=str
)
def test_running_backwards_gives_the_gradients_of_autograd(settings, seed):
    """Also to the encoder, through the keys and values that decoder layers look at."""
    model, plain = pair("reversible", "reversible", **settings)
    for stack in (plain.encoder, plain.decoder):
        stack.passage = two_streams
    expected, found = gradients(plain, seed), gradients(model, seed)
    for name, gradient in expected.items():
        torch.testing.assert_close(
            found[name], gradient, atol=1e-5, rtol=1e-3, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_reversible_layers_are_another_network_than_residual_ones():
    kept, reversible = pair("keep", "reversible", dropout=0.0)
    with torch.inference_mode():
        assert not torch.allclose(kept(SOURCE, MASK, TARGET), reversible(SOURCE, MASK, TARGET), atol=1e-2)


def test_without_gradients_nothing_is_computed_twice():
    calls = []

    def add(onto, x):
        calls.append(1)
        return onto + x

    layers = [ways.LayerCall([add, add])]
    with torch.inference_mode():
        for way in (ways.keep, ways.recompute, ways.reversible):
            way(layers, torch.ones(2))
    assert len(calls) == 6


def test_a_moment_brings_its_randomness_back_as_often_as_asked():
    x = torch.ones(50)
    with noise(3):
        drop(x, 0.5)
        moment = Moment()
        first = drop(x, 0.5)
        second = drop(x, 0.25)
    for _ in range(2):
        with moment:
            assert torch.equal(drop(x, 0.5), first)
            assert torch.equal(drop(x, 0.25), second)
    torch.manual_seed(1)
    moment = Moment()
    drawn = drop(x, 0.5)
    following = torch.rand(3)
    torch.manual_seed(1)
    drop(x, 0.5)
    with moment:
        assert torch.equal(drop(x, 0.5), drawn)
    assert torch.equal(torch.rand(3), following)
