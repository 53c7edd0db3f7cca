"""generate: a language model goes on with a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from kente.api.inputs import pick_device, use_threads
from kente.config import Config, LanguageModelConfig
from kente.data.tokenizer import BOS, EOS, Tokenizer
from kente.decode.generation import Manner, Writer, Written
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.train.kinds import require


def looks_back(config: Config) -> int | None:
    """Tokens that training showed the model before any token; None where more of them are nothing new.

    A recurrence has one state. A stretch of attention that knows distances only meets the same ones however long the text is.
    """
    model = config.model
    if not isinstance(model, LanguageModelConfig):
        return None
    narrow = model.span in ("window", "memory")
    return None if narrow and model.positions not in ("sinusoid", "learned") else config.batches.max_length


def writer_of(model: nn.Module, run: Run, tokenizer: Tokenizer, device: torch.device | str) -> Writer:
    """A writer over a network that is there already: it knows what its model was trained on."""
    config = run.config
    opening = EOS if config.text.documents == "files" and not tokenizer.spells_lines else BOS
    return Writer(model, tokenizer, device, looks_back(config), opening)  # type: ignore[arg-type]  # build() makes Generators


def load_writer(
    run: Path | str, *, device: str = "auto", threads: int | None = None, reporter: Reporter = SILENT
) -> Writer:
    """The language model of a run, ready to write."""
    opened = require(Run.open(run), "kente generate", "causal")
    use_threads(threads)
    where = pick_device(device)
    checkpoint = opened.chosen(reporter)
    model = opened.model(checkpoint, where)
    return writer_of(model, opened, opened.tokenizers(checkpoint).target, where)


def generate(
    run: Path | str,
    prompt: str = "",
    *,
    samples: int = 1,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
    **manner: Any,
) -> list[Written]:
    """So many ways of going on with the prompt; `manner` is that of `Manner`: most, temperature, top_k, top_p, min_p, stop, seed ..."""
    how = Manner(**manner)  # mistakes are said before anything is loaded
    return load_writer(run, device=device, threads=threads, reporter=reporter).write(prompt, how, samples)
