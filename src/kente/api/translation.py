"""The task of translating: pairs in, a translator out, BLEU along the way."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from kente.api.corpora import Data
from kente.api.loading import shortlist_of, translator_with
from kente.config import Config, DecodeConfig
from kente.configfile import apply
from kente.data.batches import Batch, Batches, Feed, validation_batches
from kente.data.corpus import Pair
from kente.data.tokenizer import Tokenizers
from kente.decode.answers import SLACK
from kente.decode.conversion import obstacle
from kente.decode.torch_engine import TorchEngine
from kente.decode.translator import Translator
from kente.measure.lengths import weigh_penalties
from kente.measure.scores import corpus_bleu, corpus_chrf
from kente.models.build import build
from kente.runs import Run, Score
from kente.text.sentences import split_sentences
from kente.train.beginnings import begin_with_associations
from kente.train.budget import Chooser, fit_to_corpus, fit_to_minutes
from kente.train.card import About
from kente.train.objectives import CrossEntropy, Objective, mean_loss
from kente.train.prepare import Prepared, prepare, share_prepared
from kente.train.task import Task

WEIGHED = 2.0
"""Minutes of training from which on some seconds go to the choice of the length penalty."""
LENGTHS, MOST_LENGTHS = 100, 1000
"""Validation sentences it is chosen on, for each minute of training and at most."""
SEARCHED = 0.02
"""Seconds that a search for one of them takes, about."""
SAMPLES = 5
"""Validation sentences whose translation is written to samples.jsonl at each validation."""


class Translation(Task):
    """From a sentence to its translation. The request names a parallel text, and a validation set if there is one."""

    main = "bleu"

    def prepare(self, request: dict[str, Any], chooser: Chooser) -> dict[str, Any]:
        report = self._prepare_text(request)
        self.open()
        prepared = self.prepared
        chooser.choose("tokenizer.vocabulary", prepared.tokenizers.target.size, f"for {len(prepared.train):,} pairs")
        several = _several_sentences(prepared)
        if several > 0.05:
            reason = f"{several:.0%} of the lines hold several sentences, so the model learns them whole"
            chooser.choose("decode.split_sentences", False, reason)
        chooser.choose("decode.max_ratio", _usual_ratio(prepared), "almost no training pair is longer for its source")
        if self.run.config.decode.shortlist < 0 and obstacle(chooser.config.model) is None:
            self.run.shortlist(
                prepared.tokenizers, self.reporter
            )  # now, so that its seconds are among the run's minutes
        return {"cleaning": report, "validation_pairs": len(prepared.validation_pairs)}

    def _prepare_text(self, request: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Clean pairs, tokenizers and ids in the run folder; `more` as for `prepare`. Returns the cleaning report."""
        if request.get("prepared"):
            return share_prepared(Run.open(request["prepared"]), self.run)
        data = Data.from_dict(request["data"])
        validation = Data.from_dict(request["validation"]).corpus() if request["validation"] else None
        more["also"] = [Data.from_dict(one).corpus() for one in request.get("also", ())]
        more["corrections"] = Data.from_dict(request["corrections"]).corpus() if request.get("corrections") else None
        where = (self.run.config, self.threads, self.reporter, data.languages())
        return prepare(self.run, data.corpus(), validation, *where, **more).as_dict()

    def open(self) -> None:
        self.prepared = Prepared.open(self.run)

    @cached_property
    def _validation(self) -> list[Batch]:
        return list(validation_batches(self.prepared.validation, max(self.run.config.batches.tokens, 2048)))

    def fit_to_minutes(self, chooser: Chooser, seconds: float) -> tuple[int, float]:
        return fit_to_minutes(chooser, self.prepared.train, self.prepared.tokenizers, seconds, self.device)

    def fit_to_data(self, chooser: Chooser) -> None:
        fit_to_corpus(chooser, self.prepared.train)

    def validation_seconds(self, config: Config) -> float:
        return 0.5 + 0.008 * min(len(self.prepared.validation_pairs), config.train.validate_sentences)

    def epoch(self, config: Config) -> int:
        return len(Batches(self.prepared.train, config.batches, seed=1))

    def model(self, config: Config) -> nn.Module:
        tokenizers = self.prepared.tokenizers
        return build(config.model, tokenizers.source.size, tokenizers.target.size, joint=tokenizers.joint)

    def objective(self, config: Config) -> Objective:
        return CrossEntropy(config.train.label_smoothing)

    def batches(self, config: Config) -> Feed:
        prepared = self.prepared
        return Batches(
            prepared.train, config.batches, config.train.seed, config.tokenizer.sampling, prepared.tokenizers
        )

    def begin(self, model: nn.Module) -> None:
        if self.run.config.train.begin == "associations":
            begin_with_associations(model, self.prepared.train)

    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        """Loss over all validation pairs, BLEU and chrF of greedy translations of some."""
        loss = mean_loss(model, self._validation, self.device)
        pairs, texts = self.translated(self.prepared.validation_pairs, self._greedy(model))
        for pair, text in list(zip(pairs, texts, strict=True))[:SAMPLES]:
            sample = {"step": step, "source": pair.source, "reference": pair.target, "translation": text}
            self.run.append("samples", sample)
        return {"loss": Score("loss", loss, higher_is_better=False), **text_scores(pairs, texts)}

    def finishing_seconds(self, config: Config) -> float:
        return SEARCHED * len(self._pairs_to_weigh(config)) if self._weighs_lengths(config) else 0.0

    def _pairs_to_weigh(self, config: Config) -> list[Pair]:
        return _spread(self.prepared.validation_pairs, min(MOST_LENGTHS, int(LENGTHS * config.train.minutes)))

    def _weighs_lengths(self, config: Config) -> bool:
        """Whether the length penalty is ours to choose, and there is time for it."""
        request = self.run.request()
        settled = {*request.get("by_hand", ()), *request.get("by_recipe", ())}
        beams = config.decode.beam > 1 and not config.decode.sample
        enough = config.train.minutes >= WEIGHED
        return enough and beams and not request.get("parent") and "decode.length_penalty" not in settled

    def finish(self) -> None:
        config = self.run.config
        if not self._weighs_lengths(config):
            return
        model = self.run.model(self.run.chosen(self.reporter), self.device)
        translator = translator_of(model, self.run, self.prepared.tokenizers, config.decode, self.device)
        weighed = weigh_penalties(translator, self._pairs_to_weigh(config))
        self.run.write_config(apply(config, {"decode": {"length_penalty": weighed.penalty}}))
        seen = ", ".join(f"{value:.1f} with {power:g}" for power, value in weighed.bleu.items())
        tried = (
            "" if weighed.searched is None else f"; {weighed.searched:.1f} when {weighed.promising:g} leads the search"
        )
        self.reporter.say(f"decode.length_penalty = {weighed.penalty:g}: validation BLEU with a beam is {seen}{tried}")

    def _greedy(self, model: nn.Module) -> Translator:
        greedy = replace(self.run.config.decode, beam=1, sample=False)
        return translator_of(model, self.run, self.prepared.tokenizers, greedy, self.device)

    def translated(self, pairs: list[Pair], translator: Translator) -> tuple[list[Pair], list[str]]:
        """(as many pairs as validation takes, evenly spread, what becomes of their sources)."""
        taken = _spread(pairs, self.run.config.train.validate_sentences)
        return taken, [t.text for t in translator.translate([pair.source for pair in taken])]

    def about(self, facts: dict[str, Any]) -> About:
        config, name = self.run.config, self.run.path.name
        cleaning = facts["cleaning"]
        dropped = ", ".join(f"{number:,} {reason}" for reason, number in cleaning["dropped"].items()) or "none"
        sides = "shared by both sides" if config.tokenizer.joint else "for each side"
        return About(
            what=f"A {config.model.kind} translator",
            use=f'```\nkente translate {name} "a sentence"\nkente evaluate {name} --source F --reference F\n```\n'
            f'```python\nimport kente\nprint(kente.load("{name}").translate(["a sentence"])[0].text)\n```',
            vocabulary=f"{config.tokenizer.kind} vocabulary of {config.tokenizer.vocabulary:,} {sides}",
            read=f"{cleaning['kept']:,} training pairs (dropped: {dropped}); {facts['validation_pairs']:,} validation pairs, "
            "none of whose source sentences were trained on.",
            measured="Validation, greedy search; the test set should be scored with `kente evaluate`.",
            limits="It translates text like the text it was trained on, one sentence at a time. It may leave out, add or change meaning "
            "without any sign of doubt: have important translations read by someone who knows both languages.",
        )


