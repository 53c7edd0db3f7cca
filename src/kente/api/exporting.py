"""export: a run as another program's model. Nothing here imports the programs, and torch only to give an imported run back."""

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
from kente.export.parts import borrowed
from kente.reporting import SILENT, Reporter
from kente.runs import Run

OBSTACLES: dict[str, Callable[[Config], str | None]] = {
    "ctranslate2": lambda config: conversion.obstacle(config.model) or borrowed(config.tokenizer),
    "huggingface": lambda config: huggingface.obstacle(config.model) or borrowed(config.tokenizer),
    "argos": argos.obstacle,
    "onnx": lambda config: onnx.obstacle(config.model) or borrowed(config.tokenizer),
}
"""The programs, and what says why one of them cannot carry a run."""
AS_IT_CAME = "as it came"
"""A run that was imported goes back to Hugging Face in the layout it came in."""
ROUNDED = ("ctranslate2", "argos")
"""Programs that compute with whole numbers if asked to."""
NEXT = {
    "ctranslate2": "{folder}/README.md shows how to translate with it",
    "huggingface": 'AutoModelForSeq2SeqLM.from_pretrained("{folder}") and AutoTokenizer.from_pretrained("{folder}") load it',
    "argos": 'argostranslate.package.install_from_path("{folder}/{file}") installs it',
    "onnx": 'python {folder}/translate.py "..."',
    AS_IT_CAME: "what loaded the model that was imported loads {folder}",
}


@dataclass(frozen=True)
class Exported:
    """What was written, and what to do with it."""

    program: str
    folder: Path
    files: dict[str, int]
    """Sizes in bytes, by name."""
    again: bool = False
    """Whether it was given back in the layout it had been imported from."""

    @property
    def next(self) -> str:
        way = NEXT[AS_IT_CAME if self.again else self.program]
        return way.format(folder=self.folder, file=next(iter(self.files)))

    def lines(self) -> list[str]:
        size = size_text(sum(self.files.values()))
        return [f"{self.folder}: {self.program}, {len(self.files)} files, {size}", f"next: {self.next}"]

    def as_dict(self) -> dict[str, Any]:
        return {"program": self.program, "folder": str(self.folder), "files": self.files, "next": self.next}


def carriers(run: Path | str) -> dict[str, str | None]:
    """For each program why it cannot carry this run; None if it can."""
    opened = Run.open(run)
    found = {program: obstacle(opened.config) for program, obstacle in OBSTACLES.items()}
    if imported(opened):
        from kente.export import origin

        found["huggingface"] = origin.obstacle(opened)
    return found


def imported(run: Run) -> bool:
    """Whether a run came from another program, and kept what it came with."""
    return (run.path / "origin").is_dir()


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

    A run that was imported goes back to Hugging Face in the layout it came in. `languages` (codes) and `names` (what people call them) are
    for Argos; the first are found in the names of the run's corpus if they stand there.
    """
    if to not in OBSTACLES:
        raise UsageError(f"nothing is known of {to}; runs are exported to {', '.join(OBSTACLES)}")
    if numbers != "float32" and to not in ROUNDED:
        raise UsageError(f"{numbers} numbers are for {' and '.join(ROUNDED)}; {to} is written in float32")
    if (languages or names) and to != "argos":
        raise UsageError(f"languages and their names are written for argos alone; {to} does not ask for them")
    again = to == "huggingface" and imported(Run.open(run))
    match to:
        case "ctranslate2":
            folder = ctranslate2.export(run, out, numbers, reporter=reporter)
        case "huggingface" if again:
            from kente.export import origin

            folder = origin.give_back(run, out)
        case "huggingface":
            folder = huggingface.export(run, out, reporter=reporter)
        case "argos":
            folder = argos.export(run, out, numbers, languages=languages, names=names, reporter=reporter)
        case _:
            folder = onnx.export(run, out, reporter=reporter)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return Exported(to, folder, {str(path.relative_to(folder)): path.stat().st_size for path in files}, again)
