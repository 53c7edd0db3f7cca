"""Word vectors that know no context, whole: skip-gram with negative sampling (Mikolov et al., 2013), equation 4.

    maximise  log s(u_o . v_c) + sum_k log s(-u_k . v_c)      s(x) = 1 / (1 + e^-x)

c is a word, o one that stands near it, k words drawn at random. Lecture 004 sets it against an encoder: here a word has one vector
wherever it stands. To whoever asks for an encoder it is one, which looks nowhere.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from kente.config import SkipGramConfig
from kente.nn.words import Words

MARKS = 4
"""Ids below this are padding, the unknown and the marks: no words, and no part of what a text means."""


class SkipGram(nn.Module):
    """Two tables: a word's own vector v, and its vector u as a neighbour of others."""

    def __init__(self, config: SkipGramConfig, vocabulary: int):
        super().__init__()
        self.config = config
        self.embedding = Words(vocabulary, config.width)
        self.neighbours = Words(vocabulary, config.width)
        with torch.no_grad():
            self.embedding.weight.uniform_(-0.5 / config.width, 0.5 / config.width)
            self.neighbours.weight.zero_()

    def scores(self, words: Int[Tensor, "P"], others: Int[Tensor, "P K"]) -> Float[Tensor, "P K"]:
        """u_k . v_c for each word and the others beside it."""
        return torch.bmm(self.neighbours(others), self.embedding(words)[..., None])[..., 0]

    def encode(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """Each word's one vector; nothing for what is no word."""
        return self.embedding(source) * (source >= MARKS)[..., None]

    def forward(self, source: Int[Tensor, "B S"], source_mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """The same: there is nothing more to read."""
        return self.encode(source, source_mask)

    def predict(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """How likely each word is to stand nearby."""
        return self.neighbours.scores(hidden)
