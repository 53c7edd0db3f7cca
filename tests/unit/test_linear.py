"""Products by oneDNN give what torch's own give, with their gradients, for any number of rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kente.config import RecurrentConfig, TransformerConfig
from kente.models.build import build
from kente.nn import linear as linear_module
from kente.nn.linear import FEW, NARROW, SOME, Linear, add_outer_product, filled, linear, repeated, rounding
from kente.nn.lists import Shape, in_a_list, in_heads, in_lines, listed
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
@pytest.mark.parametrize("columns", [NARROW - 24, NARROW + 16])
def test_a_product_and_its_gradients_are_those_of_torch(onednn: bool, shape: tuple[int, ...], bias: bool, columns: int):
    torch.manual_seed(1)
    layer = Linear(24, columns, bias=bias)
    x = torch.randn(*shape, 24, requires_grad=True)
    outer = torch.randn(*shape, columns)
    weights = [x, *layer.parameters()]
    found, wanted = layer(x), F.linear(x, layer.weight, layer.bias)
    torch.testing.assert_close(found, wanted, **CLOSE)
    for one, other in zip(
        torch.autograd.grad(found, weights, outer), torch.autograd.grad(wanted, weights, outer), strict=True
    ):
        assert one.is_contiguous()
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("rows", [5, FEW, FEW + 5])
def test_weights_of_a_loop_get_the_gradient_that_single_products_would_give_them(onednn: bool, rows: int):
    torch.manual_seed(1)
    layers = [Linear(80, 80, bias=False), Linear(80, 80, bias=False), Linear(80, 80)]
    x = torch.randn(rows, 80, requires_grad=True)

    def loop() -> Tensor:
        state = x
        for _ in range(4):
            state = torch.tanh(layers[0](state) + layers[1](x) + layers[2](state))
        return state.square().sum()

    weights = [x, *(weight for layer in layers for weight in layer.parameters())]
    apart = torch.autograd.grad(loop(), weights)
    with repeated():
        loss = loop()
    for one, other in zip(torch.autograd.grad(loss, weights), apart, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


def test_loops_inside_each_other_and_beside_each_other_keep_their_notes_apart(onednn: bool):
    torch.manual_seed(1)
    layer, x = Linear(80, 80, bias=False), torch.randn(FEW, 80)
    wanted = torch.autograd.grad(layer(layer(x)).sum() + layer(x).square().sum(), layer.weight)[0]
    with repeated():
        inner = layer(x)
        with repeated():
            two = layer(x).square().sum()
        one = layer(inner).sum()
    (found,) = torch.autograd.grad(one + two, layer.weight)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("pairs", [3, 9])
def test_positions_in_a_list_are_cut_into_heads_and_put_back_as_in_lines(onednn: bool, pairs: int):
    torch.manual_seed(1)
    lines = torch.randn(pairs, 11, 8, requires_grad=True)
    outer = torch.randn(pairs, 11, 8)

    def through(x: Tensor, shape: Shape | None) -> Tensor:
        a, b, _ = in_heads(torch.cat([x, 2 * x, 3 * x], dim=-1), shape, 2, 3)  # of the third nothing is wanted
        return in_lines(in_a_list(a * b, x), shape)

    expected = through(lines, None)
    assert torch.equal(expected, 2 * lines * lines)
    listing, shape = listed(lines)
    assert (shape is not None) == (onednn and pairs == 9)
    found = through(listing, shape)
    torch.testing.assert_close(found, expected)
    for one, other in zip(
        torch.autograd.grad(found, lines, outer), torch.autograd.grad(expected, lines, outer), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_sums_of_rounded_outer_products_are_added_where_no_library_takes_them(onednn: bool):
    """Rows that nobody filled up, as on a graphics card."""
    total, outer, x = torch.zeros(40, 24), torch.randn(FEW + 1, 40), torch.randn(FEW + 1, 24)
    add_outer_product(total, outer.bfloat16(), x)
    torch.testing.assert_close(total, rounded(outer).T @ x, **CLOSE)


def test_sums_of_outer_products_are_added(onednn: bool):
    torch.manual_seed(1)
    for rows in (FEW, FEW + 1, SOME + 64):
        total, outer, x = torch.randn(40, 24), torch.randn(rows, 40), torch.randn(rows, 24)
        wanted = total + outer.T @ x
        by_columns = total.T.contiguous().T
        for place in (total, by_columns):
            add_outer_product(place, outer, x)
            torch.testing.assert_close(place, wanted, **CLOSE)


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


MODELS = {
    "transformer": TransformerConfig(
        encoder_layers=1, decoder_layers=2, width=16, heads=2, feedforward=32, dropout=0.0
    ),
    "linear attention": TransformerConfig(
        encoder_layers=2, decoder_layers=1, width=16, heads=2, feedforward=32, dropout=0.0, span="linear"
    ),
    "experts": TransformerConfig(
        encoder_layers=1, decoder_layers=1, width=16, heads=2, feedforward=32, dropout=0.0, experts=3, balance=0.1
    ),
    "gru with attention": RecurrentConfig(width=16, embedding=16, dropout=0.0),
    "lstm, queries and keys": RecurrentConfig(
        width=16, embedding=16, dropout=0.0, cell="lstm", attention="projected", decoder_layers=2
    ),
    "rnn": RecurrentConfig(width=16, embedding=16, dropout=0.0, cell="rnn", attention="none"),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_reads_the_same_with_either_library(name: str, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(2)
    model = build(MODELS[name], 50, 50)
    found = []
    for choice in (True, False):
        monkeypatch.setattr(linear_module, "with_onednn", lambda choice=choice: choice)
        found.append(read(model))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


# --- factors that are rounded ---


@pytest.fixture(params=[True, False], ids=["with units", "without"])
def units(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A processor that multiplies bfloat16 itself, and one that goes on with a run of such a one."""
    monkeypatch.setattr(linear_module, "rounds_fast", lambda device="cpu": request.param)
    return bool(request.param)


