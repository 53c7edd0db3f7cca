"""A corpus as ids on disk: memory-mapped, so that its size costs no memory.

A folder holds, for each side, `source.ids` (every sentence's ids one after the other, uint16 or uint32), `source.offsets` (int64, where each
sentence begins, and the end), and `meta.json`, written last; the folder is renamed into place when it is whole. With `text`, `source.text`
and `source.text.offsets` hold the normalised sentences too, for batches that cut them anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kente.data.tokenizer import Tokenizer, Tokenizers
from kente.durable import sync_folder
from kente.errors import CorpusError, RunError
from kente.reporting import SILENT, Reporter

FORMAT = 1
CHUNK = 4096  # pairs encoded at once
SIDES = ("source", "target")


@dataclass
class Side:
    """One side of the pairs: sentence i is ids[offsets[i]:offsets[i+1]]."""

    ids: NDArray[np.unsignedinteger[Any]]
    offsets: NDArray[np.int64]
    text: NDArray[np.uint8] | None = None
    text_offsets: NDArray[np.int64] | None = None

    def __getitem__(self, row: int) -> NDArray[np.unsignedinteger[Any]]:
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def sentence(self, row: int) -> str:
        """The normalised text of a row; only in stores built with text."""
        if self.text is None or self.text_offsets is None:
            raise RunError("this store holds no text, which cutting words anew needs; build it with text=True")
        return self.text[self.text_offsets[row] : self.text_offsets[row + 1]].tobytes().decode()


class Store:
    """Pairs of id sequences, without special ids."""

    def __init__(self, folder: Path, sides: tuple[Side, Side], meta: dict[str, Any]) -> None:
        self.folder = folder
        self.sides = sides
        self.meta = meta
        self.source_lengths: NDArray[np.int32] = np.diff(sides[0].offsets).astype(np.int32)
        self.target_lengths: NDArray[np.int32] = np.diff(sides[1].offsets).astype(np.int32)

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, row: int) -> NDArray[np.unsignedinteger[Any]]:
        return self.sides[0][row]

    def target(self, row: int) -> NDArray[np.unsignedinteger[Any]]:
        return self.sides[1][row]

    @property
    def has_text(self) -> bool:
        return self.sides[0].text is not None

    @property
    def dropped(self) -> dict[str, int]:
        """Pairs left out, by reason."""
        return dict(self.meta["dropped"])

    @classmethod
    def build(
        cls,
        folder: Path,
        pairs: Iterable[tuple[str, str]],
        tokenizers: Tokenizers,
        *,
        max_length: int,
        text: bool = False,
        config_sha256: str = "",
        threads: int = 1,
        reporter: Reporter = SILENT,
    ) -> Store:
        """Encode `pairs` into `folder`, replacing a store already there. `max_length` counts the end-of-sentence mark."""
        with whole_folder(folder) as unfinished:
            meta = _write(unfinished, pairs, tokenizers, max_length, text, threads, reporter)
            meta |= {"tokenizer_sha256": tokenizers.sha256, "config_sha256": config_sha256, "max_length": max_length}
            write_meta(unfinished, meta)
        return cls.open(folder, tokenizers.sha256)

    @classmethod
    def open(cls, folder: Path, tokenizer_sha256: str | None = None) -> Store:
        """Map a store; refused when it is not whole, or when its ids come from another tokenizer than the one named."""
        meta = read_meta(folder, "pairs", tokenizer_sha256)
        sides = []
        for name in SIDES:
            about = meta[name]
            ids = map_array(folder / f"{name}.ids", about["type"], about["tokens"])
            side = Side(ids, map_array(folder / f"{name}.offsets", "int64", meta["pairs"] + 1))
            if meta["text"]:
                side.text = map_array(folder / f"{name}.text", "uint8", about["bytes"])
                side.text_offsets = map_array(folder / f"{name}.text.offsets", "int64", meta["pairs"] + 1)
            sides.append(side)
        return cls(folder, (sides[0], sides[1]), meta)


def together(stores: Sequence[Store]) -> Store:
    """Several stores of the same tokenizers as one, in memory where there is more than one."""
    first, *others = stores
    if not others:
        return first
    sides = []
    for place in (0, 1):
        parts = [store.sides[place] for store in stores]
        begins = np.cumsum([0, *(part.offsets[-1] for part in parts)])
        offsets = [part.offsets[1:] + begin for part, begin in zip(parts, begins, strict=False)]
        sides.append(Side(np.concatenate([part.ids for part in parts]), np.concatenate([[0], *offsets])))
    return Store(first.folder, (sides[0], sides[1]), first.meta | {"pairs": sum(map(len, stores)), "text": False})


def id_type(tokenizer: Tokenizer) -> np.dtype[Any]:
    """The smallest type that holds every id."""
    return np.dtype(np.uint16 if tokenizer.size <= 65_536 else np.uint32)


class _SideWriter:
    """Appends sentences to one side's files."""

    def __init__(self, folder: Path, name: str, tokenizer: Tokenizer, text: bool) -> None:
        self.tokenizer = tokenizer
        self.type = id_type(tokenizer)
        self.tokens = self.bytes = 0
        self._files: dict[str, BinaryIO] = {}
        for ending in ("ids", "offsets", *(("text", "text.offsets") if text else ())):
            self._files[ending] = open(folder / f"{name}.{ending}", "wb")  # noqa: SIM115 (closed in close)
            if ending.endswith("offsets"):
                self._files[ending].write(np.zeros(1, np.int64).tobytes())

    def add(self, sentences: list[list[int]], texts: list[str]) -> None:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        flat = np.fromiter(chain.from_iterable(sentences), self.type, int(lengths.sum()))
        self._files["ids"].write(flat.tobytes())
        self._files["offsets"].write((self.tokens + np.cumsum(lengths)).tobytes())
        self.tokens += len(flat)
        if "text" in self._files:
            encoded = [self.tokenizer.normalise(text).encode() for text in texts]
            self._files["text"].write(b"".join(encoded))
            ends = self.bytes + np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
            self._files["text.offsets"].write(ends.tobytes())
            self.bytes = int(ends[-1]) if len(ends) else self.bytes

    def settle(self) -> None:
        for file in self._files.values():
            settle(file)

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def about(self) -> dict[str, Any]:
        return {"type": self.type.name, "tokens": self.tokens, "bytes": self.bytes, "vocabulary": self.tokenizer.size}


