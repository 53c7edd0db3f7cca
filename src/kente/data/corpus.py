"""Parallel text on disk, read by one rule: bytes, split on "\\n" only, one trailing "\\r" stripped, a leading BOM dropped, strict UTF-8.

Structural faults (no such file, not UTF-8, a missing column, sides of different length) are refused with file:line. Faults of content
(empty sides, control characters, ...) are read as they stand: `cleaning` keeps or drops each pair with a counted reason.
"""

from __future__ import annotations

import difflib
import functools
import gzip
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from kente.errors import CorpusError

MAX_LINE_BYTES = 10_000_000  # beyond this a file is not lines of text; nothing longer is ever held in memory
_BLOCK = 1 << 18
_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_OTHER_FORMATS = {
    b"PK\x03\x04": "a zip archive (or an office document): unpack it, or save it as plain text",
    b"BZh": "compressed with bzip2: unpack it with bunzip2, or use gzip",
    b"\xfd7zXZ": "compressed with xz: unpack it with unxz, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it with unzstd, or use gzip",
    b"%PDF-": "a PDF document: save it as plain text",
}
_UTF16 = "UTF-16 or UTF-32 text, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8"


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation; `line` is its number in the file, from 1."""

    source: str
    target: str
    line: int


class Corpus:
    """A parallel text that can be read again and again, never wholly in memory."""

    def __init__(self, name: str, read: Callable[[], Iterator[Pair]], files: tuple[Path, Path] | None = None) -> None:
        self.name = name
        self.files = files  # source and target, when they are two files of lines
        self._read = read
        self._count: int | None = None

    def __iter__(self) -> Iterator[Pair]:
        return self._read()

    def __repr__(self) -> str:
        return f"Corpus({self.name!r})"

    @classmethod
    def of_files(cls, source: Path | str, target: Path | str) -> Corpus:
        """Two files, line by line each other's translation; each may be gzipped."""
        files = Path(source), Path(target)
        return cls(f"{source} + {target}", _TwoFiles(*files), files)

    @classmethod
    def of_pairs(
        cls, path: Path | str, fields: tuple[str, str] | None = None, *, numbers: frozenset[str] = frozenset()
    ) -> Corpus:
        """One file of pairs, maybe gzipped: TSV or JSONL.

        `fields` names source and target: columns by number from 1 or by the names of a header row (TSV), keys (JSONL; "a.b" looks inside a).
        By default the first two columns, and the keys "source" and "target". `numbers` are the fields that may be JSON numbers.
        """
        path = Path(path)
        if is_json(path):
            return cls(str(path), _JsonLines(path, fields or ("source", "target"), numbers))
        return cls(str(path), _TabSeparated(path, fields or ("1", "2")))

    @classmethod
    def of_memory(cls, pairs: Iterable[tuple[str, str]], name: str) -> Corpus:
        """Pairs that are in memory already."""
        return cls(name, _InMemory(tuple(pairs), name))

    def through(self, stage: Callable[[Iterable[Pair]], Iterator[Pair]], name: str | None = None) -> Corpus:
        """This corpus with every reading passed through `stage`, for example a new Cleaner's `clean`."""
        return Corpus(name or self.name, lambda: stage(self))

    def count(self) -> int:
        """Number of pairs; read once, then remembered."""
        if self._count is None:
            self._count = check_counts(*self.files) if self.files else sum(1 for _ in self)
        return self._count


# ---------------------------------------------------------------------------------------------------------------- lines


def read_lines(path: Path | str) -> Iterator[str]:
    """The lines of a text file, gzipped or not."""
    path = Path(path)
    for first, block in _blocks(path):
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            line = first + block.count(b"\n", 0, error.start)
            column = error.start - block.rfind(b"\n", 0, error.start)
            raise not_utf8(path, line, column, block[error.start]) from None
        for line_text in text.split("\n"):
            yield line_text[:-1] if line_text.endswith("\r") else line_text


def not_utf8(path: Path, line: int, column: int, byte: int) -> CorpusError:
    """What is said of a byte that no UTF-8 text holds there; `line` and `column` count from 1."""
    return CorpusError(
        f"{path}:{line}: not UTF-8 (byte 0x{byte:02x}, byte {column} of the line); if the text was saved in an "
        f"older encoding, convert it: iconv -f WINDOWS-1252 -t UTF-8 {path}"
    )