def rounded(x: Tensor) -> Tensor:
    return x.detach().bfloat16().float()


@pytest.mark.parametrize("rows", [FEW, FEW + 5, SOME + 64])
@pytest.mark.parametrize("bias", [True, False])
def test_rounded_products_are_products_of_rounded_factors(onednn: bool, units: bool, rows: int, bias: bool):
    torch.manual_seed(1)
    layer, x, outer = Linear(24, 80, bias=bias), torch.randn(rows, 24, requires_grad=True), torch.randn(rows, 80)
    with rounding():
        found = layer(x)
    wanted = F.linear(rounded(x), rounded(layer.weight), layer.bias)
    result = {"rtol": 2**-7, "atol": 1e-2}  # results keep eight bits, too
    torch.testing.assert_close(found, wanted, **result)
    of_x, of_weight, *of_bias = torch.autograd.grad(found, [x, *layer.parameters()], outer)
    torch.testing.assert_close(of_x, rounded(outer) @ rounded(layer.weight), **result)
    torch.testing.assert_close(of_weight, rounded(outer).T @ rounded(x), rtol=2**-7, atol=0.2)
    for gradient in of_bias:  # which is no product
        torch.testing.assert_close(gradient, outer.sum(dim=0), **CLOSE)
    assert {tensor.dtype for tensor in (found, of_x, of_weight, *of_bias)} == {torch.float32}


def test_few_rows_and_what_is_outside_are_not_rounded(onednn: bool, units: bool):
    torch.manual_seed(1)
    layer, few, x = Linear(24, 80), torch.randn(FEW - 1, 24), torch.randn(FEW, 24)
    exact = layer(x)
    with rounding():
        assert torch.equal(layer(few), F.linear(few, layer.weight, layer.bias))
        assert not torch.equal(layer(x), exact)
        with rounding(False):
            assert torch.equal(layer(x), exact)
        with ThreadPoolExecutor(1) as pool:
            assert torch.equal(pool.submit(layer, x).result(), exact), "another thread is asked for itself"
    assert torch.equal(layer(x), exact)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_nearly_the_same_from_rounded_factors(name: str, onednn: bool, units: bool):
    """Loss and the direction of the whole gradient; other bits, or nothing would have been rounded."""
    torch.manual_seed(2)
    model = build(MODELS[name], 50, 50)
    exact = read(model)
    with rounding():
        near, again = read(model), read(model)
    assert all(torch.equal(one, other) for one, other in zip(near, again, strict=True)), "the same bits every time"
    torch.testing.assert_close(near[1], exact[1], rtol=1e-3, atol=0.0)
    one, other = (torch.cat([gradient.flatten() for gradient in found[2:]]) for found in (near, exact))
    assert not torch.equal(one, other)
    assert F.cosine_similarity(one, other, dim=0) > 0.999
    assert one.norm() == pytest.approx(other.norm().item(), rel=0.01)


@pytest.mark.parametrize("rows", [512 + 8, 512 + 88])
def test_another_device_whose_rows_are_not_filled_up_can_round_too(rows: int):
    """The last strip of the loss has any number of rows there. Kinds of numbers are checked without numbers, on torch's `meta`."""
    hidden, weight = (torch.empty(shape, device="meta", requires_grad=True) for shape in ((rows, 24), (90, 24)))
    targets = torch.empty(rows, dtype=torch.long, device="meta")
    with rounding():
        loss = linear_cross_entropy(hidden, weight, targets, 0.1)
    assert {g.dtype for g in torch.autograd.grad(loss, [hidden, weight])} == {torch.float32}
