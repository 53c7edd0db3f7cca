"""Part: decoding with the same trained weights in every engine: sentences a second, greedy and beam 5; one sentence at a time; cold start.

One tiny model is trained by Kente and converted for each engine that can carry it (weights.py). Text goes in and text comes out, so cutting into
pieces and joining them is on everyone's clock.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import sentencepiece
from sacrebleu.metrics import BLEU

from benchmarks import weights
from benchmarks.bench import Bench, Table, Variant
from benchmarks.corpus import settings
from benchmarks.environments import PeerMissing
from benchmarks.peers.adapter import read_lines
from benchmarks.results import fingerprint
from benchmarks.shapes import SHAPES
from kente.config import DecodeConfig

SHAPE = SHAPES["tiny"]
BEAMS = {"greedy": 1, "beam 5": 5}
"""How everyone searches; each engine weighs lengths in a beam by its own rule."""
ONE_RULE = "beam 5, no length penalty"
"""The same beam where the likeliest answer wins, whatever its length: one rule for all, so that answers can be told apart by the engine alone."""
TYPES = ("float32", "int8")
MODEL_MINUTES, QUICK_MODEL_MINUTES = 10.0, 0.5
SENTENCE = "a man in a blue shirt is standing on a ladder cleaning a window ."


class Model:
    """The trained run, its weights for others, and what each engine needs to find it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.run, self.weights = folder / "run", folder / "weights.npz"

    def engine(self, name: str) -> Path:
        return self.folder / name


def _folder(bench: Bench, minutes: float) -> Path:
    return bench.folder / "models" / fingerprint(bench.text.facts["key"], minutes, SHAPE.as_dict())


def trained(bench: Bench, minutes: float) -> Model:
    """The model of this corpus and so many minutes, from .bench if it was trained before."""
    corpus = bench.text
    model = Model(_folder(bench, minutes))
    done = model.folder / "trained.json"
    if not done.is_file():
        model.folder.mkdir(parents=True, exist_ok=True)
        job = bench.job(
            "fit",
            shape=SHAPE.as_dict(),
            run=str(model.run),
            minutes=minutes,
            prepared=str(corpus.prepared),
            source=str(corpus.text("validation.source")),
            target=str(corpus.text("validation.target")),
            text_settings=settings(corpus.facts["asked_vocabulary"]),
        )
        result = bench.once(f"training the model that every engine decodes with ({minutes:g} min)", "kente", job)
        weights.export(model.run, model.weights)
        done.write_text(json.dumps(result))
    return model


def convert(bench: Bench, model: Model) -> None:
    """The same weights for the engines that can carry them; one that cannot be had says so in its rows."""
    common = bench.job("convert", shape=SHAPE.as_dict(), vocabulary=bench.text.vocabulary, weights=str(model.weights))
    jobs = {
        "huggingface": common,
        "ctranslate2": common | {"types": TYPES, "vocabulary_file": str(bench.text.text("vocabulary.txt"))},
    }
    for peer, job in jobs.items():
        folder = model.engine(peer)
        if bench.wanted(peer) and not (folder / "converted").is_file():
            folder.mkdir(exist_ok=True)
            try:
                bench.once(f"converting for {peer}", peer, job | {"folder": str(folder)})
                (folder / "converted").touch()
            except PeerMissing as error:
                bench.say(str(error))


class Scorer:
    """BLEU and lengths of answers, the same for everyone: text against text, pieces counted by the one vocabulary."""

    def __init__(self, pieces: Path, references: Path):
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=str(pieces))
        self.references = read_lines(references)

    def __call__(self, result: dict[str, Any]) -> dict[str, Any]:
        """The result with its texts replaced by what they say: tokens (end marks included), BLEU and a hash."""
        texts = result.get("texts")
        if texts is None:
            return result
        kept = {name: value for name, value in result.items() if name != "texts"}
        kept["output_tokens"] = sum(len(ids) + 1 for ids in self.pieces.encode(texts))
        kept["texts_sha256"] = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
        if len(texts) > 50:
            kept["bleu"] = round(bleu(texts, self.references[: len(texts)]), 2)
        return kept


