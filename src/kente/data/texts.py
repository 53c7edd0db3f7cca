"""Running text as ids on disk: files -> documents -> lines -> ids, memory-mapped, for language models and masked encoders.

    ids = BOS line EOS line EOS ... BOS line EOS ... BOS            offsets = where each document begins, and the BOS that ends the last

BOS begins a document and so ends the one before it; EOS ends a line, unless the tokenizer spells line ends itself.
How blocks and batches are cut from it is in `blocks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kente.data.running import Part, read_parts
from kente.data.store import FORMAT, id_type, map_array, read_meta, settle, whole_folder, write_meta
from kente.data.tokenizer import BOS, EOS, UNK, Tokenizer, Tokenizers
from kente.errors import CorpusError
from kente.reporting import SILENT, Reporter

Documents = Literal["files", "paragraphs", "lines"]
HELD_OUT = 0.1
"""Share of each file, at its end, that is kept for validation when no validation text is given."""
LONG = 1000
"""Characters: a shorter line is never cut to hold a part of it out."""
CHUNK, CHUNK_CHARACTERS = 4096, 1 << 22  # lines, and characters, encoded at once
COUNTED = 1 << 22  # ids looked at together


@dataclass(frozen=True)
class Line:
    """A line of text, and whether a document begins with it; or a part of a very long line, which ends with its last part."""

    text: str
    begins: bool
    ends: bool = True

    def __len__(self) -> int:
        """Characters, the line end included."""
        return len(self.text) + self.ends


class Cut(NamedTuple):
    """Where the held-out part of a file begins: lines of it before, and characters of the line there."""

    lines: int
    characters: int = 0


@dataclass(frozen=True)
class Texts:
    """Text files, read as documents: all of them, or what `hold_out` leaves to train on, or what it keeps for validation."""

    files: tuple[Path, ...]
    documents: Documents = "files"
    part: Literal["all", "first", "last"] = "all"
    _cuts: dict[Path, Cut | None] = field(default_factory=dict, compare=False, repr=False)  # found once for both parts

    def __iter__(self) -> Iterator[Line]:
        for path in self.files:
            if self.part == "all":
                yield from self._lines(path)
                continue
            if path not in self._cuts:
                self._cuts[path] = self._cut(path)
            cut = self._cuts[path]
            if cut is not None:
                yield from (_from_cut if self.part == "last" else _until_cut)(self._lines(path), cut)
            elif self.part == "first":
                yield from self._lines(path)

    def _lines(self, path: Path) -> Iterator[Line]:
        return _documents(read_parts(path), self.documents)

    def _cut(self, path: Path) -> Cut | None:
        """Where what is held out begins: as near to a tenth as documents allow. None where they allow nothing.

        Read twice and never held: for its length, and then as far as the tenth. A long line may be cut where no line end is near.
        """
        left = sum(map(len, self._lines(path)))  # characters from the beginning of the line on
        wanted = HELD_OUT * left
        cut, off = None, math.inf
        inside: tuple[int, Line, int] | None = None
        for place, line in enumerate(self._lines(path)):
            if place and (line.begins or self.documents == "files"):
                if abs(left - wanted) <= off:
                    cut, off = Cut(place), abs(left - wanted)
                if left <= wanted:
                    break
            if left > wanted >= left - len(line):
                inside = place, line, int(left - wanted)
            left -= len(line)
        if inside is not None and self.documents == "files" and off > wanted / 2 and len(inside[1].text) > LONG:
            place, line, wish = inside
            blank = line.text.rfind(" ", max(1, wish - LONG), wish + 1)
            return Cut(place, blank if blank > 0 else max(1, min(wish, len(line.text) - 1)))
        return cut

    def hold_out(self) -> tuple[Texts, Texts]:
        """(to train on, to validate on): the last tenth of each file is never trained on."""
        cuts: dict[Path, Cut | None] = {}
        return Texts(self.files, self.documents, "first", cuts), Texts(self.files, self.documents, "last", cuts)

    @property
    def name(self) -> str:
        return " + ".join(path.name for path in self.files)


def _documents(parts: Iterable[Part], documents: Documents) -> Iterator[Line]:
    """Blank lines part paragraphs and are no lines of their own; in whole files they are text."""
    begins, fresh = True, True  # a document, a line
    for text, ends in parts:
        if documents != "files" and fresh and ends and not text.strip():
            begins = True
            continue
        yield Line(text, begins or (fresh and documents == "lines"), ends)
        begins, fresh = False, ends


def _until_cut(lines: Iterable[Line], cut: Cut) -> Iterator[Line]:
    for place, line in enumerate(lines):
        if place == cut.lines:
            if cut.characters:
                yield Line(line.text[: cut.characters], line.begins, ends=False)
            return
        yield line


def _from_cut(lines: Iterable[Line], cut: Cut) -> Iterator[Line]:
    """What is held out begins a document; the blank at which a line was cut goes."""
    fresh = True
    for place, line in enumerate(lines):
        if place == cut.lines:
            text = line.text[cut.characters :]
            yield Line(text if fresh and not cut.characters else text.removeprefix(" "), True, line.ends)
        elif place > cut.lines:
            yield line
        fresh = line.ends


def first_lines(lines: Iterable[Line], count: int) -> Iterator[Line]:
    """The first `count` lines, with all parts of the last of them."""
    for line in lines:
        yield line
        count -= line.ends
        if not count:
            return


def per_cent(share: float) -> str:
    """A share as people read it, never rounded down to nothing."""
    return f"{100 * share:.2f} %" if share >= 0.00005 else "less than 0.01 %"


# --- text and ids ---


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    """Ids of running text. The last line is not ended: it may go on."""
    if tokenizer.spells_lines:
        return tokenizer.encode(text)
    first, *others = (tokenizer.encode(line) for line in text.split("\n"))
    return first + [number for line in others for number in (EOS, *line)]


def decode_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The text that `encode_text` would make these ids from."""
    if tokenizer.spells_lines:
        return tokenizer.decode(ids)
    lines: list[list[int]] = [[]]
    for number in ids:
        if number == EOS:
            lines.append([])
        else:
            lines[-1].append(number)
    return "\n".join(map(tokenizer.decode, lines))


