"""The layers of "Convolutional Sequence to Sequence Learning" (Gehring et al., 2017): gated convolutions and attention in every decoder layer.

block:       y_i = glu(W [x_{i-k/2}; ...; x_{i+k/2}] + b) + x_i      with  glu([A; B]) = A * sigmoid(B)
attention:   d_i = W h_i + b + g_i,   a_i = softmax_j(d_i . z_j),   c_i = m sqrt(1/m) sum_j a_ij (z_j + e_j)

There are no norms over activations. Variance is kept by arithmetic: every sum of two terms is multiplied by sqrt(1/2), and the
context by m sqrt(1/m) for m source words (section 3.4); weights start with the variance that suits what follows (section 3.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from kente.nn.attention import attend
from kente.nn.dropout import Dropout
from kente.nn.linear import linear

SHRINK = math.sqrt(0.5)
"""The sum of two independent terms of one variance, times this, has that variance again."""


def windows(x: Float[Tensor, "B L C"], kernel: int) -> Float[Tensor, "B T C*{kernel}"]:
    """[x_t; x_{t+1}; ...; x_{t+k-1}] for every t that has them all: a convolution is then one matrix product."""
    length = x.shape[1] - kernel + 1
    return torch.cat([x[:, tap : tap + length] for tap in range(kernel)], dim=-1) if kernel > 1 else x


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """x going forward; its gradient times `factor` coming back."""
    if x.requires_grad:
        x = x.view_as(x)  # the hook stays with this use of x
        x.register_hook(lambda gradient: gradient * factor)
    return x


class NormalisedLinear(nn.Module):
    """y = W x + b  with row w_r = l_r v_r / |v_r|: a direction and a length, learned apart (Salimans and Kingma, 2016).

    v ~ N(0, variance / inputs) and l = |v|, b = 0 at the start.
    """

    def __init__(self, inputs: int, outputs: int, variance: float = 1.0):
        super().__init__()
        self.direction = nn.Parameter(torch.empty(outputs, inputs).normal_(std=math.sqrt(variance / inputs)))
        self.length = nn.Parameter(self.direction.detach().norm(dim=1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Float[Tensor, "*B I"]) -> Float[Tensor, "*B O"]:
        # one kernel: written as separate operations it takes 3 to 5 times as long
        weight = torch._weight_norm(self.direction, self.length[:, None], 0)
        return linear(x, weight, self.bias)


class GatedConvolution(nn.Module):
    """glu(W [x_t; ...; x_{t+k-1}] + b): half of the outputs say how much of the other half passes. Pads nothing.

    The gate quarters the variance, dropout divides it by the share it keeps: weights start at 4 keep / inputs.
    """

    def __init__(self, channels: int, outputs: int, kernel: int, dropout: float):
        super().__init__()
        self.kernel = kernel
        self.linear = NormalisedLinear(kernel * channels, 2 * outputs, variance=4 * (1 - dropout))

    def forward(self, x: Float[Tensor, "B L C"]) -> Float[Tensor, "B T O"]:
        return F.glu(self.linear(windows(x, self.kernel)), dim=-1)


def _residual(channels: int, outputs: int) -> nn.Module:
    """The way around a block, projected where its size changes."""
    return nn.Identity() if channels == outputs else NormalisedLinear(channels, outputs)


class EncoderLayer(nn.Module):
    """(glu(conv(x)) + x) sqrt(1/2), seeing as many words on the left as on the right."""

    def __init__(self, channels: int, outputs: int, kernel: int, dropout: float):
        super().__init__()
        self.residual = _residual(channels, outputs)
        self.dropout = Dropout(dropout)
        self.convolution = GatedConvolution(channels, outputs, kernel, dropout)

    def forward(self, x: Float[Tensor, "B S C"], real: Float[Tensor, "B S 1"]) -> Float[Tensor, "B S O"]:
        side = self.convolution.kernel // 2
        padded = F.pad(self.dropout(x) * real, (0, 0, side, side))  # padding must look like the edge of the sentence
        return (self.convolution(padded) + self.residual(x)) * SHRINK


class Encoder(nn.Module):
    """From embeddings to channels, through the blocks, and back to the embeddings' size."""

    def __init__(self, embedding: int, channels: tuple[int, ...], kernels: tuple[int, ...], dropout: float):
        super().__init__()
        sizes = zip((channels[0], *channels[:-1]), channels, kernels, strict=True)
        self.enter = NormalisedLinear(embedding, channels[0], variance=1 - dropout)
        self.layers = nn.ModuleList(EncoderLayer(*size, dropout) for size in sizes)
        self.leave = NormalisedLinear(channels[-1], embedding)

    def forward(self, x: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S E"]:
        real = mask[..., None].to(x.dtype)
        x = self.enter(x)
        for layer in self.layers:
            x = layer(x, real)
        return self.leave(x)


@dataclass
class Memory:
    """The source as every decoder layer sees it: the encoder's output z to compare with, z + e to read."""

    keys: Tensor  # (B, S, E)
    values: Tensor  # (B, S, E), scaled by m sqrt(1/m) already
    mask: Tensor  # (B, S)


def remember(encoded: Float[Tensor, "B S E"], words: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> Memory:
    """keys z and values (z + e) sqrt(1/2) m sqrt(1/m), where m counts the words of each sentence without padding."""
    m = mask.sum(dim=1).to(words.dtype)[:, None, None]
    return Memory(encoded, (encoded + words) * (SHRINK * m.sqrt()), mask)


class MultiStepAttention(nn.Module):
    """d = W h + b + g,  c = attention of d over the source,  h + c: one look for each layer, so that later layers know where earlier ones looked."""

    def __init__(self, channels: int, embedding: int):
        super().__init__()
        self.query = NormalisedLinear(channels, embedding)
        self.output = NormalisedLinear(embedding, channels)

    def forward(
        self, hidden: Float[Tensor, "N T C"], words: Float[Tensor, "N T E"], memory: Memory
    ) -> tuple[Float[Tensor, "N T C"], Float[Tensor, "N T S"]]:
        """Returns (h + c, weights); `words` are the embeddings g of the target read so far.

        There may be several rows for each sentence, as many for all and side by side: they ask their one source together.
        """
        queries = ((self.query(hidden) + words) * SHRINK).reshape(len(memory.keys), -1, words.shape[-1])
        context, weights = attend(queries @ memory.keys.mT, memory.values, memory.mask[:, None])
        return (hidden + self.output(context.view_as(words))) * SHRINK, weights.view(*words.shape[:2], -1)


class DecoderLayer(nn.Module):
    """y = glu(conv(x)), seeing only words before; then (y + c + x) with the attention's context c."""

    def __init__(self, channels: int, outputs: int, kernel: int, dropout: float, embedding: int):
        super().__init__()
        self.reach = (kernel - 1, channels)
        self.residual = _residual(channels, outputs)
        self.dropout = Dropout(dropout)
        self.convolution = GatedConvolution(channels, outputs, kernel, dropout)
        self.attention = MultiStepAttention(outputs, embedding)

    def forward(
        self,
        x: Float[Tensor, "N T C"],
        past: Float[Tensor, "N R C"],
        words: Float[Tensor, "N T E"],
        memory: Memory,
    ) -> tuple[Float[Tensor, "N T O"], Float[Tensor, "N R C"], Float[Tensor, "N T S"]]:
        """Returns (x, past, weights). `past` holds the last k - 1 inputs before these; zeros are the edge of the sentence."""
        inputs = torch.cat([past, self.dropout(x)], dim=1)
        attended, weights = self.attention(self.convolution(inputs), words, memory)
        return (attended + self.residual(x)) * SHRINK, inputs[:, x.shape[1] :], weights


class Decoder(nn.Module):
    """From embeddings to channels, through the blocks, and back to the embeddings' size."""

    def __init__(self, embedding: int, channels: tuple[int, ...], kernels: tuple[int, ...], dropout: float):
        super().__init__()
        sizes = zip((channels[0], *channels[:-1]), channels, kernels, strict=True)
        self.enter = NormalisedLinear(embedding, channels[0], variance=1 - dropout)
        self.layers = nn.ModuleList(DecoderLayer(*size, dropout, embedding) for size in sizes)
        self.leave = NormalisedLinear(channels[-1], embedding)

    def edge(self, words: Float[Tensor, "B ..."]) -> list[Tensor]:
        """What stands before the first word, for each layer: nothing."""
        return [words.new_zeros(len(words), *layer.reach) for layer in self.layers]  # type: ignore[misc]

    def forward(
        self, words: Float[Tensor, "N T E"], past: list[Tensor], memory: Memory
    ) -> tuple[Float[Tensor, "N T E"], list[Tensor], list[Tensor]]:
        """Returns (hidden, past, weights), the last two for each layer."""
        x, present, seen = self.enter(words), [], []
        for layer, before in zip(self.layers, past, strict=True):
            x, recent, weights = layer(x, before, words, memory)
            present.append(recent)
            seen.append(weights)
        return self.leave(x), present, seen
