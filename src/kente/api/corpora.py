"""Text before any model: where it is, and what a doctor says about it. Nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.data.corpus import Corpus
from kente.data.doctor import Report, examine
from kente.errors import UsageError
from kente.reporting import SILENT, Reporter


@dataclass(frozen=True)
class Data:
    """A parallel text named by a person: two files, or one file of pairs (TSV or JSONL, `fields` names its columns or keys)."""

    source: Path | None = None
    target: Path | None = None
    pairs: Path | None = None
    fields: tuple[str, str] | None = None

    def corpus(self) -> Corpus:
        """The text itself, ready to be read as often as needed."""
        if self.pairs is not None:
            if self.source or self.target:
                raise UsageError("give either --source and --target, or --pairs, not both")
            return Corpus.of_pairs(self.pairs, self.fields)
        if self.source is None or self.target is None:
            missing = "--target" if self.source else "--source" if self.target else "--source and --target (or --pairs)"
            raise UsageError(f"{missing} is missing: a translator learns from a text and its translation")
        return Corpus.of_files(self.source, self.target)

    @property
    def name(self) -> str:
        """The names of its files, for people: where they lie is of no use to a reader elsewhere."""
        return " + ".join(path.name for path in (self.source, self.target, self.pairs) if path)

    def as_dict(self) -> dict[str, Any]:
        """Absolute paths, so that a resumed run finds its text from any folder."""
        paths = {name: str(path.resolve()) for name in ("source", "target", "pairs") if (path := getattr(self, name))}
        return paths | ({"fields": list(self.fields)} if self.fields else {})

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Data:
        paths = {name: Path(values[name]) for name in ("source", "target", "pairs") if name in values}
        fields = tuple(values["fields"]) if "fields" in values else None
        return cls(**paths, fields=fields)


def check(data: Data, validation: Data | None = None, test: Data | None = None, reporter: Reporter = SILENT) -> Report:
    """Examine a corpus as a doctor would: what is wrong, where, and what to do."""
    return examine(
        data.corpus(),
        validation.corpus() if validation else None,
        test.corpus() if test else None,
        reporter=reporter,
    )
