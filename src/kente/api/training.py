"""train: from two text files to a run folder. Any run goes on with `resume` from wherever it was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kente.api.corpora import Data
from kente.api.inputs import require_elsewhere, use_threads
from kente.api.lifecycle import TrainResult, launch, resume
from kente.api.translation import translator_of
from kente.config import Config, TransformerConfig
from kente.configfile import load_recipe, override
from kente.errors import UsageError
from kente.models.build import build
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.train.budget import automatic
from kente.train.prepare import CLEANED, prepare
from kente.train.transfer import Parent, require_kept, restrict, started_model

__all__ = ["TrainResult", "prepare_corpus", "resume", "train", "translator_of"]


def train(
    data: Data,
    out: Path | str,
    *,
    validation: Data | None = None,
    also: Sequence[Data] = (),
    prepared: Path | str | None = None,
    corrections: Path | None = None,
    encoder_from: Path | str | None = None,
    decoder_from: Path | str | None = None,
    **how: Any,
) -> TrainResult:
    """Train a translator. What neither recipe nor settings decide is chosen for the corpus, the machine and the minutes.

    `how`: recipe, minutes or updates, save_every, seed, settings, force, device, threads, reporter, and `began`, when the user's clock
    started (time.monotonic), if that was before this call. `prepared` is a folder made by `prepare_corpus` from the same data: several
    runs can share one cleaned corpus and one tokenizer. `also` are more pairs to train on, such as synthetic ones: none of them is held
    out. `corrections` is a TSV of pairs, as `kente serve` keeps them, to be mixed in. `encoder_from` and `decoder_from` are runs
    (translators, language models, masked encoders) whose weights those parts begin with.
    """
    assert not (prepared and corrections), "a prepared corpus holds its corrections already"
    taught = Data(pairs=corrections) if corrections else None
    for given_data in filter(None, (data, validation, taught, *also)):
        next(iter(given_data.corpus()), None)  # a file that cannot be read is said before a folder is made
    begin = {"encoder_from": encoder_from, "decoder_from": decoder_from}
    if prepared and any(begin.values()):
        raise UsageError(
            "a prepared corpus has a vocabulary already; leave out encoder_from and decoder_from, or prepared"
        )
    request = {
        "data": data.as_dict(),
        "validation": validation.as_dict() if validation else None,
        "corrections": taught.as_dict() if taught else None,
        "also": [more.as_dict() for more in also],
        "prepared": str(Path(prepared).resolve()) if prepared else None,
        **{name: str(Path(path).resolve()) if path else None for name, path in begin.items()},
    }
    if not any(begin.values()):
        return launch(automatic(), out, request, **how)
    recipe, settings = how.get("recipe"), how.get("settings", ())
    return launch(_begun(out, encoder_from, decoder_from, recipe, settings), out, request, **how)


def _begun(
    out: Path | str,
    encoder_from: Path | str | None,
    decoder_from: Path | str | None,
    recipe: str | Path | None,
    settings: Sequence[str],
) -> Config:
    """Settings in which the parts of other runs fit; a recipe or settings that take them out of it are refused."""
    require_elsewhere(out, "to begin from", encoder_from, decoder_from)
    encoder, decoder = (Parent.open(path) if path else None for path in (encoder_from, decoder_from))
    usual = automatic()
    assert isinstance(usual.model, TransformerConfig)
    model = started_model(encoder, decoder, usual.model)
    base = replace(usual, model=model, train=replace(usual.train, begin="random"))
    wanted = override(load_recipe(recipe, base=base) if recipe else base, settings)
    require_kept(wanted.model, encoder, decoder)
    with torch.device("meta"):
        restrict(build(wanted.model, 8, 8, joint=True), wanted.transfer)  # names alone matter
    return base


def prepare_corpus(
    data: Data,
    out: Path | str,
    *,
    validation: Data | None = None,
    settings: Sequence[str] = (),
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Path:
    """Clean a corpus, learn its tokenizer and store its ids once, for several trainings to share."""
    run = Run.create(out, override(automatic(), settings), force=True)
    with run.lock():
        held_out = validation.corpus() if validation else None
        report = prepare(run, data.corpus(), held_out, run.config, use_threads(threads), reporter, data.languages())
        run.write_json(CLEANED, report.as_dict())  # last: without it, nothing here is whole
    return run.path
