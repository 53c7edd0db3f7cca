"""How well texts are told apart: the confusion matrix, and what follows from it for each class and for all.

precision = right / predicted      recall = right / there      F1 = 2 precision recall / (precision + recall)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kente.runs import Score

CONFIDENCE = 1.959964  # standard deviations on either side of 95 %
BINS = 10
SHOWN = 20
"""Mistakes kept: those made with the most confidence."""


@dataclass(frozen=True)
class OfClass:
    """One class: how many texts are of it, how many were said to be, and how well the two agree."""

    name: str
    precision: float
    recall: float
    f1: float
    texts: int
    predicted: int


@dataclass(frozen=True)
class Mistake:
    """A text put into the wrong class."""

    text: str
    label: str
    predicted: str
    probability: float


@dataclass(frozen=True)
class ClassReport:
    """What a labelled test set says about a classifier."""

    run: str
    test: str
    classes: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    """A row for each true class, a column for each that was said."""
    each: tuple[OfClass, ...]
    accuracy: Score
    macro_f1: Score
    calibration: float
    """How far, on average, confidence is from accuracy, in points."""
    mistakes: tuple[Mistake, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def lines(self) -> list[str]:
        """For people: the scores, then a line to a class."""
        texts = sum(one.texts for one in self.each)
        about = f"run {self.run} | {self.test} | {texts:,} texts"
        spread = f"(95 %: {self.accuracy.low:.1f} to {self.accuracy.high:.1f})"
        width = max(map(len, (*self.classes, "class")))
        table = [
            f"{one.name:<{width}}  {one.precision:9.1f}  {one.recall:6.1f}  {one.f1:5.1f}  {one.texts:6,}  {one.predicted:9,}"
            for one in self.each
        ]
        return [
            f"accuracy {self.accuracy.value:.1f} % {spread} | {about}",
            f"macro F1 {self.macro_f1.value:.1f} % | confidence is off by {self.calibration:.1f} points on average",
            f"{'class':<{width}}  precision  recall     F1   texts  predicted",
            *table,
            *_wrong(self),
        ]


def _wrong(report: ClassReport) -> list[str]:
    """The three commonest mistakes in words."""
    cells = [
        (count, report.classes[true], report.classes[said])
        for true, row in enumerate(report.confusion)
        for said, count in enumerate(row)
        if true != said and count
    ]
    told = [f"{count:,} x {true} said to be {said}" for count, true, said in sorted(cells, reverse=True)[:3]]
    return [f"most often wrong: {'; '.join(told)}"] if told else ["nothing was wrong"]


def confusion_matrix(labels: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """(C, C) texts of each class, by the class they were said to be."""
    return np.bincount(labels * classes + predicted, minlength=classes * classes).reshape(classes, classes)


def accuracy_of(confusion: NDArray[np.int64], signature: str = "") -> Score:
    """Per cent right, with Wilson's interval."""
    total, right = int(confusion.sum()), int(np.trace(confusion))
    low, high = wilson(right, total)
    return Score("accuracy", 100 * right / total, signature, 100 * low, 100 * high)


def wilson(right: int, total: int) -> tuple[float, float]:
    """The interval of a share: those true shares from which what was seen is not more than CONFIDENCE away."""
    share, square = right / total, CONFIDENCE**2
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = CONFIDENCE * math.sqrt(share * (1 - share) / total + square / (4 * total**2)) / (1 + square / total)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def each_class(confusion: NDArray[np.int64], classes: Sequence[str]) -> tuple[OfClass, ...]:
    """Scores in per cent; what would be a division by nothing is 0."""
    found = []
    for place, name in enumerate(classes):
        right, there, said = int(confusion[place, place]), int(confusion[place].sum()), int(confusion[:, place].sum())
        precision, recall = right / max(1, said), right / max(1, there)
        f1 = 2 * right / max(1, there + said)
        found.append(OfClass(name, 100 * precision, 100 * recall, 100 * f1, there, said))
    return tuple(found)


def macro_f1(confusion: NDArray[np.int64], signature: str = "") -> Score:
    """The mean F1 of the classes that occur or are said to."""
    each = [one for one in each_class(confusion, [""] * len(confusion)) if one.texts or one.predicted]
    return Score("macro F1", sum(one.f1 for one in each) / len(each), signature)


def calibration_error(probabilities: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """sum_b |accuracy_b - confidence_b| n_b / n over ten bins of confidence, in points (Guo et al., 2017)."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = [
        abs(float(right[bins == b].mean()) - float(confidence[bins == b].mean())) * int((bins == b).sum())
        for b in range(BINS)
        if (bins == b).any()
    ]
    return 100 * sum(gaps) / len(labels)


def report_of(
    run: str,
    test: str,
    classes: Sequence[str],
    texts: Sequence[str],
    labels: NDArray[np.int64],
    probabilities: NDArray[np.float32],
) -> ClassReport:
    """Everything a test set says, from the probabilities (N, C) that a classifier gave its texts."""
    predicted = probabilities.argmax(axis=1)
    confusion = confusion_matrix(labels, predicted, len(classes))
    signature = f"{len(labels):,} texts"
    wrong: list[int] = np.flatnonzero(predicted != labels).tolist()
    wrong = sorted(wrong, key=lambda row: -probabilities[row, predicted[row]])[:SHOWN]
    mistakes = [
        Mistake(texts[row], classes[labels[row]], classes[predicted[row]], float(probabilities[row, predicted[row]]))
        for row in wrong
    ]
    return ClassReport(
        run,
        test,
        tuple(classes),
        tuple(tuple(int(count) for count in row) for row in confusion),
        each_class(confusion, classes),
        accuracy_of(confusion, signature),
        macro_f1(confusion, signature),
        calibration_error(probabilities, labels),
        tuple(mistakes),
    )
