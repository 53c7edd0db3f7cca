"""Texts in, vectors out: many at once, those of like length together, each answer where its text stood."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kente.data.framing import Framing
from kente.data.tokenizer import PAD
from kente.models.text_reader import TextReader
from kente.reporting import SILENT, Reporter
from kente.runs import Run

TOKENS = 4096
"""Tokens read at once, padding included."""
CHUNK = 16_384
"""Texts framed at once."""

Vectors = NDArray[np.float32]


class Embedder:
    """A reader of texts, and how texts are put to it."""

    def __init__(self, reader: TextReader, framing: Framing, device: torch.device | str, tokens: int = TOKENS):
        self.reader, self.framing, self.device, self.tokens = reader.eval(), framing, device, tokens

    def vectors(self, texts: Sequence[str], threads: int = 1, reporter: Reporter = SILENT) -> Vectors:
        """(N, D) one vector for each text."""
        return self._each(texts, self.reader, threads, reporter)

    def probabilities(self, texts: Sequence[str], threads: int = 1, reporter: Reporter = SILENT) -> Vectors:
        """(N, C) how likely each class is, for each text."""

        def weigh(ids: Tensor, mask: Tensor) -> Tensor:
            return self.reader.predict(self.reader(ids, mask)).softmax(dim=-1)

        return self._each(texts, weigh, threads, reporter)

    def states(self, text: str) -> NDArray[np.float32]:
        """(T, D) the vector of each token of one text in its context, marks included."""
        with torch.inference_mode():
            return self.reader.encode(*self._batch([self.framing.frame(text)]))[0].float().cpu().numpy()

    def _each(
        self, texts: Sequence[str], give: Callable[[Tensor, Tensor], Tensor], threads: int, reporter: Reporter
    ) -> Vectors:
        found: list[Vectors] = []
        for start in range(0, len(texts), CHUNK):
            framed = self.framing.frame_many(texts[start : start + CHUNK], threads)
            found.append(self._chunk(framed, give, reporter, start, len(texts)))
        reporter.finish()
        self.framing.say_cut(len(texts), reporter, "shorter texts, or parts of them, are read whole")
        return np.concatenate(found) if found else np.zeros((0, 0), np.float32)

    @torch.inference_mode()
    def _chunk(
        self,
        framed: list[list[int]],
        give: Callable[[Tensor, Tensor], Tensor],
        reporter: Reporter,
        before: int,
        total: int,
    ) -> Vectors:
        order = sorted(range(len(framed)), key=lambda place: -len(framed[place]))
        answers: list[Vectors] = []
        done = 0
        while done < len(order):
            rows = max(1, self.tokens // len(framed[order[done]]))
            batch = [framed[place] for place in order[done : done + rows]]
            answers.append(give(*self._batch(batch)).float().cpu().numpy())
            done += len(batch)
            reporter.progress("reading", before + done, total, "texts")
        together = np.concatenate(answers)
        placed = np.empty_like(together)
        placed[order] = together
        return placed

    def _batch(self, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
        ids = torch.full((len(rows), max(map(len, rows))), PAD)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = torch.tensor(row)
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(ids.shape[1]) < lengths[:, None]
        return ids.to(self.device), mask.to(self.device)


def unit(vectors: Vectors) -> Vectors:
    """Vectors of length one, so that their products are cosines; a vector of nothing stays nothing."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)


def framing_of(run: Run) -> Framing:
    """How text is put to a run's encoder: as it was trained."""
    longest = min(run.config.batches.max_length, getattr(run.config.model, "max_length", 10**9))
    tokenizers = run.tokenizers()
    return Framing(tokenizers.source, begins(run), longest, marks=tokenizers.source_marks)


def begins(run: Run) -> bool:
    """Whether the texts a run was trained on open with a mark."""
    if run.config.head.kind != "none":
        return run.config.head.begins
    return run.config.train.task != "translation"
