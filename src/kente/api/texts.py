"""Text around a model: whole files translated, languages told apart. Nothing here needs torch, unless the engine does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kente.api.loading import translate_lines
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
    sentences, tagged = document.sentences, document.tagged
    aligned = any(tagged) and translator.engine.name == "torch"  # others would load torch to see attention
    answers = _translated(translator, sentences, threads, reporter, align=aligned)
    links = [_links(*one) for one in zip(sentences, answers, tagged, strict=True)] if aligned else None
    texts = [answer.text for answer in answers]
    parts = _translated(translator, document.again(texts, links), threads, reporter, align=False)
    written = document.put_together(texts, [part.text for part in parts], links)
    said = [
        LineNotice("search", message, line)
        for line, answer in zip(document.lines, answers, strict=True)
        for message in answer.warnings
    ]
    return replace(written, warnings=tuple(sorted((*written.warnings, *said), key=lambda notice: notice.line)))


def _translated(
    translator: Translator, texts: Sequence[str], threads: int | None, reporter: Reporter, align: bool
) -> list[Translation]:
    """Each text once, however often it stands there."""
    different = list(dict.fromkeys(texts))
    known: dict[str, Translation] = {}
    for begin in range(0, len(different), TOGETHER):
        window = different[begin : begin + TOGETHER]
        known |= zip(window, translate_lines(translator, window, threads, split=False, align=align), strict=True)
        reporter.progress("translating", len(known), len(different))
    reporter.finish()
    return [known[text] for text in texts]


def _links(sentence: str, answer: Translation, tagged: bool) -> list[Link]:
    if not tagged or not answer.alignment:
        return []
    return piece_links(sentence, answer.text, answer.source_pieces, answer.target_pieces, answer.alignment)