def bleu(texts: list[str], references: list[str]) -> float:
    """sacreBLEU on text that is tokenised already: nrefs:1|case:mixed|eff:no|tok:none|smooth:exp."""
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # it warns that text looks tokenised, which it should be
    return float(BLEU(tokenize="none", force=True).corpus_score(texts, [references]).score)


def finish(scorer: Scorer) -> Any:
    def finished(result: dict[str, Any]) -> dict[str, Any]:
        kept = scorer(result)
        if "sentences" in kept and "seconds" in kept:
            kept["sentences_per_second"] = kept["sentences"] / kept["seconds"]
        return kept

    return finished


def measure(bench: Bench, model_minutes: float | None = None) -> None:
    model = trained(bench, model_minutes or _minutes_at_hand(bench))
    convert(bench, model)
    scorer = Scorer(bench.text.pieces, bench.text.text("test.target"))
    for name, beam in BEAMS.items():
        rows = throughput_rows(bench, model, name, beam)
        bench.measure(Table(f"decoding {name}", rows, bench.rounds, finish=finish(scorer)))
    if not bench.quick:
        rows = one_rule_rows(throughput_rows(bench, model, "beam 5", BEAMS["beam 5"]))
        bench.measure(Table(f"decoding {ONE_RULE}", rows, bench.rounds, finish=finish(scorer)))
    for name, beam in itertools.islice(BEAMS.items(), 1 if bench.quick else None):
        rows = latency_rows(bench, model, beam)
        bench.measure(Table(f"latency {name}", rows, bench.rounds, finish=scorer))
    bench.measure(Table("cold start", start_rows(bench, model), bench.rounds, 5.0, finish=scorer))


def _minutes_at_hand(bench: Bench) -> float:
    """A quick look makes do with a poor model, unless the good one is there already."""
    if bench.quick and not (_folder(bench, MODEL_MINUTES) / "trained.json").is_file():
        return QUICK_MODEL_MINUTES
    return MODEL_MINUTES


def _common(bench: Bench, action: str, model: Model, beam: int) -> dict[str, Any]:
    return bench.job(
        action,
        shape=SHAPE.as_dict(),
        vocabulary=bench.text.vocabulary,
        beam=beam,
        pieces=str(bench.text.pieces),
        source=str(bench.text.text("test.source")),
        weights=str(model.weights),
        run=str(model.run),
    )


def usual_length(bench: Bench, model: Model) -> int:
    """Tokens of an answer, end mark included, from what Kente writes for the test set; found once for a model."""
    known = model.folder / "length.json"
    if not known.is_file():
        job = _common(bench, "translate", model, beam=1)
        texts = bench.once("how long answers are", "kente", job)["texts"]
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(bench.text.pieces))
        known.write_text(json.dumps(sum(len(ids) + 1 for ids in pieces.encode(texts)) / len(texts)))
    return round(json.loads(known.read_text()))


def engines() -> tuple[str, ...]:
    """Kente's engines besides the one it takes by itself."""
    auto, *others = get_args(get_type_hints(DecodeConfig)["engine"])
    assert auto == "auto"
    return tuple(others)


def kente_rows(common: dict[str, Any]) -> list[Variant]:
    """Kente as it comes, and held to each of its engines."""
    held = [Variant(f"Kente, engine {name}", "kente", common | {"options": {"engine": name}}) for name in engines()]
    return [Variant("Kente", "kente", common), *held]


