"""Tokenizers that exist already, found by the folder they are in."""

from __future__ import annotations

from pathlib import Path

from kente.data.byte_level import ByteLevel
from kente.data.tokenizer import Tokenizers
from kente.errors import ConfigError, RunError

GPT2_FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
"""The names that GPT-2's two files go by."""


def given_tokenizers(folder: Path) -> Tokenizers:
    """Tokenizers that exist already: of a run, of a folder `Tokenizers.save` wrote, or GPT-2's files."""
    for inside in (folder / "tokenizer", folder):
        if (inside / "tokenizer.json").is_file() and (inside / "tokenizer.json").stat().st_size < 100_000:
            return Tokenizers.load(inside)  # others' tokenizer.json hold whole vocabularies
    for vocabulary, merges in GPT2_FILES:
        if (folder / vocabulary).is_file() and (folder / merges).is_file():
            try:
                side = ByteLevel.from_files(
                    (folder / vocabulary).read_text(encoding="utf-8"), (folder / merges).read_text(encoding="utf-8")
                )
            except (ValueError, TypeError, AttributeError) as error:
                raise RunError(f"{folder / vocabulary} and {merges} are not GPT-2's files: {error}") from None
            return Tokenizers(side, side, joint=True)
    raise ConfigError(
        f"{folder} holds no tokenizer; a run does, a folder with tokenizer.json, or one with GPT-2's vocab.json and merges.txt"
    )
