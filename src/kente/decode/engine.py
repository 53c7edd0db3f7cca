"""What the text side asks of whatever searches, and how work is cut into batches. No torch in here.

An engine answers questions: ids in, ids out. `TorchEngine` carries every model; `CTranslate2Engine` the Transformers that fit, faster and
without waiting for torch to be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kente.config import DecodeConfig
from kente.decode.answers import Hypothesis

if TYPE_CHECKING:
    from kente.decode.torch_engine import TorchEngine

Deadline = Callable[[], bool]
Links = list[tuple[int, int]]


@dataclass(frozen=True)
class Question:
    """A sentence to be answered: its ids without the end mark, the most tokens of an answer, and how the answer begins."""

    source: list[int]
    cap: int
    prefix: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class ReadBack:
    """An answer that was read once more: how likely each of its pieces was, and where the model looked while it wrote them.

    `log_probabilities` has one number for each piece and one for the end mark. `weights` has a row for each piece: shares of attention to
    each source piece, by the heads of the last cross-attention layer but one on average; what is missing to 1 went to the source's end mark.
    Empty where the model does not attend.
    """

    log_probabilities: list[float]
    weights: list[list[float]]

    def without(self, source: int, answer: int) -> ReadBack:
        """The same of the pieces behind the first few of source and answer, which are marks and no text."""
        return ReadBack(self.log_probabilities[answer:], [row[source:] for row in self.weights[answer:]])


class Engine(Protocol):
    """Answers questions, each as if it were alone."""

    @property
    def name(self) -> str:
        """What an answer, or a number made from answers, is signed with."""
        ...

    def search(
        self, questions: Sequence[Question], config: DecodeConfig, *, n_best: int = 1, deadline: Deadline | None = None
    ) -> list[list[Hypothesis]]:
        """Up to `n_best` answers to each question, best first, at least one; with sampling, `n_best` draws.

        `deadline` is asked again and again: once it says True, what is not answered yet comes back as it is, with a warning.
        """
        ...

    def align(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[Links]:
        """For each answer, pairs (place in the source, place in the answer) by attention; none where the model does not attend."""
        ...

    def read_back(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[ReadBack]:
        """The answers to the questions, read once more."""
        ...

    def in_torch(self) -> TorchEngine:
        """The same model in torch, loaded when it is first asked for."""
        ...


def rows_for(config: DecodeConfig, n_best: int) -> int:
    """Rows of the model's batch that one question takes."""
    return n_best if config.sample else max(config.beam, n_best)


def batches(lengths: Sequence[int], tokens: float) -> Iterator[list[int]]:
    """Places in `lengths`, longest first, in batches of like length; none (beyond a single place) wider than `tokens` with padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