def count_lines(path: Path | str) -> int:
    """How many lines `read_lines` would give; remembered while the file does not change."""
    path = Path(path)
    state = _regular(path)
    return _count(path, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _count(path: Path, size: int, changed: int) -> int:
    return sum(block.count(b"\n") + 1 for _, block in _blocks(path))


def check_counts(source: Path, target: Path) -> int:
    """The number of lines both files have, or the error that says they differ and where."""
    counts = count_lines(source), count_lines(target)
    if counts[0] == counts[1]:
        return counts[0]
    from kente.data.shift import find_shift  # only a broken corpus pays for the search

    found = find_shift(read_lines(source), read_lines(target))
    raise CorpusError(f"{source} has {counts[0]:,} lines but {target} has {counts[1]:,}; {found.sentence()}")


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines: (number of the first, their bytes without the last newline). Memory is bounded by MAX_LINE_BYTES."""
    number, pending, held = 1, cast(list[bytes], []), 0
    for block in raw_blocks(path):
        cut = block.rfind(b"\n")
        if cut < 0:
            pending.append(block)
            held += len(block)
        else:
            pending.append(block[:cut])
            whole = b"".join(pending)
            yield number, whole
            number += whole.count(b"\n") + 1
            pending, held = [block[cut + 1 :]], len(block) - cut - 1
        if held > MAX_LINE_BYTES:
            raise CorpusError(
                f"{path}:{number}: a line of more than {MAX_LINE_BYTES:,} bytes; one sentence per line is wanted"
            )
    if held:
        yield number, b"".join(pending)


def raw_blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a text file, gzipped or not, without a BOM, as they come; refused where they cannot be text."""
    number, start = 1, True
    with _open(path) as stream:
        while True:
            try:
                block = stream.read(_BLOCK)
            except EOFError:
                raise CorpusError(
                    f"{path}:{number}: the gzip data is cut short here; fetch or compress the file again"
                ) from None
            except (zlib.error, gzip.BadGzipFile) as error:
                raise CorpusError(
                    f"{path}:{number}: the gzip data is damaged here ({error}); fetch or compress the file again"
                ) from None
            except OSError as error:
                raise CorpusError(f"{path}:{number}: cannot be read further ({error.strerror or error})") from None
            if start:
                block, start = _beginning(path, block), False
            if not block:
                break
            yield block
            number += block.count(b"\n")


def _beginning(path: Path, block: bytes) -> bytes:
    """The first block without its BOM, or a refusal when it is not UTF-8 text at all."""
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CorpusError(f"{path}:1: {_UTF16} {path}")
    for magic, what in _OTHER_FORMATS.items():
        if block.startswith(magic):
            raise CorpusError(f"{path} is {what}")
    head = block[:4096]
    zeros = sorted((head[0::2].count(0), head[1::2].count(0)))
    if zeros[1] >= 3 and zeros[1] > 0.35 * len(head):  # every other byte is zero: UTF-16 without a mark
        raise CorpusError(f"{path}:1: {_UTF16} {path}")
    return block.removeprefix(_BOM)


def _open(path: Path) -> BinaryIO:
    _regular(path)
    try:
        with open(path, "rb") as file:
            zipped = file.read(2) == _GZIP  # by its first bytes: names lie
        return cast(BinaryIO, gzip.open(path, "rb")) if zipped else open(path, "rb")  # the caller closes it
    except OSError as error:
        raise CorpusError(f"{path} cannot be opened ({error.strerror or error})") from None


def _regular(path: Path) -> os.stat_result:
    """The state of a plain file; everything that is not one is refused before it is opened, so nothing can hang."""
    again = "a corpus is read several times, so save it to a file first"
    if str(path) == "-":
        raise CorpusError(f"standard input cannot be a corpus: {again}")
    try:
        state = os.stat(path)
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, _names_beside(path), n=1)
        hint = f"; did you mean {path.parent / near[0]}?" if near else ""
        raise CorpusError(f"there is no file {path}{hint}") from None
    except (OSError, ValueError) as error:
        raise CorpusError(f"{str(path)!r} cannot be opened ({getattr(error, 'strerror', None) or error})") from None
    if stat.S_ISDIR(state.st_mode):
        raise CorpusError(f"{path} is a folder; name a text file in it")
    if not stat.S_ISREG(state.st_mode):
        raise CorpusError(f"{path} is not a plain file (a pipe or device); {again}")
    return state


def _names_beside(path: Path) -> list[str]:
    try:
        return os.listdir(path.parent)
    except OSError:
        return []


# ---------------------------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True)
class _TwoFiles:
    source: Path
    target: Path

    def __call__(self) -> Iterator[Pair]:
        check_counts(self.source, self.target)  # before the first pair, so that no work is done in vain
        line = 0
        try:
            for line, (source, target) in enumerate(
                zip(read_lines(self.source), read_lines(self.target), strict=True), 1
            ):
                yield Pair(source, target, line)
        except ValueError:  # zip's: one side ended, though the counts agreed
            raise CorpusError(
                f"{self.source} or {self.target} changed while being read, near line {line:,}; start again"
            ) from None


@dataclass(frozen=True)
class _InMemory:
    pairs: tuple[tuple[str, str], ...]
    name: str

    def __call__(self) -> Iterator[Pair]:
        for line, (source, target) in enumerate(self.pairs, 1):
            _whole_characters(source, self.name, line)
            _whole_characters(target, self.name, line)
            yield Pair(source, target, line)


