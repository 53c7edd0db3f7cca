"""pretrain: from text files to a language model or a masked encoder; and how well one predicts other text."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kente.api.inputs import pick_device, use_threads
from kente.api.language import text_scores, validation_of
from kente.api.lifecycle import TrainResult, launch
from kente.api.words import automatic_words
from kente.config import Config
from kente.data.blocks import Masking
from kente.data.given import given_tokenizers
from kente.data.running import read_parts
from kente.data.texts import Texts, TextStore
from kente.data.tokenizer import Tokenizer
from kente.errors import RunError, UsageError
from kente.reporting import SILENT, Reporter
from kente.runs import Run, Score
from kente.train.kinds import require
from kente.train.language_budget import automatic_language
from kente.train.objectives import CrossEntropy, Masked, mean_loss

KINDS = ("causal", "masked", "words")
TOKENIZERS = ("unigram", "bpe", "characters", "words")


def pretrain(
    text: Sequence[Path | str],
    out: Path | str,
    *,
    kind: str = "causal",
    validation: Sequence[Path | str] = (),
    tokenizer: str | Path | None = None,
    settings: Sequence[str] = (),
    **how: Any,
) -> TrainResult:
    """Train a language model (kind "causal"), a masked encoder ("masked") or word vectors ("words") on text files.

    `tokenizer` is a kind to learn, or the folder of one that exists: a run, or GPT-2's vocab.json and merges.txt. Without `validation`
    files the last tenth of each text file is held out. `how` as for `train`.
    """
    if kind not in KINDS:
        raise UsageError(f"no kind of pre-training called {kind}; there are {', '.join(KINDS)}")
    files, held_out = [Path(path) for path in text], [Path(path) for path in validation]
    if not files:
        raise UsageError("no text given: --text FILE ... names what to read")
    for path in (*files, *held_out):
        next(iter(read_parts(path)), None)  # a file that cannot be read is said before a folder is made
    folder: Path | None = None
    if tokenizer is not None and str(tokenizer) in TOKENIZERS:
        settings = [*settings, f"tokenizer.kind={tokenizer}"]
    elif tokenizer is not None:
        folder = Path(tokenizer).resolve()
        given_tokenizers(folder)
    request = {
        "text": [str(path.resolve()) for path in files],
        "validation": [str(path.resolve()) for path in held_out],
        "tokenizer": str(folder) if folder else None,
    }
    return launch(
        automatic_words() if kind == "words" else automatic_language(kind), out, request, settings=settings, **how
    )


@dataclass(frozen=True)
class TextEvaluation:
    """How well a model predicts a text."""

    run: str
    text: str
    characters: int
    tokens: int
    scores: dict[str, Score]

    def as_dict(self) -> dict[str, Any]:
        scores = {name: score.value for name, score in self.scores.items()}
        return {"run": self.run, "text": self.text, "characters": self.characters, "tokens": self.tokens, **scores}

    def lines(self) -> list[str]:
        about = f"run {self.run} | {self.text} | {self.characters:,} characters, {self.tokens:,} tokens"
        return ["  ".join(f"{score.name} {score.value:.4f}" for score in self.scores.values()) + f" | {about}"]


def evaluate_text(
    run: Path | str,
    text: Sequence[Path],
    *,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> TextEvaluation:
    """Loss and perplexity of a text for each token, and bits per character, in blocks as the model was trained on."""
    opened = require(Run.open(run), "kente evaluate --text", "causal", "masked")
    if not getattr(opened.config.model, "gaps", True):
        raise RunError(
            f"{opened.path} was imported without a head that fills gaps: it reads text, but predicts none of it"
        )
    use_threads(threads)
    where = pick_device(device)
    checkpoint = opened.chosen(reporter)
    tokenizers, config = opened.tokenizers(checkpoint), opened.config
    model = opened.model(checkpoint, where)
    with tempfile.TemporaryDirectory(prefix="kente-") as scratch:
        texts = Texts(tuple(map(Path, text)), config.text.documents)
        store = TextStore.build(Path(scratch) / "text", texts, tokenizers)
        scores = text_scores(_loss(model, store, config, tokenizers.target, where), store)
    if config.train.task == "masked":
        del scores["bits_per_character"]
    return TextEvaluation(opened.path.name, texts.name, store.characters, len(store), scores)


def _loss(model: nn.Module, store: TextStore, config: Config, tokenizer: Tokenizer, device: torch.device) -> float:
    if config.train.task == "masked":
        return mean_loss(model, validation_of(store, config, Masking.of(config.text, tokenizer)), device, Masked())
    return mean_loss(model, validation_of(store, config), device, CrossEntropy())
