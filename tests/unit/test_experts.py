"""A mixture of experts against a loop over words, and the loss that keeps experts equally busy."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from kente.config import OptimiserConfig, TransformerConfig
from kente.data.batches import collate
from kente.models.summary import parameter_count, summarise
from kente.models.transformer import Transformer
from kente.nn.experts import Experts, balance
from kente.nn.transformer import FeedForward
from kente.train.objectives import CrossEntropy, HasSideLoss, mean_loss
from kente.train.optimiser import Optimiser

TINY = TransformerConfig(
    encoder_layers=2, decoder_layers=1, width=16, feedforward=32, heads=2, dropout=0.0, experts=4, experts_used=2
)
CLOSE = {"atol": 2e-5, "rtol": 1e-4}


def mixture(experts=4, used=2, activation="relu"):
    torch.manual_seed(0)
    return Experts(8, [FeedForward(8, 12, activation) for _ in range(experts)], used)


def model_of(config=TINY):
    torch.manual_seed(0)
    return Transformer(config, 23, 23)


def pairs(seed=1):
    """Three pairs of unlike lengths: both sides are padded."""
    generator = torch.Generator().manual_seed(seed)
    sides = [
        [torch.randint(4, 23, (length,), generator=generator).tolist() for length in lengths]
        for lengths in ((6, 2, 4), (3, 5, 1))
    ]
    return collate(*sides)


# --- the layer ---


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
@pytest.mark.parametrize("used", [1, 2, 3, 4])
@torch.inference_mode()
def test_each_word_is_the_weighted_sum_of_its_experts(used, activation):
    """Shazeer et al. (2017), equation 1, over the best `used` of softmax(W x): one word after the other, one expert after the other."""
    layer, x = mixture(used=used, activation=activation), torch.randn(3, 5, 8)
    out = layer(x)
    for b in range(3):
        for t in range(5):
            chance = (layer.router.weight @ x[b, t]).softmax(0)
            best = sorted(range(4), key=lambda e: -float(chance[e]))[:used]
            total = sum(chance[e] for e in best) if used > 1 else 1.0
            expected = sum(chance[e] / total * layer.experts[e](x[b, t]) for e in best)
            torch.testing.assert_close(out[b, t], expected, atol=1e-5, rtol=1e-4)


def test_a_single_expert_is_the_plain_feed_forward_network():
    layer, x = mixture(experts=1, used=1), torch.randn(2, 5, 8)
    torch.testing.assert_close(layer(x), layer.experts[0](x))


def test_an_expert_computes_only_the_words_that_chose_it():
    layer, x, seen = mixture(used=1), torch.randn(2, 5, 8), []
    for expert in layer.experts:
        expert.register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]))
    layer(x)
    chosen = (x @ layer.router.weight.T).argmax(-1)
    assert [len(words) for words in seen] == [int((chosen == e).sum()) for e in range(4)]
    for e, words in enumerate(seen):
        assert torch.equal(words, x[chosen == e])


def test_a_word_does_not_feel_its_neighbours():
    """No expert is ever full: the words beside a word never change its vector."""
    layer, x = mixture(), torch.randn(1, 1, 8)
    crowd = torch.cat([x + 1e-3 * torch.randn(1, 50, 8), x, torch.randn(1, 9, 8)], dim=1)
    torch.testing.assert_close(layer(crowd)[:, 50:51], layer(x), **CLOSE)


def test_the_same_input_gives_the_same_bits():
    layer, x = mixture(), torch.randn(4, 9, 8)
    results = []
    for _ in range(2):
        layer.zero_grad()
        out = layer(x)
        out.square().sum().backward()
        results.append([out, *(p.grad.clone() for p in layer.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("used", [1, 2])
def test_the_router_learns_from_the_words_alone(used):
    layer, x = mixture(used=used), torch.randn(3, 5, 8)
    layer(x).square().sum().backward()
    assert layer.router.weight.grad.abs().max() > 1e-4


def test_an_expert_nobody_chose_has_a_gradient_of_zeros():
    """Not none: an optimiser may count on every weight's gradient."""
    layer = mixture(experts=3, used=1)
    layer.router.weight.data = torch.tensor([[1.0], [-1.0], [-2.0]]).expand(3, 8).clone()
    layer(torch.rand(2, 5, 8)).sum().backward()
    assert layer.experts[0].inner.weight.grad.abs().sum() > 0
    for idle in layer.experts[1:]:
        assert all(p.grad is not None and not p.grad.any() for p in idle.parameters())


