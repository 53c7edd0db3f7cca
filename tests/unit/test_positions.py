"""Where a word stands: what each scheme knows, against the lectures' claims and the papers' equations written as loops."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from kente.config import TransformerConfig
from kente.models.transformer import Transformer
from kente.nn.attention import SelfAttention
from kente.nn.masks import padding_mask
from kente.nn.past import no_past, open_column
from kente.nn.positions import (
    Alibi,
    Relative,
    RelativeSinusoid,
    Rotary,
    Sinusoid,
    alibi_slopes,
    sinusoid,
    sinusoid_fairseq,
    sinusoid_halves,
)

TINY = TransformerConfig(encoder_layers=2, decoder_layers=2, width=16, feedforward=32, heads=2, relative_distance=3)
SCHEMES = ["sinusoid", "learned", "rotary", "relative", "alibi", "xl"]
INSIDE = ["rotary", "relative", "alibi", "xl"]
CLOSE = {"atol": 2e-5, "rtol": 1e-4}


def model_with(positions, **settings):
    torch.manual_seed(0)
    return Transformer(replace(TINY, positions=positions, **settings), 23, 23).eval()


def attention_with(positions, dropout=0.0):
    """Self-attention of width 16 in 2 heads, with the part that knows positions."""
    torch.manual_seed(0)
    turn = Rotary(8) if positions == "rotary" else None
    inside = {"relative": lambda: Relative(3, 8), "alibi": lambda: Alibi(2), "xl": lambda: RelativeSinusoid(16, 2)}
    meet = inside.get(positions)
    layer = SelfAttention(16, 2, dropout, turn, meet()) if meet else SelfAttention(16, 2, dropout, turn)
    return layer.eval()


def projections(layer, x):
    """Queries, keys and values of head 0 for a single sentence (1, T, 16): three times (T, 8)."""
    return (part[0, :, :8] for part in layer.query_key_value(x).chunk(3, dim=-1))


def written_out(scores, values):
    """softmax and weighted sum over lists: scores[i] holds (score, j) of everything i may see, values[i][j] what it gets there."""
    rows = []
    for i, row in enumerate(scores):
        powers = [(math.exp(score), j) for score, j in row]
        total = sum(power for power, _ in powers)
        rows.append(sum(power / total * values[i][j] for power, j in powers))
    return torch.stack(rows)


def head_zero(layer, x, **how):
    """The first head's context before the output matrix."""
    layer.output.weight.data = torch.eye(16)
    context, _ = layer(x, **how)
    return context[0, :, :8]


# --- what the lectures say ---


@torch.inference_mode()
def test_without_positions_the_encoder_is_blind_to_order():
    """Lecture 000: ATT(A, B, C) = ATT(B, C, A). Moved words take their vectors along, and the decoder cannot tell at all."""
    model, order = model_with("none"), torch.tensor([3, 0, 5, 1, 4, 2])
    source, target = torch.randint(4, 23, (2, 6)), torch.randint(4, 23, (2, 5))
    mask = torch.ones_like(source, dtype=torch.bool)
    torch.testing.assert_close(model.encode(source[:, order], mask), model.encode(source, mask)[:, order], **CLOSE)
    torch.testing.assert_close(model(source[:, order], mask, target), model(source, mask, target), **CLOSE)


@pytest.mark.parametrize("positions", SCHEMES)
@torch.inference_mode()
def test_with_positions_order_matters(positions):
    """Lecture 000: with a sense of position ABC and BCA differ, for the encoder and for the answer."""
    model, order = model_with(positions), torch.tensor([3, 0, 5, 1, 4, 2])
    source, target = torch.randint(4, 23, (2, 6)), torch.randint(4, 23, (2, 5))
    mask = torch.ones_like(source, dtype=torch.bool)
    moved, there = model.encode(source[:, order], mask), model.encode(source, mask)[:, order]
    assert (moved - there).abs().max() > 1e-2
    assert (model(source[:, order], mask, target) - model(source, mask, target)).abs().max() > 1e-3


