"""Layers against their equations, written out as loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from kente.nn.attention import (
    CrossAttention,
    SelfAttention,
    ask,
    attend,
    dot_scores,
    multi_head,
)
from kente.nn.dropout import Dropout
from kente.nn.lists import join_heads, split_heads
from kente.nn.loss import linear_cross_entropy
from kente.nn.masks import as_numbers, causal_mask, padding_mask
from kente.nn.positions import Learned, Rotary, Sinusoid, sinusoid
from kente.nn.transformer import FeedForward, Residual


def test_attend_is_the_weighted_sum_of_the_lectures():
    """Lecture 000: h = sum_i a_i v_i with a_i proportional to exp(score_i); lecture 004: softmax(Q K' / sqrt(d)) V."""
    torch.manual_seed(0)
    queries, keys, values = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 4)
    context, weights = attend(dot_scores(queries, keys), values)
    for j in range(3):
        scores = [math.exp(float(queries[j] @ keys[i]) / math.sqrt(4)) for i in range(5)]
        expected = sum(score / sum(scores) * values[i] for i, score in enumerate(scores))
        torch.testing.assert_close(context[j], expected)
        torch.testing.assert_close(weights[j], torch.tensor(scores) / sum(scores))


def test_a_masked_place_has_no_weight():
    scores, values = torch.zeros(1, 2, 4), torch.eye(4)[None]
    mask = torch.tensor([[[True, False, True, True], [True, False, False, False]]])
    context, weights = attend(scores, values, mask)
    torch.testing.assert_close(weights[0, 0], torch.tensor([1 / 3, 0, 1 / 3, 1 / 3]))
    torch.testing.assert_close(context[0, 1], torch.tensor([1.0, 0, 0, 0]))


def test_the_decoder_mask_is_the_table_of_lecture_004():
    """<sos> Je vais bien: each word sees itself and what stands before it, nothing to its right."""
    expected = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]).bool()
    assert torch.equal(causal_mask(4), expected)
    assert torch.equal(causal_mask(1, past=3), torch.ones(1, 4).bool())


@pytest.mark.parametrize("causal", [False, True])
def test_visible_and_fused_attention_are_equal(causal):
    torch.manual_seed(0)
    queries, keys, values = (torch.randn(2, 3, 6, 8) for _ in range(3))
    mask = None if causal else padding_mask(torch.tensor([[True] * 6, [True] * 4 + [False] * 2]))
    fused, none = multi_head(queries, keys, values, mask, causal=causal)
    visible, weights = multi_head(queries, keys, values, mask, causal=causal, visible=True)
    assert none is None and weights is not None
    torch.testing.assert_close(fused, visible, atol=1e-5, rtol=1e-5)


