"""What the torch search works on: answers still being written. What it hands back is in `answers`, and can be had from here too."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kente.decode.answers import (
    CUT,
    LATE,
    LOOPED,
    NOTHING,
    PERIODS,
    WORST,
    Hypothesis,
    length_penalty,
    no_answer,
)

__all__ = [
    "CUT",
    "LATE",
    "LOOPED",
    "NOTHING",
    "PERIODS",
    "WORST",
    "Hypothesis",
    "Living",
    "length_penalty",
    "no_answer",
]


@dataclass
class Living:
    """Answers still being written, one for each row of the model's state."""

    owner: Tensor  # (N,) the sentence it answers
    tokens: Tensor  # (N, 1 + written) BOS first
    log_probability: Tensor  # (N,)
    runs: Tensor  # (N, PERIODS) for how many tokens it has been repeating what stood 1, 2, ... tokens earlier
    looped: Tensor  # (N,) the repetition guard had to step in
    cut: Tensor  # (N,) the model would have gone on beyond the greatest length

    @classmethod
    def begin(cls, owner: Tensor, bos: int) -> Living:
        """Nothing written yet for the sentences of `owner`."""
        rows = len(owner)
        no = owner.new_zeros(rows, dtype=torch.bool)
        return cls(
            owner=owner,
            tokens=owner.new_full((rows, 1), bos),
            log_probability=owner.new_zeros(rows, dtype=torch.float32),
            runs=owner.new_zeros((rows, PERIODS)),
            looped=no,
            cut=no.clone(),
        )

    @property
    def written(self) -> int:
        """Tokens written by every row."""
        return self.tokens.shape[1] - 1

    def write(self, tokens: Tensor, log_probability: Tensor) -> None:
        """One token more for each row; `log_probability` is the new total."""
        before = self.tokens[:, -PERIODS:].flip(1)  # what stood 1, 2, ... tokens earlier
        watched = before.shape[1]
        self.runs[:, :watched] = (self.runs[:, :watched] + 1) * (before == tokens[:, None])
        self.tokens = torch.cat([self.tokens, tokens[:, None]], dim=1)
        self.log_probability = log_probability

    def hypotheses(self, power: float, ended: bool) -> list[Hypothesis]:
        """Every row as an answer: complete if it has `ended`, otherwise as far as it came."""
        norm = length_penalty(float(self.written + ended), power)  # the end of the sentence counts as a token
        columns = (self.tokens[:, 1:], self.log_probability, self.looped, self.cut)
        return [
            Hypothesis(
                ids, total / norm, total, ended and not cut, (LOOPED,) * looped + (CUT,) * cut + (LATE,) * (not ended)
            )
            for ids, total, looped, cut in zip(*(column.tolist() for column in columns), strict=True)
        ]