# --- the balance ---


def test_balance_is_one_when_all_are_equally_busy():
    chosen = torch.tensor([[[0, 1], [2, 3], [1, 2], [3, 0]]])
    even = balance(torch.full((1, 4, 4), 0.25), chosen, torch.ones(1, 4).bool())
    torch.testing.assert_close(even, torch.tensor(1.0))


@pytest.mark.parametrize("experts", [2, 5])
def test_balance_is_the_number_of_experts_when_one_gets_everything(experts):
    probabilities = nn.functional.one_hot(torch.ones(2, 3, dtype=torch.long), experts).float()
    collapsed = balance(probabilities, torch.ones(2, 3, 1, dtype=torch.long), torch.ones(2, 3).bool())
    torch.testing.assert_close(collapsed, torch.tensor(float(experts)))


def test_balance_is_the_papers_sum_over_real_words():
    """Fedus et al. (2022), equations 4 to 6, counted by hand."""
    torch.manual_seed(0)
    probabilities = torch.randn(2, 5, 3).softmax(-1)
    chosen = probabilities.topk(2).indices
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    words = [(b, t) for b in range(2) for t in range(5) if mask[b, t]]
    expected = 0.0
    for expert in range(3):
        visits = sum(int(expert in chosen[b, t].tolist()) for b, t in words)
        mean = sum(float(probabilities[b, t, expert]) for b, t in words) / len(words)
        expected += 3 * visits / (2 * len(words)) * mean
    assert balance(probabilities, chosen, mask).item() == pytest.approx(expected)


def test_balance_pushes_the_busiest_expert_down():
    layer, x, mask = mixture(used=1), torch.randn(2, 9, 8), torch.ones(2, 9).bool()
    layer.router.weight.data[2] += x.mean((0, 1)) * 3
    layer(x)
    busiest = layer.routing.chosen.flatten().bincount().argmax()
    gradient = torch.autograd.grad(
        layer.routing.probabilities.mean((0, 1))[busiest], layer.router.weight, retain_graph=True
    )
    layer.take_balance(mask).backward()
    assert (
        layer.router.weight.grad * gradient[0]
    ).sum() > 0  # going against the gradient makes that expert less likely


def test_a_reading_is_remembered_only_while_training_and_only_once():
    layer, x, mask = mixture(), torch.randn(2, 5, 8), torch.ones(2, 5).bool()
    layer(x)
    assert layer.take_balance(mask) is not None and layer.take_balance(mask) is None
    layer(x)
    layer.eval()(x)
    assert layer.routing is None
    layer.train()
    with torch.inference_mode():
        layer(x)
    assert layer.routing is None


def busiest_share(weight: float) -> float:
    """Train on a toy problem, from a router that prefers one expert; the share of visits of the busiest expert at the end."""
    layer, generator = mixture(used=1), torch.Generator().manual_seed(3)
    with torch.no_grad():
        layer.router.weight[0, 0] += 2.0
    goal = torch.randn(8, 8, generator=generator)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.01)
    mask = torch.ones(4, 16).bool()
    shares = torch.zeros(4)
    for step in range(150):
        x = torch.randn(4, 16, 8, generator=generator)
        x[..., 0] = x[..., 0].abs() + 0.5  # all words look alike to that expert
        loss = (layer(x) - (x @ goal).tanh()).square().mean()
        if step >= 130:
            shares += layer.routing.chosen.flatten().bincount(minlength=4)
        loss = loss + weight * layer.take_balance(mask)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(shares.max() / shares.sum())


def test_training_with_balance_keeps_experts_more_evenly_busy():
    unequal, equal = busiest_share(0.0), busiest_share(0.1)
    assert equal < 0.45 < 0.7 < unequal


# --- inside the Transformer ---


