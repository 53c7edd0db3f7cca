"""From text files to what language models and encoders train on: a tokenizer and ids on disk."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.config import Config
from kente.data.given import given_tokenizers
from kente.data.texts import Texts, TextStore, per_cent
from kente.data.tokenizer import Tokenizer, Tokenizers, train_tokenizer
from kente.errors import CorpusError
from kente.reporting import Reporter
from kente.runs import Run
from kente.train.kinds import KINDS


@dataclass(frozen=True)
class PreparedText:
    """What training reads."""

    tokenizers: Tokenizers
    train: TextStore
    validation: TextStore

    @property
    def tokenizer(self) -> Tokenizer:
        return self.tokenizers.target

    @classmethod
    def open(cls, run: Run) -> PreparedText:
        """What `prepare_text` left in the run folder."""
        tokenizers = run.tokenizers()
        stores = (TextStore.open(run.path / "data" / name, tokenizers.sha256) for name in ("train", "validation"))
        return cls(tokenizers, *stores)


def prepare_text(
    run: Run,
    files: list[Path],
    validation: list[Path] | None,
    tokenizer: Path | None,
    config: Config,
    threads: int,
    reporter: Reporter,
) -> dict[str, Any]:
    """Hold out, learn or find the tokenizer, store ids: everything lands in the run folder. Safe to do again after a crash."""
    for name in ("data", "tokenizer"):
        shutil.rmtree(run.path / name, ignore_errors=True)
    texts = Texts(tuple(files), config.text.documents)
    if validation:
        train, held_out = texts, Texts(tuple(validation), config.text.documents)
    else:
        train, held_out = texts.hold_out()
        reporter.say("validation: the last tenth of each file is held out")
    if next(iter(held_out), None) is None:
        raise CorpusError(f"no text of {held_out.name} can be held out for validation; name some with --validation")
    if tokenizer is None:
        tokenizers = train_tokenizer(lambda: (line.text for line in train), config.tokenizer, reporter)
    else:
        tokenizers, side = _one_side(given_tokenizers(tokenizer), config.train.task)
        reporter.say(f"tokenizer: {tokenizers.target.size:,} {tokenizers.target.kind} pieces, as given{side}")
    tokenizers.save(run.path / "tokenizer")
    folder = run.path / "data"
    stores = {
        name: TextStore.build(folder / name, part, tokenizers, threads=threads, reporter=reporter)
        for name, part in (("train", train), ("validation", held_out))
    }
    facts = {
        name: {
            "characters": store.characters,
            "tokens": len(store),
            "documents": store.documents,
            "unknown": store.unknown,
        }
        for name, store in stores.items()
    }
    said = ", ".join(_said(name, store) for name, store in stores.items())
    reporter.say(f"text: {said}")
    return {"text": facts}


def _one_side(given: Tokenizers, task: str) -> tuple[Tokenizers, str]:
    """The side of a translator that reads what this model reads, and what is said of it: an encoder reads the source, a decoder the target."""
    side = given.source if task == "masked" else given.target
    one = Tokenizers(side, side, joint=True)
    if given.source is given.target:
        return one, ""
    return one, f" for its {'source' if task == 'masked' else 'target'}, which {KINDS[task].name} reads"


def _said(name: str, store: TextStore) -> str:
    unknown = f" ({per_cent(store.unknown)} unknown)" if store.unknown else ""
    return f"{name} {store.characters:,} characters, {len(store):,} tokens{unknown}"