def test_heads_split_and_join():
    x = torch.arange(24.0).view(1, 2, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (1, 3, 2, 4)
    torch.testing.assert_close(heads[0, 1, 0], torch.tensor([4.0, 5, 6, 7]))
    assert torch.equal(join_heads(heads), x)


def test_self_attention_is_multi_head_attention_of_torch():
    """The same weights in nn.MultiheadAttention give the same answer."""
    torch.manual_seed(0)
    ours, theirs = SelfAttention(16, 4), nn.MultiheadAttention(16, 4, bias=False, batch_first=True)
    theirs.in_proj_weight.data.copy_(ours.query_key_value.weight)
    theirs.out_proj.weight.data.copy_(ours.output.weight)
    x, mask = torch.randn(2, 5, 16), torch.tensor([[True] * 5, [True, True, True, False, False]])
    expected, expected_weights = theirs(x, x, x, key_padding_mask=~mask, average_attn_weights=False)
    context, weights = ours(x, padding_mask(mask), visible=True)
    torch.testing.assert_close(context, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=1e-5)


def test_cross_attention_takes_queries_from_the_target_and_the_rest_from_the_source():
    """Lecture 004: Q = M W_Q, K = R W_K, V = R W_V."""
    torch.manual_seed(0)
    ours, theirs = CrossAttention(16, 4), nn.MultiheadAttention(16, 4, bias=False, batch_first=True)
    theirs.in_proj_weight.data.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
    theirs.out_proj.weight.data.copy_(ours.output.weight)
    target, source = torch.randn(2, 3, 16), torch.randn(2, 5, 16)
    expected, _ = theirs(target, source, source)
    context, weights = ours(target, ours.project(source))
    assert weights is None
    torch.testing.assert_close(context, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("sentences", "group", "others"), [(40, 1, 20), (40, 1, 5), (40, 5, 12), (3, 1, 20), (40, 9, 20), (1, 1, 1)]
)
@torch.inference_mode()
def test_asking_while_writing_is_attention_in_every_head(sentences, group, others):
    """Whatever way it goes: few or many sentences, queries, keys."""
    torch.manual_seed(0)
    queries = torch.randn(sentences, group, 4, 8).transpose(1, 2)  # as they come out of a product
    keys, values = torch.randn(2, sentences, 4, others + 7, 8)[:, :, :, :others]
    mask = torch.rand(sentences, 1, group, others) < 0.8
    mask[..., 0] = True
    for allowed, numbers in (
        (mask, as_numbers(mask, keys)),
        (None, None),
        (mask[:, :, :1], as_numbers(mask[:, :, :1], keys)),
    ):
        expected, _ = multi_head(queries, keys, values, allowed, visible=True)
        torch.testing.assert_close(ask(queries, keys, values, numbers), join_heads(expected), atol=1e-5, rtol=1e-5)


def test_sinusoid_is_the_equation_of_lecture_001():
    table = sinusoid(50, 16)
    for position in range(50):
        for i in range(8):
            angle = position / 10_000 ** (2 * i / 16)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_sinusoid_of_width_four_is_the_matrix_of_lecture_004():
    """I am good: rows are sin(pos), cos(pos), sin(pos/100), cos(pos/100)."""
    expected = [[math.sin(p), math.cos(p), math.sin(p / 100), math.cos(p / 100)] for p in range(3)]
    torch.testing.assert_close(sinusoid(3, 4), torch.tensor(expected))


def test_sinusoid_goes_on_beyond_its_table():
    layer = Sinusoid(8)
    far = layer(torch.zeros(1, 3, 8), torch.arange(1000, 1003))
    torch.testing.assert_close(far[0], sinusoid(1003, 8)[1000:])


@pytest.mark.parametrize("layer", [Sinusoid(8), Learned(12, 8)])
def test_words_of_each_sentence_may_stand_elsewhere(layer):
    code = layer(torch.zeros(1, 12, 8))[0]
    for positions in (torch.tensor([[4, 5, 6], [0, 2, 11]]), torch.tensor([[7], [1]])):
        placed = layer(torch.zeros(2, 3, 8), positions)
        torch.testing.assert_close(placed, code[positions].expand(2, 3, 8))


def test_learned_positions_beyond_the_last_share_it():
    layer = Learned(4, 8)
    out = layer(torch.zeros(1, 6, 8))
    assert torch.equal(out[0, 3], out[0, 5]) and not torch.equal(out[0, 2], out[0, 3])


def test_rotary_scores_depend_on_distance_only():
    torch.manual_seed(0)
    rotary, q, k = Rotary(8), torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)

    def score(query_place: int, key_place: int) -> float:
        return float((rotary(q, torch.tensor([query_place])) * rotary(k, torch.tensor([key_place]))).sum())

    assert score(5, 3) == pytest.approx(score(305, 303), abs=1e-4)
    assert score(5, 3) != pytest.approx(score(5, 1), abs=1e-3)
    assert rotary(q) == pytest.approx(q)


def test_attention_alone_is_blind_to_order():
    """Lecture 000: ATT(A, B, C) = ATT(B, C, A) until positions are added."""
    torch.manual_seed(0)
    layer, x, order = SelfAttention(16, 4), torch.randn(1, 5, 16), torch.tensor([3, 0, 4, 1, 2])
    plain, _ = layer(x)
    moved, _ = layer(x[:, order])
    torch.testing.assert_close(moved, plain[:, order], atol=1e-5, rtol=1e-5)
    placed, _ = layer(Sinusoid(16)(x))
    placed_moved, _ = layer(Sinusoid(16)(x[:, order]))
    assert not torch.allclose(placed_moved, placed[:, order], atol=1e-2)


def test_feed_forward_is_two_matrices_with_relu_between():
    torch.manual_seed(0)
    layer, x = FeedForward(4, 8, "relu"), torch.randn(3, 4)
    expected = (x @ layer.inner.weight.T + layer.inner.bias).clamp(min=0) @ layer.outer.weight.T + layer.outer.bias
    torch.testing.assert_close(layer(x), expected)


def test_swiglu_gates():
    torch.manual_seed(0)
    layer, x = FeedForward(4, 8, "swiglu"), torch.randn(3, 4)
    gate, value = layer.inner.weight[:8], layer.inner.weight[8:]
    expected = (nn.functional.silu(x @ gate.T) * (x @ value.T)) @ layer.outer.weight.T
    torch.testing.assert_close(layer(x), expected)


