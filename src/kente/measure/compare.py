"""Systems side by side: the same test for all, and everything worth knowing about each."""

from __future__ import annotations

import datetime
import hashlib
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kente.configfile import differences
from kente.data.tokenizer import Tokenizers
from kente.decode.translator import Translator
from kente.durable import replace_file
from kente.measure.alignment import GoldPair, alignment_of, cross_attention
from kente.measure.comparison import (
    Alignment,
    Answer,
    Attention,
    Bucket,
    Comparison,
    Point,
    Sample,
    Significance,
    System,
)
from kente.measure.findings import findings
from kente.measure.scores import bleu_and_chrf, corpus_bleu, paired_bootstrap, sentence_chrf
from kente.models.recurrent_seq2seq import WHY_NO_ATTENTION
from kente.models.summary import describe, parameter_count
from kente.reporting import SILENT, Reporter
from kente.runs import Run, environment, weights_sha256
from kente.train.prepare import trained_length

EDGES = (5, 10, 15, 20, 25, 30, 40, 50, 70, 100)
"""Last length of each bucket; longer sentences share one more."""
SHOWN = 3
"""Sample sentences of each choice."""
SHORTEST_SHOWN = 4
"""Words a sample sentence has at least: there is little to see in fewer."""


@dataclass(frozen=True)
class TestSet:
    """What every system is tried on."""

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]
    longer_sources: tuple[str, ...] = ()
    """Sentences beyond the trained lengths: for the picture of BLEU by length, not for the scores."""
    longer_references: tuple[str, ...] = ()
    gold: tuple[GoldPair, ...] = ()
    """Pairs with known alignments, if there are any ..."""
    tuning_gold: tuple[GoldPair, ...] = ()
    """... and others, to choose the layer by."""

    @property
    def sha256(self) -> str:
        texts = (self.sources, self.references, self.longer_sources, self.longer_references)
        gold = [sorted(pair.links) for pair in (*self.gold, *self.tuning_gold)]
        return hashlib.sha256(json.dumps([texts, gold], ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True)
class Entrant:
    """A trained system by its name."""

    name: str
    run: Run
    load: Callable[[], Translator]


@dataclass(frozen=True)
class Tried:
    """What a system made of the test set."""

    texts: tuple[str, ...]
    longer: tuple[str, ...]
    sentences_per_second: float
    parameters: int
    attends: bool
    alignment: Alignment | None


def try_out(entrant: Entrant, test: TestSet, cache: Path | None = None, reporter: Reporter = SILENT) -> Tried:
    """Translate the test set. What was done before with the same weights on the same test is read from `cache`, not done again."""
    translator = entrant.load()
    model: Any = translator.model
    key = {
        "weights": weights_sha256(model.state_dict()),
        "test": test.sha256,
        "decode": json.loads(json.dumps(translator.config.__dict__)),
    }
    known = _cached(cache, key)
    if known is not None:
        return known
    begun = time.monotonic()
    texts = _translate(translator, test.sources, f"translating: {entrant.name}", reporter)
    seconds = time.monotonic() - begun
    longer = _translate(translator, test.longer_sources, f"long sentences: {entrant.name}", reporter)
    ids = [translator.tokenizers.encode_source(test.sources[0])], [translator.tokenizers.encode_target(texts[0])]
    tried = Tried(
        texts,
        longer,
        len(texts) / max(seconds, 1e-9),
        parameter_count(model),
        len(cross_attention(translator.model, *ids, translator.device)[0]) > 0,
        alignment_of(translator.model, translator.tokenizers, test.tuning_gold, test.gold, translator.device)
        if test.gold
        else None,
    )
    if cache is not None:
        record = {**tried.__dict__, "alignment": tried.alignment.__dict__ if tried.alignment else None}
        cache.parent.mkdir(parents=True, exist_ok=True)
        replace_file(cache, json.dumps({"key": key, "tried": record}, ensure_ascii=False).encode())
    return tried


def _cached(cache: Path | None, key: dict[str, Any]) -> Tried | None:
    if cache is None or not cache.exists():
        return None
    record = json.loads(cache.read_bytes())
    if record["key"] != key:
        return None
    tried = record["tried"]
    alignment = Alignment(**tried["alignment"]) if tried["alignment"] else None
    return Tried(**{**tried, "texts": tuple(tried["texts"]), "longer": tuple(tried["longer"]), "alignment": alignment})


def _translate(translator: Translator, sources: Sequence[str], label: str, reporter: Reporter) -> tuple[str, ...]:
    texts: list[str] = []
    for translation in translator.stream(sources, lookahead=256):
        texts.append(translation.text)
        reporter.progress(label, len(texts), len(sources))
    reporter.finish()
    return tuple(texts)


def compare_systems(
    entrants: Sequence[Entrant],
    test: TestSet,
    *,
    title: str,
    corpus: str,
    budget: str,
    tokenize: str = "13a",
    cache: Path | None = None,
    reporter: Reporter = SILENT,
) -> Comparison:
    """Everything about all of them. `cache` is a folder for what need not be done twice."""
    tried = {
        entrant.name: try_out(entrant, test, cache / f"{entrant.name}.json" if cache else None, reporter)
        for entrant in entrants
    }
    reporter.say("scoring ...")
    scores = {name: bleu_and_chrf(result.texts, test.references, tokenize) for name, result in tried.items()}
    best = max(scores, key=lambda name: scores[name][0].value)
    apart = paired_bootstrap({name: t.texts for name, t in tried.items()}, best, test.references, tokenize)
    unit, lengths = _lengths((*test.sources, *test.longer_sources))
    buckets, members = _buckets(lengths)
    references = (*test.references, *test.longer_references)
    systems = []
    for entrant in entrants:
        result = tried[entrant.name]
        answers = (*result.texts, *result.longer)
        by_length = [
            corpus_bleu([answers[i] for i in rows], [references[i] for i in rows], tokenize).value for rows in members
        ]
        significance = Significance(best, *apart[entrant.name]) if entrant.name != best else None
        systems.append(
            System(
                name=entrant.name,
                description=describe(entrant.run.config.model),
                run=str(entrant.run.path),
                parameters=result.parameters,
                sentences_per_second=result.sentences_per_second,
                bleu=scores[entrant.name][0],
                chrf=scores[entrant.name][1],
                significance=significance,
                by_length=tuple(by_length),
                alignment=result.alignment,
                why_no_attention="" if result.attends else WHY_NO_ATTENTION,
                **_history(entrant.run),
            )
        )
    trained = trained_length(entrants[0].run, unit)
    return Comparison(
        title=title,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        corpus=corpus,
        test=f"{test.name}, {len(test.sources):,} lines"
        + (f"; by length also {len(test.longer_sources):,} longer ones" if test.longer_sources else ""),
        budget=budget,
        decoding=_decoding(entrants),
        systems=tuple(systems),
        buckets=buckets,
        trained_length=trained,
        length_unit=unit,
        samples=_samples(entrants, tried, test),
        settings=differences({entrant.name: entrant.run.config for entrant in entrants}),
        environment=environment(),
        findings=findings(systems, buckets, trained, unit),
    )


# --- what a run remembers ---


def _history(run: Run) -> dict[str, Any]:
    """Speed, memory, length and learning curve, from the run's own records."""
    records = run.read("metrics")
    updates = [record for record in records if "loss" in record]
    points = tuple(
        Point(
            record["step"],
            record["seconds"] / 60,
            record["validation"]["loss"],
            record["validation"].get("bleu"),
            record["validation"].get("chrf"),
        )
        for record in records
        if "validation" in record
    )
    last = records[-1] if records else {"step": 0, "seconds": 0.0}
    return {
        "updates": last["step"],
        "minutes": max((record["seconds"] for record in records), default=0.0) / 60,
        "tokens_per_second": statistics.median([r["tokens_per_second"] for r in updates]) if updates else 0.0,
        "peak_memory": max((r.get("peak_megabytes", 0.0) for r in updates), default=0.0),
        "curve": points,
    }


def _decoding(entrants: Sequence[Entrant]) -> str:
    config = entrants[0].load().config
    return f"beam {config.beam}, length penalty {config.length_penalty:g}" if config.beam > 1 else "greedy"


# --- lengths ---


def _lengths(sources: Sequence[str]) -> tuple[str, list[int]]:
    """How long each sentence is: in words, or in characters where most have no space."""
    if sum(" " in source.strip() for source in sources) < len(sources) / 2:
        return "characters", [len(source) for source in sources]
    return "words", [len(source.split()) for source in sources]


def _buckets(lengths: Sequence[int]) -> tuple[tuple[Bucket, ...], list[list[int]]]:
    """Buckets that hold at least one sentence, and the rows of each."""
    edges = [*EDGES, max(*EDGES, *lengths)]
    buckets, members = [], []
    for low, high in zip([0, *edges], edges, strict=False):
        rows = [row for row, length in enumerate(lengths) if low < length <= high]
        if rows:
            buckets.append(Bucket(low + 1, high, len(rows)))
            members.append(rows)
    return tuple(buckets), members


# --- samples ---


def _samples(entrants: Sequence[Entrant], tried: dict[str, Tried], test: TestSet) -> tuple[Sample, ...]:
    """Sentences that all do best and worst, and some drawn at random, with every system's answer and attention."""
    chrf = {name: sentence_chrf(result.texts, test.references) for name, result in tried.items()}
    chosen = _choose(np.mean(list(chrf.values()), axis=0).tolist(), _lengths(test.sources)[1])
    rows = [row for _, row in chosen]
    seen = {
        entrant.name: _attention(entrant.load(), test, rows, tried[entrant.name])
        for entrant in entrants
        if tried[entrant.name].attends
    }
    return tuple(
        Sample(
            choice,
            test.sources[row],
            test.references[row],
            tuple(
                Answer(
                    entrant.name,
                    tried[entrant.name].texts[row],
                    chrf[entrant.name][row],
                    seen[entrant.name][place] if entrant.name in seen else None,
                )
                for entrant in entrants
            ),
        )
        for place, (choice, row) in enumerate(chosen)
    )


def _choose(means: list[float], lengths: list[int]) -> list[tuple[str, int]]:
    rows = [row for row, length in enumerate(lengths) if length >= SHORTEST_SHOWN] or list(range(len(lengths)))
    ranked = sorted(
        rows, key=lambda row: (means[row], lengths[row]), reverse=True
    )  # of equals, the longer is worth more
    best, worst = ranked[:SHOWN], ranked[SHOWN:][::-1][:SHOWN]
    rest = [row for row in rows if row not in best and row not in worst]
    drawn = random.Random("samples").sample(rest, min(SHOWN, len(rest)))
    return [(choice, row) for choice, some in (("best", best), ("worst", worst), ("random", drawn)) for row in some]


def _attention(translator: Translator, test: TestSet, rows: list[int], tried: Tried) -> list[Attention | None]:
    """Where a system looked while it wrote its own answers; None where it wrote nothing."""
    tokenizers: Tokenizers = translator.tokenizers
    sources = [tokenizers.encode_source(test.sources[row]) for row in rows]
    targets = [tokenizers.encode_target(tried.texts[row]) for row in rows]
    found: list[Attention | None] = []
    for source, target, layers in zip(
        sources, targets, cross_attention(translator.model, sources, targets, translator.device), strict=True
    ):
        layer = tried.alignment.layer if tried.alignment else max(0, len(layers) - 2)
        weights = tuple(tuple(round(float(w), 4) for w in line) for line in layers[layer][: len(target)])
        pieces = (*tokenizers.source.pieces(source), "</s>"), tuple(tokenizers.target.pieces(target))
        found.append(Attention(*pieces, weights, layer) if target else None)
    return found