@torch.inference_mode()
def test_sinusoids_tell_any_two_places_apart():
    """Lectures 001 and 004: a formula, defined at every length; no two of 5,000 positions have the same code."""
    code = Sinusoid(16)(torch.zeros(1, 5000, 16))[0]
    assert torch.equal(code, sinusoid(5000, 16))
    apart = torch.cdist(code.double(), code.double()).fill_diagonal_(1.0)
    assert apart.min() > 1e-3


@pytest.mark.parametrize("positions", SCHEMES)
@torch.inference_mode()
def test_only_learned_positions_end(positions):
    """Lectures 000 and 001: words swapped beyond a learned table of 8 go unnoticed; every other scheme notices."""
    model = model_with(positions, max_length=8)
    source = torch.arange(4, 20)[None]
    swapped = source.clone()
    swapped[0, 9], swapped[0, 14] = source[0, 14], source[0, 9]
    mask, target = torch.ones_like(source, dtype=torch.bool), torch.tensor([[2, 5, 6]])
    difference = (model(source, mask, target) - model(swapped, mask, target)).abs().max()
    assert difference < 2e-5 if positions == "learned" else difference > 1e-4


# --- distances are all that is felt inside attention ---


@pytest.mark.parametrize("positions", INSIDE)
@torch.inference_mode()
def test_shifting_all_positions_changes_nothing(positions):
    """A sentence read from place 40 on, behind places that nobody may look at, has the same vectors as one read from the start."""
    layer, x = attention_with(positions), torch.randn(1, 7, 16)
    shifted = torch.cat([torch.randn(1, 40, 16), x], dim=1)
    mask = torch.arange(47)[None] >= 40
    expected, _ = layer(x)
    context, _ = layer(shifted, padding_mask(mask))
    torch.testing.assert_close(context[:, 40:], expected, **CLOSE)


@torch.inference_mode()
def test_shifting_changes_what_is_added_to_the_words():
    """The contrast: a sinusoid says where a word stands, not how far it is from another."""
    layer, code, x = attention_with("none"), Sinusoid(16), torch.randn(1, 7, 16)
    assert (layer(code(x, torch.arange(40, 47)))[0] - layer(code(x))[0]).abs().max() > 1e-2


