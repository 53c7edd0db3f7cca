"""A run that was imported, or goes on from one that was, in the layout it came in: the same files, with the run's best weights."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from kente.checkpoints import merged
from kente.durable import PART, disk_errors
from kente.errors import RunError, UsageError
from kente.imports.layouts import LAYOUTS
from kente.imports.links import Vocabulary
from kente.imports.run import FACTS, ORIGIN
from kente.runs import Run

BARE = ("cls.", "lm_head.", "final_logits_bias")
"""Tensors that stand outside the model proper, and have no prefix."""


def obstacle(run: Run) -> str | None:
    """Why a run cannot be given back; None if it can."""
    if not (run.path / ORIGIN / FACTS).is_file():
        return "it was not imported: there is no layout to give it back in"
    vocabulary = _vocabulary(run, "target")
    if len(vocabulary.order) != run.config.tokenizer.vocabulary:
        return f"it has {run.config.tokenizer.vocabulary:,} words, and came with {len(vocabulary.order):,}"
    return None


def give_back(run: Path | str, out: Path | str) -> Path:
    """Write config.json, tokenizer and model.safetensors to the new folder `out`."""
    opened, folder = Run.open(run), Path(out)
    if (why := obstacle(opened)) is not None:
        raise UsageError(f"{opened.path} cannot be given back: {why}")
    if folder.exists():
        raise UsageError(f"{folder} exists already; choose another folder")
    tensors = their_tensors(opened)
    part = folder.with_name(f"{PART}{folder.name}-{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with disk_errors(folder, sum(tensor.nbytes for tensor in tensors.values())):
            shutil.copytree(opened.path / ORIGIN, part, ignore=shutil.ignore_patterns(FACTS))
            save_file(tensors, part / "model.safetensors", {"format": "pt"})
            os.rename(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def their_tensors(run: Run) -> dict[str, Tensor]:
    """The run's best weights under their names."""
    facts = json.loads((run.path / ORIGIN / FACTS).read_bytes())
    layout = LAYOUTS[facts["layout"]]
    checkpoint = run.chosen()
    weights = merged(checkpoint.load("model") | (checkpoint.load("average") if checkpoint.has("average") else {}))
    vocabularies = {side: Vocabulary.from_dict(facts["vocabularies"][side]) for side in ("source", "target")}
    found: dict[str, Tensor] = {}
    for link in layout.links(run.config.model, None):
        if link.ours not in weights:
            raise RunError(f"{checkpoint.path} does not fit the model it came from: it lacks {link.ours}")
        for name, tensor in link.write(weights[link.ours], vocabularies):  # type: ignore[arg-type]
            found[name if name.startswith(BARE) else facts["prefix"] + name] = tensor.to(torch.float32)
    return found


def _vocabulary(run: Run, side: str) -> Vocabulary:
    facts = json.loads((run.path / ORIGIN / FACTS).read_bytes())
    return Vocabulary.from_dict(facts["vocabularies"][side])
