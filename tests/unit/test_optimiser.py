"""Schedules against their equations, Muon against the polar factor, states that come back bit for bit."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from kente.config import OptimiserConfig, TransformerConfig
from kente.models.build import build
from kente.train.optimiser import Muon, Optimiser, of_size_one, orthogonalise, rate_at, square_blocks


def config(**settings):
    return OptimiserConfig(**({"rate": 2.0, "warmup": 10} | settings))


def test_noam_is_the_papers_equation_3():
    noam = config(schedule="noam", warmup=4000, rate=1.0)
    for step in (1, 100, 4000, 4001, 100_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert rate_at(noam, step, 0.0, 512) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("schedule", "progress", "expected"),
    [
        ("linear", 0.25, 1.5),
        ("linear", 1.0, 0.0),
        ("cosine", 0.5, 1.0),
        ("cosine", 1.0, 0.0),
        ("wsd", 0.6, 2.0),
        ("wsd", 0.85, 1.0),
        ("constant", 0.9, 2.0),
    ],
)
def test_schedules_after_warm_up(schedule, progress, expected):
    assert rate_at(config(schedule=schedule), 1000, progress, 128) == pytest.approx(expected)


def test_inverse_square_root_falls_from_the_end_of_warm_up():
    assert rate_at(config(schedule="inverse-sqrt"), 40, 0.0, 128) == pytest.approx(2.0 * math.sqrt(10 / 40))


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "linear", "cosine", "wsd", "constant"])
def test_warm_up_rises_in_a_line(schedule):
    assert rate_at(config(schedule=schedule), 5, 0.0, 128) == pytest.approx(1.0)


def test_a_final_rate_is_where_the_schedule_ends():
    assert rate_at(config(schedule="linear", final_rate=0.1), 1000, 1.0, 128) == pytest.approx(0.2)


def test_orthogonalise_comes_close_to_the_polar_factor():
    torch.manual_seed(0)
    matrices = torch.randn(3, 8, 8)
    u, _, v = torch.linalg.svd(matrices)
    result = orthogonalise(matrices)
    singular = torch.linalg.svdvals(result)
    assert singular.min() > 0.3 and singular.max() < 1.6
    cosine = (result * (u @ v)).sum((1, 2)) / (result.norm(dim=(1, 2)) * (u @ v).norm(dim=(1, 2)))
    assert cosine.min() > 0.95


@pytest.mark.parametrize("spread", [1.0, 10.0, 60.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(48, 48), (24, 60)])
def test_singular_values_come_close_to_one_whatever_they_were(shape, scale, spread):
    """The size of a matrix does not matter; the largest singular value may be many times the smallest."""
    torch.manual_seed(1)
    rows = shape[0]
    u, v = torch.linalg.qr(torch.randn(rows, rows))[0], torch.linalg.qr(torch.randn(shape[1], rows))[0]
    values = torch.logspace(0, -math.log10(spread), rows) * scale
    result = orthogonalise((u * values @ v.T)[None])
    singular = torch.linalg.svdvals(result)
    assert singular.min() > 0.7 and singular.max() < 1.3


def test_nothing_to_make_orthogonal_stays_nothing():
    assert orthogonalise(torch.zeros(2, 4, 4)).equal(torch.zeros(2, 4, 4))


@pytest.mark.parametrize(("shape", "blocks"), [((6, 2), 3), ((2, 6), 3), ((4, 4), 1), ((5, 3), 1)])
def test_square_blocks_are_views_that_cover_the_matrix(shape, blocks):
    matrix = torch.zeros(shape)
    parts = square_blocks(matrix)
    assert len(parts) == blocks and sum(part.numel() for part in parts) == matrix.numel()
    for part in parts:
        part += 1
    assert torch.equal(matrix, torch.ones(shape))


def test_muon_moves_each_block_as_if_it_stood_alone():
    torch.manual_seed(0)
    stacked, lone = nn.Parameter(torch.zeros(8, 4)), nn.Parameter(torch.zeros(4, 4))
    gradient = torch.randn(8, 4)
    stacked.grad, lone.grad = gradient.clone(), gradient[4:].clone()
    for parameter in (stacked, lone):
        Muon([parameter], 0.95, 0.0).step(0.1)
    torch.testing.assert_close(stacked.detach()[4:], lone.detach())
    rms = lone.detach().square().mean().sqrt().item()
    assert rms == pytest.approx(0.1 * 0.2, rel=0.3)  # as large as an AdamW update at the same rate


def test_muon_in_turns_moves_every_block_as_often_and_as_far_together():
    torch.manual_seed(0)
    gradient = torch.randn(12, 4)  # three blocks, the same gradient at every update: momentum keeps its direction

    def moved(turns, updates):
        parameter = nn.Parameter(torch.zeros(12, 4))
        muon = Muon([parameter], 0.95, 0.0, turns)
        for _ in range(updates):
            parameter.grad = gradient.clone()
            muon.step(0.1)
        return parameter.detach()

    torch.testing.assert_close(moved(2, 4), moved(1, 4), atol=1e-4, rtol=1e-3)
    first = moved(2, 1)
    assert first[:4].any() and first[8:].any() and not first[4:8].any()


def test_a_tall_matrix_is_orthogonalised_too():
    torch.manual_seed(0)
    tall = nn.Parameter(torch.zeros(5, 3))
    tall.grad = torch.randn(5, 3)
    Muon([tall], 0.95, 0.0).step(0.1)
    assert tall.detach().abs().sum() > 0


def small_model():
    torch.manual_seed(0)
    return build(
        TransformerConfig(encoder_layers=1, decoder_layers=1, width=16, feedforward=32, heads=2, dropout=0.0), 20, 20
    )


def learn(model, optimiser, steps):
    source, target = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[2, 7, 8]])
    losses = []
    for _ in range(steps):
        optimiser.zero()
        logits = model.predict(model(source, source != 0, target))
        loss = nn.functional.cross_entropy(logits[0], torch.tensor([7, 8, 3]))
        loss.backward()
        optimiser.step(0.01, optimiser.gradient_norm())
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_both_learn(kind):
    model = small_model()
    losses = learn(model, Optimiser(model, config(kind=kind)), 30)
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize(("kind", "turns"), [("adamw", 1), ("muon", 1), ("muon", 2)])
def test_a_saved_state_goes_on_bit_for_bit(kind, turns):
    unbroken = small_model()
    optimiser = Optimiser(unbroken, config(kind=kind, turns=turns, weight_decay=0.1))
    learn(unbroken, optimiser, 3)
    saved = {name: tensor.clone() for name, tensor in optimiser.state().items()}
    weights = {name: p.detach().clone() for name, p in unbroken.named_parameters()}
    learn(unbroken, optimiser, 2)
    resumed = small_model()
    for name, parameter in resumed.named_parameters():
        parameter.data.copy_(weights[name])
    again = Optimiser(resumed, config(kind=kind, turns=turns, weight_decay=0.1))
    again.load(saved)
    learn(resumed, again, 2)
    for (name, a), (_, b) in zip(unbroken.named_parameters(), resumed.named_parameters(), strict=True):
        assert torch.equal(a, b), name


def test_muon_leaves_embeddings_norms_and_biases_to_adamw():
    model = small_model()
    optimiser = Optimiser(model, config(kind="muon"))
    by_adamw = {optimiser.names[id(p)] for group in optimiser.adamw.param_groups for p in group["params"]}
    assert "source_embedding.weight" in by_adamw
    assert all("norm" in name or "bias" in name or "embedding" in name for name in by_adamw)


def test_clipping_limits_the_step_by_the_whole_gradient():
    model = small_model()
    optimiser = Optimiser(model, config(clip=0.5))
    source, target = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[2, 7, 8]])
    (100 * model.predict(model(source, source != 0, target)).sum()).backward()
    norm = optimiser.gradient_norm()
    assert norm > 0.5
    optimiser.step(1e-9, norm)
    assert optimiser.gradient_norm().item() == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("power", [-130, -126, -100, -60, -33, -20, 20, 100])
def test_the_size_of_a_gradient_changes_no_digit_of_its_direction(power):
    """A training of the demo ended because the smallest gradients gave infinite updates."""
    torch.manual_seed(1)
    matrices = torch.randn(3, 16, 24)
    small = matrices * 2.0 ** (power // 2) * 2.0 ** (power - power // 2)
    found, wanted = orthogonalise(small), orthogonalise(matrices)
    if power > -126:
        assert torch.equal(found, wanted)
    else:  # numbers so small have fewer digits
        torch.testing.assert_close(found, wanted, rtol=0.1, atol=0.1)
    assert torch.equal(orthogonalise(torch.zeros(2, 4, 4)), torch.zeros(2, 4, 4))


def test_powers_of_two_are_exact():
    for power in range(-126, 126):
        one = torch.full((1, 1, 1), 2.0**power)
        assert of_size_one(one).item() == 0.5, power