def _spread(pairs: list[Pair], most: int) -> list[Pair]:
    """So many of the pairs, from all over."""
    stride = max(1, len(pairs) / most)
    return [pairs[int(i * stride)] for i in range(min(len(pairs), most))]


def text_scores(pairs: list[Pair], texts: list[str]) -> dict[str, Score]:
    """BLEU and chrF of translations of the pairs' sources."""
    references = [pair.target for pair in pairs]
    return {"bleu": corpus_bleu(texts, references), "chrf": corpus_chrf(texts, references)}


def _several_sentences(prepared: Prepared, sample: int = 500) -> float:
    """Share of (validation) lines with more than one sentence: what a line was in training, it should be in use."""
    pairs = prepared.validation_pairs[:sample]
    return sum(len(split_sentences(pair.source)) > 1 for pair in pairs) / len(pairs)


def _usual_ratio(prepared: Prepared) -> float:
    """Target tokens for each source token that 99 pairs in a hundred stay well below, SLACK aside."""
    store = prepared.train
    ratios = (store.target_lengths - SLACK) / (store.source_lengths + 1)
    return round(min(4.0, max(1.2, 1.3 * float(np.quantile(ratios, 0.99)))), 2)


def translator_of(
    model: nn.Module, run: Run, tokenizers: Tokenizers, decode: DecodeConfig, device: torch.device | str
) -> Translator:
    """A translator over a network that is there already."""
    engine = TorchEngine(model, device, shortlist_of(run, tokenizers, decode))  # type: ignore[arg-type]  # build() makes Generators; the contract tests hold it to that
    return translator_with(engine, run, tokenizers, decode)
