"""Files read for translation as texts are, and written again byte for byte but for what was translated: .txt .html .po .srt .tsv

document = open_document("film.srt", data)              document.sentences: what to translate
again = document.again(translations)                    what to translate a second time
document.put_together(translations, second)             the file's bytes, and what to warn of
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath

from kente.errors import DocumentError
from kente.text.encodings import Encoding, decode, lines_of, shown
from kente.text.layout import Layout
from kente.text.po import lay_out_po
from kente.text.reading import Link, Reading, read
from kente.text.writing import Kind

SUFFIXES = (".txt", ".html", ".htm", ".po", ".pot", ".srt", ".tsv")
"""How the names of files end that can be translated."""

_TIME = r"(?:\d{1,3}:)?\d{1,2}:\d{2}[,.]\d{1,3}"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_WRONG_TIMES = re.compile(r"\s*\d+:.*-->|\s*-->")
_SPEAKER = re.compile(r"\s*(?:<[^<>]*>)?\s*[-–—]")
_BREAK = re.compile(r"<[^<>]*>|(\s+)")
_CHARSET = re.compile(r"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)


@dataclass(frozen=True)
class LineNotice:
    """Something to know about a line of the written file; kinds as for a Notice."""

    kind: Kind
    message: str
    line: int


@dataclass(frozen=True)
class WrittenDocument:
    """A translated file."""

    data: bytes
    warnings: tuple[LineNotice, ...] = ()


class Document:
    """A file's readings, and everything else in it."""

    def __init__(self, name: str, layout: Layout, encoding: Encoding) -> None:
        self.name, self.layout, self.encoding = name, layout, encoding

    @property
    def readings(self) -> list[Reading]:
        return self.layout.readings

    @property
    def sentences(self) -> list[str]:
        """What to translate."""
        return [sentence for reading in self.readings for sentence in reading.sentences]

    @property
    def tagged(self) -> list[bool]:
        """For each sentence, whether tags stand inside it, so that links would be of use."""
        return [tagged for reading in self.readings for tagged in reading.tagged]

    @property
    def lines(self) -> list[int]:
        """For each sentence, the line of the file that it begins on."""
        found = []
        for reading, first in zip(self.readings, self.layout.lines, strict=True):
            line_of = _line_counter(reading.page, first)
            found += [line_of(unit.page[0]) for unit in reading.units]
        return found

    def again(self, translations: Sequence[str], links: Sequence[Sequence[Link]] | None = None) -> list[str]:
        """What has to be translated a second time, in parts."""
        return [part for reading, *known in self._shared_out(translations, links) for part in reading.again(*known)]

    def put_together(
        self, translations: Sequence[str], second: Sequence[str] = (), links: Sequence[Sequence[Link]] | None = None
    ) -> WrittenDocument:
        """The file with its sentences translated; `second` translates what `again` gave for the same arguments."""
        texts: list[str] = []
        warnings: list[LineNotice] = []
        place = 0
        for number, (reading, own, known) in enumerate(self._shared_out(translations, links)):
            parts = len(reading.again(own, known)) if second else 0
            written = reading.put_together(own, second[place : place + parts], known)
            place += parts
            texts.append(written.text)
            line_of = _line_counter(written.text, self.layout.lines[number])
            warnings += (LineNotice(one.kind, one.message, line_of(one.start)) for one in written.warnings)
        assert place == len(second), f"{place} parts were asked for, {len(second)} came back"
        return WrittenDocument(self.encoding.encode(self.layout.filled(texts)), tuple(warnings))

    def _shared_out(
        self, translations: Sequence[str], links: Sequence[Sequence[Link]] | None
    ) -> Iterator[tuple[Reading, Sequence[str], Sequence[Sequence[Link]] | None]]:
        """Each reading with its own translations and links."""
        place = 0
        for reading in self.readings:
            own = slice(place, place + len(reading.units))
            yield reading, translations[own], links[own] if links is not None else None
            place = own.stop
        assert place == len(translations), f"{place} sentences were asked for, {len(translations)} came back"


def _line_counter(text: str, first: int) -> Callable[[int], int]:
    """A function from a place in the text to its line, where the text begins on line `first`."""
    breaks = [found.start() for found in re.finditer("\n", text)]
    return lambda place: first + bisect_left(breaks, place)


