"""Translators that do not begin at random: with the encoder or decoder of other runs, or as a translator that is to learn more.

Both are translators like any other: the same text, batches, trainer and search. What differs is where their weights and words come from
(train/transfer.py), and for the second that what was known before is looked after: replayed, and scored beside what is new.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from torch import nn

from kente.api.corpora import Data
from kente.api.loading import require_languages
from kente.api.translation import Translation, text_scores, translator_of
from kente.config import Config, DecodeConfig
from kente.data.batches import Batches, Feed
from kente.data.cleaning import Cleaner
from kente.data.corpus import Corpus, Pair, write_pairs
from kente.data.growth import grown
from kente.data.keys import contains, sentence_keys
from kente.data.mixing import Mixed
from kente.data.splitting import default_validation_size, held_out_keys, hold_out
from kente.data.store import Store
from kente.data.tags import bare, tags_in_use, untagged
from kente.data.tokenizer import BORROWED, Texts, Tokenizer, Tokenizers, train_tokenizer, train_tokenizers
from kente.errors import ConfigError, RunError
from kente.imports.run import ORIGIN
from kente.runs import Run, Score
from kente.train.budget import Chooser, automatic
from kente.train.card import About
from kente.train.transfer import (
    Parent,
    adapted_start,
    begin_with,
    combined_start,
    keep_start,
    learning,
    restrict,
    settled,
)

LEARNED = {f"tokenizer.{name}" for name in ("kind", "vocabulary", "joint", "byte_fallback", "normalisation")}
"""Settings of which any asks for vocabularies of one's own instead of those of other runs."""
REPLAYED = 200_000
"""Old pairs kept for replay at most, evenly taken: more would hardly be read in the time that adapting takes."""
CAREFUL = 0.25
"""Share of the usual learning rate with which a translator goes on that has learnt already ..."""
NEW_WORDS = 0.5
"""... and where it has words to learn too."""


class Started(Translation):
    """A translator whose encoder, decoder or both begin with those of other runs: translators, language models, masked encoders."""

    def prepare(self, request: dict[str, Any], chooser: Chooser) -> dict[str, Any]:
        parents = {
            part: Parent.open(request[f"{part}_from"], self.reporter)
            for part in ("encoder", "decoder")
            if request[f"{part}_from"]
        }
        encoder, decoder = parents.get("encoder"), parents.get("decoder")
        self._parents = encoder, decoder
        self._own_words = not LEARNED.isdisjoint(chooser.by_hand | chooser.recipe)
        chooser.hold(*settled(chooser.config))
        facts = super().prepare(request, chooser)
        tokenizers = self.prepared.tokenizers
        reason = "the vocabularies of the runs it begins from"
        for setting, value in (("joint", tokenizers.joint), ("kind", tokenizers.source.kind)):
            if getattr(chooser.config.tokenizer, setting) != value:
                chooser.choose(f"tokenizer.{setting}", value, reason)
        model = self.model(chooser.config)
        counts = keep_start(self.run, model, combined_start(encoder, decoder, chooser.config.model, tokenizers))
        names = {part: parent.run.path.name for part, parent in parents.items()}
        self.reporter.say(
            f"begins with {' and '.join(f'the {part} of {name}' for part, name in names.items())}: "
            f"{counts['carried']:,} weights carried over, {counts['new']:,} new"
        )
        return facts | {"begun_from": names | counts}

    def _prepare_text(self, request: dict[str, Any], **more: Any) -> dict[str, Any]:
        return super()._prepare_text(request, **more, tokenizers=self._tokenizers)

    def _tokenizers(self, texts: Texts) -> Tokenizers:
        """Those of the parents, where the user does not ask for others: a side without a parent learns its own."""
        config = self.run.config.tokenizer
        encoder, decoder = self._parents
        if encoder and decoder and not self._own_words and encoder.run.path.resolve() == decoder.run.path.resolve():
            return encoder.tokenizers
        sides = (
            bare(encoder.tokenizer("encoder")) if encoder else None,
            bare(decoder.tokenizer("decoder")) if decoder else None,
        )
        given = [side for side in sides if side is not None]
        kinds = {(side.kind, side.normalisation) for side in given}
        if self._own_words or len(kinds) > 1:
            return train_tokenizers(texts, config, self.reporter)
        tags = encoder.tokenizers.tags if encoder else ()
        if len(given) == 2 and given[0].sha256 == given[1].sha256:
            return Tokenizers(given[0], given[0], joint=True).with_tags(tags)
        if len(given) == 1 and given[0].kind in BORROWED:
            raise ConfigError(
                f"a {given[0].kind} vocabulary is not learned here, so one side alone cannot have it; give both --encoder-from and --decoder-from, "
                "or learn new vocabularies: --set tokenizer.kind=unigram"
            )
        wanted = replace(config, kind=given[0].kind, normalisation=given[0].normalisation)  # type: ignore[arg-type]

        def own(place: int) -> Tokenizer:
            return train_tokenizer(lambda: (pair[place] for pair in texts()), wanted, self.reporter).source

        source, target = (side or own(place) for place, side in enumerate(sides))
        return Tokenizers(source, target, joint=False).with_tags(tags)

    def model(self, config: Config) -> nn.Module:
        return restrict(super().model(config), config.transfer)

    def begin(self, model: nn.Module) -> None:
        begin_with(model, self.run)

    def about(self, facts: dict[str, Any]) -> About:
        about, begun = super().about(facts), facts["begun_from"]
        parts = " and ".join(f"the {part} of {begun[part]}" for part in ("encoder", "decoder") if part in begun)
        return replace(about, read=f"{about.read} It began with {parts} ({begun['carried']:,} weights).")


