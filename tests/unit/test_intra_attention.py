"""The LSTM with intra-attention against the equations of Cheng et al. (2016), written as loops over one sentence (cited by lecture 003)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from kente.config import IntraAttentionConfig
from kente.models.intra_attention import IntraAttentionSeq2Seq
from kente.models.summary import parameter_count, summarise
from kente.nn.dropout import Dropout
from kente.nn.intra_attention import IntraAttentionCell, blank, intra_map

TINY = IntraAttentionConfig(width=10, embedding=14)
FAMILIES = {"tied": TINY, "untied": replace(TINY, tie="none"), "target-tied": replace(TINY, tie="target")}
VOCABULARY = 23


@pytest.fixture(params=FAMILIES, ids=list(FAMILIES))
def config(request):
    return FAMILIES[request.param]


def disturb(module, seed=5):
    """Weights beyond their careful start, so that gates and attention are far from even."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.5 * torch.randn(parameter.shape, generator=generator))
    return module


def model_of(config, seed=0):
    torch.manual_seed(seed)
    return IntraAttentionSeq2Seq(config, VOCABULARY, VOCABULARY).eval()


def sentences(lengths, seed=1):
    generator = torch.Generator().manual_seed(seed)
    source = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        source[row, :length] = torch.randint(4, VOCABULARY, (length,), generator=generator)
    return source, source != 0


