"""Products by oneDNN give what torch's own give, with their gradients, for any number of rows."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kente.config import RecurrentConfig, TransformerConfig
from kente.models.build import build
from kente.nn import linear as linear_module
from kente.nn.linear import FEW, SOME, Linear, add_outer_product, filled, linear
from kente.nn.loss import linear_cross_entropy

pytestmark = pytest.mark.skipif(
    not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")),
    reason="this torch has no oneDNN",
)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(params=[True, False], ids=["oneDNN", "torch"])
def onednn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whichever this processor would choose, both are tried."""
    monkeypatch.setattr(linear_module, "with_onednn", lambda: request.param)
    return bool(request.param)


@pytest.mark.parametrize("shape", [(1,), (FEW,), (FEW + 16,), (SOME + 64,), (8, 80), (7, 13)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_and_its_gradients_are_those_of_torch(onednn: bool, shape: tuple[int, ...], bias: bool):
    torch.manual_seed(1)
    layer = Linear(24, 40, bias=bias)
    x = torch.randn(*shape, 24, requires_grad=True)
    outer = torch.randn(*shape, 40)
    weights = [x, *layer.parameters()]
    found, wanted = layer(x), F.linear(x, layer.weight, layer.bias)
    torch.testing.assert_close(found, wanted, **CLOSE)
    for one, other in zip(
        torch.autograd.grad(found, weights, outer), torch.autograd.grad(wanted, weights, outer), strict=True
    ):
        assert one.is_contiguous()
        torch.testing.assert_close(one, other, **CLOSE)


def test_sums_of_outer_products_are_added(onednn: bool):
    torch.manual_seed(1)
    for rows in (FEW, FEW + 1, SOME + 64):
        total, outer, x = torch.randn(40, 24), torch.randn(rows, 40), torch.randn(rows, 24)
        wanted = total + outer.T @ x
        add_outer_product(total, outer, x)
        torch.testing.assert_close(total, wanted, **CLOSE)


@pytest.mark.parametrize("rows", [1, FEW, FEW + 1, SOME, SOME + 1, 2000])
def test_filling_up_leaves_the_rows_and_makes_few_sizes(onednn: bool, rows: int):
    x = torch.randn(rows, 3)
    more = filled(x, 7.0)
    assert torch.equal(more[:rows], x) and (more[rows:] == 7).all()
    if not onednn or rows < FEW:
        assert more is x
    else:
        assert len(more) % (16 if rows <= SOME else 64) == 0 and len(more) - rows < 64


def test_what_needs_no_gradient_gets_none(onednn: bool):
    x, weight = torch.randn(FEW, 8), torch.randn(5, 8, requires_grad=True)
    assert linear(x, weight).requires_grad and not linear(x, weight.detach()).requires_grad
    with torch.no_grad():
        assert not linear(x, weight).requires_grad


def read(model: torch.nn.Module) -> list[Tensor]:
    """The hidden vectors of 90 pairs, the loss of their words and its gradients."""
    generator = torch.Generator().manual_seed(3)
    source, target = (torch.randint(4, 50, (90, length), generator=generator) for length in (9, 11))
    mask = torch.arange(9) < torch.randint(1, 10, (90, 1), generator=generator)
    hidden = model(source, mask, target)
    output: torch.nn.Module = model.output  # type: ignore[assignment]
    bias = getattr(output, "bias", None)
    loss = linear_cross_entropy(hidden.flatten(0, 1), output.weight, target.flatten(), 0.1, bias)  # type: ignore[arg-type]
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    return [hidden, loss / target.numel(), *torch.autograd.grad(loss / target.numel(), weights)]


@pytest.mark.parametrize(
    "config",
    [
        TransformerConfig(encoder_layers=1, decoder_layers=2, width=16, heads=2, feedforward=32, dropout=0.0),
        TransformerConfig(
            encoder_layers=2, decoder_layers=1, width=16, heads=2, feedforward=32, dropout=0.0, span="linear"
        ),
        TransformerConfig(
            encoder_layers=1, decoder_layers=1, width=16, heads=2, feedforward=32, dropout=0.0, experts=3, balance=0.1
        ),
        RecurrentConfig(width=16, embedding=16, dropout=0.0),
    ],
    ids=["transformer", "linear attention", "experts", "gru with attention"],
)
def test_a_model_reads_the_same_with_either_library(
    config: TransformerConfig | RecurrentConfig, monkeypatch: pytest.MonkeyPatch
):
    torch.manual_seed(2)
    model = build(config, 50, 50)
    found = []
    for choice in (True, False):
        monkeypatch.setattr(linear_module, "with_onednn", lambda choice=choice: choice)
        found.append(read(model))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
