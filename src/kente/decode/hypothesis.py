"""What the torch search works on: answers still being written. What it hands back is in `answers`, and can be had from here too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from kente.decode.answers import CUT, LATE, LOOPED, PERIODS, Hypothesis, length_penalty
from kente.models.interface import SHARED

NEVER = -torch.inf


@dataclass
class Living:
    """Answers still being written. A sentence has G of them, as many for all and side by side: N = B G rows, as in the model's state.

    A row with a log-probability not above NEVER is an empty place: it has ended, or lost, or never began.
    """

    owner: Tensor = field(metadata=SHARED)  # (B,) the sentence answered
    length: Tensor = field(metadata=SHARED)  # (B,) its source tokens
    cap: Tensor = field(metadata=SHARED)  # (B,) tokens an answer may have at most
    guarded: Tensor = field(metadata=SHARED)  # (B,) whether loops are broken off
    prefix: Tensor = field(metadata=SHARED)  # (B, P) how every answer must begin, 0 where it is free
    allowed: Tensor = field(metadata=SHARED)  # (B, V) the sentence's shortlist; (B, 0) where all words are weighed
    written: Tensor = field(metadata=SHARED)  # (B,) tokens written by every row of the sentence
    tokens: Tensor  # (N, room) what was written, zeros beyond
    last: Tensor  # (N,) the token to be read next
    log_probability: Tensor  # (N,)
    recent: Tensor  # (N, PERIODS) the tokens written last, the last one first
    runs: Tensor  # (N, PERIODS) for how many tokens it has been repeating what stood 1, 2, ... tokens earlier
    looped: Tensor  # (N,) the repetition guard had to step in
    cut: Tensor  # (N,) the model would have gone on beyond the greatest length

    @classmethod
    def begin(
        cls,
        *,
        owner: Tensor,
        length: Tensor,
        cap: Tensor,
        guarded: Tensor,
        prefix: Tensor,
        allowed: Tensor,
        bos: int,
        room: int = 32,
    ) -> Living:
        """Nothing written yet: one row for each sentence."""
        rows = len(owner)
        return cls(
            owner=owner,
            length=length,
            cap=cap,
            guarded=guarded,
            prefix=prefix,
            allowed=allowed,
            written=owner.new_zeros(rows),
            tokens=owner.new_zeros((rows, room)),
            last=owner.new_full((rows,), bos),
            log_probability=owner.new_zeros(rows, dtype=torch.float32),
            recent=owner.new_zeros((rows, PERIODS)),
            runs=owner.new_zeros((rows, PERIODS)),
            looped=owner.new_zeros(rows, dtype=torch.bool),
            cut=owner.new_zeros(rows, dtype=torch.bool),
        )

    @property
    def group(self) -> int:
        """Rows of each sentence."""
        return len(self.last) // len(self.owner)

    def each(self, of_sentences: Tensor) -> Tensor:
        """What sentences have, (B, ...), for each of their rows, (N, ...)."""
        return of_sentences if self.group == 1 else of_sentences.repeat_interleave(self.group, dim=0)

    def living(self) -> Tensor:
        """Sentences (B,) with a row that is not an empty place; false for NaN too."""
        return (self.log_probability > NEVER).unflatten(0, (len(self.owner), -1)).any(1)

    def write(self, tokens: Tensor, log_probability: Tensor) -> None:
        """One token more for each row; `log_probability` is the new total."""
        self.runs = (self.runs + 1) * (self.recent == tokens[:, None])
        self.recent = torch.cat([tokens[:, None], self.recent[:, :-1]], dim=1)
        room = self.tokens.shape[1]
        if int(self.written.max()) >= room:
            self.tokens = F.pad(self.tokens, (0, room))
        self.tokens.scatter_(1, self.each(self.written)[:, None], tokens[:, None])
        self.written = self.written + 1
        self.last, self.log_probability = tokens, log_probability

    def hypotheses(
        self, rows: Tensor, log_probability: Tensor, power: float, ended: bool
    ) -> Sequence[tuple[int, Hypothesis]]:
        """(owner, answer) of these rows: complete if they have `ended`, otherwise as far as they came."""
        sentences = rows // self.group
        columns = (self.owner[sentences], self.written[sentences], self.tokens[rows], log_probability)
        flags = (self.looped[rows], self.cut[rows])
        found = []
        for owner, written, ids, total, looped, cut in zip(*(x.tolist() for x in (*columns, *flags)), strict=True):
            warnings = (LOOPED,) * looped + (CUT,) * cut + (LATE,) * (not ended)
            score = total / length_penalty(float(written + ended), power)  # the end of the sentence counts as a token
            found.append((owner, Hypothesis(ids[:written], score, total, ended and not cut, warnings)))
        return found
