"""Texts with a label, texts in pairs, pairs with a score: read from TSV or JSONL by the rules of `corpus`, empty ones counted and left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kente.data.corpus import Corpus, Pair, is_json, read_lines
from kente.errors import CorpusError
from kente.reporting import Reporter

FEWEST_CLASSES = 2
HEADINGS = frozenset({"label", "labels", "class", "category"})
"""What the first row of a file is called by where it names the columns."""


@dataclass(frozen=True)
class Labelled:
    """Lines of text, and of each the label if there is one; what was left out is counted by reason."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] = ()
    dropped: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.texts)

    def say_dropped(self, name: str, reporter: Reporter) -> None:
        """Warn of what was left out of the files called so."""
        for reason, count in self.dropped.items():
            reporter.warn(f"{name}: {count:,} rows left out: {reason}")


def labelled(path: Path | str, fields: tuple[str, str] | None = None) -> Corpus:
    """A corpus whose sources are texts and whose targets are their labels.

    `fields` names label and text, as in `Corpus.of_pairs`; by default the first two columns, or the keys "label" and "text".
    """
    path = Path(path)
    label, text = fields or (("label", "text") if is_json(path) else ("1", "2"))
    return Corpus.of_pairs(path, (text, label), numbers=frozenset({label})).through(_stripped)


def _stripped(pairs: Iterable[Pair]) -> Iterator[Pair]:
    return (Pair(pair.source, pair.target.strip(), pair.line) for pair in pairs)


def usable(pairs: Iterable[Pair], path: str) -> Labelled:
    """Texts with their labels; rows that lack one of the two are left out, and so is a file's first row where it names the columns."""
    rows, headings, later = list[Pair](), list[Pair](), set[str]()
    dropped = {"no text": 0, "no label": 0, "names of columns": 0}
    for pair in pairs:
        if not pair.source.strip():
            dropped["no text"] += 1
        elif not pair.target:
            dropped["no label"] += 1
        else:
            rows.append(pair)
            if pair.line == 1 and pair.target.lower() in HEADINGS:
                headings.append(pair)
            else:
                later.add(pair.target)
    for pair in headings:
        if pair.target not in later:  # elsewhere it is a class like others
            rows.remove(pair)
            dropped["names of columns"] += 1
    if not rows:
        raise CorpusError(f"{path} holds no text with a label; each row is a label and a text, separated by a tab")
    texts, labels = tuple(pair.source for pair in rows), tuple(pair.target for pair in rows)
    return Labelled(texts, labels, {reason: count for reason, count in dropped.items() if count})


def classes_of(labels: Iterable[str], where: str) -> list[str]:
    """The different labels: numbers in their order, words in that of the alphabet."""
    found = set(labels)
    if len(found) < FEWEST_CLASSES:
        raise CorpusError(f"{where} has a single class, {next(iter(found))!r}: there is nothing to tell apart")
    if all(label.removeprefix("-").isdecimal() for label in found):
        return sorted(found, key=lambda label: (int(label), label))
    return sorted(found)


def numbered(texts: Labelled, classes: Sequence[str], where: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Rows of one text and the number of its class."""
    numbers = {name: number for number, name in enumerate(classes)}
    for text, label in zip(texts.texts, texts.labels, strict=True):
        if label not in numbers:
            known = ", ".join(classes[:10])
            raise CorpusError(f"{where} has a class {label!r} that training does not know; it knows {known}")
        yield (text,), numbers[label]


def read_texts(path: Path | str) -> list[str]:
    """The lines of a file that hold something."""
    return [line for line in read_lines(path) if line.strip()]


def scored_pairs(path: Path | str, fields: tuple[str, str, str] | None = None) -> list[tuple[float, str, str]]:
    """(score, text, text) of each row: how alike people found the two. By default the first three columns."""
    path = Path(path)
    score, one, other = fields or (("score", "one", "other") if is_json(path) else ("1", "2", "3"))
    numbers = frozenset({score})
    first, second = (Corpus.of_pairs(path, (score, text), numbers=numbers) for text in (one, other))
    rows = []
    for left, right in zip(first, second, strict=True):
        if left.target.strip() and right.target.strip():
            rows.append((_score(left, path), left.target, right.target))
    if not rows:
        raise CorpusError(f"{path} holds no pair of texts with a score")
    if len({score for score, _, _ in rows}) == 1:
        raise CorpusError(f"{path} gives every pair the same score, {rows[0][0]:g}: there is no order to agree with")
    return rows


def _score(row: Pair, path: Path) -> float:
    """What stands in place of a source, as a number that others can be compared with."""
    try:
        score = float(row.source)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise CorpusError(f"{path}:{row.line}: {row.source!r} is not a score; score, text, text are wanted")
    return score


def groups_of(pairs: Sequence[tuple[str, ...]]) -> list[int]:
    """A number for each pair, the same where pairs share a text, directly or through others: their texts are not each other's negatives."""
    parent: dict[str, str] = {}

    def root(text: str) -> str:
        while (above := parent.setdefault(text, text)) != text:
            parent[text] = parent[above]  # the way up becomes shorter each time it is gone
            text = above
        return text

    for texts in pairs:
        for other in texts[1:]:
            parent[root(other)] = root(texts[0])
    numbers: dict[str, int] = {}
    return [numbers.setdefault(root(texts[0]), len(numbers)) for texts in pairs]
