"""compare and report: models side by side on one corpus, as a page and as numbers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from kente.api.corpora import Data
from kente.api.inputs import use_threads
from kente.api.loading import load
from kente.api.training import prepare_corpus, resume, train
from kente.configfile import recipe_path
from kente.data.corpus import Corpus, write_pairs
from kente.data.grammar import GrammarPair, splits
from kente.data.splitting import hold_out
from kente.durable import replace_file
from kente.errors import CorpusError, UsageError
from kente.measure.alignment import GoldPair
from kente.measure.compare import Entrant, TestSet, compare_systems
from kente.measure.comparison import Comparison
from kente.reporting import SILENT, Reporter
from kente.runs import Run
from kente.show.comparison import comparison_page
from kente.train.prepare import CLEANED

MODELS = ("rnn", "gru", "gru-attention", "lstm-attention", "conv", "transformer")
"""The road in six steps: what `kente compare` trains when nobody says otherwise."""
PAGE, NUMBERS, REQUEST, SHARED, ANSWERS = "comparison.html", "comparison.json", "request.json", "prepared", "answers"
HELD_OUT = 500
"""Test pairs held out of a corpus that comes without a test set, at most; and at most a twentieth of it."""
TUNING_GOLD = 200


@dataclass(frozen=True)
class Compared:
    """A finished comparison and where it stands."""

    comparison: Comparison
    page: Path
    numbers: Path

    def as_dict(self) -> dict[str, Any]:
        return {"page": str(self.page), "numbers": str(self.numbers), **self.comparison.as_dict()}

    def lines(self) -> list[str]:
        """The table for a terminal."""
        header = ("model", "parameters", "updates", "min", "tokens/s", "BLEU", "95 %", "chrF++", "vs best", "AER")
        rows = [header, *(_row(system) for system in self.comparison.systems)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
        table = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        signature = f"sacrebleu {self.comparison.systems[0].bleu.signature} | {self.comparison.test} | {self.comparison.decoding}"
        return [
            *table,
            "",
            signature,
            "",
            *self.by_length_lines(),
            "",
            *self.comparison.findings,
            "",
            f"page: {self.page}",
        ]

    def by_length_lines(self) -> list[str]:
        """BLEU in each bucket, one line for each system."""
        comparison = self.comparison
        width = max(len("sentences"), *(len(system.name) for system in comparison.systems))
        lines = [f"BLEU by source length in {comparison.length_unit} (trained on up to {comparison.trained_length}):"]
        lines.append("  ".join(["".ljust(width), *(bucket.label.rjust(7) for bucket in comparison.buckets)]))
        lines.append("  ".join(["sentences".ljust(width), *(f"{b.sentences:,}".rjust(7) for b in comparison.buckets)]))
        for system in comparison.systems:
            cells = ["-".rjust(7) if value is None else f"{value:.1f}".rjust(7) for value in system.by_length]
            lines.append("  ".join([system.name.ljust(width), *cells]))
        return lines


def _row(system: Any) -> tuple[str, ...]:
    bleu = system.bleu
    versus = "best"
    if system.significance:
        mark = "*" if system.significance.p < 0.05 else " "
        versus = f"{system.significance.difference:+.1f}{mark} p={system.significance.p:.3f}"
    return (
        system.name,
        f"{system.parameters:,}",
        f"{system.updates:,}",
        f"{system.minutes:.1f}",
        f"{system.tokens_per_second:,.0f}",
        f"{bleu.value:.1f}",
        f"{bleu.low:.1f}-{bleu.high:.1f}",
        f"{system.chrf.value:.1f}",
        versus,
        f"{system.alignment.error_rate:.2f}" if system.alignment else "-",
    )


# --- data ---


@dataclass(frozen=True)
class Material:
    """What a comparison is made of: text to train on, to validate on, and to be tried on."""

    data: Data
    validation: Data | None
    test: TestSet
    corpus: str
    """For people: its name and size."""
    pairs: int


def embedded_material(folder: Path) -> Material:
    """The embedded English-French grammar as text files, with its gold alignments and its sentences beyond the trained lengths."""
    parts = splits()
    texts = {"train": parts.train, "validation": parts.validation, "test": parts.test, "test-long": parts.test_long}
    for name, pairs in texts.items():
        write_pairs(folder, name, pairs, ("en", "fr"))
    return Material(
        Data(folder / "train.en", folder / "train.fr"),
        Data(folder / "validation.en", folder / "validation.fr"),
        grammar_test(parts.test, parts.test_long, parts.validation),
        f"the embedded English-French grammar, {len(parts.train):,} pairs",
        len(parts.train),
    )


def grammar_test(test: list[GrammarPair], longer: list[GrammarPair], validation: list[GrammarPair]) -> TestSet:
    """The grammar's test sentences with everything known about them."""
    return TestSet(
        "embedded test",
        tuple(pair.source for pair in test),
        tuple(pair.target for pair in test),
        tuple(pair.source for pair in longer),
        tuple(pair.target for pair in longer),
        tuple(map(gold_pair, test)),
        tuple(map(gold_pair, validation[:TUNING_GOLD])),
    )