def targets(rows, length, seed=2):
    return torch.randint(4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


# --- oracles: one sentence, one word, one earlier word at a time ---


def softmax(energies):
    exponentials = [torch.exp(energy) for energy in energies]
    return [e / sum(exponentials) for e in exponentials]


class LoopCell:
    """The equations, with W = [W_i; W_f; W_c; W_o] and W_x cut out of the cell's stacked matrix. `inputs` maps x to both."""

    def __init__(self, cell, inputs, start):
        self.cell, self.inputs = cell, inputs
        self.h_tape, self.c_tape, self.maps = [], [], []
        self.h_summary, self.c_summary = start

    def read(self, *x):
        cell, d = self.cell, self.cell.width
        mapped = sum(matrix @ part for matrix, part in zip(self.inputs, x, strict=True))
        if self.h_tape:
            query = mapped[4 * d :] + cell.previous.weight @ self.h_summary
            weights = softmax([cell.energy @ torch.tanh(cell.key.weight @ h + query) for h in self.h_tape])
            self.h_summary = sum(s * h for s, h in zip(weights, self.h_tape, strict=True))
            self.c_summary = sum(s * c for s, c in zip(weights, self.c_tape, strict=True))
            self.maps.append(torch.stack(weights))
        i, f, candidate, o = (mapped[: 4 * d] + cell.recurrent.weight @ self.h_summary + cell.bias).chunk(4)
        c = torch.sigmoid(f) * self.c_summary + torch.sigmoid(i) * torch.tanh(candidate)
        self.h_tape.append(torch.sigmoid(o) * torch.tanh(c))
        self.c_tape.append(c)
        return self.h_tape[-1]


def zeros(cell):
    return torch.zeros(cell.width).double(), torch.zeros(cell.width).double()


@torch.inference_mode()
def test_the_cell_is_the_equations():
    torch.manual_seed(0)
    cell = disturb(IntraAttentionCell(6, 5)).double()
    x = torch.randn(1, 8, 6).double()
    loop = LoopCell(cell, [cell.input.weight], zeros(cell))
    for word in x[0]:
        loop.read(word)
    states, seen = cell(x, torch.ones(1, 8, dtype=torch.bool))
    torch.testing.assert_close(states[0, :, :5], torch.stack(loop.h_tape))
    torch.testing.assert_close(states[0, :, 5:], torch.stack(loop.c_tape))
    for t in range(1, 8):
        torch.testing.assert_close(seen[t][0], loop.maps[t - 1])


@torch.inference_mode()
def test_with_one_word_to_look_back_at_it_is_an_lstm():
    """At the second word the softmax has one place to put its weight: for two words the cell and torch's LSTM are the same."""
    torch.manual_seed(0)
    cell, lstm = disturb(IntraAttentionCell(6, 5)), nn.LSTM(6, 5, batch_first=True)
    lstm.weight_ih_l0.copy_(cell.input.weight[:20])
    lstm.weight_hh_l0.copy_(cell.recurrent.weight)
    lstm.bias_ih_l0.copy_(cell.bias)
    lstm.bias_hh_l0.zero_()
    x, mask = torch.randn(3, 4, 6), torch.ones(3, 4, dtype=torch.bool)
    states, _ = cell(x, mask)
    expected, (_, memory) = lstm(x[:, :2])
    torch.testing.assert_close(states[:, :2, :5], expected)
    torch.testing.assert_close(states[:, 1, 5:], memory[0])
    assert not torch.allclose(states[:, 3, :5], lstm(x)[0][:, 3], atol=1e-3)  # from the third word on it may choose


@torch.inference_mode()
def test_padding_never_enters_the_tape():
    """Even padding in front of a sentence changes nothing of it: its first word still finds the tape empty."""
    torch.manual_seed(0)
    cell = disturb(IntraAttentionCell(6, 5))
    x = torch.randn(1, 4, 6)
    padded = torch.cat([torch.randn(1, 3, 6), x, torch.randn(1, 2, 6)], dim=1)
    mask = torch.tensor([[False] * 3 + [True] * 4 + [False] * 2])
    states, seen = cell(x, torch.ones(1, 4, dtype=torch.bool))
    states_padded, seen_padded = cell(padded, mask)
    torch.testing.assert_close(states_padded[:, 3:7], states)
    torch.testing.assert_close(intra_map(seen_padded)[:, 3:7, 3:7], intra_map(seen))
    assert intra_map(seen_padded)[:, 3:, ~mask[0]].max() == 0


def test_a_word_with_nothing_before_it_shows_itself():
    weights = [torch.zeros(2, 0), torch.ones(2, 1), torch.tensor([[0.25, 0.75], [1.0, 0.0]])]
    expected = [[[1, 0, 0], [1, 0, 0], [0.25, 0.75, 0]], [[1, 0, 0], [1, 0, 0], [1, 0, 0]]]
    assert intra_map(weights).tolist() == expected


def test_a_blank_tape_starts_from_the_state_it_is_given():
    start = torch.arange(8.0).view(1, 8)
    tape = blank(start)
    assert tape.states.shape == (1, 0, 8) and tape.keys.shape == (1, 0, 4)
    assert torch.equal(tape.summary, start) and tape.hidden.tolist() == [[0, 1, 2, 3]]


# --- the whole model ---


@torch.inference_mode()
def test_the_model_is_the_equations(config):
    """s_i = f(s_{i-1}, y_{i-1}, c_i) with both tapes, word by word, for one sentence."""
    model = disturb(model_of(config)).double()
    source, target = sentences([6])[0], targets(1, 5)
    encoder = LoopCell(model.encoder, [model.encoder.input.weight], zeros(model.encoder))
    for word in source[0]:
        encoder.read(model.source_embedding.weight[word])
    start = encoder.h_tape[-1], encoder.c_tape[-1]
    decoder = LoopCell(model.decoder, [model.decoder.input.weight, model.context.weight], start)
    attention, state, expected, cross = model.attention, start[0], [], []
    for word in target[0]:
        y, asked = model.target_embedding.weight[word], attention.query.weight @ state
        keys = [attention.key.weight @ h + attention.key.bias for h in encoder.h_tape]
        weights = softmax([attention.energy.weight[0] @ torch.tanh(asked + key) for key in keys])
        context = sum(a * h for a, h in zip(weights, encoder.h_tape, strict=True))
        state = decoder.read(y, context)
        readout = model.readout.weight @ torch.cat([state, context, y]) + model.readout.bias
        expected.append(torch.tanh(readout))
        cross.append(torch.stack(weights))
    found = model(source, source != 0, target)
    torch.testing.assert_close(found[0], torch.stack(expected))
    torch.testing.assert_close(model.predict(found)[0], torch.stack(expected) @ model.output.weight.T)
    maps = {m.kind: m.weights[0] for m in model.look(source, source != 0, target)}
    torch.testing.assert_close(maps["cross"], torch.stack(cross))
    for t in range(1, 5):
        torch.testing.assert_close(maps["decoder"][t, :t], decoder.maps[t - 1])
        torch.testing.assert_close(maps["encoder"][t, :t], encoder.maps[t - 1])


@torch.inference_mode()
def test_the_decoder_starts_where_the_source_ends(config):
    """From the state at the last word, not at the padding behind it."""
    model = model_of(config)
    source, mask = sentences([7, 4, 1])
    states, _ = model.encoder(model.source_embedding(source), mask)
    torch.testing.assert_close(model.start(source, mask).tape.summary, states[range(3), [6, 3, 0]])


def test_the_parameters_are_those_of_the_equations():
    """A cell: 5 D E input, 4 D^2 recurrent, 2 D^2 for keys and summaries, 4 D biases, D for v; then attention, context, readout."""
    d, e = TINY.width, TINY.embedding
    cell = 5 * d * e + 4 * d * d + 2 * d * d + 4 * d + d
    attention, context, readout = 2 * d * d + d + d, 5 * d * d, (2 * d + e) * e + e
    model = model_of(TINY)
    assert parameter_count(model) == VOCABULARY * e + 2 * cell + attention + context + readout
    assert summarise(model).parameters == parameter_count(model)


# --- dropout ---


def test_dropout_only_acts_while_training():
    model = model_of(replace(TINY, dropout=0.5))
    source, mask = sentences([5, 5])
    target = targets(2, 4)
    assert torch.equal(model(source, mask, target), model(source, mask, target))
    model.train()
    assert not torch.equal(model(source, mask, target), model(source, mask, target))


def test_dropout_stands_on_words_and_before_the_output():
    model, dropped = model_of(TINY).train(), []
    for module in model.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda _module, inputs, _output: dropped.append(tuple(inputs[0].shape)))
    source, mask = sentences([5, 5])
    model(source, mask, targets(2, 4))
    assert dropped == [(2, 5, 14), (2, 4, 14), (2, 4, 14)]
