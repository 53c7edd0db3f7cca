"""A memory task, and small networks that read a sequence and answer: which letter was the marked one?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kente.nn.attention import SelfAttention
from kente.nn.positions import Sinusoid
from kente.nn.recurrent import Cell, read_fused
from kente.reporting import Reporter

LETTERS = 8
CLIP = 1.0


@dataclass
class Question:
    """Sequences of letters, one of them marked: ids from LETTERS on are the same letters with a mark."""

    ids: Tensor  # (B, T)
    answer: Tensor  # (B,) the marked letter
    place: Tensor  # (B,) where it stands


def ask(batch: int, length: int, generator: torch.Generator, place: int | None = None) -> Question:
    """Random letters, with the mark at `place` or anywhere."""
    ids = torch.randint(LETTERS, (batch, length), generator=generator)
    places = torch.randint(length, (batch,), generator=generator)
    if place is not None:
        places.fill_(place)
    rows = torch.arange(batch)
    answer = ids[rows, places]
    ids[rows, places] += LETTERS
    return Question(ids, answer, places)


class RecurrentReader(nn.Module):
    """logits = V h_T + b: the answer is read off the last state."""

    def __init__(self, cell: Cell, inputs: int):
        super().__init__()
        self.words = nn.Embedding(2 * LETTERS, inputs)
        self.cell = cell
        self.output = nn.Linear(cell.width, LETTERS)

    def forward(self, ids: Tensor) -> Tensor:
        _, state = read_fused(self.cell, self.words(ids), self.cell.initial(len(ids)))
        return self.output(state[0])


class AttentiveReader(nn.Module):
    """logits = V (x_T + c_T) + b,  c_T = sum_i a_i v_i: the last word looks at all words, itself among them."""

    def __init__(self, width: int):
        super().__init__()
        self.words = nn.Embedding(2 * LETTERS, width)
        self.positions = Sinusoid(width)
        self.attention = SelfAttention(width, heads=1)
        self.output = nn.Linear(width, LETTERS)

    def vectors(self, ids: Tensor) -> Tensor:
        return self.positions(self.words(ids))

    def answer(self, vectors: Tensor) -> Tensor:
        context, _ = self.attention(vectors)
        return self.output((vectors + context)[:, -1])

    def weights(self, ids: Tensor) -> Tensor:
        """Where the last word looks (B, T)."""
        weights = self.attention(self.vectors(ids), visible=True)[1]
        assert weights is not None
        return weights[:, 0, -1]

    def forward(self, ids: Tensor) -> Tensor:
        return self.answer(self.vectors(ids))


def learn(model: nn.Module, length: int, updates: int, reporter: Reporter, label: str, rate: float = 3e-3) -> None:
    """Adam on questions with the mark anywhere."""
    generator = torch.Generator().manual_seed(1)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    for update in range(updates):
        question = ask(64, length, generator)
        loss = F.cross_entropy(model(question.ids), question.answer)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        if update % 20 == 0:
            reporter.progress(label, update, updates, f"loss {loss.item():.3f}")
    reporter.finish()


@torch.inference_mode()
def share_right(model: nn.Module, length: int, place: int, count: int = 400) -> float:
    """How often the marked letter is named when it stands at `place`."""
    question = ask(count, length, torch.Generator().manual_seed(2), place)
    return float((model(question.ids).argmax(-1) == question.answer).double().mean())
