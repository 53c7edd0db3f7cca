"""Recurrent cells and the models made of them, against the lectures' equations and torch's own cells."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from kente.config import DecodeConfig, RecurrentConfig
from kente.decode.search import search
from kente.errors import ConfigError
from kente.models.build import build
from kente.models.recurrent_seq2seq import AttentiveSeq2Seq, FixedContextSeq2Seq
from kente.models.summary import parameter_count
from kente.nn.recurrent import (
    GRUCell,
    Layer,
    LSTMCell,
    MinimalGateCell,
    RNNCell,
    Stack,
    read,
    read_fused,
    reversed_within,
)
from kente.nn.scores import Additive, Bilinear, Dot, Projected

CELLS = [RNNCell, LSTMCell, GRUCell, MinimalGateCell]
sigmoid = torch.sigmoid


def gates_of(cell):
    """The matrices and biases of each gate: W x + U h + b."""
    return list(
        zip(
            cell.input.weight.split(cell.width),
            cell.recurrent.weight.split(cell.width),
            cell.input.bias.split(cell.width),
            strict=True,
        )
    )


def cell_with_biases(kind, inputs=5, width=4):
    torch.manual_seed(0)
    cell = kind(inputs, width)
    nn.init.normal_(cell.input.bias)
    return cell


def test_the_vanilla_rnn_is_lecture_000s_transition():
    """Lecture 000: f(h_{t-1}, x_t) = tanh(W x_t + U h_{t-1} + b)."""
    cell = cell_with_biases(RNNCell)
    x, h = torch.randn(3, 5), torch.randn(3, 4)
    ((w, u, b),) = gates_of(cell)
    torch.testing.assert_close(cell(x, (h,))[0], torch.tanh(x @ w.T + h @ u.T + b))


def test_the_lstm_is_lecture_000s_five_equations():
    """Lecture 000: forget, input and output gates; c = f c + i tanh(...); h = o tanh(c)."""
    cell = cell_with_biases(LSTMCell)
    x, h, c = torch.randn(3, 5), torch.randn(3, 4), torch.randn(3, 4)
    i, f, candidate, o = (x @ w.T + h @ u.T + b for w, u, b in gates_of(cell))
    memory = sigmoid(f) * c + sigmoid(i) * torch.tanh(candidate)
    visible, kept = cell(x, (h, c))
    torch.testing.assert_close(kept, memory)
    torch.testing.assert_close(visible, sigmoid(o) * torch.tanh(memory))


def test_the_minimal_gate_is_lecture_000s_gru_slide():
    """Lecture 000: g = sigmoid(W s + W x), s = (1 - g) s + g tanh(W s + W x)."""
    cell = cell_with_biases(MinimalGateCell)
    x, s = torch.randn(3, 5), torch.randn(3, 4)
    gate, candidate = (x @ w.T + s @ u.T + b for w, u, b in gates_of(cell))
    g = sigmoid(gate)
    torch.testing.assert_close(cell(x, (s,))[0], (1 - g) * s + g * torch.tanh(candidate))


def test_the_gru_updates_additively():
    """Lecture 000: h_t = u_t h_{t-1} + (1 - u_t) h~_t."""
    cell = cell_with_biases(GRUCell)
    x, h = torch.randn(3, 5), torch.randn(3, 4)
    (wr, ur, br), (wu, uu, bu), (wn, un, bn) = gates_of(cell)
    r, u = sigmoid(x @ wr.T + h @ ur.T + br), sigmoid(x @ wu.T + h @ uu.T + bu)
    candidate = torch.tanh(x @ wn.T + bn + r * (h @ un.T))
    torch.testing.assert_close(cell(x, (h,))[0], u * h + (1 - u) * candidate)


@pytest.mark.parametrize("kind", [RNNCell, LSTMCell, GRUCell])
@pytest.mark.parametrize("reset_bias", [False, True])
def test_cells_are_those_of_torch(kind, reset_bias):
    """The same weights in torch.nn, whose second bias is zero (or, for the GRU's candidate, our reset bias)."""
    if reset_bias and kind is not GRUCell:
        pytest.skip("only the GRU has a reset gate")
    torch.manual_seed(0)
    cell = GRUCell(5, 4, reset_bias=True) if reset_bias else kind(5, 4)
    theirs = {RNNCell: nn.RNNCell, LSTMCell: nn.LSTMCell, GRUCell: nn.GRUCell}[kind](5, 4)
    for parameter in cell.parameters():
        nn.init.normal_(parameter)
    theirs.weight_ih.data, theirs.weight_hh.data = cell.input.weight.data, cell.recurrent.weight.data
    theirs.bias_ih.data, theirs.bias_hh.data = (bias.data for bias in cell.kernel_biases())
    x, state = torch.randn(3, 5), tuple(torch.randn(3, 4) for _ in range(cell.parts))
    expected = theirs(x, state if kind is LSTMCell else state[0])
    for one, other in zip(cell(x, state), expected if kind is LSTMCell else (expected,), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("padded", [False, True])
def test_the_fused_path_reads_like_the_loop(kind, padded):
    """Outputs, last states and gradients."""
    torch.manual_seed(0)
    cell = kind(5, 4)
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4, [True] * 5 + [False]]) if padded else None
    x = torch.randn(3, 6, 5)
    state = tuple(torch.randn(3, 4) for _ in range(cell.parts))
    results = []
    for path in (read, read_fused):
        cell.zero_grad()
        outputs, last = path(cell, x, state, mask)
        (outputs.square().sum() + sum(part.sum() for part in last)).backward()
        results.append((outputs, *last, *(p.grad.clone() for p in cell.parameters())))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", CELLS)
