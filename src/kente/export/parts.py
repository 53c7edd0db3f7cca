"""What every export begins with, the best weights of a run and its tokenizers, and what it ends in, a folder that is whole or not there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.config import Config, TokenizerConfig, TransformerConfig
from kente.data.tokenizer import BORROWED, Tokenizer, Tokenizers
from kente.decode.weights import Array
from kente.durable import PART, disk_errors
from kente.errors import UsageError
from kente.reporting import SILENT, Reporter
from kente.runs import Run


@dataclass(frozen=True)
class Parts:
    """A run as an export takes it: settings, tokenizers and the weights it translates with, in numpy."""

    path: Path
    config: Config
    tokenizers: Tokenizers
    weights: dict[str, Array]

    @classmethod
    def of(cls, run: Path | str, reporter: Reporter = SILENT) -> Parts:
        """The best checkpoint of a run; its weights are verified."""
        opened = Run.open(run)
        checkpoint = opened.chosen(reporter)
        return cls(opened.path, opened.config, opened.tokenizers(checkpoint), opened.arrays(checkpoint))

    def refuse(self, program: str, why: str | None) -> None:
        """Say why the program cannot carry this run; nothing where there is no reason."""
        if why is not None:
            raise UsageError(f"{self.path} cannot be exported to {program}: {why}")

    @property
    def size(self) -> int:
        """Bytes of the weights."""
        return sum(array.nbytes for array in self.weights.values())

    @property
    def longest_source(self) -> int:
        """Most tokens of a sentence, its end mark counted, that the model was made for."""
        return min(self.config.batches.max_length, self.positions or self.config.batches.max_length)

    @property
    def positions(self) -> int | None:
        """Places that the model has; None where it has no end."""
        return getattr(self.config.model, "max_length", None)


def only_here(config: TransformerConfig) -> str | None:
    """What Transformers elsewhere do not have; None if there is nothing of the kind."""
    if config.experts:
        return f"a mixture of experts (model.experts = {config.experts})"
    if config.span != "full":
        return f"attention to less than everything (model.span = {config.span})"
    if config.activations == "reversible":
        return "reversible layers (model.activations = reversible)"
    if config.positions == "xl":
        return "positions of Transformer-XL (model.positions = xl)"
    return None


def borrowed(config: TokenizerConfig) -> str | None:
    """Why a run's tokenizer cannot go along; None if it can."""
    if config.kind in BORROWED:
        return f"tokenizers that Kente learned go along, and this run's is {config.kind}, which came from elsewhere"
    return None


def pieces_of(side: Tokenizer) -> list[str]:
    """What each id of a tokenizer reads, by id."""
    return side.pieces(range(side.size))


def duplicate(pieces: Sequence[str]) -> str | None:
    """Why these cannot be the names of tokens: two read the same. None if all differ."""
    seen: set[str] = set()
    for piece in pieces:
        if piece in seen:
            return f"two of its tokens read {piece!r}, and there tokens are told apart by how they read"
        seen.add(piece)
    return None


@contextlib.contextmanager
def new_folder(out: Path, size: int) -> Iterator[Path]:
    """A folder to write some `size` bytes into, which becomes `out` when all is written."""
    if out.exists():
        raise UsageError(f"{out} exists already; choose another folder")
    part = out.with_name(f"{PART}{out.name}-{os.getpid()}")
    with disk_errors(out, size):
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            yield part
            os.rename(part, out)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
