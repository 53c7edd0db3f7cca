"""Translations as JSON: in LibreTranslate's form, and in our own, which knows sentences, words and where they looked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kente.decode.translator import Translation
from kente.serve.asking import Asked
from kente.serve.office import Done, Guess
from kente.serve.words import Looked, Span, looked, matched, words_in

NOTICED = 0.02
"""Shares of attention below this are left out of `looks_at`."""

Json = dict[str, Any]


def libre(asked: Asked, done: Sequence[Done]) -> Json:
    """The answer of /translate: strings for a string, lists for a list."""
    answer: Json = {"translatedText": [one.text for one in done]}
    if asked.source == "auto":
        answer["detectedLanguage"] = [_guess(one.detected) for one in done]
    if asked.alternatives:
        answer["alternatives"] = [[text for text, _ in one.alternatives] for one in done]
    return answer if asked.listed else {name: values[0] for name, values in answer.items()}


def _guess(guess: Guess | None) -> Json | None:
    return None if guess is None else {"language": guess.language, "confidence": round(guess.confidence, 1)}


def rich(asked: Asked, done: Sequence[Done], engine: str, seconds: float) -> Json:
    """The answer of /v1/translate."""
    return {
        "translations": [_translation(asked, one) for one in done],
        "engine": engine,
        "milliseconds": round(1000 * seconds, 1),
    }


def _translation(asked: Asked, done: Done) -> Json:
    return {
        "text": done.text,
        "source": done.language,
        "detected": _guess(done.detected),
        "alternatives": [{"text": text, "score": round(score, 4)} for text, score in done.alternatives],
        "warnings": [{"kind": w.kind, "message": w.message, "start": w.start, "end": w.end} for w in done.warnings],
        "sentences": [
            sentence(asked, done.source, done.text, words, found, placed) for words, found, placed in done.sentences
        ],
    }


class Place(Protocol):
    """Where a sentence and its translation stand, whole and letter by letter."""

    @property
    def source(self) -> Span: ...

    @property
    def target(self) -> Span: ...

    def source_span(self, start: int, end: int) -> Span: ...

    def target_span(self, start: int, end: int) -> Span | None: ...


def sentence(asked: Asked, source: str, text: str, words: str, found: Translation, placed: Place) -> Json:
    """One sentence, asked of the model as `words`: its places in both texts, and its words there."""
    target_words = [placed.target_span(*word) for word in words_in(found.text)]
    whole = [word for word in target_words if word is not None]
    if len(whole) < len(target_words):  # it was written in parts, or not at all
        whole = words_in(text, *placed.target)
    answer: Json = {
        "source_start": placed.source[0],
        "source_end": placed.source[1],
        "start": placed.target[0],
        "end": placed.target[1],
        "source_words": [_word(source, placed.source_span(*word)) for word in words_in(words)],
        "words": [_word(text, word) for word in whole],
    }
    if asked.words:
        seen = looked(found.details)
        weights = _add_what_was_seen(answer, seen)
        if asked.attention and seen.weights:
            answer["attention"] = [[round(weight, 4) for weight in row] for row in weights]
    return answer


def _word(text: str, span: Span) -> Json:
    return {"text": text[slice(*span)], "start": span[0], "end": span[1]}


def _add_what_was_seen(answer: Json, seen: Looked) -> list[list[float]]:
    """How sure the model was of each word and where it looked, for words as they stand in the texts; returns weights (words, source words).

    A word the model did not write was carried over: it is sure, and looks at the like word of the source.
    """
    sources, targets = ([word["text"] for word in answer[side]] for side in ("source_words", "words"))
    columns = matched(sources, seen.source)
    table: list[list[float]] = []
    for word, row in zip(answer["words"], matched(targets, seen.target), strict=True):
        if row is None:
            weights = [float(word["text"] == other) for other in sources]
        elif seen.weights:
            weights = [0.0 if column is None else seen.weights[row][column] for column in columns]
        else:
            weights = [0.0] * len(sources)
        word["confidence"] = 1.0 if row is None else float(f"{seen.confidence[row]:.4g}")
        ranked = sorted(enumerate(weights), key=lambda pair: -pair[1])
        word["looks_at"] = [[number, round(weight, 4)] for number, weight in ranked if weight >= NOTICED]
        table.append(weights)
    return table
