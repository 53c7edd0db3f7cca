"""The one door to `kente.text`: texts and files taken apart before translation and put together after it, and which language a text is in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kente.text.documents import Document
from kente.text.documents import open_document as _open_document
from kente.text.reading import Link, Placed, Reading, Written
from kente.text.reading import read as _read

__all__ = ["FORMATS", "Document", "Link", "Placed", "Reading", "Span", "Written", "detector", "open_document", "read"]

FORMATS = (".txt", ".html", ".po", ".srt", ".tsv")
"""Endings of files that can be translated."""

Span = tuple[int, int]


def read(text: str, html: bool, split: bool, lowercase: bool) -> Reading:
    """A text, read. `split`: the model wants sentences, not lines; `lowercase`: it knows small letters only."""
    return _read(text, "html" if html else "text", split=split, lowercase=lowercase)


def open_document(name: str, data: bytes, split: bool, lowercase: bool) -> Document:
    """A file, read. A KenteError if it is not what its name says."""
    return _open_document(name, data, split=split, lowercase=lowercase)


def detector(runs: Sequence[Path]) -> Any | None:
    """What tells the languages of these runs apart; None if no run has learnt it."""
    return None
