"""What looking into models found, as plain values: written as JSON, and drawn by `show`.

A reading holds sides (things in a row: the pieces of a sentence, or whatever a later model looks at) and maps between them. Nothing here
knows an architecture: a model that attends in a new way adds a line to KINDS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kente.errors import UsageError

Weights = NDArray[np.float32]
Head = int | Literal["mean", "max", "rollout"]

KINDS = {
    "cross": ("written", "source"),
    "encoder": ("source", "source"),
    "decoder": ("written", "read"),
}
"""Kind of map: (the side that looks, the side looked at). What is `read` while the first word is written is the start mark."""
DIGITS = 6
"""Of numbers in JSON."""


@dataclass(frozen=True)
class Word:
    """A word, and the pieces from `begin` up to, not including, `end` that spell it."""

    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class Side:
    """What looks, or is looked at."""

    pieces: tuple[str, ...]
    words: tuple[Word, ...]

    def labels(self, joined: bool) -> tuple[str, ...]:
        return tuple(word.text for word in self.words) if joined else self.pieces


def by_words(weights: Weights, rows: Side, columns: Side) -> Weights:
    """A word looks as its pieces do on average, and is looked at as much as they are together: (..., R, C) of pieces to that of words."""
    across = np.stack([weights[..., word.begin : word.end].sum(-1) for word in columns.words], axis=-1)
    return np.stack([across[..., word.begin : word.end, :].mean(-2) for word in rows.words], axis=-2)


@dataclass(frozen=True, eq=False)
class Maps:
    """Every map of one kind."""

    kind: str
    rows: str
    columns: str
    weights: Weights  # (layers, heads, rows, columns)
    rollout: Weights | None = None  # (layers, rows, columns)
    habits: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)  # (layers, heads) each; measure/habits.py

    @property
    def layers(self) -> int:
        return self.weights.shape[0]

    @property
    def heads(self) -> int:
        return self.weights.shape[1]

    def usual_layer(self) -> int:
        """The layer to show when nobody asks for one: the last but one, which agrees best with alignments in most Transformers."""
        return max(0, self.layers - 2)

    def seen(self, layer: int | None, head: Head = "mean") -> Weights:
        """One map (rows, columns): a head, or what all heads of a layer see on average or at most; of all layers if it is None."""
        if head == "rollout":
            if self.rollout is None:
                raise UsageError(f"there is no rollout of {self.kind} attention in this model")
            return self.rollout[-1 if layer is None else self._within(layer, self.layers, "layer")]
        chosen = self.weights if layer is None else self.weights[self._within(layer, self.layers, "layer")][None]
        if head == "mean" or head == "max":
            return chosen.mean((0, 1)) if head == "mean" else chosen.max((0, 1))
        return chosen[:, self._within(head, self.heads, "head")].mean(0)

    def _within(self, number: int, count: int, what: str) -> int:
        if not 0 <= number < count:
            raise UsageError(
                f"no {what} {number + 1} of {self.kind} attention: there {'is' if count == 1 else 'are'} {count}"
            )
        return number


@dataclass(frozen=True)
class Candidate:
    """A piece that might have been written."""

    piece: str
    probability: float


@dataclass(frozen=True)
class Beginning:
    """A hypothesis of the beam after one step; `fate` as in decode/tracing.py."""

    text: str
    log_probability: float
    fate: str
    chosen: bool
    """Whether the answer begins so."""


@dataclass(frozen=True)
class Step:
    """One piece being written."""

    piece: str
    probability: float
    rank: int
    """1 where no other piece was likelier."""
    candidates: tuple[Candidate, ...]
    beginnings: tuple[Beginning, ...] = ()
    """What the beam held and dropped; empty where the target was given and is not what search found."""


@dataclass(frozen=True, eq=False)
class Occlusion:
    """What changes when one word of the source is left out."""

    words: tuple[str, ...]
    probabilities: Weights  # (words, pieces written): of each piece, with that word left out
    instead: tuple[str, ...]
    """What the model writes then."""


@dataclass(frozen=True, eq=False)
class Reading:
    """How one model read the sentence and wrote, or read, its translation."""

    name: str
    description: str
    run: str
    answer: str
    """What the model writes of itself."""
    text: str
    """What is looked at: its answer, or the target that was given."""
    given: bool
    sides: Mapping[str, Side]
    maps: tuple[Maps, ...]
    absent: Mapping[str, str]
    """Kinds of maps that this model has not, and why."""
    steps: tuple[Step, ...]
    beam: int
    went_on: int = 0
    """Steps that search took beyond the end of its answer, in vain."""
    vector: tuple[float, ...] = ()
    """All that the decoder of a fixed-context model knows of the source."""
    occlusion: Occlusion | None = None
    links: tuple[tuple[int, int], ...] = ()
    """Pairs (piece written, piece of the source) known to translate each other."""
    warnings: tuple[str, ...] = ()

    def of(self, kind: str) -> Maps | None:
        """The maps of this kind, if the model has any."""
        return next((maps for maps in self.maps if maps.kind == kind), None)


@dataclass(frozen=True, eq=False)
class Explored:
    """A sentence as several models read it."""

    sentence: str
    target: str | None
    readings: tuple[Reading, ...]
    created: str
    version: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON: weights as nested lists."""
        record: dict[str, Any] = _plain(asdict(self))
        return record


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return np.round(value.astype(float), DIGITS).tolist()
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case float():
            return round(value, DIGITS)
    return value
