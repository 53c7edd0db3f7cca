"""The tasks of what stands upon an encoder: to tell texts apart, and to know which texts mean the same."""

from __future__ import annotations

import dataclasses
import json
from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from kente.config import Config, ModelConfig
from kente.data.framing import Framing
from kente.data.labelled import scored_pairs
from kente.data.rows import RowBatch, RowBatches, RowStore, validation_rows
from kente.data.tokenizer import Tokenizers
from kente.decode.embedder import Embedder, framing_of, unit
from kente.decode.torch_engine import at_rest
from kente.errors import ConfigError
from kente.measure.classes import accuracy_of, confusion_matrix, macro_f1
from kente.measure.similarity import similarity_score
from kente.models.build import build_for
from kente.models.summary import describe
from kente.models.text_reader import TextReader
from kente.runs import Run, Score
from kente.train.averaging import named_weights, put
from kente.train.budget import Chooser
from kente.train.card import About
from kente.train.head_budget import choose_batches, fit_head_to_data, fit_head_to_minutes
from kente.train.objectives import Classes, Objective, Partners, mean_loss
from kente.train.prepare_rows import (
    clear,
    give_tokenizer,
    read_labelled,
    read_partners,
    store_labelled,
    store_partners,
)
from kente.train.task import Task

FREE = ("dropout", "attention_dropout")
"""Settings of a model that weights do not depend on."""
VALIDATION_TOKENS = 4096


class UponEncoder(Task):
    """What both have in common. The request names an encoder's run, or none: then it is learned with the rest."""

    together = False
    """Whether the rows of a batch are compared with each other."""

    def prepare(self, request: dict[str, Any], chooser: Chooser) -> dict[str, Any]:
        tokenizers = None
        if encoder := self._encoder(request):
            require_same_model(chooser.config.model, encoder)
            tokenizers = encoder.tokenizers(encoder.chosen(self.reporter))
        clear(self.run)
        facts = self._prepare_rows(request, tokenizers, chooser)
        self.open()
        chooser.choose(
            "tokenizer.vocabulary", self.tokenizers.source.size, "the encoder's" if encoder else "of the texts"
        )
        choose_batches(chooser, self.train)
        return facts

    @abstractmethod
    def _prepare_rows(self, request: dict[str, Any], tokenizers: Tokenizers | None, chooser: Chooser) -> dict[str, Any]:
        """Rows and tokenizer into the run folder; facts for prepared.json."""

    def open(self) -> None:
        self.tokenizers = self.run.tokenizers()
        folder, sha256 = self.run.path / "data", self.tokenizers.sha256
        self.train = RowStore.open(folder / "train", sha256)
        self.validation = RowStore.open(folder / "validation", sha256)

    def _encoder(self, request: dict[str, Any]) -> Run | None:
        return Run.open(request["encoder"]) if request["encoder"] else None

    @property
    def _learnt(self) -> bool:
        return bool(self.run.request()["encoder"])

    def fit_to_minutes(self, chooser: Chooser, seconds: float) -> tuple[int, float]:
        def parts(config: Config) -> tuple[nn.Module, Objective, RowBatches]:
            return self.model(config), self.objective(config), self.batches(config)

        return fit_head_to_minutes(chooser, parts, seconds, self.device, self._learnt)

    def fit_to_data(self, chooser: Chooser) -> None:
        fit_head_to_data(chooser, self.epoch, self._learnt)

    def model(self, config: Config) -> nn.Module:
        return build_for(config, self.tokenizers.source.size, self.tokenizers.target.size)

    def batches(self, config: Config) -> RowBatches:
        return RowBatches(self.train, config.batches, config.train.seed, together=self.together)

    def begin(self, model: nn.Module) -> None:
        """The encoder's weights; its pooling too, where it has learned the same one."""
        assert isinstance(model, TextReader)
        encoder = self._encoder(self.run.request())
        if encoder is None:
            return
        found = encoder.model(encoder.chosen(self.reporter), self.device)
        if isinstance(found, TextReader):
            if type(found.pool) is type(model.pool):
                put(model.pool, named_weights(found.pool))
            found = found.encoder
        put(model.encoder, named_weights(found))

    @cached_property
    def _validation(self) -> list[RowBatch]:
        tokens = max(self.run.config.batches.tokens, VALIDATION_TOKENS if not self.together else 0)
        return list(validation_rows(self.validation, tokens, self.together))

    def _embedder(self, model: nn.Module) -> Embedder:
        assert isinstance(model, TextReader)
        return Embedder(model, self._framing, self.device)

    @cached_property
    def _framing(self) -> Framing:
        return framing_of(self.run)

    def _built_of(self, facts: dict[str, Any]) -> str:
        config = self.run.config
        encoder = self.run.request()["encoder"]
        begun = f"begun from {Path(encoder).name}" if encoder else "begun at random"
        return (
            f"{describe(config.model)}, {begun}; {config.head.pooling} pooling; "
            f"{config.tokenizer.kind} vocabulary of {config.tokenizer.vocabulary:,}"
        )


