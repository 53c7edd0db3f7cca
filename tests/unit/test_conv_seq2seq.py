"""ConvS2S against the equations of Gehring et al. (2017), written as loops, and against torch's own convolution and weight norm."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from kente.config import ConvConfig
from kente.models.conv_seq2seq import ConvSeq2Seq
from kente.models.summary import parameter_count, summarise
from kente.nn.convolution import (
    Decoder,
    Encoder,
    GatedConvolution,
    MultiStepAttention,
    NormalisedLinear,
    remember,
    scale_gradient,
    windows,
)
from kente.nn.dropout import Dropout

TINY = ConvConfig(
    embedding=12,
    encoder_channels=(16, 16, 10),
    encoder_kernels=(3, 5, 1),
    decoder_channels=(14, 14, 18),
    decoder_kernels=(3, 2, 1),
    max_length=32,
)
FAMILIES = {
    "tied": TINY,
    "untied": replace(TINY, tie="none"),
    "target-tied": replace(TINY, tie="target"),
    "short-table": replace(TINY, max_length=3),  # positions beyond the table share its last vector
}
VOCABULARY = 23
HALF = math.sqrt(0.5)


@pytest.fixture(params=FAMILIES, ids=list(FAMILIES))
def config(request):
    return FAMILIES[request.param]


def model_of(config, seed=0):
    torch.manual_seed(seed)
    return ConvSeq2Seq(config, VOCABULARY, VOCABULARY).eval()


def sentences(lengths, seed=1):
    generator = torch.Generator().manual_seed(seed)
    source = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        source[row, :length] = torch.randint(4, VOCABULARY, (length,), generator=generator)
    return source, source != 0


def targets(rows, length, seed=2):
    return torch.randint(4, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))


def disturb(module, seed=5):
    """Biases and lengths start at values that would hide a mistake (0, |v|): move every weight a little."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * parameter.std() * torch.randn(parameter.shape, generator=generator) + 0.02)
    return module


# --- oracles: one position at a time ---


def linear(layer, x):
    """w_r = l_r v_r / |v_r|"""
    rows = [length * v / v.norm() for v, length in zip(layer.direction, layer.length, strict=True)]
    return torch.stack(rows) @ x + layer.bias


def block(layer, inputs, places):
    """glu(W [x_i ...] + b) where `places` are the positions a window sees; outside the sentence there is nothing."""
    nothing = torch.zeros_like(inputs[0])
    window = [inputs[place] if 0 <= place < len(inputs) else nothing for place in places]
    a, b = linear(layer.convolution.linear, torch.cat(window)).chunk(2)
    return a * torch.sigmoid(b)


def around(layer, x):
    return x if isinstance(layer.residual, nn.Identity) else linear(layer.residual, x)


def encode(encoder, words):
    x = [linear(encoder.enter, word) for word in words]
    for layer in encoder.layers:
        reach = layer.convolution.kernel // 2
        y = [block(layer, x, range(i - reach, i + reach + 1)) for i in range(len(x))]
        x = [(y[i] + around(layer, x[i])) * HALF for i in range(len(x))]
    return [linear(encoder.leave, vector) for vector in x]


def attention(layer, h, g, z, e):
    """c_i = m sqrt(1/m) sum_j a_ij (z_j + e_j)"""
    d = (linear(layer.query, h) + g) * HALF
    m = len(z)
    energies = [torch.exp(d @ key) for key in z]
    weights = [energy / sum(energies) for energy in energies]
    context = sum(weights[j] * (z[j] + e[j]) * HALF for j in range(m)) * m * math.sqrt(1 / m)
    return (h + linear(layer.output, context)) * HALF, torch.stack(weights)


def decode(decoder, words, z, e):
    x, maps = [linear(decoder.enter, word) for word in words], []
    for layer in decoder.layers:
        k = layer.convolution.kernel
        y = [block(layer, x, range(i - k + 1, i + 1)) for i in range(len(x))]
        attended = [attention(layer.attention, y[i], words[i], z, e) for i in range(len(x))]
        x = [(attended[i][0] + around(layer, x[i])) * HALF for i in range(len(x))]
        maps.append(torch.stack([weights for _, weights in attended]))
    return torch.stack([linear(decoder.leave, vector) for vector in x]), maps


# --- layers ---


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_a_product_with_windows_is_torchs_convolution(kernel):
    """conv1d holds (outputs, channels, taps), we (outputs, taps x channels): one matrix."""
    torch.manual_seed(0)
    x, weight, bias = torch.randn(2, 9, 6), torch.randn(8, kernel * 6), torch.randn(8)
    expected = F.conv1d(x.mT, weight.view(8, kernel, 6).mT, bias).mT
    torch.testing.assert_close(F.linear(windows(x, kernel), weight, bias), expected)


