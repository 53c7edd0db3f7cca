"""Many to one: the parameter tables of lecture 002, and both attention layers against their equations in plain Python."""

from __future__ import annotations

import math

import pytest
import torch

from kente.models.many_to_one import AttentiveManyToOne, FreeSteps, ManyToOne, ScoredSteps
from kente.models.summary import parameter_count

STEPS, WIDTH = 20, 2


def test_the_parameter_table_without_attention():
    """Lecture 002: (1 + 2 + 1) 2 = 8 in the recurrence, (2 + 1) 1 = 3 in the dense layer, 11 in all."""
    model = ManyToOne()
    assert (parameter_count(model.cell), parameter_count(model.dense), parameter_count(model)) == (8, 3, 11)


@pytest.mark.parametrize("form", [ScoredSteps, FreeSteps])
def test_the_parameter_table_with_attention(form):
    """Lecture 002: 8 in the recurrence, 22 in the attention layer, 3 in the dense layer, 33 in all."""
    model = AttentiveManyToOne(form(STEPS, WIDTH))
    counts = [parameter_count(part) for part in (model.cell, model.attention, model.dense, model)]
    assert counts == [8, 22, 3, 33]


def test_the_two_forms_split_their_22_parameters_the_other_way_round():
    """Lecture 002 counts 20 weights and 2 biases; the tutorial it cites has 2 weights and 20 biases."""
    scored, free = ScoredSteps(STEPS, WIDTH), FreeSteps(STEPS, WIDTH)
    assert (scored.weight.numel(), scored.bias.numel()) == (2, 20)
    assert (free.weight.numel(), free.bias.numel()) == (20, 2)


def test_without_attention_the_answer_is_read_off_the_last_state():
    """Lecture 002: h_t = tanh(U x_t + W h_{t-1} + b), y = V h_T + b, one number at a time."""
    torch.manual_seed(1)
    model = ManyToOne().double()
    x = torch.randn(3, 7, 1, dtype=torch.float64)
    u, w, b = (
        weights.tolist() for weights in (model.cell.input.weight, model.cell.recurrent.weight, model.cell.input.bias)
    )
    for row, answer in zip(x, model(x), strict=True):
        h = [0.0, 0.0]
        for value in row[:, 0].tolist():
            h = [math.tanh(u[i][0] * value + w[i][0] * h[0] + w[i][1] * h[1] + b[i]) for i in range(2)]
        expected = model.dense.weight[0, 0] * h[0] + model.dense.weight[0, 1] * h[1] + model.dense.bias[0]
        assert answer.item() == pytest.approx(expected.item(), abs=1e-12)


def test_scored_steps_are_a_softmax_over_time():
    """The tutorial lecture 002 cites: e_t = tanh(w . h_t + b_t), a = softmax(e), c = sum_t a_t h_t."""
    torch.manual_seed(1)
    layer = ScoredSteps(4, 2).double()
    layer.bias.data.normal_()
    states = torch.randn(1, 4, 2, dtype=torch.float64)
    scores = [
        math.tanh(sum((layer.weight * h).tolist()) + b) for h, b in zip(states[0], layer.bias.tolist(), strict=True)
    ]
    total = sum(map(math.exp, scores))
    weights = [math.exp(score) / total for score in scores]
    expected = [sum(a * float(h[i]) for a, h in zip(weights, states[0], strict=True)) for i in range(2)]
    assert layer.weights(states)[0].tolist() == pytest.approx(weights)
    assert layer(states)[0].tolist() == pytest.approx(expected)


def test_free_steps_are_the_slides_own_sum():
    """Lecture 002: c_1 = sum_t alpha_t h_t1 + b_1 and c_2 = sum_t alpha_t h_t2 + b_2; weights need not sum to one."""
    layer = FreeSteps(3, 2)
    layer.weight.data = torch.tensor([-0.5, 0.25, 2.0])
    layer.bias.data = torch.tensor([0.1, -0.2])
    states = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]])
    expected = [-0.5 * 1 + 0.25 * 3 + 2.0 * 5 + 0.1, -0.5 * 2 + 0.25 * 4 + 2.0 * 6 - 0.2]
    assert layer(states)[0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("form", [ScoredSteps, FreeSteps])
def test_attention_answers_from_every_state_where_the_plain_model_sees_the_last(form):
    torch.manual_seed(1)
    model = AttentiveManyToOne(form(5, WIDTH))
    states, _ = torch.nn.RNN(1, WIDTH, batch_first=True)(torch.randn(1, 5, 1))
    states = states.detach().requires_grad_()
    model.attention(states).sum().backward()
    assert (states.grad.abs().sum(dim=-1) > 0).all()