def test_reading_both_ways_reads_the_mirrored_sentence(kind):
    torch.manual_seed(0)
    layer = Layer(lambda inputs: kind(inputs, 4), 5, both_ways=True)
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    x = torch.randn(2, 6, 5)
    outputs, last = layer(x, None, mask)
    for row, length in enumerate([6, 3]):
        sentence = x[row : row + 1, :length]
        right, _ = read(layer.forwards, sentence, layer.forwards.initial(1))
        left, first = read(layer.backwards, sentence.flip(1), layer.backwards.initial(1))
        torch.testing.assert_close(outputs[row, :length], torch.cat([right, left.flip(1)], -1)[0])
        torch.testing.assert_close(last[0][row], torch.cat([right[0, -1], left[0, -1]]))
        torch.testing.assert_close(last[0][row, 4:], first[0][0])
    assert outputs[1, 3:].abs().max() == 0


def test_reversing_within_twice_changes_nothing():
    mask = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
    x = torch.arange(8.0).view(2, 4, 1)
    once = reversed_within(x, mask)
    assert once[..., 0].tolist() == [[3, 2, 1, 0], [5, 4, 6, 7]]
    assert torch.equal(reversed_within(once, mask), x)


def test_residual_connections_begin_at_the_third_layer():
    torch.manual_seed(0)
    layers = [Layer(lambda inputs: RNNCell(inputs, 4), 4) for _ in range(3)]
    plain, residual = Stack(layers, 0.0), Stack(layers, 0.0, residual=True)
    x = torch.randn(2, 5, 4)
    second = layers[1](layers[0](x)[0])[0]
    torch.testing.assert_close(residual(x)[0], plain(x)[0] + second)


# --- scores ---


def test_each_score_is_its_equation():
    """Lecture 002: a(s, h) additive; lecture 001: h' W s; lecture 003: (W_K h)'(W_Q s), values W_V h; and the plain dot product."""
    torch.manual_seed(0)
    s, memory, mask = torch.randn(2, 4), torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool)
    mask[1, 3:] = False
    additive, bilinear, dot, projected = Additive(4, 4, 3), Bilinear(4, 4), Dot(4, 4), Projected(4, 4, 3)
    equations = {
        additive: lambda h, s: torch.tanh(additive.query(s) + additive.key(h)) @ additive.energy.weight[0],
        bilinear: lambda h, s: h @ bilinear.key.weight.T @ s,
        dot: lambda h, s: h @ s,
        projected: lambda h, s: projected.key(h) @ projected.query(s),
    }
    for attention, score in equations.items():
        context, weights = attention(s, *attention.prepare(memory), mask)
        for row, length in enumerate([5, 3]):
            energies = torch.stack([score(memory[row, j], s[row]) for j in range(length)]).exp()
            expected = energies / energies.sum()
            torch.testing.assert_close(weights[row, :length], expected)
            assert weights[row, length:].abs().sum() == 0
            values = memory[row] if attention is not projected else projected.value(memory[row])
            torch.testing.assert_close(context[row], expected @ values[:length])


# --- models ---

TINY = RecurrentConfig(width=8, embedding=6, dropout=0.0)


