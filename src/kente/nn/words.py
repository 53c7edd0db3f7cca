"""Words as vectors, and vectors as scores of words: one row for each word of a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from kente.nn.linear import linear


class Words(nn.Embedding):
    """A table with one row for each word. Read, it gives a word's vector; asked for scores, it compares a vector with every word."""

    bias: nn.Parameter | None

    def __init__(self, vocabulary: int, width: int, *, bias: bool = False):
        super().__init__(vocabulary, width)
        with torch.no_grad():
            self.weight.normal_(std=width**-0.5)  # rows of about unit length, fit to be compared with
        self.register_parameter("bias", nn.Parameter(torch.zeros(vocabulary)) if bias else None)

    def scores(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """logit_v = h . w_v (+ b_v)"""
        return linear(hidden, self.weight, self.bias)

    def narrowed(self, ids: Int[Tensor, "*B A"]) -> FewWords:
        """The rows of these words alone, the same for all or for each sentence its own."""
        return FewWords(self.weight[ids], None if self.bias is None else self.bias[ids])


@dataclass(frozen=True)
class FewWords:
    """Some rows of a table, to be compared with."""

    weight: Tensor  # (A, D) or (B, A, D)
    bias: Tensor | None  # (A,) or (B, A)

    def scores(self, hidden: Float[Tensor, "N D"]) -> Float[Tensor, "N A"]:
        """logit_a = h . w_a (+ b_a). Where each sentence has words of its own, its vectors stand side by side."""
        if self.weight.dim() == 2:
            return linear(hidden, self.weight, self.bias)
        grouped = hidden.view(len(self.weight), -1, hidden.shape[1])  # (B, G, D)
        if self.bias is None:
            return torch.bmm(grouped, self.weight.mT).flatten(0, 1)
        return torch.baddbmm(self.bias[:, None], grouped, self.weight.mT).flatten(0, 1)


class OneHot(nn.Module):
    """A word as it is: 1 in its own place, 0 in all others. No weights."""

    def __init__(self, vocabulary: int):
        super().__init__()
        self.vocabulary = vocabulary

    def forward(self, ids: Int[Tensor, "*B"]) -> Float[Tensor, "*B V"]:
        return F.one_hot(ids, self.vocabulary).to(torch.get_default_dtype())


def word_tables(
    source_vocabulary: int, target_vocabulary: int, width: int, tie: str, *, bias: bool = False
) -> tuple[Words, Words, Words]:
    """(source, target, output) tables of one width; tie: "all" is one table for the three, "target" one for the last two, "none" three.

    A `bias` is the output's.
    """
    source = Words(source_vocabulary, width, bias=bias and tie == "all")
    if tie == "all":
        assert source_vocabulary == target_vocabulary, "one table needs one vocabulary"
        return source, source, source
    target = Words(target_vocabulary, width, bias=bias and tie == "target")
    return source, target, target if tie == "target" else Words(target_vocabulary, width, bias=bias)
