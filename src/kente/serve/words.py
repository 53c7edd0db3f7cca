"""Words and where they stand, for every script: what people click on.

A word is a run of letters, marks and digits, with apostrophes and hyphens inside; in scripts without spaces it is a single letter with its
marks. Whatever else can be seen stands by itself.
"""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from kente.decode.details import Detail
from kente.decode.translator import Translation

Span = tuple[int, int]
Matrix = list[list[float]]

_INSIDE = frozenset("'’ʼ-‐·")
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


def words_in(text: str, begin: int = 0, end: int | None = None) -> list[Span]:
    """(begin, end) of the words of text[begin:end], counted in the whole text."""
    end = len(text) if end is None else end
    found: list[Span] = []
    place = begin
    while place < end:
        kind = _kind(text[place])
        start, place = place, place + 1
        if kind == "space":
            continue
        if kind != "word":  # a sign, or a letter that needs no company
            while place < end and _is_mark(text[place]):
                place += 1
        else:
            while place < end and _goes_on(text, place, end):
                place += 1
        found.append((start, place))
    return found


def _kind(letter: str) -> str:
    if letter.isspace() or unicodedata.category(letter) in ("Cc", "Cf", "Zs", "Zl", "Zp"):
        return "space"
    if any(first <= ord(letter) <= last for first, last in _UNSPACED):
        return "alone"
    return "word" if letter.isalnum() or letter == "_" or _is_mark(letter) else "sign"


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter)[0] == "M" or letter in "\u200c\u200d"  # joiners bind as marks do


def _goes_on(text: str, place: int, end: int) -> bool:
    if _kind(text[place]) == "word" or _is_mark(text[place]):
        return True
    return text[place] in _INSIDE and place + 1 < end and _kind(text[place + 1]) == "word"


@dataclass(frozen=True)
class Looked:
    """A sentence as the model saw it: its words on both sides, how sure it was of each, and what each looked at."""

    source: list[str]
    target: list[str]
    confidence: list[float]
    """Of each target word: how likely the model found it, given the words before."""
    weights: Matrix
    """(target words, source words): shares of attention; no rows where the model does not attend."""


def looked(details: Sequence[Detail]) -> Looked:
    """The words of a sentence, from the pieces of its parts."""
    parts = [_looked(detail) for detail in details]
    width = sum(len(part.source) for part in parts)
    weights: Matrix = []
    before = 0
    for part in parts:
        after = width - before - len(part.source)
        weights += [[*[0.0] * before, *row, *[0.0] * after] for row in part.weights]
        before += len(part.source)
    return Looked(
        [word for part in parts for word in part.source],
        [word for part in parts for word in part.target],
        [number for part in parts for number in part.confidence],
        weights,
    )


def _looked(detail: Detail) -> Looked:
    source, target = words_in(detail.source), words_in(detail.target)
    of_source = [_pieces_of(word, detail.source_spans) for word in source]
    of_target = [_pieces_of(word, detail.target_spans) for word in target]
    confidence = [math.exp(min(0.0, sum(detail.log_probabilities[piece] for piece in pieces))) for pieces in of_target]
    weights = [
        [
            sum(detail.weights[row][column] for row in rows for column in columns) / max(1, len(rows))
            for columns in of_source
        ]
        for rows in (of_target if detail.weights else [])
    ]
    return Looked(_texts(detail.source, source), _texts(detail.target, target), confidence, weights)


def _pieces_of(word: Span, pieces: Sequence[Span]) -> list[int]:
    """Numbers of the pieces that write some of the word; pieces that write nothing spell what the next one shows."""
    found = [number for number, (begin, end) in enumerate(pieces) if begin < word[1] and end > word[0]]
    while found and found[0] > 0 and pieces[found[0] - 1][0] == pieces[found[0] - 1][1]:
        found.insert(0, found[0] - 1)
    return found


def _texts(text: str, spans: Sequence[Span]) -> list[str]:
    return [text[begin:end] for begin, end in spans]


def matched(words: Sequence[str], others: Sequence[str]) -> list[int | None]:
    """For each word the number of the like one among the others, in order; None where there is none.

    Text changes a little on its way to the model and back: letters are composed, case is restored, names are put back. Words that changed
    stand between words that did not, and as many on both sides are taken to be each other.
    """
    one, other = ([unicodedata.normalize("NFC", word).casefold() for word in some] for some in (words, others))
    found: list[int | None] = [None] * len(words)
    for what, begin, end, first, last in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if what == "equal" or (what == "replace" and end - begin == last - first):
            found[begin:end] = range(first, last)
    return found


def links_of(sentence: str, translation: Translation) -> list[tuple[int, int, int, int]]:
    """Letters of a sentence and letters of its translation that they became: each word of it and the one it looked at most."""
    seen = looked(translation.details)
    if not seen.weights:
        return []
    sources, targets = words_in(sentence), words_in(translation.text)
    columns = {
        column: place
        for place, column in enumerate(matched(_texts(sentence, sources), seen.source))
        if column is not None
    }
    links = []
    for span, row in zip(targets, matched(_texts(translation.text, targets), seen.target), strict=True):
        if row is not None:
            most = max(columns, key=lambda column: seen.weights[row][column], default=None)
            if most is not None:
                links.append((*sources[columns[most]], *span))
    return links