def test_a_gated_convolution_is_the_equation():
    torch.manual_seed(0)
    layer = disturb(GatedConvolution(4, 5, 3, dropout=0.0))
    x = torch.randn(2, 7, 4)
    for row in range(2):
        for t in range(5):
            a, b = linear(layer.linear, torch.cat([x[row, t], x[row, t + 1], x[row, t + 2]])).chunk(2)
            torch.testing.assert_close(layer(x)[row, t], a * torch.sigmoid(b))


def test_weight_normalisation_is_torchs_own():
    torch.manual_seed(0)
    ours = disturb(NormalisedLinear(5, 7))
    theirs = nn.utils.parametrizations.weight_norm(nn.Linear(5, 7))
    with torch.no_grad():
        theirs.parametrizations.weight.original0.copy_(ours.length[:, None])
        theirs.parametrizations.weight.original1.copy_(ours.direction)
        theirs.bias.copy_(ours.bias)
    x = torch.randn(3, 4, 5)
    torch.testing.assert_close(ours(x), theirs(x))
    with torch.no_grad():
        ours.direction.mul_(3.0)  # a direction has no length
    torch.testing.assert_close(ours(x), theirs(x))


def test_attention_is_the_equation_for_sentences_of_different_lengths():
    torch.manual_seed(0)
    layer = disturb(MultiStepAttention(6, 4))
    h, g, z, e = torch.randn(2, 3, 6), torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 4)
    lengths = [5, 2]
    mask = torch.arange(5)[None] < torch.tensor(lengths)[:, None]
    found, weights = layer(h, g, remember(z, e, mask))
    for row, m in enumerate(lengths):
        for t in range(3):
            expected, expected_weights = attention(layer, h[row, t], g[row, t], z[row, :m], e[row, :m])
            torch.testing.assert_close(found[row, t], expected)
            torch.testing.assert_close(weights[row, t, :m], expected_weights)


def test_what_stands_in_padding_is_not_read():
    torch.manual_seed(0)
    encoder = disturb(Encoder(6, (8, 8, 8), (3, 3, 5), 0.0))
    x, mask = torch.randn(1, 8, 6), torch.arange(8)[None] < 5
    rubbish = torch.where(mask[..., None], x, torch.full_like(x, 1e3))
    torch.testing.assert_close(encoder(x[:, :5], mask[:, :5]), encoder(rubbish, mask)[:, :5])


def test_variance_neither_grows_nor_shrinks_with_depth():
    """Section 3.4: ten blocks deep, what comes out is of the size of what went in (for small inputs, like words at the start)."""
    torch.manual_seed(0)
    encoder = Encoder(128, (128,) * 10, (3,) * 10, 0.0)
    out = encoder(0.1 * torch.randn(4, 40, 128), torch.ones(4, 40, dtype=torch.bool))
    assert 0.8 < out.std().item() / 0.1 < 1.25


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_weights_start_as_the_paper_says(dropout):
    """Section 3.5: N(0, 4p/n) before a gate and N(0, p/n) elsewhere where inputs are dropped with 1 - p, N(0, 1/n) where not; words 0.1."""
    torch.manual_seed(0)
    config = ConvConfig(
        encoder_channels=(256, 128), encoder_kernels=(3, 3), dropout=dropout, max_length=200, tie="none"
    )
    model = ConvSeq2Seq(config, 300, 300)
    keep, first, narrowing = 1 - dropout, model.encoder.layers[0], model.encoder.layers[1]
    attend = model.decoder.layers[0].attention
    expected = {
        first.convolution.linear.direction: math.sqrt(4 * keep / (3 * 256)),
        narrowing.residual.direction: math.sqrt(1 / 256),
        model.encoder.enter.direction: math.sqrt(keep / 256),
        model.encoder.leave.direction: math.sqrt(1 / 128),
        attend.query.direction: math.sqrt(1 / 256),
        attend.output.direction: math.sqrt(1 / 256),
        model.output.weight: math.sqrt(keep / 256),
        model.source_embedding.weight: 0.1,
        model.target_positions.vectors.weight: 0.1,
    }
    for weight, deviation in expected.items():
        assert weight.std().item() == pytest.approx(deviation, rel=0.03)
    assert first.convolution.linear.bias.abs().max() == 0
    torch.testing.assert_close(attend.query.length, attend.query.direction.norm(dim=1))


def test_a_scaled_gradient_leaves_the_value():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = scale_gradient(x, 0.25)
    assert torch.equal(x, y)
    (y.sum() + x.sum()).backward()
    assert x.grad.tolist() == [1.25, 1.25]


# --- the whole model ---