class Adapted(Translation):
    """A translator that goes on from another one's weights with other text, without forgetting more than it must."""

    # --- before the first update ---

    def prepare(self, request: dict[str, Any], chooser: Chooser) -> dict[str, Any]:
        self._parent = parent = Parent.open(request["parent"], self.reporter)
        chooser.hold(*settled(chooser.config))
        self._old = old = _Old.of(parent.run, request["old"], chooser.config)
        facts = super().prepare(request, chooser)
        ratio = parent.run.config.decode.max_ratio
        if ratio > chooser.config.decode.max_ratio:
            chooser.choose("decode.max_ratio", ratio, "the old text needs it")
        self._keep_origin()
        model = self.model(chooser.config)
        counts = keep_start(self.run, model, adapted_start(parent, self.prepared.tokenizers))
        learns, weights = learning(model)
        self.reporter.say(f"{learns:,} of {weights:,} weights learn")
        before = {"old": self._before(old.validation), "new": self._before(self.prepared.validation_pairs)}
        for name, scores in before.items():
            if scores:
                self.reporter.say(f"before: {name} text {'  '.join(f'{k} {v:.1f}' for k, v in scores.items())}")
        about = {"parent": parent.run.path.name, "parent_step": parent.step, "learning": learns, **counts}
        return facts | {"adapted_from": about, "before": before}

    def _prepare_text(self, request: dict[str, Any], **more: Any) -> dict[str, Any]:
        known = self._old.validation
        report = super()._prepare_text(request, **more, apart=known, tokenizers=self._tokenizers)
        write_pairs(self.run.path / "data", "old-validation", known)
        if self.run.config.transfer.replay:
            self.open()
            self._keep_old(self._old)
        return report

    def open(self) -> None:
        super().open()
        folder = self.run.path / "data"
        self.old_pairs = list(Corpus.of_files(folder / "old-validation.source", folder / "old-validation.target"))
        self.main = "kept" if self.old_pairs and self.run.config.transfer.replay else "bleu"

    def _tokenizers(self, texts: Texts) -> Tokenizers:
        count = self.run.config.transfer.grow_vocabulary
        own = self._spoken()
        return grown(own, texts, count, self.reporter) if count else own

    def _spoken(self) -> Tokenizers:
        """The parent's tokenizers, told which languages this run is about, where there are several."""
        decode = self.run.config.decode
        tokenizers = self._parent.tokenizers.speaking(decode.source_language, decode.target_language)
        require_languages(self._parent.run, tokenizers)
        return tokenizers

    def _keep_origin(self) -> None:
        """What an imported parent came with, so that this run too can be given back in that layout."""
        there = self._parent.run.path / ORIGIN
        if there.is_dir():
            shutil.copytree(there, self.run.path / ORIGIN, dirs_exist_ok=True)

    def _keep_old(self, old: _Old) -> None:
        """What is to be replayed, cut with the tokenizers of this run; sentences to validate on are left out."""
        config, tokenizers = self.run.config, self.prepared.tokenizers
        tags = tags_in_use(config.tokenizer.tags)
        held_out = held_out_keys(self.prepared.validation_pairs, old.validation, tags=tags)
        folder = self.run.path / "data" / "old"
        texts = (
            (pair.source, pair.target)
            for pair in old.pairs()
            if not contains(held_out, sentence_keys([untagged(pair.source, tags)]))[0]
        )
        sampled = config.tokenizer.sampling > 0
        length = config.batches.max_length
        Store.build(folder, texts, tokenizers, max_length=length, text=sampled, threads=self.threads)

    def _before(self, pairs: list[Pair]) -> dict[str, float]:
        """What the parent makes of them."""
        if not pairs:
            return {}
        run = self._parent.run
        greedy = replace(run.config.decode, beam=1, sample=False, shortlist=0)
        model = self._parent.model.to(self.device)
        translator = translator_of(model, run, self._spoken(), greedy, self.device)
        scores = text_scores(*self.translated(pairs, translator))
        return {name: score.value for name, score in scores.items()}

    def fit_to_minutes(self, chooser: Chooser, seconds: float) -> tuple[int, float]:
        updates, pace = super().fit_to_minutes(chooser, seconds)
        self._take_care(chooser, chooser.config.optimiser.rate)
        return updates, pace

    def fit_to_data(self, chooser: Chooser) -> None:
        super().fit_to_data(chooser)
        ends = chooser.config.train.updates
        # without an end nothing else chose the rate just now, and preparing may be done again, after a kill
        self._take_care(chooser, chooser.config.optimiser.rate if ends else automatic().optimiser.rate)

    def _take_care(self, chooser: Chooser, usual: float) -> None:
        """It has learnt already: a lower rate, so that the new does not wash away the old before the two have met."""
        config = chooser.config
        if config.transfer.lora:
            chooser.choose("optimiser.kind", "adamw", "maps of low rank are no maps between spaces")
            chooser.choose("optimiser.rate", 2e-3, "for maps of low rank, which begin at nothing")
            return
        share = NEW_WORDS if config.transfer.grow_vocabulary else CAREFUL
        rate = float(f"{share * usual:.3g}")
        chooser.choose("optimiser.rate", rate, f"{share:.0%} of the usual rate, for it has learnt already")

    # --- what the trainer is given ---

    def model(self, config: Config) -> nn.Module:
        return restrict(super().model(config), config.transfer)

    def batches(self, config: Config) -> Feed:
        new, share = super().batches(config), config.transfer.replay
        folder = self.run.path / "data" / "old"
        if not share or not folder.is_dir():  # while it is being prepared there is nothing old yet
            return new
        tokenizers = self.prepared.tokenizers
        store = Store.open(folder, tokenizers.sha256)
        old = Batches(store, config.batches, config.train.seed, config.tokenizer.sampling, tokenizers)
        return Mixed(new, old, share)

    def begin(self, model: nn.Module) -> None:
        begin_with(model, self.run)

    def validation_seconds(self, config: Config) -> float:
        return super().validation_seconds(config) * (2 if self.old_pairs else 1)

    def validate(self, model: nn.Module, step: int) -> dict[str, Score]:
        """Of what is new as ever; of what is old BLEU and chrF too. `kept` weighs the two as the batches do."""
        scores = super().validate(model, step)
        if not self.old_pairs:
            return scores
        old = text_scores(*self.translated(self.old_pairs, self._greedy(model)))
        scores |= {f"old_{name}": replace(score, name=f"old {score.name}") for name, score in old.items()}
        if share := self.run.config.transfer.replay:
            scores["kept"] = _weighed(scores["bleu"], old["bleu"], share)
        return scores

    # --- after the last ---

    def told(self, facts: dict[str, Any]) -> dict[str, Any]:
        best = self.run.best(groups=())
        found = [
            r["validation"] for r in self.run.read("metrics") if "validation" in r and best and r["step"] == best.step
        ]
        after = found[-1] if found else {}
        names = {"new": ("bleu", "chrf"), "old": ("old_bleu", "old_chrf")}
        scores = {
            text: {
                "before": facts["before"][text],
                "after": {name.removeprefix("old_"): after[name] for name in names[text] if name in after},
            }
            for text in ("old", "new")
            if facts["before"][text]
        }
        return {"adapted_from": facts["adapted_from"]["parent"], "scores": scores}

    def about(self, facts: dict[str, Any]) -> About:
        about, told, transfer = super().about(facts), self.told(facts), self.run.config.transfer
        replay = (
            f"; {transfer.replay:.0%} of the batches repeated what that one was trained on" if transfer.replay else ""
        )
        rows = [
            f"| {text} text, {name} | {told['scores'][text]['before'][name]:.1f} | {value:.1f} |"
            for text in told["scores"]
            for name, value in told["scores"][text]["after"].items()
        ]
        table = "\n\n| validation | before | after |\n|---|---|---|\n" + "\n".join(rows)
        return replace(
            about,
            what=f"{about.what}, adapted from {told['adapted_from']} and",
            read=f"{about.read} It went on from {told['adapted_from']}{replay}.",
            measured=about.measured + table,
        )


