"""import_run: another program's model as a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.imports.folder import model_folder
from kente.imports.layouts import LAYOUTS
from kente.imports.run import write_run
from kente.imports.taking import take
from kente.models.summary import describe
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.train.kinds import kind_of


@dataclass(frozen=True)
class Imported:
    """The run that was made, and what should be known of it."""

    run: Run
    layout: str
    parameters: int
    notes: tuple[str, ...]

    def next_commands(self) -> list[str]:
        """What one may want to type now."""
        return kind_of(self.run).uses(self.run.path)

    def lines(self) -> list[str]:
        what = f"{LAYOUTS[self.layout].title}, {describe(self.run.config.model)}"
        tokenizer = self.run.config.tokenizer
        about = (
            f"{self.run.path}: {what}; {self.parameters:,} parameters, {tokenizer.vocabulary:,} {tokenizer.kind} pieces"
        )
        return [about, *self.notes]

    def as_dict(self) -> dict[str, Any]:
        return {
            "run": str(self.run.path),
            "layout": self.layout,
            "what": kind_of(self.run).name,
            "parameters": self.parameters,
            "vocabulary": self.run.config.tokenizer.vocabulary,
            "notes": list(self.notes),
        }


def import_run(
    model: Path | str,
    out: Path | str,
    *,
    languages: tuple[str, str] | None = None,
    force: bool = False,
    reporter: Reporter = SILENT,
) -> Imported:
    """Make a run of a BERT, GPT-2, Marian or M2M100 model: a folder in Hugging Face's layout, an installed package, or a wheel.

    `languages` (source, target) are what a model of many languages translates when nobody says otherwise.
    """
    with model_folder(model) as folder:
        taken = take(folder, languages)
    run = write_run(taken, out, str(model), force=force, reporter=reporter)
    return Imported(run, taken.layout, sum(tensor.numel() for tensor in taken.weights.values()), taken.notes)