@torch.inference_mode()
def test_the_model_is_the_papers_equations(config):
    """Every word of one sentence by loops over positions, layers and rows of weights."""
    model = disturb(model_of(config).double())
    source, target = sentences([6])[0], targets(1, 5)
    last = config.max_length - 1
    e = [
        model.source_embedding.weight[w] + model.source_positions.vectors.weight[min(i, last)]
        for i, w in enumerate(source[0])
    ]
    g = [
        model.target_embedding.weight[w] + model.target_positions.vectors.weight[min(i, last)]
        for i, w in enumerate(target[0])
    ]
    expected, maps = decode(model.decoder, g, encode(model.encoder, e), e)
    found = model(source, source != 0, target)
    torch.testing.assert_close(found[0], expected)
    torch.testing.assert_close(model.predict(found)[0], expected @ model.output.weight.T)
    for looked, weights in zip(model.look(source, source != 0, target), maps, strict=True):
        torch.testing.assert_close(looked.weights[0], weights)


def test_the_encoder_learns_from_the_mean_of_the_attentions():
    """The gradient is the true one divided by the number of attentions in the encoder; for the decoder it is the true one."""
    model = disturb(model_of(TINY).double())
    source, mask = sentences([5, 3])
    target = targets(2, 4)

    def loss():
        return model.predict(model(source, mask, target)).log_softmax(-1)[..., 5].sum()

    loss().backward()
    for bias, attentions in ((model.encoder.leave.bias, 3), (model.decoder.leave.bias, 1)):
        with torch.no_grad():
            bias[2] += 1e-5
            above = loss()
            bias[2] -= 2e-5
            slope = (above - loss()) / 2e-5
            bias[2] += 1e-5
        assert bias.grad[2].item() == pytest.approx(slope.item() / attentions, rel=1e-5)


def count_by_hand(vocabulary, config):
    """A map of n to m values: n m directions, m lengths, m biases. A convolution is one of k C to 2 C'."""

    def linear(n, m):
        return n * m + 2 * m

    size, total = config.embedding, vocabulary * config.embedding + 2 * config.max_length * config.embedding
    for side in ("encoder", "decoder"):
        channels, kernels = getattr(config, f"{side}_channels"), getattr(config, f"{side}_kernels")
        total += linear(size, channels[0]) + linear(channels[-1], size)
        before = channels[0]
        for c, k in zip(channels, kernels, strict=True):
            total += linear(k * before, 2 * c) + (linear(before, c) if before != c else 0)
            total += linear(c, size) + linear(size, c) if side == "decoder" else 0
            before = c
    return total


def test_the_published_size_has_the_parameters_that_follow_from_it():
    """WMT'14 English-German: 15 layers on each side, 512 x 9 and 768 x 4 of kernel 3, 2048 x 2 of kernel 1."""
    channels, kernels = (512,) * 9 + (768,) * 4 + (2048,) * 2, (3,) * 13 + (1,) * 2
    config = ConvConfig(
        embedding=512,
        encoder_channels=channels,
        encoder_kernels=kernels,
        decoder_channels=channels,
        decoder_kernels=kernels,
    )
    with torch.device("meta"):
        model = ConvSeq2Seq(config, 40_000, 40_000)
    assert parameter_count(model) == count_by_hand(40_000, config)
    assert summarise(model).parameters == parameter_count(model)


def test_the_tiny_size_has_the_parameters_that_follow_from_it():
    assert parameter_count(model_of(TINY)) == count_by_hand(VOCABULARY, TINY)


# --- dropout ---


def test_dropout_only_acts_while_training():
    model = model_of(replace(TINY, dropout=0.5))
    source, mask = sentences([5, 5])
    target = targets(2, 4)
    assert torch.equal(model(source, mask, target), model(source, mask, target))
    model.train()
    assert not torch.equal(model(source, mask, target), model(source, mask, target))


def test_dropout_stands_where_the_paper_puts_it():
    """On words with their positions, before each convolution, and on what the decoder gives."""
    model, dropped = model_of(TINY).train(), []
    for module in model.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda _module, inputs, _output: dropped.append(tuple(inputs[0].shape)))
    source, mask = sentences([5, 5])
    model(source, mask, targets(2, 4))
    words, blocks, output = [12], [16, 16, 16], [12]  # the size of what enters, layer by layer
    assert [shape[-1] for shape in dropped if shape[1] == 5] == words + blocks
    assert [shape[-1] for shape in dropped if shape[1] == 4] == [*words, 14, 14, 14, *output]


def test_a_decoder_begins_at_the_edge_of_the_sentence():
    """The inputs before the first word are zeros, as many as each kernel reaches back."""
    decoder = Decoder(6, (8, 4), (3, 1), 0.0)
    edge = decoder.edge(torch.ones(2, 5, 6))
    assert [tuple(part.shape) for part in edge] == [(2, 2, 8), (2, 0, 8)]
    assert edge[0].abs().max() == 0
