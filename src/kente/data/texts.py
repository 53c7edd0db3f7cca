"""Running text as ids on disk: files -> documents -> lines -> ids, memory-mapped, for language models and masked encoders.

    ids = BOS line EOS line EOS ... BOS line EOS ... BOS            offsets = where each document begins, and the BOS that ends the last

BOS begins a document and so ends the one before it; EOS ends a line, unless the tokenizer spells line ends itself.
How blocks and batches are cut from it is in `blocks`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kente.data.corpus import read_lines
from kente.data.store import FORMAT, id_type, map_array, read_meta, settle, whole_folder, write_meta
from kente.data.tokenizer import BOS, EOS, Tokenizer, Tokenizers
from kente.errors import CorpusError
from kente.reporting import SILENT, Reporter

Documents = Literal["files", "paragraphs", "lines"]
HELD_OUT = 0.1
"""Share of each file, at its end, that is kept for validation when no validation text is given."""
CHUNK = 4096  # lines encoded at once


@dataclass(frozen=True)
class Line:
    """A line of text, and whether a document begins with it."""

    text: str
    begins: bool


@dataclass(frozen=True)
class Texts:
    """Text files, read as documents: all of them, or what `hold_out` leaves to train on, or what it keeps for validation."""

    files: tuple[Path, ...]
    documents: Documents = "files"
    part: Literal["all", "first", "last"] = "all"

    def __iter__(self) -> Iterator[Line]:
        for path in self.files:
            lines = _documents(read_lines(path), self.documents)
            if self.part == "all":
                yield from lines
            else:
                yield from _part(lines, self._cut(path), self.part == "last")

    def _cut(self, path: Path) -> int:
        """The first line to be held out, counted as `_documents` gives them: as near to a tenth as documents allow."""
        lines = [(len(line.text) + 1, line.begins) for line in _documents(read_lines(path), self.documents)]
        wanted = HELD_OUT * sum(length for length, _ in lines)
        cut, held, best = len(lines), 0, math.inf  # a single line, or a single document of several, is not held out
        for place in range(len(lines) - 1, 0, -1):
            length, begins = lines[place]
            held += length
            if (begins or self.documents == "files") and abs(held - wanted) < best:
                cut, best = place, abs(held - wanted)
        return cut

    def hold_out(self) -> tuple[Texts, Texts]:
        """(to train on, to validate on): the last tenth of each file is never trained on."""
        return Texts(self.files, self.documents, "first"), Texts(self.files, self.documents, "last")

    @property
    def name(self) -> str:
        return " + ".join(path.name for path in self.files)


def _documents(lines: Iterable[str], documents: Documents) -> Iterator[Line]:
    """Blank lines part paragraphs and are no lines of their own; in whole files they are text."""
    begins = True
    for text in lines:
        if documents != "files" and not text.strip():
            begins = True
            continue
        yield Line(text, begins or documents == "lines")
        begins = False


def _part(lines: Iterator[Line], cut: int, last: bool) -> Iterator[Line]:
    """The lines before the cut, or those from it on, which begin a document."""
    if not last:
        yield from islice(lines, cut)
        return
    for place, line in enumerate(islice(lines, cut, None)):
        yield Line(line.text, line.begins or place == 0)


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


def _pieces(lines: Iterable[Line], tokenizer: Tokenizer) -> Iterator[Line]:
    """What is encoded by itself: a line; or, where line ends are spelled, as many as must be read together.

    A piece then begins with the line end before it. It may not begin before a blank, which joins with the blanks before it.
    """
    if not tokenizer.spells_lines:
        yield from lines
        return
    waiting: Line | None = None
    for line in lines:
        if waiting is not None and not line.begins and (not line.text or line.text[0].isspace()):
            waiting = Line(f"{waiting.text}\n{line.text}", waiting.begins)
            continue
        if waiting is not None:
            yield waiting
        waiting = line if line.begins else Line(f"\n{line.text}", False)
    if waiting is not None:
        yield waiting


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
                stream = iter(_pieces(lines, tokenizer))
                while chunk := list(islice(stream, CHUNK)):
                    row: list[int] = []
                    for piece, ids in zip(chunk, tokenizer.encode_many([p.text for p in chunk], threads), strict=True):
                        if piece.begins:
                            offsets.append(count + len(row))
                            row.append(BOS)
                        row += ids
                        if not tokenizer.spells_lines:
                            row.append(EOS)
                        characters += len(piece.text) + (not tokenizer.spells_lines)
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