def test_the_encoder_decoder_of_lecture_002_has_its_702030_parameters():
    """Lecture 002: LSTM 74 -> 256 (338,944), LSTM 78 -> 256 (343,040), dense 256 -> 78 (20,046)."""
    config = RecurrentConfig(
        cell="lstm", attention="none", width=256, embedding=0, bidirectional="none", dropout=0.0, tie="none"
    )
    with torch.device("meta"):
        model = build(config, 74, 78, joint=False)
    counts = [parameter_count(part) for part in (model.encoder, model.decoder, model.output)]
    assert counts == [338_944, 343_040, 20_046]
    assert parameter_count(model) == 702_030


def test_a_fixed_context_decoder_begins_where_the_encoder_ended():
    """Lecture 002: q({h_1 ... h_T}) = h_T, handed to the decoder as its first state."""
    torch.manual_seed(0)
    model = build(dataclasses.replace(TINY, cell="lstm", attention="none", bidirectional="none"), 11, 11).eval()
    source = torch.tensor([[4, 5, 6, 3]])
    state = model.start(source, source != 0)
    h, c = model.encoder.layers[0].forwards.initial(1)
    for token in source[0]:
        h, c = model.encoder.layers[0].forwards(model.source_embedding(token[None]), (h, c))
    torch.testing.assert_close(state.layers[0][0], h)
    torch.testing.assert_close(state.layers[0][1], c)


@torch.inference_mode()
def test_the_attentive_decoder_is_the_equation_of_lecture_002():
    """Lecture 002: e_ij = a(s_{i-1}, h_j), c_i = sum_j alpha_ij h_j, s_i = f(s_{i-1}, y_{i-1}, c_i), p = g(y_{i-1}, s_i, c_i)."""
    torch.manual_seed(0)
    model = build(TINY, 11, 11).eval()
    source, target = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[2, 7, 8]])
    hidden = model(source, source != 0, target)[0]
    memory, ends = model.encoder(model.source_embedding(source), source != 0)
    s = torch.tanh(model.bridge.map(ends[-1][0]))
    joined = GRUCell(6 + 16, 8)
    joined.input.weight.copy_(torch.cat([model.cell.input.weight, model.context.weight], dim=1))
    joined.input.bias.copy_(model.cell.input.bias)
    joined.recurrent = model.cell.recurrent
    for i, token in enumerate(target[0]):
        y = model.target_embedding(token[None])
        energies = model.attention.scores(s[:, None], model.attention.key(memory))[:, 0]
        context = (energies.softmax(-1)[..., None] * memory).sum(1)
        (s,) = joined(torch.cat([y, context], -1), (s,))
        torch.testing.assert_close(hidden[i], torch.tanh(model.readout(torch.cat([s, context, y], -1)))[0])


def test_a_fixed_context_has_nothing_to_look_at():
    model = build(dataclasses.replace(TINY, attention="none"), 11, 11)
    source = torch.tensor([[4, 3]])
    assert isinstance(model, FixedContextSeq2Seq) and model.look(source, source != 0, source) == []


def test_gnmt_at_its_published_size():
    """Wu et al., 2016: 8 + 8 layers of 1024, the first encoder layer both ways, attention read by every decoder layer."""
    config = RecurrentConfig(
        cell="lstm", encoder_layers=8, decoder_layers=8, width=1024, embedding=1024, bidirectional="first",
        residual=True, context_to="all", tie="none",
    )  # fmt: skip
    with torch.device("meta"):
        model = build(config, 32_000, 32_000)
    assert isinstance(model, AttentiveSeq2Seq)
    lstm = lambda inputs: 4 * 1024 * (inputs + 1024 + 1)  # noqa: E731
    encoder = 2 * lstm(1024) + lstm(2048) + 6 * lstm(1024)
    decoder = 8 * lstm(2048)
    attention = 1024 * 1024 + 1024 * 1024 + 1024 + 1024
    bridge, readout, words = (1024 + 1) * 16 * 1024, (3 * 1024 + 1) * 1024, 3 * 32_000 * 1024
    assert parameter_count(model) == encoder + decoder + attention + bridge + readout + words


def test_a_dot_product_of_unlike_sizes_is_refused():
    with pytest.raises(
        ConfigError, match=r"encoder's have 16 values and the decoder's 8; set model.bidirectional=none"
    ):
        build(dataclasses.replace(TINY, attention="dot"), 11, 11)