def _weighed(new: Score, old: Score, share: float) -> Score:
    value = (1 - share) * new.value + share * old.value
    return Score(f"BLEU ({1 - share:.0%} new, {share:.0%} old text)", value, new.signature)


class _Old:
    """What a translator was trained and validated on: kept in its run folder, or given anew."""

    def __init__(self, run: Run, validation: list[Pair], corpus: Corpus | None) -> None:
        self.run, self.validation, self.corpus = run, validation, corpus

    @classmethod
    def of(cls, run: Run, given: dict[str, Any] | None, config: Config) -> _Old:
        require_old_text(run, given, config)
        if _other_languages(run, config):
            return cls(run, [], None)
        folder = run.path / "data"
        corpus = Data.from_dict(given).corpus() if given else None
        kept = [name for name in ("validation", "old-validation") if (folder / f"{name}.source").exists()]
        validation = [
            pair for name in kept for pair in Corpus.of_files(folder / f"{name}.source", folder / f"{name}.target")
        ]
        if corpus is not None and not validation:
            split = hold_out(corpus, validation=default_validation_size(corpus.count()), seed=config.train.seed)
            corpus = split.train
            validation = list(Cleaner(config.cleaning).clean(split.validation))
        return cls(run, validation, corpus)

    def pairs(self) -> Iterator[Pair]:
        """The pairs it was trained on, at most REPLAYED of them."""
        if self.corpus is not None:
            every = max(1, self.corpus.count() // REPLAYED)
            kept = Cleaner(self.run.config.cleaning).clean(self.corpus)
            yield from (pair for number, pair in enumerate(kept) if number % every == 0)
            return
        tokenizers = self.run.tokenizers()
        stores = [self.run.path / "data" / name for name in ("train", "old")]
        opened = [Store.open(folder, tokenizers.sha256) for folder in stores if folder.is_dir()]
        stride = max(1.0, sum(map(len, opened)) / REPLAYED)
        for store in opened:
            for number in range(int(len(store) / stride)):
                row = int(number * stride)
                yield Pair(_text(store, 0, row, tokenizers), _text(store, 1, row, tokenizers), row + 1)


def require_old_text(run: Run, given: object, config: Config) -> None:
    """Whether what was known can be mixed with what is new, as `config` asks: where it is of the same languages, and still there or `given`."""
    replay = config.transfer.replay
    if _other_languages(run, config) and (given or replay):
        raise ConfigError(
            f"{run.path} translates {_languages(run.config.decode)}, and this run {_languages(config.decode)}: old text cannot be mixed "
            "with the new; leave out --replay and --old-source"
        )
    if replay and not given and not (run.path / "data" / "train").is_dir():
        raise RunError(
            f"{run.path} no longer holds the text it was trained on, and --replay repeats it; give that text with --old-source and "
            "--old-target, or leave out --replay"
        )


def _other_languages(run: Run, config: Config) -> bool:
    before = _languages(run.config.decode)
    return bool(before) and before != _languages(config.decode)


def _languages(decode: DecodeConfig) -> str:
    """What a run of many languages is asked for; empty where nobody said it, or there is one pair only."""
    named = (("from", decode.source_language), ("to", decode.target_language))
    return " ".join(f"{word} {name}" for word, name in named if name)


def _text(store: Store, side: int, row: int, tokenizers: Tokenizers) -> str:
    """The sentence that a row's ids spell, its mark included."""
    tokenizer = (tokenizers.source, tokenizers.target)[side]
    ids = [int(number) for number in store.sides[side][row]][len(tokenizers.marks[side]) :]
    mark = f"{tokenizer.pieces(ids[:1])[0]} " if side == 0 and tokenizers.tags and ids else ""
    return (mark if mark.strip() in tokenizers.tags else "") + tokenizer.decode(ids)
