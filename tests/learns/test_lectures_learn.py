"""The lectures' claims at full size: what the small tests cannot see, because it takes training."""

from __future__ import annotations

import pytest

from kente.lectures import bottleneck, fibonacci, gradients, heads, mask, meanings, order, unrolled

pytestmark = pytest.mark.learns


def test_gates_and_attention_recall_what_a_plain_recurrence_forgets():
    """Lecture 000: its gradient vanishes in a product of Jacobians; an additive update keeps a short-cut open."""
    data = gradients.explore().data
    far = data["length"] - 1
    assert min(data["right"][name][far] for name in ("LSTM", "GRU", "attention")) > 0.95
    assert data["right"]["RNN"][far] < 0.75
    assert data["before"]["RNN"][-1] < 1e-4 < data["before"]["LSTM"][-1] < data["before"]["attention"][-1]
    assert data["after"]["GRU"][-1] > 100 * data["before"]["GRU"][-1]


def test_gates_and_attention_look_at_what_must_be_remembered():
    """Lecture 000: unrolled gates are weights over all earlier candidates; attention frees them."""
    data = unrolled.explore().data
    assert min(data["right"].values()) > 0.95
    assert 2 / 16 < data["on_mark"]["gates"] < 0.5 < data["on_mark"]["attention"]


def test_positions_restore_order_and_none_of_these_carries_to_twice_the_length():
    """Lecture 000: blind without positions. Lecture 001: learned positions cannot extrapolate; nor, here, does the sinusoid."""
    data = order.explore(kinds=("none", "sinusoid", "learned")).data
    assert abs(data["none"]["by_length"][10] - order.blind_guess(10)) < 0.06
    assert data["sinusoid"]["by_length"][10] > 0.97 and data["learned"]["by_length"][10] > 0.85
    assert max(data["sinusoid"]["beyond"], data["learned"]["beyond"]) < order.blind_guess(10)


def test_one_vector_is_a_bottleneck_and_attention_is_none():
    """Lectures 000 and 002: a fixed-length context cannot remember long sentences."""
    data = bottleneck.explore().data
    assert data["whole"]["attention"][12] > 0.95
    assert data["whole"]["fixed context"][4] > 0.95 and data["whole"]["fixed context"][12] < 0.3


def test_free_weights_over_time_help_with_fibonacci_more_often_than_not():
    """Lecture 002: lower test error with attention. True of the slide's own layer; the cited tutorial's is no better than none."""
    found = fibonacci.explore(seeds=30)
    better = {scale: fibonacci.Measured(**found.data[scale]).better("attention, slide") for scale in fibonacci.SCALES}
    assert better["as in the lecture"] > 15 and better["logarithms"] > 20


def test_a_small_translator_is_good_enough_to_be_looked_into():
    """Lecture 004: the masked table of "Je vais bien"; heads that differ, as lecture 001 has it."""
    table, seen = mask.explore().data, heads.explore().data
    assert table["ahead"] == 0
    between = [value for row, line in enumerate(seen["divergence"]) for value in line[:row]]
    assert min(between) > 0.1
    right = int(table["about"].split("(")[1].split("%")[0])
    assert right > 75


def test_an_encoder_gives_a_word_two_vectors_and_word2vec_one():
    """Lecture 004: contextual embeddings tell the meanings of a word apart, context-free ones cannot."""
    data = meanings.explore().data
    one, two = data["word_vectors"], data["encoder"]
    assert one["within"] == pytest.approx(one["between"]) and abs(one["right"] - 0.5) < 0.01
    assert two["right"] > 0.95 and two["within"] - two["between"] > 0.1
    assert {near["scene"] for near in data["neighbours"]} != {"river"} and data["neighbours"]