@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_rotary_is_a_turn_of_each_pair_by_its_place(causal):
    """Su et al. (2021), equation 15: (x1, x2) at place m turns by the angle m 10000^(-2i/K)."""
    layer, x = attention_with("rotary"), torch.randn(1, 6, 16)
    queries, keys, values = projections(layer, x)

    def turned(vector, place):
        out = []
        for i in range(4):
            angle = place * 10_000 ** (-2 * i / 8)
            a, b = float(vector[2 * i]), float(vector[2 * i + 1])
            out += [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
        return torch.tensor(out)

    scores = [
        [(float(turned(queries[i], i) @ turned(keys[j], j)) / math.sqrt(8), j) for j in range(i + 1 if causal else 6)]
        for i in range(6)
    ]
    expected = written_out(scores, [values] * 6)
    torch.testing.assert_close(head_zero(layer, x, causal=causal), expected, **CLOSE)


@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_relative_positions_are_vectors_added_to_keys_and_values(causal):
    """Shaw et al. (2018), equations 3 and 4, with distances clipped to 3 in a sentence of 9."""
    layer, x = attention_with("relative"), torch.randn(1, 9, 16)
    queries, keys, values = projections(layer, x)
    key_vectors, value_vectors = layer.meet.keys.weight, layer.meet.values.weight  # rows are distances -3 .. 3

    def row(i, j):
        return max(-3, min(3, j - i)) + 3

    scores = [
        [
            (float(queries[i] @ (keys[j] + key_vectors[row(i, j)])) / math.sqrt(8), j)
            for j in range(i + 1 if causal else 9)
        ]
        for i in range(9)
    ]
    expected = written_out(scores, [[values[j] + value_vectors[row(i, j)] for j in range(9)] for i in range(9)])
    torch.testing.assert_close(head_zero(layer, x, causal=causal), expected, **CLOSE)


@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_alibi_takes_the_distance_from_the_score(causal):
    """Press et al. (2022), section 3: the first of two heads has the slope 2^-4."""
    layer, x = attention_with("alibi"), torch.randn(1, 9, 16)
    queries, keys, values = projections(layer, x)
    scores = [
        [(float(queries[i] @ keys[j]) / math.sqrt(8) - 2**-4 * abs(i - j), j) for j in range(i + 1 if causal else 9)]
        for i in range(9)
    ]
    expected = written_out(scores, [values] * 9)
    torch.testing.assert_close(head_zero(layer, x, causal=causal), expected, **CLOSE)


@pytest.mark.parametrize("length", [6, 11], ids=["few queries", "many"])
@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_transformer_xl_scores_words_and_distances_each_with_a_bias(causal, length):
    """Dai et al. (2019), section 3.3: (q + u) . k_j + (q + v) . W r_{i-j}, the code of a distance being a sinusoid's."""
    layer, x = attention_with("xl"), torch.randn(1, length, 16)
    meet = layer.meet
    meet.any_word.normal_()
    meet.any_distance.normal_()
    queries, keys, values = projections(layer, x)
    u, v, matrix = meet.any_word[0, 0], meet.any_distance[0, 0], meet.distance.weight[:8]

    def code(distance):
        angles = [distance / 10_000 ** (2 * i / 16) for i in range(8)]
        return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)])

    def score(i, j):
        return float((queries[i] + u) @ keys[j] + (queries[i] + v) @ matrix @ code(i - j)) / math.sqrt(8)

    scores = [[(score(i, j), j) for j in range(i + 1 if causal else length)] for i in range(length)]
    expected = written_out(scores, [values] * length)
    torch.testing.assert_close(head_zero(layer, x, causal=causal), expected, **CLOSE)


@torch.inference_mode()
def test_transformer_xl_knows_distances_that_no_table_held_yet():
    """A word 600 places behind is scored by its distance, whether the sentence is read in one go or word by word."""
    layer, x = attention_with("xl"), torch.randn(1, 600, 16)
    read, _ = layer(x, causal=True)
    fresh = attention_with("xl")
    past, kin = no_past(1, torch.empty(1, 2, 0, 8)), torch.empty(1, 0, dtype=torch.bool)
    for place in range(600):
        past, kin, column = open_column(past, kin)
        step = fresh.step(x[:, place], past.layers[0], column)
    torch.testing.assert_close(step, read[:, -1], **CLOSE)


def test_alibi_slopes_are_the_papers():
    """8 heads: 1/2 .. 1/256; 16 heads: 2^-0.5, 2^-1 .. 2^-8; 12 heads: the 8, then those between them from the steepest on."""
    eight = [2.0**-h for h in range(1, 9)]
    torch.testing.assert_close(alibi_slopes(8), torch.tensor(eight))
    torch.testing.assert_close(alibi_slopes(16), torch.tensor([2 ** (-h / 2) for h in range(1, 17)]))
    torch.testing.assert_close(alibi_slopes(12), torch.tensor([*eight, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]))
    torch.testing.assert_close(alibi_slopes(1), torch.tensor([2.0**-8]))
    for heads in range(1, 40):
        assert len(alibi_slopes(heads).unique()) == heads


# --- the paths agree ---


@pytest.mark.parametrize("positions", INSIDE)
@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_looking_changes_nothing(positions, causal):
    """The visible path and the one that translates agree; visible weights sum to one and are zero where nobody may look."""
    layer, x = attention_with(positions), torch.randn(2, 6, 16)
    real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    mask = None if causal else padding_mask(real)
    quick, none = layer(x, mask, causal=causal)
    visible, weights = layer(x, mask, causal=causal, visible=True)
    torch.testing.assert_close(quick, visible, **CLOSE)
    assert none is None
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 6))
    assert (weights.triu(1) if causal else weights[1, :, :, 4:]).max() == 0