def open_document(
    name: str, data: bytes, *, column: str = "1", split: bool = True, lowercase: bool = False
) -> Document:
    """The file called `name` that holds `data`. `column` of a .tsv is counted from 1 or named in its first line; the rest is as for `read`."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise DocumentError(
            f"{name} ends in {suffix or 'no suffix'}; files that can be translated end in {' '.join(SUFFIXES)}"
        )
    text, encoding = decode(name, data)
    reader = partial(read, split=split, lowercase=lowercase)
    match suffix:
        case ".html" | ".htm":
            layout = _lay_out_whole(text, partial(reader, kind="html"))
            encoding = _page_encoding(text, encoding)
        case ".po" | ".pot":
            layout = lay_out_po(name, text, reader)
        case ".srt":
            layout = _lay_out_subtitles(name, text, partial(reader, kind="subtitle"))
        case ".tsv":
            layout = _lay_out_table(name, text, column, reader)
        case _:
            layout = _lay_out_whole(text, reader)
    return Document(name, layout, encoding)


def _lay_out_whole(text: str, reader: Callable[[str], Reading]) -> Layout:
    layout = Layout()
    layout.slot(layout.add(reader(text), 1))
    return layout


def _page_encoding(page: str, encoding: Encoding) -> Encoding:
    """A page in ASCII that declares an older encoding stays in ASCII: other letters are written as references."""
    declared = _CHARSET.search(page, 0, 4096)
    older = declared is not None and not declared[1].lower().startswith("utf")
    return Encoding("ascii", errors="xmlcharrefreplace") if older and page.isascii() and not encoding.mark else encoding


# ---------------------------------------------------------------- subtitles


def _lay_out_subtitles(name: str, text: str, reader: Callable[[str], Reading]) -> Layout:
    """Numbers and times stay; what is said between two of them is read as one, unless a dash begins each speaker's line."""
    lines = list(lines_of(text))
    times = _times(name, [line for line, _ in lines])
    layout, first = Layout(), times.index(True)
    said: list[tuple[str, str]] = []
    for number, (line, ending) in enumerate(lines):
        is_number = line.strip().isdecimal() and times[number + 1 : number + 2] == [True]
        if number > first and line.strip() and not times[number] and not is_number:
            said.append((line, ending))
            continue
        _lay_out_said(layout, said, number + 1 - len(said), reader)
        said = []
        layout.keep(line + ending)
    _lay_out_said(layout, said, len(lines) + 1 - len(said), reader)
    return layout


def _times(name: str, lines: list[str]) -> list[bool]:
    """For each line, whether it says when something is said; a file without such lines, or with a wrong one, is refused."""
    times = [bool(_TIMES.fullmatch(line)) for line in lines]
    for number, line in enumerate(lines, 1):
        if not times[number - 1] and _WRONG_TIMES.match(line):
            raise DocumentError(
                f"{name}:{number}: {shown(line)} should be two times such as 00:00:01,000 --> 00:00:04,000"
            )
    if not any(times):
        seen = next((line for line in lines if line.strip()), "")
        raise DocumentError(
            f"{name} is not a subtitle file: no line such as 00:00:01,000 --> 00:00:04,000, it begins {shown(seen)}"
        )
    return times


def _lay_out_said(layout: Layout, said: list[tuple[str, str]], first: int, reader: Callable[[str], Reading]) -> None:
    lines = [line for line, _ in said]
    if len(lines) < 2 or any(map(_SPEAKER.match, lines)):
        for number, (line, ending) in enumerate(said):
            layout.slot(layout.add(reader(line), first + number))
            layout.keep(ending)
        return
    ending = said[-1][1]
    layout.slot(layout.add(reader(" ".join(lines)), first), partial(broken, lines=lines, newline=said[0][1]))
    layout.keep(ending)


def broken(text: str, lines: Sequence[str], newline: str) -> str:
    """The text in as many lines as there were, of like length; as it was broken before, if nothing changed."""
    if text == " ".join(lines):
        return newline.join(lines)
    spaces = [found.span(1) for found in _BREAK.finditer(text) if found[1]]
    pieces, start = [], 0
    for left in range(len(lines), 1, -1):
        wanted = start + (len(text) - start) / left
        possible = [span for span in spaces if span[0] > start]
        if not possible:
            break
        end, after = min(possible, key=lambda span: abs(span[0] - wanted))
        pieces.append(text[start:end])
        start = after
    return newline.join([*pieces, text[start:]])


# ---------------------------------------------------------------- tables


def _lay_out_table(name: str, text: str, column: str, reader: Callable[[str], Reading]) -> Layout:
    """One column is translated, all else stays; a column that is named in the first line has a first line that stays too."""
    layout, place = Layout(), int(column) - 1 if column.isdecimal() else None
    if place is not None and place < 0:
        raise DocumentError(f"columns are counted from 1, so there is no column {column} in {name}")
    for number, (line, ending) in enumerate(lines_of(text), 1):
        cells = line.split("\t")
        if place is None:
            place = _column_called(name, column, cells)
            layout.keep(line + ending)
            continue
        if not line.strip():
            layout.keep(line + ending)
            continue
        if place >= len(cells):
            raise DocumentError(
                f"{name}:{number}: {len(cells)} columns, but column {place + 1} is wanted; columns are separated by tabs"
            )
        layout.keep("".join(f"{cell}\t" for cell in cells[:place]))
        layout.slot(layout.add(reader(cells[place]), number), _one_cell)
        layout.keep("".join(f"\t{cell}" for cell in cells[place + 1 :]) + ending)
    return layout


def _column_called(name: str, column: str, cells: list[str]) -> int:
    if column in cells:
        return cells.index(column)
    seen = ", ".join(shown(cell, 30) for cell in cells[:10])
    raise DocumentError(f"{name}:1: no column called {column!r} in the first line; it has {seen}")


def _one_cell(text: str) -> str:
    """A translation cannot open a new cell or row."""
    return text.replace("\t", " ").replace("\r", " ").replace("\n", " ")