def test_attention_without_word_vectors_is_refused():
    with pytest.raises(ConfigError, match=r"model.embedding = 0 is for a fixed context"):
        build(dataclasses.replace(TINY, embedding=0, tie="none"), 11, 11)
    with pytest.raises(ConfigError, match=r"set model.tie=none, not all"):
        dataclasses.replace(TINY, embedding=0)


# --- weights trained elsewhere ---


PHONEMES = """
<pad> <unk> <s> </s> AA0 AA1 AA2 AE0 AE1 AE2 AH0 AH1 AH2 AO0 AO1 AO2 AW0 AW1 AW2 AY0 AY1 AY2 B CH D DH EH0 EH1 EH2 ER0 ER1 ER2
EY0 EY1 EY2 F G HH IH0 IH1 IH2 IY0 IY1 IY2 JH K L M N NG OW0 OW1 OW2 OY0 OY1 OY2 P R S SH T TH UH0 UH1 UH2 UW UW0 UW1 UW2
V W Y Z ZH
"""


def g2p_model(weights) -> FixedContextSeq2Seq:
    """The GRU encoder-decoder of the package g2p-en, letter to sound, as our fixed-context model."""
    config = RecurrentConfig(
        cell="gru", attention="none", width=256, embedding=256, bidirectional="none", reset_bias=True, dropout=0.0,
        tie="none",
    )  # fmt: skip
    model = build(config, len(weights["enc_emb"]), len(weights["dec_emb"]), joint=False)
    tensors = {
        "source_embedding.weight": weights["enc_emb"],
        "target_embedding.weight": weights["dec_emb"],
        "output.weight": weights["fc_w"],
        "output.bias": weights["fc_b"],
    }
    for ours, theirs in (("encoder", "enc"), ("decoder", "dec")):
        cell = f"{ours}.layers.0.forwards"
        inner = weights[f"{theirs}_b_hh"].copy()
        tensors[f"{cell}.reset_bias"] = inner[512:].copy()
        inner[512:] = 0  # the other two gates add both biases: one will do
        tensors[f"{cell}.input.weight"] = weights[f"{theirs}_w_ih"]
        tensors[f"{cell}.recurrent.weight"] = weights[f"{theirs}_w_hh"]
        tensors[f"{cell}.input.bias"] = weights[f"{theirs}_b_ih"] + inner
    model.load_state_dict({name: torch.from_numpy(value.astype(np.float32)) for name, value in tensors.items()})
    return model.eval()


@pytest.mark.skipif(importlib.util.find_spec("g2p_en") is None, reason="needs the package g2p-en")
def test_the_weights_of_g2p_en_speak_as_they_do_at_home():
    """A real fixed-context GRU encoder-decoder: its published outputs come out of ours."""
    home = Path(importlib.util.find_spec("g2p_en").origin).parent
    weights = np.load(home / "checkpoint20.npz")
    graphemes = ["<pad>", "<unk>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
    phonemes = PHONEMES.split()
    model = g2p_model(weights)
    spoken = {}
    for word in ["activationist", "kente", "transformer", "abcdefghijklmnop", "x"]:
        source = torch.tensor([[*(graphemes.index(letter) for letter in word), 2]])
        (answers,) = search(model, source, source != 0, DecodeConfig(beam=1, max_ratio=2.0))
        spoken[word] = " ".join(phonemes[i] for i in answers[0].ids)
        assert spoken[word] == " ".join(phonemes[i] for i in as_at_home(weights, source[0].tolist()))
    assert spoken["activationist"] == "AE2 K T IH0 V EY1 SH AH0 N IH0 S T"  # as its README has it


def as_at_home(weights, source: list[int]) -> list[int]:
    """The same network step by step in numpy, as the package computes it: two biases, greedy, at most twenty sounds."""

    def step(side, x, h):
        gates_x = weights[f"{side}_w_ih"] @ x + weights[f"{side}_b_ih"]
        gates_h = weights[f"{side}_w_hh"] @ h + weights[f"{side}_b_hh"]
        r, z = np.split(1 / (1 + np.exp(-(gates_x[:512] + gates_h[:512]))), 2)
        return (1 - z) * np.tanh(gates_x[512:] + r * gates_h[512:]) + z * h

    h = np.zeros(256)
    for token in source:
        h = step("enc", weights["enc_emb"][token], h)
    written, token = [], 2
    while len(written) < 20:
        h = step("dec", weights["dec_emb"][token], h)
        token = int(np.argmax(weights["fc_w"] @ h + weights["fc_b"]))
        if token == 3:
            break
        written.append(token)
    return written