def require_same_model(model: ModelConfig, encoder: Run) -> None:
    """Refuse settings that the encoder's weights would not fit."""
    theirs = encoder.config.model
    fixed = {} if type(model) is type(theirs) else {"kind": (model.kind, theirs.kind)}
    if not fixed:
        names = [field.name for field in dataclasses.fields(model) if field.name not in FREE]
        pairs = {name: (getattr(model, name), getattr(theirs, name)) for name in names}
        fixed = {name: both for name, both in pairs.items() if both[0] != both[1]}
    for name, (ours, its) in fixed.items():
        raise ConfigError(
            f"model.{name} = {ours} does not fit the encoder {encoder.path}, whose {name} is {its}; leave it out, or leave out --encoder"
        )


class Classification(UponEncoder):
    """Which class a text belongs to. The request names labelled texts, and validation texts if there are any."""

    main = "accuracy"

    def _prepare_rows(self, request: dict[str, Any], tokenizers: Tokenizers | None, chooser: Chooser) -> dict[str, Any]:
        config = chooser.config
        files, held_out = ([Path(path) for path in request[name]] for name in ("labelled", "validation"))
        fields = tuple(request["fields"]) if request["fields"] else None
        train, validation = read_labelled(files, held_out, fields, config.train.seed, self.reporter)
        tokenizers = give_tokenizer(self.run, tokenizers, train.texts, config, self.reporter)
        facts = store_labelled(self.run, train, validation, tokenizers, config, self.threads, self.reporter)
        number = len(facts["classes"])
        if not chooser.free("head.classes") and config.head.classes != number:
            raise ConfigError(
                f"head.classes = {config.head.classes}, but the texts have {number} classes; leave it out"
            )
        chooser.choose("head.classes", number, "found in the labelled texts")
        return facts

    def objective(self, config: Config) -> Objective:
        return Classes(config.train.label_smoothing)

    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        labels, predicted = predictions(model, self._validation, self.device)
        confusion = confusion_matrix(labels, predicted, self.run.config.head.classes)
        signature = f"{len(labels):,} texts"
        return {
            "loss": Score("loss", mean_loss(model, self._validation, self.device, Classes()), higher_is_better=False),
            "accuracy": accuracy_of(confusion, signature),
            "macro_f1": macro_f1(confusion, signature),
        }

    def about(self, facts: dict[str, Any]) -> About:
        name, counts = self.run.path.name, facts["texts"]["in_class"]
        told = ", ".join(f"{label} ({count:,})" for label, count in list(counts.items())[:20])
        return About(
            what="A text classifier",
            use=f'```\nkente classify predict {name} "some text"\nkente classify report {name} --labelled test.tsv\n```\n'
            f'```python\nfrom kente import api\nprint(api.classify("{name}", ["some text"])[0].label)\n```',
            vocabulary=self._built_of(facts),
            read=f"{facts['texts']['train']:,} labelled texts, {facts['texts']['validation']:,} more to validate on. Classes: {told}"
            f"{', ...' if len(counts) > 20 else ''}.",
            measured="Validation, in per cent; the best weights were chosen by it, so a test set should be measured with `kente classify report`.",
            limits="It knows the classes above and puts every text into one of them, also texts unlike any it has read.",
        )