def throughput_rows(bench: Bench, model: Model, name: str, beam: int) -> tuple[Variant, ...]:
    sentences = 100 if bench.quick else 1000
    common = _common(bench, "translate", model, beam) | {"sentences": sentences}
    transformers = common | {"folder": str(model.engine("huggingface"))}
    rows = [
        *kente_rows(common),
        Variant("nn.Transformer", "plain", common),
        Variant("transformers, same weights (Pegasus classes)", "huggingface", transformers),
    ]
    if not bench.quick:
        forced = transformers | {"forced_tokens": usual_length(bench, model)}
        rows.append(Variant("transformers, Marian, lengths forced", "huggingface", forced))
    for kind in TYPES:
        ctranslate2 = common | {"folder": str(model.engine("ctranslate2")), "type": kind}
        mode = best_mode(bench, f"ctranslate2 modes {name}", kind, ctranslate2)
        if mode is not None:
            rows.append(Variant(f"CTranslate2 {kind}", "ctranslate2", ctranslate2 | {"mode": mode}))
    return tuple(rows)


def one_rule_rows(rows: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """The rows that can be given a length penalty, all with none."""
    able = [row for row in rows if row.peer != "plain" and "forced_tokens" not in row.job]
    return tuple(replace(row, job=row.job | {"length_penalty": 0.0}) for row in able)


def best_mode(bench: Bench, table: str, kind: str, job: dict[str, Any]) -> dict[str, Any] | None:
    """The way of running CTranslate2 that is fastest here, of all that are sensible on this many threads."""
    threads = bench.threads
    ways = [(threads, 1), (1, threads)] if threads > 1 else [(1, 1)]
    batches = (
        [(32, "examples"), (128, "examples")]
        if bench.quick
        else [
            *((size, "examples") for size in (16, 32, 64, 128, 256)),
            (2048, "tokens"),
        ]
    )
    sweep = job | {"action": "modes", "thread_modes": ways, "batches": batches, "repeats": 1 if bench.quick else 2}
    bench.measure(Table(table, (Variant(kind, "ctranslate2", sweep),), 1))
    found = [s for s in bench.results.of(table, kind) if s.get("modes")]
    if not found:
        return None
    best = max(found[0]["modes"], key=lambda mode: float(mode["sentences_per_second"]))
    return {name: best[name] for name in ("workers", "threads", "batch", "batch_type")}


def latency_rows(bench: Bench, model: Model, beam: int) -> tuple[Variant, ...]:
    common = _common(bench, "latency", model, beam) | {"sentences": 30 if bench.quick else 200}
    transformers = common | {"folder": str(model.engine("huggingface"))}
    choices = sorted({1, bench.threads})
    ctranslate2 = common | {"folder": str(model.engine("ctranslate2")), "thread_choices": choices}
    return (
        *kente_rows(common),
        Variant("nn.Transformer", "plain", common),
        Variant("transformers, same weights (Pegasus classes)", "huggingface", transformers),
        *(Variant(f"CTranslate2 {kind}", "ctranslate2", ctranslate2 | {"type": kind}) for kind in TYPES),
    )


def start_rows(bench: Bench, model: Model) -> tuple[Variant, ...]:
    """From the start of the process to the printed answer, greedy."""
    common = _common(bench, "start", model, beam=1) | {"text": SENTENCE}
    kente = ("-m", "kente", "translate", str(model.run), "--beam", "1", SENTENCE)
    held = [Variant(f"Kente, engine {name}", "kente", command=(*kente, "--engine", name)) for name in engines()]

    def script(module: str, **more: Any) -> tuple[str, ...]:
        return "-m", f"benchmarks.peers.{module}", "start", json.dumps(common | more)

    return (
        Variant("Kente", "kente", command=kente),
        *held,
        Variant("nn.Transformer", "plain", command=script("plain")),
        Variant(
            "transformers, same weights (Pegasus classes)",
            "huggingface",
            command=script("huggingface", folder=str(model.engine("huggingface"))),
        ),
        Variant(
            "CTranslate2 float32",
            "ctranslate2",
            command=script("ctranslate2", folder=str(model.engine("ctranslate2")), type="float32"),
        ),
    )