class _Piece(NamedTuple):
    """What is encoded by itself."""

    text: str
    begins: bool
    ends: bool
    characters: int
    """Of the text, line ends included."""


def _pieces(lines: Iterable[Line], tokenizer: Tokenizer) -> Iterator[_Piece]:
    """Lines as they are encoded; where line ends are spelled, as many together as must be read together.

    A part that goes on with a line leaves out the blank before it where the tokenizer would think of one by itself.
    """
    if tokenizer.spells_lines:
        yield from _spelled_pieces(lines)
        return
    fresh = True
    for line in lines:
        drop = tokenizer.parts_at_blanks and not (fresh or line.begins)
        yield _Piece(line.text.removeprefix(" ") if drop else line.text, line.begins, line.ends, len(line))
        fresh = line.ends


def _spelled_pieces(lines: Iterable[Line]) -> Iterator[_Piece]:
    """A piece begins with the line end before it. It may not begin before a blank, which joins with the blanks before it."""
    waiting, begins, fresh = "", False, True
    for line in lines:
        if line.begins or not fresh:
            text, joins = line.text, False
        else:
            text, joins = f"\n{line.text}", not line.text or line.text[0].isspace()
        if not joins and (waiting or begins):
            yield _Piece(waiting, begins, False, len(waiting))
        waiting, begins = (waiting + text, begins) if joins else (text, line.begins)
        fresh = line.ends
    if waiting or begins:
        yield _Piece(waiting, begins, False, len(waiting))


def _chunks(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    """As many as are encoded at once."""
    chunk: list[_Piece] = []
    characters = 0
    for piece in pieces:
        chunk.append(piece)
        characters += piece.characters
        if len(chunk) == CHUNK or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


class TextStore:
    """Documents as one row of ids."""

    def __init__(self, folder: Path, ids: NDArray[Any], offsets: NDArray[np.int64], meta: dict[str, Any]) -> None:
        self.folder, self.ids, self.offsets, self.meta = folder, ids, offsets, meta

    def __len__(self) -> int:
        """Ids in all."""
        return len(self.ids)

    @property
    def documents(self) -> int:
        return len(self.offsets) - 1

    @property
    def characters(self) -> int:
        """Characters of the text, line ends included: what bits per character are counted by."""
        return int(self.meta["characters"])

    @cached_property
    def unknown(self) -> float:
        """Share of the ids that stand for something the tokenizer does not know."""
        parts = (self.ids[start : start + COUNTED] for start in range(0, len(self), COUNTED))
        return sum(int(np.count_nonzero(part == UNK)) for part in parts) / len(self)

    @classmethod
    def build(
        cls,
        folder: Path,
        lines: Iterable[Line],
        tokenizers: Tokenizers,
        *,
        threads: int = 1,
        reporter: Reporter = SILENT,
    ) -> TextStore:
        """Encode a text into `folder`, replacing a store already there."""
        tokenizer = tokenizers.target
        kind = id_type(tokenizer)
        offsets: list[int] = []
        count = characters = 0
        with whole_folder(folder) as unfinished:
            with open(unfinished / "text.ids", "wb") as file:
                for chunk in _chunks(_pieces(lines, tokenizer)):
                    row: list[int] = []
                    for piece, ids in zip(chunk, tokenizer.encode_many([p.text for p in chunk], threads), strict=True):
                        if piece.begins:
                            offsets.append(count + len(row))
                            row.append(BOS)
                        row += ids
                        if piece.ends:
                            row.append(EOS)
                        characters += piece.characters
                    file.write(np.array(row, kind).tobytes())
                    count += len(row)
                    reporter.progress("encoding", count, None, "tokens")
                offsets.append(count)
                file.write(np.array([BOS], kind).tobytes())
                settle(file)
            reporter.finish()
            if not characters:
                raise CorpusError("the text is empty: nothing to train on; name files that hold some")
            with open(unfinished / "text.offsets", "wb") as file:
                file.write(np.array(offsets, np.int64).tobytes())
                settle(file)
            about = {"type": kind.name, "tokens": count + 1, "documents": len(offsets) - 1, "characters": characters}
            write_meta(unfinished, {"format": FORMAT, "tokenizer_sha256": tokenizers.sha256, **about})
        return cls.open(folder, tokenizers.sha256)

    @classmethod
    def open(cls, folder: Path, tokenizer_sha256: str | None = None) -> TextStore:
        """Map a store; refused when it is not whole, or when its ids come from another tokenizer than the one named."""
        meta = read_meta(folder, "documents", tokenizer_sha256)
        ids = map_array(folder / "text.ids", meta["type"], meta["tokens"])
        return cls(folder, ids, map_array(folder / "text.offsets", "int64", meta["documents"] + 1), meta)
