"""Low-rank adaptation: the same function at first, a small part that learns, one plain matrix in the end."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kente.checkpoints import merged
from kente.config import ConvConfig, IntraAttentionConfig, RecurrentConfig, TransferConfig, TransformerConfig
from kente.errors import ConfigError
from kente.models.build import build
from kente.nn.low_rank import LowRank, plain_names, with_low_rank
from kente.runs import load_weights
from kente.train.transfer import restrict

TINY = TransformerConfig(encoder_layers=1, decoder_layers=1, width=16, feedforward=24, heads=2, dropout=0.0)
FAMILIES = {
    "transformer": TINY,
    "gru": RecurrentConfig(cell="gru", width=12, embedding=10, dropout=0.0),
    "lstm-fixed": RecurrentConfig(cell="lstm", attention="none", width=12, embedding=10, dropout=0.0),
    "lstmn": IntraAttentionConfig(width=12, embedding=10, dropout=0.0),
}


def read(model: nn.Module) -> torch.Tensor:
    source = torch.tensor([[5, 6, 7, 3], [8, 9, 3, 0]])
    return model.predict(model(source, source != 0, torch.tensor([[2, 5, 6], [2, 7, 8]])))  # type: ignore[operator]


@pytest.mark.parametrize("config", FAMILIES.values(), ids=list(FAMILIES))
def test_it_begins_as_the_same_function_and_ends_as_one_matrix(config):
    torch.manual_seed(1)
    model = build(config, 20, 20).eval()
    before = read(model)
    names = set(dict(model.named_parameters()))
    with_low_rank(model, 3)
    assert torch.allclose(read(model), before, atol=1e-6)
    for module in model.modules():
        if isinstance(module, LowRank):
            nn.init.normal_(module.up, std=0.3)
    adapted = read(model)
    assert not torch.allclose(adapted, before, atol=1e-4)
    plain = build(config, 20, 20).eval()
    weights = merged({name: tensor.detach() for name, tensor in model.named_parameters()})
    assert set(weights) == names
    load_weights(plain, weights, None)  # type: ignore[arg-type]
    assert torch.allclose(read(plain), adapted, atol=1e-4)


def test_a_model_without_plain_maps_is_refused():
    shape = {"encoder_channels": (8,), "encoder_kernels": (3,), "decoder_channels": (8,), "decoder_kernels": (2,)}
    with pytest.raises(ConfigError, match="no plain linear maps"):
        restrict(build(ConvConfig(embedding=8, **shape), 20, 20), TransferConfig(lora=3))


def test_only_the_small_maps_learn():
    model = with_low_rank(build(TINY, 20, 20), 2)
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert learning and all(name.endswith((".up", ".down")) for name in learning)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    read(model).square().sum().backward()
    optimiser.step()
    moved = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert moved == {name for name in learning if name.endswith(".up")}  # B is zero, so A has no gradient yet


def test_arrays_are_merged_like_tensors_and_names_are_those_of_the_plain_model():
    model = build(TINY, 20, 20)
    names = set(plain_names(model))
    with_low_rank(model, 2)
    assert names <= set(plain_names(model))
    tensors = {name: parameter.detach() for name, parameter in model.named_parameters()}
    arrays = merged({name: tensor.numpy() for name, tensor in tensors.items()})
    for name, tensor in merged(tensors).items():
        assert torch.allclose(torch.from_numpy(arrays[name]), tensor)


def test_weights_without_small_maps_are_left_alone():
    weights = {
        "up": torch.ones(1),
        "a.up": torch.ones(2),
        "fixed.weight": torch.ones(3),
        "b.fixed.weight": torch.ones(4),
    }
    assert {name: len(tensor) for name, tensor in merged(weights).items()} == {
        name: len(t) for name, t in weights.items()
    }