def test_post_norm_and_pre_norm_put_the_norm_where_they_say():
    x, norm = torch.randn(2, 4), nn.LayerNorm(4)
    post, pre = Residual(norm, 0.0, pre=False), Residual(norm, 0.0, pre=True)
    torch.testing.assert_close(post.leave(x, post.enter(x).sin()), norm(x + x.sin()))
    torch.testing.assert_close(pre.leave(x, pre.enter(x).sin()), x + norm(x).sin())


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("tokens", [1, 255, 600])
def test_the_loss_in_strips_is_cross_entropy_of_torch(smoothing, tokens, biased):
    torch.manual_seed(0)
    hidden, weight = torch.randn(tokens, 8, requires_grad=True), torch.randn(30, 8, requires_grad=True)
    bias = torch.randn(30, requires_grad=True) if biased else None
    learned = [hidden, weight, bias] if biased else [hidden, weight]
    targets = torch.randint(0, 30, (tokens,))
    ours = linear_cross_entropy(hidden, weight, targets, smoothing, bias)
    logits = nn.functional.linear(hidden, weight, bias)
    theirs = nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs)
    for mine, expected in zip(
        torch.autograd.grad(ours / 7, learned), torch.autograd.grad(theirs / 7, learned), strict=True
    ):
        torch.testing.assert_close(mine, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("alone", ["hidden", "weight", "bias"])
def test_the_loss_in_strips_teaches_whichever_part_learns(alone):
    torch.manual_seed(0)
    parts = {"hidden": torch.randn(9, 8), "weight": torch.randn(30, 8), "bias": torch.randn(30)}
    parts[alone].requires_grad_()
    targets = torch.randint(0, 30, (9,))
    ours = linear_cross_entropy(parts["hidden"], parts["weight"], targets, 0.1, parts["bias"])
    logits = nn.functional.linear(*parts.values())
    theirs = nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=0.1)
    for mine, expected in zip(
        torch.autograd.grad(ours, parts[alone]), torch.autograd.grad(theirs, parts[alone]), strict=True
    ):
        torch.testing.assert_close(mine, expected, atol=1e-5, rtol=1e-4)


def test_the_loss_in_strips_needs_no_gradient():
    hidden, weight, targets = torch.randn(5, 8), nn.Parameter(torch.randn(30, 8)), torch.randint(0, 30, (5,))
    with torch.inference_mode():
        ours = linear_cross_entropy(hidden, weight, targets)
        theirs = nn.functional.cross_entropy(hidden @ weight.T, targets, reduction="sum")
    assert not ours.requires_grad
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_dropout_silences_its_share_and_keeps_the_mean(p):
    torch.manual_seed(0)
    layer, x = Dropout(p), torch.ones(1000, 999)
    out = layer(x)
    assert (out == 0).float().mean().item() == pytest.approx(p, abs=0.004)
    assert out.mean().item() == pytest.approx(1.0, abs=0.002)
    assert len(out.unique()) == 2
    rows = (out == 0).float().mean(0)  # no column is favoured: each byte of the random words is as good as the next
    assert rows.min() > p - 0.08 and rows.max() < p + 0.08


def test_dropout_follows_the_seed_and_lets_gradients_through_where_values_pass():
    layer, x = Dropout(0.5), torch.ones(64, requires_grad=True)
    torch.manual_seed(5)
    first = layer(x)
    torch.manual_seed(5)
    second = layer(x)
    assert torch.equal(first, second)
    second.sum().backward()
    assert torch.equal(x.grad, second.detach())


def test_dropout_is_nothing_at_rest_or_at_zero():
    x = torch.randn(9)
    assert Dropout(0.5).eval()(x) is x and Dropout(0.0)(x) is x


def test_rotary_turns_by_complex_numbers_as_it_does_pair_by_pair():
    torch.manual_seed(2)
    rotary, up = Rotary(6), torch.randn(2, 3, 5, 6)
    x = torch.randn(2, 5, 3, 7)[..., 1:].transpose(1, 2)  # neither contiguous nor at an even place
    found = []
    for numbers in (torch.float32, torch.float64):
        leaf = x.to(numbers).requires_grad_()
        turned = rotary(leaf, torch.tensor([9, 0, 4, 300, 2]))
        found.append((turned.double(), torch.autograd.grad(turned, leaf, up.to(numbers))[0].double()))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layer", [Sinusoid(8), Rotary(8)])
def test_tables_grown_while_translating_still_train(layer):
    x = torch.randn(1, 1, 600, 8) if isinstance(layer, Rotary) else torch.randn(1, 600, 8)
    with torch.inference_mode():
        layer(x)
    weight = torch.ones(8, requires_grad=True)
    (layer(x * weight) ** 2).sum().backward()
    assert weight.grad is not None
