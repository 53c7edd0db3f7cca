"""The engine that carries every model: Kente's own search over a network in torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from kente.config import DecodeConfig
from kente.data.shortlist import Shortlist
from kente.data.tokenizer import BOS, EOS, PAD
from kente.decode.answers import Hypothesis
from kente.decode.engine import Deadline, Links, Question, ReadBack, batches, rows_for
from kente.decode.pool import side_by_side, workers_for
from kente.decode.search import search_all
from kente.models.interface import Generator


class TorchEngine:
    """A model, searched in torch."""

    name = "torch"

    def __init__(
        self, model: Generator, device: str | torch.device = "cpu", shortlist: Shortlist | None = None
    ) -> None:
        """With a `shortlist` only its words are weighed."""
        self.model, self.shortlist = model, shortlist
        self.device = torch.device(device)

    def in_torch(self) -> TorchEngine:
        return self

    def with_shortlist(self, shortlist: Shortlist | None) -> TorchEngine:
        """The same model, weighing other words."""
        return TorchEngine(self.model, self.device, shortlist)

    def search(
        self, questions: Sequence[Question], config: DecodeConfig, *, n_best: int = 1, deadline: Deadline | None = None
    ) -> list[list[Hypothesis]]:
        """Answers to the questions; by a process for each thread, where they are many and nobody waits with a clock in hand."""
        alone = self.device.type != "cpu" or deadline is not None
        workers = 1 if alone else workers_for(len(questions))
        if workers > 1:
            return side_by_side(lambda share: self._search(share, config, n_best), questions, workers)
        return self._search(questions, config, n_best, deadline)

    def _search(
        self, questions: Sequence[Question], config: DecodeConfig, n_best: int, deadline: Deadline | None = None
    ) -> list[list[Hypothesis]]:
        """In this process, the longest first, in batches of like length."""
        caps = [question.cap for question in questions]
        with at_rest(self.model):
            return search_all(
                self.model,
                [[*question.source, EOS] for question in questions],
                replace(config, max_ratio=max(1, *caps))
                if caps
                else config,  # the questions say how long answers may be
                room=config.batch_tokens // rows_for(config, n_best),
                n_best=n_best,
                prefix=[question.prefix for question in questions],
                max_lengths=caps,
                shortlist=self.shortlist,
                deadline=deadline,
                device=self.device,
            )

    @torch.inference_mode()
    def align(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[Links]:
        """For each target piece the source piece that the last cross-attention layer but one looks at most."""
        links: list[Links] = [[] for _ in questions]
        lengths = [len(q.source) + len(answer) + 2 for q, answer in zip(questions, answers, strict=True)]
        with at_rest(self.model):
            for places in batches(lengths, ALIGNED_TOKENS):
                found = self._align([questions[place] for place in places], [answers[place] for place in places])
                for place, pairs in zip(places, found, strict=True):
                    links[place] = pairs
        return links

    def _align(self, batch: list[Question], answers: list[Sequence[int]]) -> list[Links]:
        source, mask = self._source(batch)
        weights = self._attention(source, mask, self._padded([[BOS, *answer] for answer in answers]))
        if weights is None:
            return [[] for _ in batch]
        weights = weights.masked_fill((source == EOS)[:, None] | ~mask[:, None], -1.0)
        looked = weights.argmax(-1).tolist()
        return [
            [(row[place], place) for place in range(len(answer))] for row, answer in zip(looked, answers, strict=True)
        ]

    def _attention(self, source: Tensor, mask: Tensor, target: Tensor) -> Tensor | None:
        """(B, T, S) of the last cross-attention layer but one, its heads on average; None where the model does not attend."""
        maps = [m for m in self.model.look(source, mask, target) if m.kind == "cross"]
        if not maps:
            return None
        layers = sorted({m.layer for m in maps})
        return torch.stack([m.weights for m in maps if m.layer == layers[max(0, len(layers) - 2)]]).mean(0)

    @torch.inference_mode()
    def read_back(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[ReadBack]:
        """The answers, stepped through with nothing left to choose."""
        found: dict[int, ReadBack] = {}
        lengths = [len(q.source) + len(answer) + 2 for q, answer in zip(questions, answers, strict=True)]
        with at_rest(self.model):
            for places in batches(lengths, ALIGNED_TOKENS):
                batch, written = [questions[place] for place in places], [answers[place] for place in places]
                found |= zip(places, self._read_back(batch, written), strict=True)
        return [found[place] for place in range(len(questions))]

    def _read_back(self, batch: list[Question], answers: list[Sequence[int]]) -> list[ReadBack]:
        source, mask = self._source(batch)
        target = self._padded([[BOS, *answer] for answer in answers])  # (B, T)
        weights = self._attention(source, mask, target)
        following = self._padded([[*answer, EOS] for answer in answers])
        state, numbers = self.model.start(source, mask), []
        for place in range(target.shape[1]):
            step = self.model.step(state, target[:, place])
            numbers.append(step.logits.log_softmax(-1).gather(1, following[:, place, None])[:, 0])
            state = step.state
        log_probabilities = torch.stack(numbers, dim=1).tolist()
        rows = [[]] * len(batch) if weights is None else weights.tolist()
        return [
            ReadBack(own[: len(answer) + 1], [row[: len(question.source)] for row in attention[: len(answer)]])
            for question, answer, own, attention in zip(batch, answers, log_probabilities, rows, strict=True)
        ]

    def _source(self, batch: list[Question]) -> tuple[Tensor, Tensor]:
        source = self._padded([[*question.source, EOS] for question in batch])
        return source, source != PAD

    def _padded(self, rows: list[list[int]]) -> Tensor:
        width = max(map(len, rows))
        return torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], device=self.device)


ALIGNED_TOKENS = 4096
"""Tokens read at once to look at attention, whose weights all exist then."""


@contextmanager
def at_rest(model: Generator) -> Iterator[None]:
    """Dropout off while translating, and as it was afterwards."""
    training = isinstance(model, torch.nn.Module) and model.training
    if training:
        model.eval()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if training:
            model.train()  # type: ignore[attr-defined]