def _write(
    folder: Path,
    pairs: Iterable[tuple[str, str]],
    tokenizers: Tokenizers,
    max_length: int,
    text: bool,
    threads: int,
    reporter: Reporter,
) -> dict[str, Any]:
    """Everything but meta.json, whose content is returned."""
    writers = [
        _SideWriter(folder, name, side, text)
        for name, side in zip(SIDES, (tokenizers.source, tokenizers.target), strict=True)
    ]
    dropped = {"too long": 0, "empty": 0}
    most = [max_length - len(marks) for marks in tokenizers.marks]
    read = kept = 0
    try:
        for chunk in _chunks(pairs):
            texts = [[pair[side] for pair in chunk] for side in (0, 1)]
            ids = [writer.tokenizer.encode_many(lines, threads) for writer, lines in zip(writers, texts, strict=True)]
            rows = []
            for row, (source, target) in enumerate(zip(*ids, strict=True)):
                if not source or not target:
                    dropped["empty"] += 1
                elif len(source) >= most[0] or len(target) >= most[1]:
                    dropped["too long"] += 1
                else:
                    rows.append(row)
            for writer, sentences, lines, marks in zip(writers, ids, texts, tokenizers.marks, strict=True):
                chosen = [[*marks, *sentences[row]] if marks else sentences[row] for row in rows]
                writer.add(chosen, [lines[row] for row in rows] if text else [])
            read, kept = read + len(chunk), kept + len(rows)
            reporter.progress("encoding", read)
        reporter.finish()
        if not kept:
            reasons = (
                ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count) or "there were none"
            )
            raise CorpusError(
                f"no pairs to train on: {read:,} read, {reasons} (batches.max_length is {max_length}); check the files or raise the limit"
            )
        for writer in writers:
            writer.settle()
    finally:
        for writer in writers:
            writer.close()
    about = dict(zip(SIDES, (writer.about() for writer in writers), strict=True))
    return {"format": FORMAT, "pairs": kept, "dropped": dropped, "text": text, **about}


def _chunks(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    stream = iter(pairs)
    while chunk := list(islice(stream, CHUNK)):
        yield chunk


def settle(file: BinaryIO) -> None:
    """Bring a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which then takes the place of `folder`: whole, or not at all."""
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(unfinished, folder)
    sync_folder(folder.parent)


def write_meta(folder: Path, meta: dict[str, Any]) -> None:
    with open(folder / "meta.json", "wb") as file:
        file.write((json.dumps(meta, indent=2) + "\n").encode())
        settle(file)


def read_meta(folder: Path, counted: str, tokenizer_sha256: str | None = None) -> dict[str, Any]:
    """What `write_meta` wrote: of a store of this kind, `counted` being what it counts, and of ids made with the tokenizer named."""
    path = folder / "meta.json"
    try:
        meta = json.loads(path.read_bytes())
        version, made_with, _ = meta["format"], meta["tokenizer_sha256"], meta[counted]
    except FileNotFoundError as error:
        raise RunError(f"{folder} holds no prepared corpus (no meta.json); prepare it again") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read: {error!r}; prepare the corpus again") from error
    if version != FORMAT:
        raise RunError(
            f"{path} has format {version}, this version of kente reads format {FORMAT}; prepare the corpus again"
        )
    if tokenizer_sha256 is not None and made_with != tokenizer_sha256:
        raise RunError(
            f"the ids in {folder} were made with tokenizer {made_with[:12]}, not with {tokenizer_sha256[:12]}; "
            "prepare the corpus again with the tokenizer in use"
        )
    return dict(meta)


def map_array(path: Path, kind: str, count: int) -> NDArray[Any]:
    """A file of so many numbers of a kind, memory-mapped."""
    wanted = np.dtype(kind).itemsize * count
    try:
        seen = path.stat().st_size
        if seen == wanted:
            return np.asarray(np.memmap(path, kind, mode="r", shape=(count,)))
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}; prepare the corpus again") from error
    raise RunError(f"{path} has {seen:,} bytes instead of {wanted:,}; prepare the corpus again")
