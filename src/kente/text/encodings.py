"""Bytes to text and back, to the last byte: UTF-8 with or without a mark, UTF-16 with one."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from kente.errors import DocumentError

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_OTHER_FILES = {
    b"PK\x03\x04": "an office document or another zip archive; save it as plain text",
    b"\xd0\xcf\x11\xe0": "an old office document; save it as plain text",
    b"{\\rtf": "an RTF document; save it as plain text",
    b"%PDF-": "a PDF document; save it as plain text",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
}
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


@dataclass(frozen=True)
class Encoding:
    """How a file's text was written as bytes."""

    name: str = "utf-8"
    mark: bytes = b""
    errors: str = "strict"

    def encode(self, text: str) -> bytes:
        return self.mark + text.encode(self.name, self.errors)


def decode(name: str, data: bytes) -> tuple[str, Encoding]:
    """The text of a file and how to write such text; refused with what was seen if it is none."""
    for magic, what in _OTHER_FILES.items():
        if data.startswith(magic):
            raise DocumentError(f"{name} is {what}")
    encoding = next((Encoding(kind, mark) for mark, kind in _MARKS.items() if data.startswith(mark)), Encoding())
    body = data[len(encoding.mark) :]
    if encoding.name == "utf-8" and b"\0" in body:
        raise DocumentError(
            f"{name} holds zero bytes: it is not text, or UTF-16 without its mark; save it as UTF-8 and try again"
        )
    try:
        return body.decode(encoding.name), encoding
    except UnicodeDecodeError as error:
        line = body[: error.start].decode(encoding.name, "replace").count("\n") + 1
        seen = body[error.start : error.start + 2].hex(" ")
        raise DocumentError(
            f"{name}:{line}: not {encoding.name.upper()} (bytes {seen}); if the text was saved in an older encoding, convert it: "
            f"iconv -f WINDOWS-1252 -t UTF-8 {name}"
        ) from None


def lines_of(text: str) -> Iterator[tuple[str, str]]:
    """(line, its ending) for each line; the last may have no ending."""
    for found in _LINE.finditer(text):
        if found[0]:
            yield found[1], found[2]


def newline_of(text: str) -> str:
    """How the text ends its lines."""
    return next((ending for _, ending in lines_of(text) if ending), "\n")


def shown(text: str, width: int = 40) -> str:
    """A line as a message may show it."""
    cut = text if len(text) <= width else text[: width - 1] + "…"
    return repr(cut)