@pytest.mark.parametrize("positions", INSIDE)
@torch.inference_mode()
def test_a_growing_past_equals_reading_in_one_go(positions):
    """Also further back than the clipped distance of 3."""
    layer, x = attention_with(positions), torch.randn(2, 9, 16)
    read, _ = layer(x, causal=True)
    past, kin = no_past(1, torch.empty(2, 2, 0, 8)), torch.empty(2, 0, dtype=torch.bool)
    for place in range(9):
        past, kin, column = open_column(past, kin)
        torch.testing.assert_close(layer.step(x[:, place], past.layers[0], column), read[:, place], **CLOSE)


@pytest.mark.parametrize("positions", SCHEMES)
@torch.inference_mode()
def test_writing_word_by_word_equals_reading_in_one_go(positions):
    model = model_with(positions)
    source, target = torch.randint(4, 23, (2, 7)), torch.randint(4, 23, (2, 9))
    mask = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    read, state = model.predict(model(source, mask, target)), model.start(source, mask)
    for place in range(9):
        step = model.step(state, target[:, place])
        state = step.state
        torch.testing.assert_close(step.logits, read[:, place], **CLOSE)


@pytest.mark.parametrize("positions", INSIDE)
def test_positions_inside_attention_leave_the_words_as_they_are(positions):
    model, x = model_with(positions), torch.randn(2, 5, 16)
    assert torch.equal(model.source_positions(x), x) and torch.equal(model.target_positions(x, torch.tensor([3])), x)


@pytest.mark.parametrize("positions", INSIDE)
def test_attention_dropout_acts_while_training_and_follows_the_seed(positions):
    layer, x = attention_with(positions, dropout=0.5), torch.randn(1, 6, 16)
    still, _ = layer(x)
    layer.train()
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(layer(x)[0])
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.allclose(drawn[0], drawn[2]) and not torch.allclose(drawn[0], still)


def test_every_relative_vector_within_reach_learns():
    """In a sentence longer than the reach each distance occurs; in a decoder those to the right never do."""
    layer, x = attention_with("relative"), torch.randn(1, 6, 16)
    for causal, learning in [(False, [True] * 7), (True, [True] * 4 + [False] * 3)]:
        layer.zero_grad()
        layer(x, causal=causal)[0].square().sum().backward()
        for table in (layer.meet.keys, layer.meet.values):
            assert (table.weight.grad.abs().sum(dim=1) > 0).tolist() == learning


def test_each_layer_has_relative_vectors_of_its_own_and_alibi_has_nothing_to_save():
    names = {name for name, _ in model_with("relative").named_parameters() if ".meet." in name}
    assert names == {
        f"{stack}.layers.{layer}.attention.meet.{table}.weight"
        for stack in ("encoder", "decoder")
        for layer in (0, 1)
        for table in ("keys", "values")
    }
    assert model_with("alibi").state_dict().keys() == model_with("none").state_dict().keys()


# --- as other programs write sinusoids ---


def test_halves_are_the_papers_numbers_with_sines_before_cosines():
    code = sinusoid_halves(7, 8)
    for place in range(7):
        for i in range(4):
            angle = place / 10_000 ** (2 * i / 8)
            assert code[place, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert code[place, 4 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_fairseqs_waves_begin_at_place_two_and_reach_ten_thousand():
    code = sinusoid_fairseq(7, 8)
    for place in range(7):
        for i in range(4):
            angle = (place + 2) * math.exp(-i * math.log(10_000) / 3)
            assert code[place, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert code[place, 4 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("code", [sinusoid_halves, sinusoid_fairseq])
def test_a_table_that_grows_keeps_what_it_said(code):
    positions, x = Sinusoid(8, code), torch.zeros(1, 300, 8)
    torch.testing.assert_close(positions(x)[0, :5], code(5, 8))
    torch.testing.assert_close(positions(x[:, :1], torch.tensor([[299]]))[0, 0], code(300, 8)[299])
