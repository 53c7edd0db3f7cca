"""Text around a model: whole files translated, languages told apart. Nothing here needs torch, unless the engine does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from kente.decode.translator import Translation, Translator
from kente.errors import RunError
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.text.documents import LineNotice, WrittenDocument, open_document
from kente.text.languages import Detector
from kente.text.placing import Link, piece_links

TOGETHER = 1024
"""Sentences translated between two looks at how far it is."""


def detector(runs: Iterable[Path | str], reporter: Reporter = SILENT) -> Detector:
    """Tells the languages of these runs apart: detector(["runs/en-tw"]).detect("Maakye")"""
    return Detector.combined(Run.open(run).languages(reporter).detector for run in runs)


def is_lowercase(run: Path | str, reporter: Reporter = SILENT) -> bool:
    """Whether a run learnt small letters only, as far as it knows."""
    opened = Run.open(run)
    try:
        return opened.languages(reporter).lowercase
    except RunError:
        return False  # nothing is left of its corpus to learn that from


def translate_document(
    translator: Translator,
    name: str,
    data: bytes,
    *,
    column: str = "1",
    lowercase: bool = False,
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> WrittenDocument:
    """A .txt, .html, .po, .srt or .tsv file with its language translated and everything else as it was.

    `column` is for .tsv; `lowercase` for models that learnt small letters only (`is_lowercase`).
    """
    document = open_document(name, data, column=column, split=translator.split_sentences, lowercase=lowercase)
    translated = partial(_translated, translator, reporter)
    sentences, tagged = document.sentences, document.tagged
    answers = _with_links(translated, sentences, tagged) if any(tagged) else translated(sentences)
    links = [_links(*one) for one in zip(sentences, answers, strict=True)]
    texts = [answer.text for answer in answers]
    parts = translated(document.again(texts, links))
    written = document.put_together(texts, [part.text for part in parts], links)
    said = [
        LineNotice("search", message, line)
        for line, answer in zip(document.lines, answers, strict=True)
        for message in answer.warnings
    ]
    return replace(written, warnings=tuple(sorted((*written.warnings, *said), key=lambda notice: notice.line)))


def _with_links(
    translated: Callable[..., list[Translation]], sentences: Sequence[str], tagged: Sequence[bool]
) -> list[Translation]:
    """Translations, those of sentences with tags inside with their alignment: only torch shows attention, so it must be there."""
    has_torch = find_spec("torch") is not None
    sides = {
        side: iter(
            translated(
                [sentence for sentence, own in zip(sentences, tagged, strict=True) if own is side],
                align=side and has_torch,
            )
        )
        for side in (False, True)
    }
    return [next(sides[side]) for side in tagged]


def _links(sentence: str, answer: Translation) -> list[Link]:
    pieces = answer.source_pieces, answer.target_pieces
    return piece_links(sentence, answer.text, *pieces, answer.alignment or ())


def _translated(
    translator: Translator, reporter: Reporter, texts: Sequence[str], align: bool = False
) -> list[Translation]:
    """Each text once, however often it stands there."""
    different = list(dict.fromkeys(texts))
    known: dict[str, Translation] = {}
    for begin in range(0, len(different), TOGETHER):
        window = different[begin : begin + TOGETHER]
        known |= zip(window, translator.translate(window, split=False, align=align), strict=True)
        reporter.progress("translating", len(known), len(different))
    reporter.finish()
    return [known[text] for text in texts]
