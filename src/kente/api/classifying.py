"""classify: texts into classes. Train a classifier upon any encoder, use it, and say how good it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kente.api.embedding import head_check, head_upon
from kente.api.inputs import pick_device, use_threads
from kente.api.lifecycle import TrainResult, launch
from kente.data.labelled import labelled, numbered, usable
from kente.decode.embedder import Embedder, framing_of
from kente.durable import replace_file
from kente.errors import RunError, UsageError
from kente.measure.classes import ClassReport, report_of
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.show.classes import class_page
from kente.train.kinds import require

PAGE = "report.html"

Fields = tuple[str, str] | None


def classify_train(
    files: Sequence[Path | str],
    out: Path | str,
    *,
    encoder: Path | str | None = None,
    validation: Sequence[Path | str] = (),
    fields: Fields = None,
    pooling: str | None = None,
    **how: Any,
) -> TrainResult:
    """Train a text classifier on labelled texts: TSV (label, text) or JSONL; `fields` names other columns.

    `encoder` is any run that reads text: a masked encoder, a translator, an imported BERT, a sentence encoder, word vectors. Without one an
    encoder is learned from these texts alone. `how` as for `train`.
    """
    if not files:
        raise UsageError("no labelled texts given: --labelled FILE names a file with a label and a text in each row")
    for path in (*files, *validation):
        next(iter(labelled(path, fields)), None)  # a file that cannot be read is said before a folder is made
    request = {
        "labelled": [str(Path(path).resolve()) for path in files],
        "validation": [str(Path(path).resolve()) for path in validation],
        "fields": list(fields) if fields else None,
        "encoder": str(Path(encoder).resolve()) if encoder else None,
    }
    base = head_upon(encoder, "classification", "classes", pooling)
    return launch(base, out, request, check=head_check(out, encoder, how.get("settings", ())), **how)


@dataclass(frozen=True)
class Prediction:
    """The likeliest class of a text, and how likely every class is."""

    text: str
    label: str
    probability: float
    probabilities: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Classifier:
    """A trained classifier: classifier.predict(["some text"])[0].label"""

    embedder: Embedder
    classes: tuple[str, ...]
    threads: int

    def predict(self, texts: Sequence[str], reporter: Reporter = SILENT) -> list[Prediction]:
        """The class of each text."""
        if not texts:
            return []
        weights = self.embedder.probabilities(texts, self.threads, reporter)
        likeliest = weights.argmax(axis=1)
        return [
            Prediction(text, self.classes[place], float(row[place]), dict(zip(self.classes, row.tolist(), strict=True)))
            for text, row, place in zip(texts, weights, likeliest, strict=True)
        ]


def load_classifier(
    run: Path | str, *, device: str = "auto", threads: int | None = None, reporter: Reporter = SILENT
) -> Classifier:
    """The classifier of a run with its best weights."""
    opened = require(Run.open(run), "kente classify", "classification")
    count = use_threads(threads)
    where = pick_device(device)
    model = opened.model(opened.chosen(reporter), where)
    try:
        classes = json.loads((opened.path / "prepared.json").read_bytes())["classes"]
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{opened.path / 'prepared.json'}, which names the classes, cannot be read: {error!r}") from None
    return Classifier(Embedder(model, framing_of(opened), where), tuple(classes), count)  # type: ignore[arg-type]


def classify(
    run: Path | str,
    texts: Sequence[str],
    *,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> list[Prediction]:
    """The class of each text, with the probabilities of all."""
    return load_classifier(run, device=device, threads=threads, reporter=reporter).predict(texts, reporter)


def classify_report(
    run: Path | str,
    files: Sequence[Path | str],
    out: Path | str | None = None,
    *,
    fields: Fields = None,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> ClassReport:
    """How well a classifier does on labelled texts; with `out`, also as a page in that folder."""
    classifier = load_classifier(run, device=device, threads=threads, reporter=reporter)
    name = " + ".join(Path(path).name for path in files)
    pairs = [pair for path in files for pair in labelled(path, fields)]
    test = usable(pairs, name)
    test.say_dropped(name, reporter)
    labels = np.array([number for _, number in numbered(test, classifier.classes, name)], np.int64)
    weights = classifier.embedder.probabilities(test.texts, classifier.threads, reporter)
    report = report_of(Path(run).name, name, classifier.classes, test.texts, labels, weights)
    if out is not None:
        page = Path(out) / PAGE
        page.parent.mkdir(parents=True, exist_ok=True)
        replace_file(page, class_page(report).encode())
    return report
