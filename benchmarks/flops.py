"""How much arithmetic a training update needs: the one place where it is counted.

A matrix of P weights that a token passes through costs 2 P operations forward (a product and a sum for each weight) and twice that backward
(the gradient of its input and its own), so 6 P for each token. Attention adds, for each pair of a query and a key, two products of width D
(score and context): 4 D forward, 12 D in training; the decoder's self-attention sees on average half of its pairs. Looking up embeddings,
norms, softmax, dropout and the optimiser are left out: they move memory rather than compute. Only real tokens count, so that a peer that
computes on padding shows as slower, not as busier.

    FLOP = 6 (P_source S + P_target T) + 12 D L (sum s^2 + sum t (t + 1) / 2 + sum s t)      Transformer of L + L layers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.shapes import Shape


@dataclass(frozen=True)
class Work:
    """Floating point operations of one reading, forward only; a training update needs three times as many."""

    forward: float

    @property
    def training(self) -> float:
        return 3 * self.forward


def weights_touched(shape: Shape, vocabulary: int) -> tuple[int, int, int]:
    """(P_source, P_target, P_sentence): weights that each source token, each target token and each sentence is multiplied with."""
    if shape.kind == "transformer":
        square, feedforward = shape.width**2, 2 * shape.width * shape.feedforward
        source = shape.layers * (4 * square + feedforward + 2 * square)  # the last two: keys and values for the decoder
        target = shape.layers * (4 * square + 2 * square + feedforward) + vocabulary * shape.width
        return source, target, 0
    width, embedding, memory = shape.width, shape.embedding, 2 * shape.width
    source = 2 * 3 * (embedding + width) * width + memory * width  # two directions of three gates; keys
    cell = 3 * (embedding + memory + width) * width
    readout = (width + memory + embedding) * embedding
    return source, cell + width * width + readout + vocabulary * embedding, memory * width


def work(
    shape: Shape, vocabulary: int, sources: Sequence[int], targets: Sequence[int], *, triangle: bool = True
) -> Work:
    """The forward work of sentences of these lengths, end marks included. Without `triangle`, causal attention counts whole squares."""
    per_source, per_target, per_sentence = weights_touched(shape, vocabulary)
    total = 2.0 * (per_source * sum(sources) + per_target * sum(targets) + per_sentence * len(sources))
    crossings = sum(s * t for s, t in zip(sources, targets, strict=True))
    if shape.kind == "transformer":
        squares = float(sum(s * s for s in sources))
        squares += sum(t * (t + 1) / 2 if triangle else t * t for t in targets)
        return Work(total + 4.0 * shape.width * shape.layers * (squares + crossings))
    energies, contexts = 2 * shape.width, 2 * 2 * shape.width
    return Work(total + (energies + contexts) * float(crossings))
