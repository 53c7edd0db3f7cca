"""Tokenizers that exist already, found by the folder they are in."""

from __future__ import annotations

import json
from pathlib import Path

from kente.data.byte_level import ByteLevel
from kente.data.tokenizer import Tokenizers
from kente.errors import ConfigError, RunError

GPT2_FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
"""The names that GPT-2's two files go by."""


def given_tokenizers(folder: Path) -> Tokenizers:
    """Tokenizers that exist already: of a run, of a folder `Tokenizers.save` wrote, or GPT-2's files."""
    for inside in (folder / "tokenizer", folder):
        if _is_ours(inside / "tokenizer.json"):
            return Tokenizers.load(inside)
    for vocabulary, merges in GPT2_FILES:
        if (folder / vocabulary).is_file() and (folder / merges).is_file():
            try:
                side = ByteLevel.from_files(
                    (folder / vocabulary).read_text(encoding="utf-8"), (folder / merges).read_text(encoding="utf-8")
                )
            except (ValueError, TypeError, AttributeError) as error:
                raise RunError(f"{folder / vocabulary} and {merges} are not GPT-2's files: {error}") from None
            return Tokenizers(side, side, joint=True)
    if (folder / "tokenizer.json").is_file():
        raise ConfigError(
            f"{folder / 'tokenizer.json'} is another program's; of GPT-2's kind vocab.json and merges.txt are read, put them beside it"
        )
    raise ConfigError(
        f"{folder} holds no tokenizer; a run does, a folder with kente's tokenizer.json, or one with GPT-2's vocab.json and merges.txt"
    )


def _is_ours(path: Path) -> bool:
    """Whether a tokenizer.json says how Kente wrote it; Hugging Face's files of this name hold whole vocabularies. A damaged one may be."""
    try:
        about = json.loads(path.read_bytes())
    except OSError:
        return False
    except ValueError:
        return True
    return isinstance(about, dict) and "format" in about