@dataclass(frozen=True)
class _TabSeparated:
    path: Path
    fields: tuple[str, str]

    def __call__(self) -> Iterator[Pair]:
        header = not all(field.isdecimal() for field in self.fields)
        first, second = (-1, -1) if header else (int(self.fields[0]) - 1, int(self.fields[1]) - 1)
        if not header and min(first, second) < 0:
            raise CorpusError(
                f"columns are counted from 1, so there are no columns {self.fields[0]} and {self.fields[1]} in {self.path}"
            )
        for line, text in enumerate(read_lines(self.path), 1):
            cells = text.split("\t")
            if header:
                first, second = (self._column(name, cells) for name in self.fields)
                header = False
            elif not text or text.isspace():
                yield Pair("", "", line)  # a blank row is an empty pair, counted as such by cleaning
            elif max(first, second) >= len(cells):
                raise CorpusError(
                    f"{self.path}:{line}: {_columns(len(cells))}, but column {max(first, second) + 1} is wanted; columns are separated by tabs"
                )
            else:
                yield Pair(cells[first], cells[second], line)

    def _column(self, name: str, cells: list[str]) -> int:
        if name in cells:
            return cells.index(name)
        seen = ", ".join(shorten(cell, 30) for cell in cells[:10])
        raise CorpusError(
            f"{self.path}:1: no column called {name!r} in the header row; it has {_columns(len(cells))}: {seen}"
        )


def _columns(number: int) -> str:
    return f"{number} column" if number == 1 else f"{number} columns"


@dataclass(frozen=True)
class _JsonLines:
    path: Path
    fields: tuple[str, str]
    numbers: frozenset[str] = frozenset()

    def __call__(self) -> Iterator[Pair]:
        for line, text in enumerate(read_lines(self.path), 1):
            if not text or text.isspace():
                yield Pair("", "", line)
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise CorpusError(
                    f"{self.path}:{line}: not JSON ({shorten(str(error), 80)}); one object per line is wanted"
                ) from None
            if not isinstance(row, dict):
                raise CorpusError(f"{self.path}:{line}: a JSON {_kind(row)}; one object per line is wanted")
            yield Pair(self._text(row, self.fields[0], line), self._text(row, self.fields[1], line), line)

    def _text(self, row: dict[str, Any], field: str, line: int) -> str:
        value: Any = row
        for key in [field] if field in row else field.split("."):
            if not isinstance(value, dict) or key not in value:
                raise CorpusError(
                    f"{self.path}:{line}: no key {field!r}; the keys here are {', '.join(_keys(row)) or 'none'}"
                )
            value = value[key]
        if field in self.numbers and isinstance(value, int | float):
            return json.dumps(value)
        if not isinstance(value, str):
            raise CorpusError(f"{self.path}:{line}: {field!r} is a JSON {_kind(value)}; text is wanted")
        return _whole_characters(value, str(self.path), line)


def _whole_characters(text: str, where: str, line: int) -> str:
    """The text, unless it holds half of a character (a lone surrogate), which no file could store as UTF-8."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise CorpusError(
                f"{where}:{line}: holds half of a character (U+{ord(text[error.start]):04X} alone); remove or repair it"
            ) from None
    return text


def _keys(row: dict[str, Any], before: str = "") -> list[str]:
    """The keys of an object as `fields` would name them, those inside objects too."""
    names: list[str] = []
    for key, value in list(row.items())[:10]:
        inside = isinstance(value, dict) and value and not before
        names += _keys(value, f"{key}.") if inside else [before + shorten(key, 30)]
    return names


def _kind(value: object) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "number")


def is_json(path: Path) -> bool:
    """JSONL or TSV? By the name, and where the name does not say, by the first character."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    if last in (".tsv", ".tab"):
        return False
    if last == ".csv":
        raise CorpusError(
            f"{path}: CSV is not read, because commas stand inside sentences; save it as .tsv, with tabs between the columns"
        )
    if last in (".jsonl", ".ndjson"):
        return True
    lines = read_lines(path)
    return next((line for line in lines if line.strip()), "").lstrip().startswith(("{", "["))


def shorten(text: str, width: int = 60) -> str:
    """At most `width` characters, on one line, safe to print."""
    cut = text if len(text) <= width else text[: width - 1] + "…"
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in cut)


class HasSides(Protocol):
    """A sentence and its translation, whatever else is known of them."""

    @property
    def source(self) -> str: ...

    @property
    def target(self) -> str: ...


def write_pairs(
    folder: Path, name: str, pairs: Iterable[HasSides], languages: tuple[str, str] = ("source", "target")
) -> tuple[Path, Path]:
    """Two text files, line by line: NAME.source and NAME.target, or named for their languages."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{name}.{languages[0]}", folder / f"{name}.{languages[1]}"
    with (
        open(paths[0], "w", encoding="utf-8", newline="\n") as source,
        open(paths[1], "w", encoding="utf-8", newline="\n") as target,
    ):
        for pair in pairs:
            source.write(pair.source + "\n")
            target.write(pair.target + "\n")
    return paths
