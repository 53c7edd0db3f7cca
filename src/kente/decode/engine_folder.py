"""Where a converted model is kept: RUN/engines/ctranslate2-float32-0123456789ab/, beside the run it was made from.

It is a copy: made when first wanted, made again when the weights change, and free to be deleted. The last part of its name stands for the
weights; with a shortlist, one more part stands for that. It is written under another name and renamed once, so that two processes may make
it at once, and its files are verified before use. Where the run's folder cannot be written to, the user's cache takes it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kente.checkpoints import Checkpoint
from kente.config import TransformerConfig
from kente.data.shortlist import Shortlist
from kente.data.tokenizer import Tokenizers
from kente.decode.conversion import Numbers, convert, names_of, vocabulary_map
from kente.durable import PART, file_sha256, replace_file
from kente.errors import KenteError, RunError
from kente.runs import Run

FORMAT = 2
"""Of what `conversion` makes: a folder of another format is made anew."""
MANIFEST = "MANIFEST.json"
ABANDONED = 3600.0
"""Seconds after which what another process began to write counts as left behind."""


class EngineFolders:
    """The converted models of one checkpoint of a run."""

    def __init__(
        self, run: Run, checkpoint: Checkpoint, tokenizers: Tokenizers, shortlist: Shortlist | None = None
    ) -> None:
        self.run, self.checkpoint, self.tokenizers, self.shortlist = run, checkpoint, tokenizers, shortlist
        self.weights = self._weights()
        self.identity = self.weights if shortlist is None else f"{self.weights}-{shortlist.sha256[:8]}"
        self._verified: dict[Numbers, Path] = {}

    def _weights(self) -> str:
        """Stands for everything a folder is made from but a shortlist."""
        manifest = self.checkpoint.manifest
        weights = {name: file["sha256"] for name, file in manifest["files"].items() if name.endswith(".safetensors")}
        used = {name: weights[name] for name in ("model.safetensors", "average.safetensors") if name in weights}
        made_from = [FORMAT, used, manifest["model_sha256"], manifest["tokenizer_sha256"]]
        return hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def longest(self) -> int:
        """Most tokens the model can write."""
        return self.config.max_length - 1

    @property
    def config(self) -> TransformerConfig:
        """The model's."""
        config = self.run.config.model
        assert isinstance(config, TransformerConfig), "`obstacle` was not asked"
        return config

    def __call__(self, numbers: Numbers) -> Path:
        """The folder with this kind of numbers, whole; made now if there is none."""
        known = self._verified.get(numbers)
        if known is None or not (known / MANIFEST).exists():
            self._verified[numbers] = self._found(f"ctranslate2-{numbers}-{self.identity}", numbers)
        return self._verified[numbers]

    def _found(self, name: str, numbers: Numbers) -> Path:
        for home in self._homes():
            if is_whole(home / name):
                return home / name
        problems = []
        for home in self._homes():
            try:
                return self._make(home, name, numbers)
            except OSError as error:
                problems.append(f"{home}: {error.strerror or error}")
        raise RunError(f"no place for the converted model: {'; '.join(problems)}")

    def _homes(self) -> Iterator[Path]:
        yield self.run.path / "engines"
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        run = hashlib.sha256(str(self.run.path.resolve()).encode()).hexdigest()[:12]
        yield Path(cache) / "kente" / "engines" / run

    def _make(self, home: Path, name: str, numbers: Numbers) -> Path:
        home.mkdir(parents=True, exist_ok=True)
        part = home / f"{PART}{name}-{os.getpid()}-{threading.get_ident()}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            vocabularies = names_of(self.tokenizers.source.size), names_of(self.tokenizers.target.size)
            weights = self.run.arrays(self.checkpoint)
            words = None if self.shortlist is None else self._vocabulary_map(self.shortlist, *vocabularies)
            convert(self.config, weights, vocabularies, part, numbers=numbers, vocabulary_map=words)
            _write_manifest(part)
            _put(part, home / name)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        self._let_go(home)
        return home / name

    @staticmethod
    def _vocabulary_map(shortlist: Shortlist, source: Sequence[str], target: Sequence[str]) -> str:
        always = [target[i] for i in shortlist.always]
        return vocabulary_map(
            always, {name: [target[i] for i in shortlist.candidates(place)] for place, name in enumerate(source)}
        )

    def _let_go(self, home: Path) -> None:
        """Remove what older weights left, with whatever shortlist, and what was never finished."""
        for path in home.iterdir():
            stale = path.name.startswith(("ctranslate2-", "speed-")) and self.weights not in path.name
            with contextlib.suppress(OSError):
                abandoned = path.name.startswith(PART) and time.time() - path.stat().st_mtime > ABANDONED
                if stale or abandoned:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

    # ------------------------------------------------------------ a note kept beside them

    def read_note(self, name: str) -> dict[str, Any]:
        """What `write_note` kept under this name; nothing where there is none, or none that can be read.

        A run that cannot be written to may bring a note: what was found here since then is in the cache, and counts more.
        """
        known: dict[str, Any] = {}
        for home in self._homes():
            with contextlib.suppress(OSError, ValueError):
                note = json.loads((home / name).read_bytes())
                if isinstance(note, dict):
                    known |= note
        return known

    def write_note(self, name: str, note: dict[str, Any]) -> None:
        """Keep a JSON file beside the folders; where no place can be written to, it is forgotten."""
        homes = self._homes()
        for home in homes:
            with contextlib.suppress(OSError, KenteError):
                home.mkdir(parents=True, exist_ok=True)
                replace_file(home / name, json.dumps(note, indent=1).encode() + b"\n")
                break
        for home in homes:  # what is noted in those that are left is older, and must not count more
            with contextlib.suppress(OSError):
                (home / name).unlink(missing_ok=True)


def _write_manifest(folder: Path) -> None:
    files = {path.name: {"bytes": path.stat().st_size, "sha256": file_sha256(path)} for path in folder.iterdir()}
    (folder / MANIFEST).write_text(json.dumps({"format": FORMAT, "files": files}, indent=1) + "\n")


def is_whole(folder: Path) -> bool:
    """Whether every file is there, to the last byte. Nothing is brought to the disk in a hurry: what a crash tore is found here."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return bool(manifest["format"] == FORMAT and manifest["files"]) and all(
            (folder / name).stat().st_size == file["bytes"] and file_sha256(folder / name) == file["sha256"]
            for name, file in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _put(part: Path, final: Path) -> None:
    """Give the folder its name. One that another process put there meanwhile stays; a damaged one makes way."""
    try:
        os.rename(part, final)
    except OSError:
        if is_whole(final):
            return
        if not final.exists():
            raise
        torn = part.with_name(f"{part.name}-old")
        os.rename(final, torn)
        shutil.rmtree(torn, ignore_errors=True)
        os.rename(part, final)
