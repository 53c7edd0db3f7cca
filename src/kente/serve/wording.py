"""The one door to `kente.text`: texts and files taken apart before translation and put together after it, and which language a text is in."""

from __future__ import annotations

from kente.text.documents import SUFFIXES as FORMATS
from kente.text.documents import Document
from kente.text.documents import open_document as _open_document
from kente.text.languages import UNNAMED, Detector, is_code
from kente.text.reading import Link, Placed, Reading
from kente.text.reading import read as _read

__all__ = [
    "FORMATS",
    "UNNAMED",
    "Detector",
    "Document",
    "Link",
    "Placed",
    "Reading",
    "Span",
    "is_code",
    "open_document",
    "read",
]

Span = tuple[int, int]


def read(text: str, html: bool, split: bool, lowercase: bool) -> Reading:
    """A text, read. `split`: the model wants sentences, not lines; `lowercase`: it knows small letters only."""
    return _read(text, "html" if html else "text", split=split, lowercase=lowercase)


def open_document(name: str, data: bytes, split: bool, lowercase: bool) -> Document:
    """A file, read. A KenteError if it is not what its name says."""
    return _open_document(name, data, split=split, lowercase=lowercase)