@torch.inference_mode()
def predictions(
    model: nn.Module, batches: list[RowBatch], device: torch.device | str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(the right classes, the likeliest ones) of all rows."""
    labels, predicted = [], []
    for batch in batches:
        here = batch.to(device)
        predicted.append(model.predict(model(*here.sides[0])).argmax(dim=-1).cpu().numpy())  # type: ignore[operator]
        labels.append(batch.labels.numpy())
    return np.concatenate(labels), np.concatenate(predicted)


class Similarity(UponEncoder):
    """Which texts mean the same. The request names pairs of texts that do, or plain text, and perhaps pairs scored by people."""

    main = "spearman"
    together = True

    def _prepare_rows(self, request: dict[str, Any], tokenizers: Tokenizers | None, chooser: Chooser) -> dict[str, Any]:
        config = chooser.config
        files, text = ([Path(path) for path in request[name]] for name in ("pairs", "text"))
        fields = tuple(request["fields"]) if request["fields"] else None
        rows = read_partners(files, fields, text, self.reporter)
        texts = [text for row in rows for text in row]
        tokenizers = give_tokenizer(self.run, tokenizers, texts, config, self.reporter)
        facts = store_partners(self.run, rows, tokenizers, config, self.threads, self.reporter)
        scored = scored_pairs(request["similar"]) if request["similar"] else []
        self.run.write_json("data/similar.json", scored)
        return facts | {"scored": len(scored)}

    def open(self) -> None:
        super().open()
        self.scored = [tuple(row) for row in json.loads((self.run.path / "data" / "similar.json").read_bytes())]

    def objective(self, config: Config) -> Objective:
        return Partners(config.head.temperature)

    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        objective = Partners(self.run.config.head.temperature)
        loss = mean_loss(model, self._validation, self.device, objective)
        scores = {"loss": Score("loss", loss, higher_is_better=False)}
        if len(self.validation.sides) == 2:
            scores["accuracy"] = Score("found", found_partner(model, self._validation, self.device, objective))
        if self.scored:
            scores["spearman"] = self._agreement(model)
        return scores

    def begin(self, model: nn.Module) -> None:
        """The encoder's weights, and how well it does already: plain text alone may teach it nothing better."""
        super().begin(model)
        if self.scored and self._learnt:
            with at_rest(model):  # type: ignore[arg-type]  # only its mode is looked at
                before = self._agreement(model)
            self.reporter.say(f"the encoder by itself: {before} | {before.signature}")

    def _agreement(self, model: nn.Module) -> Score:
        """Of cosines with people's scores."""
        embedder = self._embedder(model)
        values, one, other = zip(*self.scored, strict=True)
        return similarity_score(values, *(unit(embedder.vectors(side, self.threads)) for side in (one, other)))

    def about(self, facts: dict[str, Any]) -> About:
        name, texts = self.run.path.name, facts["texts"]
        what = "pairs of texts that mean the same" if texts["sides"] == 2 else "texts, each its own partner"
        return About(
            what="A sentence encoder",
            use=f"```\nkente embed {name} --text F --out vectors.npy\nkente match {name} --corpus F --queries F\n```\n"
            f'```python\nfrom kente import api\nvectors = api.embed("{name}", ["some text"])\n```',
            vocabulary=self._built_of(facts),
            read=f"{texts['train']:,} {what}; {texts['validation']:,} more to validate on.",
            measured="Validation; `found` is the per cent of texts that find their own partner among those of a batch.",
            limits="Its cosines rank texts by likeness as its training pairs show it; they are not probabilities.",
        )


@torch.inference_mode()
def found_partner(model: nn.Module, batches: list[RowBatch], device: torch.device | str, objective: Partners) -> float:
    """Per cent of the first texts whose nearest second text, of those in the batch, is their own or one just as right."""
    right = total = 0
    for batch in batches:
        here = batch.to(device)
        nearest = objective.cosines(model, here).argmax(dim=1)
        right += int((here.labels[nearest] == here.labels).sum())
        total += len(batch)
    return 100 * right / total
