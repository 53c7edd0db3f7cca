"""export: a run as another program's model. Nothing here imports torch, nor the programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.config import Config
from kente.decode import conversion
from kente.decode.conversion import Numbers
from kente.durable import size_text
from kente.errors import UsageError
from kente.export import argos, ctranslate2, huggingface, onnx
from kente.reporting import SILENT, Reporter
from kente.runs import Run

OBSTACLES: dict[str, Callable[[Config], str | None]] = {
    "ctranslate2": lambda config: conversion.obstacle(config.model),
    "huggingface": lambda config: huggingface.obstacle(config.model),
    "argos": argos.obstacle,
    "onnx": lambda config: onnx.obstacle(config.model),
}
"""The programs, and what says why one of them cannot carry a run."""
ROUNDED = ("ctranslate2", "argos")
"""Programs that compute with whole numbers if asked to."""
NEXT = {
    "ctranslate2": "{folder}/README.md shows how to translate with it",
    "huggingface": 'AutoModelForSeq2SeqLM.from_pretrained("{folder}") and AutoTokenizer.from_pretrained("{folder}") load it',
    "argos": 'argostranslate.package.install_from_path("{folder}/{file}") installs it',
    "onnx": 'python {folder}/translate.py "..."',
}


@dataclass(frozen=True)
class Exported:
    """What was written, and what to do with it."""

    program: str
    folder: Path
    files: dict[str, int]
    """Sizes in bytes, by name."""

    @property
    def next(self) -> str:
        return NEXT[self.program].format(folder=self.folder, file=next(iter(self.files)))

    def lines(self) -> list[str]:
        size = size_text(sum(self.files.values()))
        return [f"{self.folder}: {self.program}, {len(self.files)} files, {size}", f"next: {self.next}"]

    def as_dict(self) -> dict[str, Any]:
        return {"program": self.program, "folder": str(self.folder), "files": self.files, "next": self.next}


def carriers(run: Path | str) -> dict[str, str | None]:
    """For each program why it cannot carry this run; None if it can."""
    config = Run.open(run).config
    return {program: obstacle(config) for program, obstacle in OBSTACLES.items()}


def export(
    run: Path | str,
    to: str,
    out: Path | str,
    *,
    numbers: Numbers = "float32",
    languages: tuple[str, str] | None = None,
    names: tuple[str, str] | None = None,
    reporter: Reporter = SILENT,
) -> Exported:
    """Write a run's best weights, and its tokenizer, to the new folder `out` as a model of the program `to`.

    `languages` (codes) and `names` (what people call them) are for Argos; the first are found in the names of the run's corpus if they
    stand there.
    """
    if to not in OBSTACLES:
        raise UsageError(f"nothing is known of {to}; runs are exported to {', '.join(OBSTACLES)}")
    if numbers != "float32" and to not in ROUNDED:
        raise UsageError(f"{numbers} numbers are for {' and '.join(ROUNDED)}; {to} is written in float32")
    if (languages or names) and to != "argos":
        raise UsageError(f"languages and their names are written for argos alone; {to} does not ask for them")
    match to:
        case "ctranslate2":
            folder = ctranslate2.export(run, out, numbers, reporter=reporter)
        case "huggingface":
            folder = huggingface.export(run, out, reporter=reporter)
        case "argos":
            folder = argos.export(run, out, numbers, languages=languages, names=names, reporter=reporter)
        case _:
            folder = onnx.export(run, out, reporter=reporter)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return Exported(to, folder, {str(path.relative_to(folder)): path.stat().st_size for path in files})
