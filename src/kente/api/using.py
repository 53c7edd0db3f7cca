"""What one does with runs that exist, besides loading them: evaluate, score, summary, info."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch

from kente.api.loading import engine_of, load
from kente.configfile import load_recipe
from kente.data.batches import Batch, collate
from kente.data.corpus import read_lines
from kente.decode.translator import Translator
from kente.errors import ConfigError, CorpusError, RunError
from kente.measure.scores import Evaluation, evaluate_texts
from kente.models.build import build_for
from kente.models.summary import Summary, parameter_count, summarise
from kente.reporting import SILENT, Reporter
from kente.runs import Run, environment, weights_sha256
from kente.train.budget import automatic
from kente.train.kinds import kind_of
from kente.train.objectives import mean_loss

TOGETHER = 1024
"""Sentences translated between two looks at the clock."""
UNKNOWN_VOCABULARY = 8000
"""Assumed by `summary` of a recipe that leaves the vocabulary to the corpus."""


def evaluate(
    run: Path | str,
    source: Path,
    reference: Path,
    *,
    beam: int | None = None,
    engine: str | None = None,
    tokenize: str = "13a",
    lowercase: bool = False,
    limit: int | None = None,
    languages: tuple[str | None, str | None] = (None, None),
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Evaluation:
    """Translate a test set and score it: BLEU, chrF++ and TER with signatures and intervals, loss and perplexity.

    `languages`, for a model of many, are those of source and reference.
    """
    sources, references = list(read_lines(source)), list(read_lines(reference))
    if len(sources) != len(references):
        raise CorpusError(
            f"{source} has {len(sources):,} lines but {reference} has {len(references):,}; they must match"
        )
    if not sources:
        raise CorpusError(f"{source} is empty: nothing to translate")
    sources, references = sources[:limit], references[:limit]
    how: dict[str, Any] = {"device": device, "threads": threads, "reporter": reporter, "beam": beam, "engine": engine}
    translator = load(run, **how, source_language=languages[0], target_language=languages[1])
    texts, engines = list[str](), list[str]()
    for begin in range(0, len(sources), TOGETHER):
        window = sources[begin : begin + TOGETHER]
        texts += [translation.text for translation in translator.translate(window)]
        engines.append(translator.engine.name)  # the fastest one may be another for few sentences
        reporter.progress("translating", len(texts), len(sources))
    reporter.finish()
    loss = _reference_loss(translator, sources, references)
    evaluation = evaluate_texts(texts, references, tokenize, lowercase, reporter=reporter)
    used = " and ".join(dict.fromkeys(engines))
    history = (f"run {Path(run).name}", f"{source.name}", f"beam {translator.config.beam}", used)
    return dataclasses.replace(evaluation, loss=loss, history=history)


def _reference_loss(translator: Translator, sources: list[str], references: list[str]) -> float:
    """Cross entropy of the references. Pairs the model cannot read whole, or with an empty side, are left out."""
    limit = translator.max_source_tokens
    encoded = [
        (source, target)
        for one, other in zip(sources, references, strict=True)
        if 0 < len(source := translator.tokenizers.encode_source(one)) < limit
        and 0 < len(target := translator.tokenizers.encode_target(other)) < limit
    ]
    encoded.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
    batches: list[Batch] = [
        collate([s for s, _ in encoded[i : i + 64]], [t for _, t in encoded[i : i + 64]])
        for i in range(0, len(encoded), 64)
    ]
    model = translator.model
    assert isinstance(model, torch.nn.Module)
    return mean_loss(model, batches, translator.device) if batches else float("nan")


def score(hypothesis: Path, reference: Path, tokenize: str = "13a", lowercase: bool = False) -> Evaluation:
    """Score translations that exist already."""
    texts, references = list(read_lines(hypothesis)), list(read_lines(reference))
    if len(texts) != len(references):
        raise CorpusError(
            f"{hypothesis} has {len(texts):,} lines but {reference} has {len(references):,}; they must match"
        )
    return dataclasses.replace(evaluate_texts(texts, references, tokenize, lowercase), history=(Path(hypothesis).name,))


def summary(run_or_recipe: Path | str) -> Summary:
    """The layer table of a run's model, or of a recipe's, which costs nothing to build."""
    try:
        run = Run.open(run_or_recipe)
    except RunError as not_a_run:
        try:
            config = load_recipe(run_or_recipe, base=automatic())
        except ConfigError as not_a_recipe:
            raise ConfigError(f"{run_or_recipe} is neither a run nor a recipe: {not_a_run}; {not_a_recipe}") from None
        size = config.tokenizer.vocabulary or UNKNOWN_VOCABULARY
        assumed = "" if config.tokenizer.vocabulary else ", assumed until there is a corpus"
        title = f"recipe {Path(run_or_recipe).stem} (vocabulary {size:,}{assumed})"
        sizes = (size, size)
    else:
        config, sizes = run.config, run.vocabularies(run.latest(groups=()))
        title = f"run {run.path.name} (vocabulary {sizes[1]:,})"
    with torch.device("meta"):
        model = build_for(config, *sizes)
    return summarise(model, title)


def imported_from(run: Run) -> dict[str, Any]:
    """What a run that was imported was called where it came from."""
    name = run.request().get("imported")
    return {"imported_from": name} if name else {}


def info(run: Path | str | None = None) -> dict[str, Any]:
    """Where a run stands and what exactly its weights are; without a run, the environment."""
    if run is None:
        return environment()
    opened = Run.open(run)
    latest, best = opened.latest(), opened.best(groups=("model", "average"))
    facts: dict[str, Any] = {
        "run": str(opened.path),
        "what": kind_of(opened).name,
        "task": opened.config.train.task,
        "step": latest.step if latest else 0,
        **imported_from(opened),
    }
    if latest is None or best is None:
        return facts | {"parameters": None, "weights_sha256": None, "best": None}
    prepared = opened.path / "prepared.json"
    if prepared.exists():
        known = json.loads(prepared.read_bytes())
        facts |= {name: known[name] for name in ("begun_from", "adapted_from") if name in known}
    weights = latest.load("model")
    plan = latest.state["plan"]
    if opened.config.train.task == "translation":
        engine, because = engine_of(opened)
        facts |= {"engine": engine, "engine_because": because}
    return facts | {
        "planned_updates": plan["total"],
        "finished": latest.step >= plan["total"],
        "minutes": round(latest.state["progress"]["seconds"] / 60, 2),
        "parameters": parameter_count(opened.model(best)),
        "weights_sha256": weights_sha256(weights),
        "best": {"step": best.step, "score": dataclasses.asdict(best.score) if best.score else None},
        "translates_with": "averaged weights" if best.has("average") else "weights",
        "vocabulary": opened.vocabularies(latest)[1] or None,
        "checkpoints": [checkpoint.step for checkpoint in opened.checkpoints()],
        "versions": latest.manifest["versions"],
        "threads": latest.manifest["threads"],
    }
