"""What a comparison found out, as plain values: written to comparison.json, and drawn by `show`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from kente.runs import Score


@dataclass(frozen=True)
class Bucket:
    """Test sentences of like length, in source words."""

    low: int
    high: int
    sentences: int

    @property
    def label(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


@dataclass(frozen=True)
class Point:
    """One validation on the way."""

    step: int
    minutes: float
    loss: float
    bleu: float | None
    chrf: float | None


@dataclass(frozen=True)
class Significance:
    """How a system stands against the best one: paired bootstrap over the same resampled test sets."""

    best: str
    difference: float
    """BLEU of this system less BLEU of the best."""
    p: float
    """How often chance alone would draw systems this far apart; below 0.05 is called significant."""


@dataclass(frozen=True)
class Alignment:
    """How well a system's attention agrees with the gold alignments of the test set; 0 errors is best."""

    error_rate: float
    precision: float
    recall: float
    layer: int
    layers: int
    """Layers that attend to the source; the one above was chosen on validation sentences."""


@dataclass(frozen=True)
class System:
    """One trained model and everything measured about it."""

    name: str
    description: str
    run: str
    parameters: int
    updates: int
    minutes: float
    tokens_per_second: float
    """While training: source and target tokens, median over the run."""
    sentences_per_second: float
    """While translating the test set."""
    peak_memory: float
    """Megabytes of the training process at most."""
    bleu: Score
    chrf: Score
    significance: Significance | None
    """None for the best system itself."""
    by_length: tuple[float | None, ...]
    """BLEU in each bucket of the comparison; None where a bucket is empty."""
    curve: tuple[Point, ...]
    alignment: Alignment | None
    why_no_attention: str = ""
    """For a system without attention: why there is nothing to see."""


@dataclass(frozen=True)
class Attention:
    """One sentence's attention over the source, heads averaged: weights[target piece][source piece]."""

    source_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]
    layer: int


@dataclass(frozen=True)
class Answer:
    """What one system made of a sample sentence."""

    system: str
    text: str
    chrf: float
    attention: Attention | None


@dataclass(frozen=True)
class Sample:
    """A test sentence as every system translates it."""

    choice: str
    """best, worst or random: by the mean chrF++ of all systems."""
    source: str
    reference: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class Comparison:
    """Systems trained on the same data within the same budget, and scored on the same test."""

    title: str
    created: str
    corpus: str
    """For people: which text, how many pairs."""
    test: str
    """For people: which test set, how many lines."""
    budget: str
    """For people: what each system was given, such as "5 minutes each on 2 threads"."""
    systems: tuple[System, ...]
    buckets: tuple[Bucket, ...]
    trained_length: int
    """Longest source sentence trained on, in words: buckets beyond it ask for more than was shown."""
    samples: tuple[Sample, ...]
    settings: dict[str, dict[str, Any]]
    """{"model.width": {"gru": 256, "transformer": 128}}: every setting in which the systems differ; absent where a system has none."""
    environment: dict[str, Any]
    findings: tuple[str, ...]
    """Sentences that say what was found."""
    length_unit: str = "words"
    """What source lengths are counted in: words, or characters where a script has no spaces."""
    decoding: str = ""
    """For people: how translations were searched for, such as "beam 5"."""

    @property
    def best(self) -> System:
        return max(self.systems, key=lambda system: system.bleu.value)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Comparison:
        """Back from comparison.json."""
        return cls(
            **{
                **record,
                "systems": tuple(_system(system) for system in record["systems"]),
                "buckets": tuple(Bucket(**bucket) for bucket in record["buckets"]),
                "samples": tuple(_sample(sample) for sample in record["samples"]),
                "findings": tuple(record["findings"]),
            }
        )


def _system(record: dict[str, Any]) -> System:
    return System(
        **{
            **record,
            "bleu": Score(**record["bleu"]),
            "chrf": Score(**record["chrf"]),
            "significance": Significance(**record["significance"]) if record["significance"] else None,
            "by_length": tuple(record["by_length"]),
            "curve": tuple(Point(**point) for point in record["curve"]),
            "alignment": Alignment(**record["alignment"]) if record["alignment"] else None,
        }
    )


def _sample(record: dict[str, Any]) -> Sample:
    return Sample(**{**record, "answers": tuple(_answer(answer) for answer in record["answers"])})


def _answer(record: dict[str, Any]) -> Answer:
    attention = record["attention"]
    if attention is not None:
        weights = tuple(tuple(row) for row in attention["weights"])
        pieces = {side: tuple(attention[side]) for side in ("source_pieces", "target_pieces")}
        attention = Attention(**{**attention, **pieces, "weights": weights})
    return Answer(**{**record, "attention": attention})
