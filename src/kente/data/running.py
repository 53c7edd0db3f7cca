"""Running text on disk: lines as `corpus` reads them, but a very long one comes in parts, so that memory stays small whatever the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kente.data.corpus import not_utf8, raw_blocks

LONGEST_PART = 1 << 16
"""Bytes of a line that are read together at most. A book may be one line; so is text8, all hundred megabytes of it."""


class Part(NamedTuple):
    """A line, or a part of one: `ends` where the line ends with it. What goes on begins with the blank it was cut at, if there was one."""

    text: str
    ends: bool = True


def read_parts(path: Path | str) -> Iterator[Part]:
    """The lines of a text file, gzipped or not, in parts of LONGEST_PART bytes at most."""
    path = Path(path)
    number, column, rest = 1, 1, b""
    for block in raw_blocks(path):
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            for part in _cut(line):
                yield Part(_decoded(path, number, column, part), ends=False)
                column += len(part)
                line = line[len(part) :]
            yield Part(_decoded(path, number, column, line).removesuffix("\r"))
            number, column = number + 1, 1
        for part in _cut(rest):
            yield Part(_decoded(path, number, column, part), ends=False)
            column += len(part)
            rest = rest[len(part) :]
    if rest:
        yield Part(_decoded(path, number, column, rest).removesuffix("\r"))


def _cut(line: bytes) -> Iterator[bytes]:
    """What comes off the beginning of a line until no more than LONGEST_PART bytes are left."""
    begin = 0
    while len(line) - begin > LONGEST_PART:
        blank = line.rfind(b" ", begin + 1, begin + LONGEST_PART)
        place = begin + len(line[begin:blank].rstrip(b" ")) if blank > 0 else begin
        if place == begin:  # no blank behind a word: between two characters, then
            place = begin + LONGEST_PART
            while place > begin + LONGEST_PART - 4 and line[place] & 0xC0 == 0x80:
                place -= 1
        yield line[begin:place]
        begin = place


def _decoded(path: Path, number: int, column: int, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(path, number, column + error.start, data[error.start]) from None
