"""The tasks of running text: to say what comes next, and to fill gaps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kente.api.writing import writer_of
from kente.config import Config
from kente.data.batches import Batch
from kente.data.blocks import Blocks, Masking, validation_blocks
from kente.data.texts import TextStore, per_cent
from kente.data.tokenizer import Tokenizer
from kente.decode.generation import Manner
from kente.models.build import build
from kente.models.summary import describe
from kente.runs import Score
from kente.train.budget import Chooser
from kente.train.card import About
from kente.train.language_budget import fit_text_to_minutes, fit_to_text
from kente.train.objectives import CrossEntropy, Masked, Objective, mean_loss
from kente.train.prepare_text import PreparedText, prepare_text
from kente.train.task import Task

VALIDATED = 250_000
"""Tokens of the validation text that a validation reads at most."""
SAMPLE = Manner(most=200, temperature=0.8)
"""How the sample in samples.jsonl is written at each validation."""


class OfText(Task):
    """What both have in common. The request names text files, validation files if there are any, and a tokenizer's folder if one is given."""

    def prepare(self, request: dict[str, Any], chooser: Chooser) -> dict[str, Any]:
        files = [Path(path) for path in request["text"]]
        validation = [Path(path) for path in request["validation"]] if request["validation"] else None
        tokenizer = Path(request["tokenizer"]) if request["tokenizer"] else None
        how = (chooser.config, self.threads, self.reporter)
        facts = prepare_text(self.run, files, validation, tokenizer, *how)
        self.open()
        if tokenizer is not None:
            chooser.bend("tokenizer.kind", self.prepared.tokenizer.kind, "the tokenizer that was given")
        reason = f"for {self.prepared.train.characters:,} characters"
        chooser.choose("tokenizer.vocabulary", self.prepared.tokenizer.size, reason)
        return facts

    def open(self) -> None:
        self.prepared = PreparedText.open(self.run)

    def fit_to_minutes(self, chooser: Chooser, seconds: float) -> tuple[int, float]:
        def parts(config: Config) -> tuple[nn.Module, Objective, Blocks]:
            return self.model(config), self.objective(config), self.batches(config)

        return fit_text_to_minutes(chooser, parts, self.epoch, seconds, self.device)

    def fit_to_data(self, chooser: Chooser) -> None:
        fit_to_text(chooser, len(self.prepared.train), self.epoch)

    def model(self, config: Config) -> nn.Module:
        size = self.prepared.tokenizer.size
        return build(config.model, size, size)

    def masking(self, config: Config) -> Masking | None:
        """Which words are hidden, if any are."""
        return None

    def batches(self, config: Config) -> Blocks:
        return Blocks(self.prepared.train, config.batches, config.text, config.train.seed, masking=self.masking(config))

    @cached_property
    def _validation(self) -> list[Batch]:
        config = self.run.config
        return list(scored(self.prepared.validation, config, self.masking(config), most=VALIDATED))

    def _read(self, facts: dict[str, Any]) -> str:
        parts = [
            f"{part['characters']:,} characters ({part['tokens']:,} tokens, {part['documents']:,} documents) to {what}"
            for what, part in (("train on", facts["text"]["train"]), ("validate on", facts["text"]["validation"]))
        ]
        return "; ".join(parts) + "."

    def _vocabulary(self) -> str:
        tokenizer = self.run.config.tokenizer
        return f"{describe(self.run.config.model)}; {tokenizer.kind} vocabulary of {tokenizer.vocabulary:,}"


def scored(
    store: TextStore, config: Config, masking: Masking | None = None, most: int | None = None
) -> Iterator[Batch]:
    """A text in batches to be scored: all of it, or about `most` tokens, evenly taken."""
    batches = replace(config.batches, tokens=max(config.batches.tokens, 4096))
    return validation_blocks(store, batches, config.text, masking, most)


def text_scores(loss: float, store: TextStore) -> dict[str, Score]:
    """Loss for each token, perplexity = exp(loss), bits per character = loss x tokens / characters / ln 2."""
    bits = loss * (len(store) - 1) / store.characters / math.log(2)
    return {
        "loss": Score("loss", loss, higher_is_better=False),
        "perplexity": Score("perplexity", math.exp(min(loss, 700.0)), higher_is_better=False),
        "bits_per_character": Score("bits per character", bits, higher_is_better=False),
    }


def unknown_note(store: TextStore, tokenizer: Tokenizer) -> str:
    """What must be said beside bits per character where part of the text was never spelled; otherwise nothing."""
    if not store.unknown or tokenizer.spells_everything:
        return ""
    return (
        f"{per_cent(store.unknown)} of the tokens are unknown to the tokenizer, and what they stand for is not counted: bits per character are "
        "too low to be compared with those of another tokenizer"
    )


class Causal(OfText):
    """What comes next, from all that came before."""

    def objective(self, config: Config) -> Objective:
        return CrossEntropy(config.train.label_smoothing)

    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        loss = mean_loss(model, self._validation, self.device)
        written = writer_of(model, self.run, self.prepared.tokenizer, self.device).write("", SAMPLE)[0]
        self.run.append("samples", {"step": step, "prompt": "", "text": written.text})
        return text_scores(loss, self.prepared.validation)

    def about(self, facts: dict[str, Any]) -> About:
        name = self.run.path.name
        note = unknown_note(self.prepared.validation, self.prepared.tokenizer)
        return About(
            what="A language model",
            use=f'```\nkente generate {name} --prompt "Once upon a time"\nkente evaluate {name} --text F\n```\n'
            f'```python\nfrom kente import api\nprint(api.generate("{name}", "Once upon a time")[0].text)\n```',
            vocabulary=self._vocabulary(),
            read=self._read(facts),
            measured="Validation, in nats for each token; other text should be scored with `kente evaluate`."
            + (f" Of the validation text {note}." if note else ""),
            limits="It goes on with text like the text it was trained on. What it writes reads like that text and need not be true, "
            "kind or new: it may repeat what it read word for word.",
        )


class Gaps(OfText):
    """Which words were hidden, from those around them."""

    def objective(self, config: Config) -> Objective:
        return Masked()

    def masking(self, config: Config) -> Masking:
        return Masking.of(config.text, self.prepared.tokenizer)

    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        loss = mean_loss(model, self._validation, self.device, Masked())
        scores = text_scores(loss, self.prepared.validation)
        share = guessed_right(model, self._validation, self.device)
        return {"loss": scores["loss"], "perplexity": scores["perplexity"], "accuracy": Score("accuracy", share)}

    def about(self, facts: dict[str, Any]) -> About:
        name = self.run.path.name
        return About(
            what="A masked encoder",
            use=f"```\nkente evaluate {name} --text F\n```",
            vocabulary=self._vocabulary(),
            read=self._read(facts),
            measured="Validation, in nats for each hidden token; hidden are the same tokens each time.",
            limits="It gives words vectors that depend on their neighbours, as far as the text it was trained on shows how.",
        )


@torch.inference_mode()
def guessed_right(model: nn.Module, batches: list[Batch], device: torch.device | str) -> float:
    """Share of the hidden tokens whose likeliest word is the right one."""
    right = asked = 0
    for batch in batches:
        here = batch.to(device)
        gaps = here.target_mask.nonzero(as_tuple=True)
        states = model.encode(here.source, here.source_mask)  # type: ignore[operator]
        guesses = model.predict(model.head(states[gaps])).argmax(-1)  # type: ignore[operator]
        right += int((guesses == here.target_output[gaps]).sum())
        asked += batch.target_tokens
    return right / asked
