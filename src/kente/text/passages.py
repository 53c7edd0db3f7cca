"""The passages of a text or a page: text that is read as one, by its letters and where each of them stands.

A passage of a page ends where a block ends or a line is broken. Tags inside it (<b>, <a>, ...) are remembered by their place among its
letters, and so are stretches that are not to be translated (<code>, translate="no").
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from kente.text.markup import BLOCKS, SPACES, VOID, Escape, Token, attributes, is_left_alone, tokens

TRANSLATED_ATTRIBUTES = frozenset({"alt", "title", "placeholder", "aria-label"})
LONGEST_INLINE = 200
"""Characters of an untranslated element that a model gets to read as part of the sentence; longer ones are out of its sight."""

_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});?")


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag (or comment, or untranslated element without text) inside a passage: before which letter, and where in the page."""

    place: int
    start: int
    end: int
    kind: Literal["open", "close", "alone"]
    name: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """Letters [start, end) of a passage that are not translated, and where in the page they stand with their tags."""

    start: int
    end: int
    page_start: int
    page_end: int


@dataclass
class Passage:
    """Text that is read as one: its letters, and where in the page each of them begins and ends."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    escape: Escape = "text"
    tags: list[Tag] = field(default_factory=list)
    fixed: list[Fixed] = field(default_factory=list)

    @classmethod
    def of_text(cls, text: str) -> Passage:
        return cls(text, range(len(text)), range(1, len(text) + 1))


def page_passages(page: str) -> list[Passage]:
    """The passages of an HTML page or a piece of one, and the values of attributes that people read."""
    return _Reader(page, list(tokens(page))).read()


def subtitle_passage(text: str) -> Passage:
    """A subtitle as one passage: <i>, <b>, <u>, <s> and <font> are tags, everything else is text."""
    shown = {"b", "i", "u", "s", "font", "c", "v"}
    builder = _Builder(text, "text")
    for token in tokens(text):
        if token.kind in ("open", "close") and token.name in shown:
            builder.tag(token)
        else:
            builder.characters(token.start, token.end)
    return builder.finished()


class _Builder:
    """A passage in the making."""

    def __init__(self, page: str, escape: Escape) -> None:
        self.page, self.escape = page, escape
        self.letters: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.tags: list[Tag] = []
        self.fixed: list[Fixed] = []

    def finished(self) -> Passage:
        return Passage("".join(self.letters), self.starts, self.ends, self.escape, self.tags, self.fixed)

    def tag(self, token: Token) -> None:
        kind: Literal["open", "close", "alone"] = "alone"
        if token.kind in ("open", "close") and token.name not in VOID and self.page[token.end - 2] != "/":
            kind = "open" if token.kind == "open" else "close"
        self.tags.append(Tag(len(self.letters), token.start, token.end, kind, token.name))

    def characters(self, start: int, end: int) -> None:
        """Letters as they stand."""
        self.letters += self.page[start:end]
        self.starts += range(start, end)
        self.ends += range(start + 1, end + 1)

    def text(self, start: int, end: int) -> None:
        """Letters with references resolved; white space is one space, soft hyphens are not there."""
        place = start
        for reference in _REFERENCE.finditer(self.page, start, end):
            self._plain(place, reference.start())
            meant = html.unescape(reference[0])
            place = reference.end()
            if meant == reference[0]:  # no such reference: text
                self._plain(reference.start(), place)
            else:
                for letter in meant.replace("\xad", ""):
                    self._add(letter, reference.start(), place)
        self._plain(place, end)

    def _plain(self, start: int, end: int) -> None:
        for place in range(start, end):
            letter = self.page[place]
            if letter not in SPACES or self.escape != "html":
                if letter != "\xad":
                    self._add(letter, place, place + 1)
            elif not self.letters or self.letters[-1] != " ":
                self._add(" ", place, place + 1)
            elif self.ends[-1] == place:
                self.ends[-1] = place + 1

    def _add(self, letter: str, start: int, end: int) -> None:
        self.letters.append(letter)
        self.starts.append(start)
        self.ends.append(end)


class _Reader:
    """Walks through the tokens of a page and cuts passages."""

    def __init__(self, page: str, all_tokens: list[Token]) -> None:
        self.page, self.tokens = page, all_tokens
        self.passages: list[Passage] = []
        self.builder = _Builder(page, "html")

    def read(self) -> list[Passage]:
        place = 0
        while place < len(self.tokens):
            place = self._take(place)
        self._cut()
        return self.passages

    def _take(self, place: int) -> int:
        """Read the token at `place`; returns where to go on."""
        token = self.tokens[place]
        if token.kind == "text":
            self.builder.text(token.start, token.end)
            return place + 1
        if token.kind == "other":
            self.builder.tag(token)
            return place + 1
        inline = token.name not in BLOCKS
        if token.kind == "open" and is_left_alone(self.page, token):
            end = place + 1 if token.name in VOID else self._end_of(place)
            self._leave_alone(place, end, inline)
            return end
        if inline:
            self.builder.tag(token)
        else:
            self._cut()
        if token.kind == "open":
            self._attributes(token)
        return place + 1

    def _end_of(self, place: int) -> int:
        """The place after the end tag that belongs to the tag at `place`."""
        name, depth = self.tokens[place].name, 0
        for later in range(place, len(self.tokens)):
            token = self.tokens[later]
            if token.name == name:
                depth += {"open": 1, "close": -1}.get(token.kind, 0)
                if depth == 0:
                    return later + 1
        return len(self.tokens)

    def _leave_alone(self, place: int, end: int, inline: bool) -> None:
        inside = self.tokens[place:end]
        if not inline or any(token.name in BLOCKS for token in inside):
            self._cut()
            return
        start, finish = inside[0].start, inside[-1].end
        shown = sum(token.end - token.start for token in inside if token.kind == "text")
        begin = len(self.builder.letters)
        if inside[0].name not in ("svg", "math") and shown <= LONGEST_INLINE:
            for token in inside:
                if token.kind == "text":
                    self.builder.text(token.start, token.end)
        if len(self.builder.letters) > begin:
            self.builder.fixed.append(Fixed(begin, len(self.builder.letters), start, finish))
        else:
            self.builder.tags.append(Tag(begin, start, finish, "alone", inside[0].name))

    def _attributes(self, token: Token) -> None:
        for name, start, end in attributes(self.page, token):
            if name in TRANSLATED_ATTRIBUTES:
                quote = self.page[start]
                escape: Escape = '"' if quote == '"' else "'" if quote == "'" else "bare"
                value = _Builder(self.page, escape)
                value.text(*((start, end) if escape == "bare" else (start + 1, end - 1)))
                self.passages.append(value.finished())

    def _cut(self) -> None:
        """End the passage, if it holds any text."""
        if self.builder.letters:
            self.passages.append(self.builder.finished())
        self.builder = _Builder(self.page, "html")