def gold_pair(pair: GrammarPair) -> GoldPair:
    """A pair of the grammar as the alignment tools take it."""
    return GoldPair(pair.source, pair.target, pair.source_words, pair.target_words, frozenset(pair.alignment))


def _given(data: Data, validation: Data | None, test: Data | None, out: Path, reporter: Reporter) -> Material:
    """The user's own text; a test set is held out by source sentence where none was given."""
    corpus, name = data.corpus(), data.name
    if test is None:
        count = corpus.count()
        size = min(HELD_OUT, count // 20)
        split = hold_out(corpus, test=size, seed=1)
        reporter.say(f"test: {size:,} pairs held out of the corpus by source sentence")
        data = Data(*write_pairs(out / "corpus", "train", split.train), codes=data.languages())
        test = Data(*write_pairs(out / "corpus", "test", split.test))
    pairs = data.corpus().count()
    return Material(data, validation, _test_of(test), f"{name}, {pairs:,} pairs", pairs)


# --- the verbs ---


def compare(
    out: Path | str = Path("compare"),
    *,
    data: Data | None = None,
    validation: Data | None = None,
    test: Data | None = None,
    models: Sequence[str] = MODELS,
    minutes_each: float | None = None,
    updates_each: int | None = None,
    settings: Sequence[str] = (),
    tokenize: str = "13a",
    beam: int | None = None,
    seed: int | None = None,
    force: bool = False,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Compared:
    """Train each model on the same data, tokenizer and budget, and put them side by side. Called again, it goes on where it stopped.

    `models` are recipes, by name or file. Without data, the embedded English-French grammar.
    """
    out = Path(out)
    files = {Path(model).stem: recipe_path(model) for model in models}
    if len(files) < len(models):
        raise UsageError(f"each model once, please: {', '.join(models)}")
    if data is None and (validation or test):
        raise UsageError("a validation or test set needs a corpus beside it: --source and --target, or --pairs")
    if minutes_each is None and updates_each is None:
        minutes_each = 5.0
    request = {
        "data": data.as_dict() if data else None,
        "validation": validation.as_dict() if validation else None,
        "test": test.as_dict() if test else None,
        "minutes_each": minutes_each,
        "updates_each": updates_each,
        "settings": list(settings),
        "seed": seed,
    }
    _same_request(out, request, force)
    material = _given(data, validation, test, out, reporter) if data else embedded_material(out / "corpus")
    shared = out / SHARED
    if force or not (shared / CLEANED).exists():
        kept = [s for s in settings if not s.startswith(("model.", "optimiser."))]
        prepare_corpus(
            material.data, shared, validation=material.validation, settings=kept, threads=threads, reporter=reporter
        )
    for number, (name, recipe) in enumerate(files.items(), 1):
        reporter.say(f"{name}: model {number} of {len(files)}")
        _train_one(
            out / name,
            partial(
                train,
                material.data,
                validation=material.validation,
                recipe=recipe,
                minutes=minutes_each,
                updates=updates_each,
                settings=settings,
                seed=seed,
                prepared=shared,
                force=True,
            ),
            force=force,
            where={"device": device, "threads": threads, "reporter": reporter},
        )
    used = use_threads(threads)
    budget = f"{minutes_each:g} minutes" if minutes_each else f"{updates_each:,} updates of the same batches"
    return compare_runs(
        out,
        {name: out / name for name in files},
        material.test,
        title="From recurrence to attention",
        corpus=material.corpus,
        budget=f"{budget} for each, {used} thread{'s' if used != 1 else ''}",
        tokenize=tokenize,
        beam=beam,
        device=device,
        reporter=reporter,
    )


def _same_request(out: Path, request: dict[str, Any], force: bool) -> None:
    """A comparison that is gone on with must be the same one: other data or minutes would not be side by side."""
    file = out / REQUEST
    if file.exists() and not force:
        before = json.loads(file.read_bytes())
        changed = [name for name in request if before.get(name) != request[name]]
        if changed:
            raise UsageError(
                f"{out} was begun with other {', '.join(changed).replace('_', ' ')} "
                f"({'; '.join(f'{name} {before.get(name)}' for name in changed)}); choose another --out, or --force to begin anew"
            )
    out.mkdir(parents=True, exist_ok=True)
    replace_file(file, json.dumps(request, indent=1).encode() + b"\n")


def _train_one(path: Path, begin: Callable[..., Any], *, force: bool, where: dict[str, Any]) -> None:
    """Train, go on with, or leave alone: a run's card is the last thing written to it."""
    if not force and (path / "README.md").exists():
        where["reporter"].say(f"{path} is trained already")
    elif not force and (path / "prepared.json").exists():
        resume(path, **where)
    else:
        begin(path, **where, began=time.monotonic())


def report(
    runs: Sequence[Path | str],
    out: Path | str,
    *,
    test: Data | None = None,
    tokenize: str = "13a",
    beam: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Compared:
    """The comparison page of runs that exist. Without a test set, their own validation sentences, if they share them."""
    use_threads(threads)
    opened = [Run.open(run) for run in runs]
    names = [run.path.resolve().name for run in opened]
    if len(set(names)) < len(names):
        names = [str(run.path) for run in opened]
    if len(set(names)) < len(names):
        raise UsageError(f"each run once, please: {', '.join(names)}")
    tested = _test_of(test) if test else _shared_validation(opened)
    budgets = sorted({run.config.train.minutes for run in opened})
    budget = " and ".join(f"{m:g} minutes" if m else "until validation stopped improving" for m in budgets)
    requests = [json.loads((run.path / REQUEST).read_bytes())["data"] for run in opened]
    corpora = sorted({Path(r.get("source") or r["pairs"]).name if r else "unknown (imported)" for r in requests})
    return compare_runs(
        Path(out),
        dict(zip(names, (run.path for run in opened), strict=True)),
        tested,
        title="Side by side",
        corpus=", ".join(corpora),
        budget=budget,
        tokenize=tokenize,
        beam=beam,
        device=device,
        reporter=reporter,
    )


def _test_of(test: Data) -> TestSet:
    pairs = list(test.corpus())
    if not pairs:
        raise CorpusError("the test set is empty: nothing to compare on")
    return TestSet(test.name, tuple(pair.source for pair in pairs), tuple(pair.target for pair in pairs))


def _shared_validation(runs: Sequence[Run]) -> TestSet:
    """The sentences all of the runs were validated on: none of them was trained on these."""
    texts = {
        tuple(
            (pair.source, pair.target)
            for pair in Corpus.of_files(folder / "validation.source", folder / "validation.target")
        )
        for folder in (run.path / "data" for run in runs)
    }
    if len(texts) > 1:
        raise UsageError("these runs were validated on different sentences; give a test set: --source F --reference F")
    sources, references = zip(*texts.pop(), strict=True)
    return TestSet("validation sentences", sources, references)


def compare_runs(
    out: Path,
    runs: dict[str, Path],
    test: TestSet,
    *,
    title: str,
    corpus: str,
    budget: str,
    tokenize: str = "13a",
    beam: int | None = None,
    device: str = "auto",
    reporter: Reporter = SILENT,
) -> Compared:
    """Try runs out on one test set, and write page and numbers to `out`."""
    how: dict[str, Any] = {
        "device": device,
        "beam": beam,
        "engine": "torch",
    }  # the same search for all: speeds are compared too
    entrants = [Entrant(name, Run.open(path), partial(load, path, **how)) for name, path in runs.items()]
    comparison = compare_systems(
        entrants,
        test,
        title=title,
        corpus=corpus,
        budget=budget,
        tokenize=tokenize,
        cache=out / ANSWERS,
        reporter=reporter,
    )
    out.mkdir(parents=True, exist_ok=True)
    numbers, page = out / NUMBERS, out / PAGE
    replace_file(numbers, json.dumps(comparison.as_dict(), ensure_ascii=False, indent=1).encode() + b"\n")
    replace_file(page, comparison_page(comparison).encode())
    return Compared(comparison, page, numbers)