@torch.inference_mode()
def test_writing_word_by_word_equals_reading_in_one_go():
    model, batch = model_of().eval(), pairs()
    read = model.predict(model(batch.source, batch.source_mask, batch.target_input))
    state = model.start(batch.source, batch.source_mask)
    for place in range(batch.target_input.shape[1]):
        step = model.step(state, batch.target_input[:, place])
        state = step.state
        torch.testing.assert_close(step.logits, read[:, place], **CLOSE)


def test_padding_counts_for_nothing():
    """Other ids where the padding stands change neither a real word's vector nor the side loss."""
    model, batch = model_of(), pairs()
    hidden = model(batch.source, batch.source_mask, batch.target_input)
    side = model.side_loss(batch.source_mask, batch.target_mask)
    source = torch.where(batch.source_mask, batch.source, 9)
    target = torch.where(batch.target_mask, batch.target_input, 11)
    again = model(source, batch.source_mask, target)
    torch.testing.assert_close(again[batch.target_mask], hidden[batch.target_mask], **CLOSE)
    torch.testing.assert_close(model.side_loss(batch.source_mask, batch.target_mask), side)


def test_the_side_loss_is_the_mean_balance_of_all_layers():
    model, batch = model_of(replace(TINY, balance=0.5)), pairs()
    model(batch.source, batch.source_mask, batch.target_input)
    layers = [*model.encoder.layers, *model.decoder.layers]
    masks = [batch.source_mask, batch.source_mask, batch.target_mask]
    routes = [layer.feedforward.routing for layer in layers]
    balances = [balance(r.probabilities, r.chosen, mask) for r, mask in zip(routes, masks, strict=True)]
    expected = 0.5 * sum(balances) / 3
    torch.testing.assert_close(model.side_loss(batch.source_mask, batch.target_mask), expected)


def test_the_side_loss_joins_the_training_loss_once_for_each_token():
    model, batch = model_of(replace(TINY, balance=0.5)), pairs()
    loss = CrossEntropy(0.1)(model, batch)
    hidden = model(batch.source, batch.source_mask, batch.target_input)[batch.target_mask]
    side = model.side_loss(batch.source_mask, batch.target_mask)
    words = nn.functional.cross_entropy(
        model.predict(hidden), batch.target_output[batch.target_mask], reduction="sum", label_smoothing=0.1
    )
    assert side > 0.5 * 0.9
    torch.testing.assert_close(loss.total / loss.tokens, words / loss.tokens + side)


def test_validation_hears_nothing_of_the_side_loss():
    model, batch = model_of(replace(TINY, balance=100.0)).eval(), pairs()
    assert mean_loss(model, [batch]) < 20
    assert model.side_loss(batch.source_mask, batch.target_mask) is None


def test_without_experts_there_is_no_side_loss():
    model, batch = model_of(replace(TINY, experts=0)), pairs()
    model(batch.source, batch.source_mask, batch.target_input)
    assert isinstance(model, HasSideLoss) and not isinstance(nn.Linear(2, 2), HasSideLoss)
    assert model.side_loss(batch.source_mask, batch.target_mask) is None


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_a_mixture_learns_with_either_optimiser(kind):
    model, batch, objective = model_of(), pairs(), CrossEntropy()
    optimiser, losses = Optimiser(model, OptimiserConfig(kind=kind)), []
    for _ in range(60):
        optimiser.zero()
        loss = objective(model, batch)
        (loss.total / loss.tokens).backward()
        optimiser.step(0.01, optimiser.gradient_norm())
        losses.append(float(loss.total.detach()) / loss.tokens)
    assert losses[-1] < 0.3 < 2 < losses[0]


def test_a_mixture_can_be_summed_up_without_its_numbers():
    """Built on the meta device, where nothing can be routed by value: every expert is listed and counted."""
    with torch.device("meta"):
        model = Transformer(TINY, 23, 23)
    summary = summarise(model)
    rows = {row.name: row for row in summary.rows}
    assert rows["encoder.layers.0.feedforward.router"].weights == "4x16"
    assert rows["decoder.layers.0.feedforward.experts.3.outer"].parameters == 32 * 16 + 16
    plain = parameter_count(model_of(replace(TINY, experts=0)))
    one = 2 * 16 * 32 + 32 + 16
    assert summary.parameters == plain + 3 * (3 * one + 4 * 16)
