"""Longer spans: what each way of looking at less costs and saves, from 256 to 16,384 words, and what it can still learn.

    python -m benchmarks.spans                  everything (about an hour and a half on two cores); goes on where it was interrupted
    python -m benchmarks.spans --quick          a few minutes: short lengths, few updates; a look, not a result
    python -m benchmarks.spans --only write     train | write | tasks: what a training step costs, what writing costs, what is learnt
    python -m benchmarks.spans --only tasks --seeds 1,2,3
    python -m benchmarks.spans --report         measure nothing; write docs/spans.md and its pictures from what was measured

Every sample is one job in a process of its own (spans_job.py), in turns, and stays in benchmarks/spans.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.plot import Line, lines
from benchmarks.processes import ROOT, run_job
from benchmarks.report import between, markdown
from benchmarks.results import Figure, Results, Sample, code_hash, fingerprint, now
from benchmarks.run import DATA, facts

SHAPE = {"layers": 4, "width": 128, "feedforward": 512, "heads": 4, "dropout": 0.0}
SMALL = {"layers": 4, "width": 64, "feedforward": 256, "heads": 4, "dropout": 0.0}
LENGTHS, QUICK_LENGTHS = tuple(256 * 2**n for n in range(7)), (256, 1024)
SPANS: dict[str, dict[str, Any]] = {
    "full": {},
    "window": {"span": "window"},
    "memory": {"span": "memory", "positions": "xl"},
    "linear": {"span": "linear"},
}
OTHERS: dict[str, dict[str, Any]] = {
    "full, weights kept": {"attention_dropout": 0.1},
    "full, recomputed": {"activations": "recompute"},
    "full, reversible": {"activations": "reversible"},
    "window, reversible": {"span": "window", "activations": "reversible"},
}
LONGEST = {"full, weights kept": 2048}
"""Beyond, the weights alone would be gigabytes."""
PLACED = {"full": {"positions": "rotary"}, "window": {"positions": "rotary"}}
"""In the tasks everyone who can feel distances does, as memory must; linear attention cannot, and adds sinusoids to its words."""
REACH = 64
"""Words in a window or a segment of the tasks."""
LEARNT = {
    ("copy", 32): (16, 700),
    ("copy", 128): (12, 800),
    ("copy", 512): (4, 800),
    ("needle", 128): (16, 1500),
    ("needle", 512): (6, 1500),
    ("characters", 1024): (4, 1000),
}
"""Tasks and their sizes: texts in an update, and updates."""
PAGE, IMAGES = ROOT / "docs" / "spans.md", ROOT / "docs" / "images"


@dataclass(frozen=True, eq=False)
class Task:
    """A sample to be taken: where it stands in the tables, and the job."""

    table: str
    variant: str
    job: dict[str, Any]


def training(quick: bool) -> Iterator[Task]:
    for length in QUICK_LENGTHS if quick else LENGTHS:
        for name, settings in (SPANS | OTHERS).items():
            if length <= LONGEST.get(name, length):
                job = {"model": SHAPE | settings, "length": length}
                yield Task(f"train {length}", name, job | {"do": "train", "repeat": 1 if quick else 3})


def writing(quick: bool) -> Iterator[Task]:
    for length in QUICK_LENGTHS if quick else LENGTHS:
        for name, settings in SPANS.items():
            job = {"model": SHAPE | settings, "length": length}
            yield Task(f"write {length}", name, job | {"do": "write", "words": 8 if quick else 48})


def tasks(quick: bool, seed: int) -> Iterator[Task]:
    text = str(DATA / "tinyshakespeare" / "input.txt")
    for (task, size), (rows, updates) in LEARNT.items():
        shape = SHAPE if task == "characters" else SMALL
        for name, settings in SPANS.items():
            reach = {} if name in ("full", "linear") else {"reach": REACH}
            model = shape | settings | PLACED.get(name, {}) | reach
            job = {"do": "learn", "task": task, "size": size, "model": model, "text": text}
            job |= {"rows": rows, "rate": 8e-3, "seed": seed, "updates": 4 if quick else updates}
            yield Task(f"{task} {size}", name, job | {"judged": 4 if quick else 40})


# --- measuring ---


def measure(
    results: Results, wanted: list[Task], turns: Iterable[int], threads: int, folder: Path, together: int = 1
) -> None:
    """What is not measured yet of these turns; so many jobs `together`, each with so many threads."""
    code = code_hash([*(ROOT / "src" / "kente" / "nn").rglob("*.py"), ROOT / "benchmarks" / "spans_job.py"])
    prints = {task: fingerprint(task.job, code) for task in wanted}

    def sample(task: Task) -> Sample:
        log = folder / "logs" / f"spans-{task.table}-{task.variant}.log".replace(" ", "-").replace(",", "")
        outcome = run_job(Path(sys.executable), "benchmarks.spans_job", task.job, threads, 7200.0, log)
        print(f"{task.table:16} {task.variant:20} {outcome.result or outcome.error}", file=sys.stderr, flush=True)
        return {"date": now(), "error": outcome.error} | (outcome.result or {})

    with ThreadPoolExecutor(together) as pool:
        for turn in turns:
            known = {task: results.find(task.table, task.variant, turn) for task in wanted}
            missing = [task for task in wanted if (known[task] or {}).get("code") != prints[task]]
            for task, found in zip(missing, pool.map(sample, missing), strict=True):
                about = {"table": task.table, "variant": task.variant, "round": turn, "code": prints[task]}
                results.add(about | found)


# --- the page ---


def figure_of(results: Results, table: str, variant: str, value: str) -> Figure | None:
    """Of all rounds, or all seeds."""
    return Figure.of(
        [sample[value] for sample in results.of(table, variant) if sample.get("error") is None and value in sample]
    )


def middle(results: Results, table: str, variant: str, value: str) -> float | None:
    """The median of the rounds."""
    figure = figure_of(results, table, variant, value)
    return figure.median if figure else None


def lengths_of(results: Results, kind: str) -> list[int]:
    return sorted({int(s["table"].split()[1]) for s in results.samples if s["table"].startswith(f"{kind} ")})


def variants_of(results: Results, kind: str) -> list[str]:
    known = {s["variant"] for s in results.samples if s["table"].startswith(f"{kind} ")}
    return [name for name in SPANS | OTHERS if name in known]


CHARTS = {
    "spans-train": ("train", "seconds", "A training step", "milliseconds for 1,000 words", 1e6, True),
    "spans-train-memory": ("train", "megabytes", "Memory of a training step", "megabytes for 1,000 words", 1e3, True),
    "spans-write": ("write", "seconds", "Writing one more word", "milliseconds", 1e3, False),
    "spans-write-memory": ("write", "kept_megabytes", "Kept from one word to the next", "megabytes", 1.0, False),
}


def charts(results: Results) -> dict[str, str]:
    """Cost for each word against length: flat is what grows with the length, a rising line is more than that."""
    made = {}
    for name, (kind, value, title, unit, factor, by_word) in CHARTS.items():
        series = []
        for variant in variants_of(results, kind):
            points = [
                (float(length), factor * found / (length if by_word else 1))
                for length in lengths_of(results, kind)
                if (found := middle(results, f"{kind} {length}", variant, value)) is not None
            ]
            series.append(Line(variant, points))
        if any(line.points for line in series):
            across = "words before it" if kind == "write" else "words in the text"
            made[name] = lines(title, across, unit, series, log=True, log_up=True)
    return made


def cost_table(results: Results, kind: str, value: str, factor: float, digits: int) -> str:
    lengths = lengths_of(results, kind)
    rows = []
    for variant in variants_of(results, kind):
        found = [middle(results, f"{kind} {length}", variant, value) for length in lengths]
        rows.append([variant, *("-" if one is None else f"{one * factor:,.{digits}f}" for one in found)])
    return markdown(["", *(f"{length:,}" for length in lengths)], rows)


def task_table(results: Results) -> str:
    columns = [
        *(("copy", size, "accuracy", f"copy, {size} away") for size in lengths_of(results, "copy")),
        *(("needle", size, "accuracy", f"needle, {size:,} words") for size in lengths_of(results, "needle")),
        *(("characters", size, "bits", "bits a character") for size in lengths_of(results, "characters")),
        *(("characters", size, "late_bits", "... of the last quarter") for size in lengths_of(results, "characters")),
    ]
    rows = [
        [variant, *(learnt(results, f"{task} {size}", variant, value) for task, size, value, _ in columns)]
        for variant in SPANS
    ]
    return markdown(["", *(title for *_, title in columns)], rows)


def learnt(results: Results, table: str, variant: str, value: str) -> str:
    """The median of the seeds, and how far they go where they do not agree."""
    figure = figure_of(results, table, variant, value)
    if figure is None:
        return "-"
    if value != "accuracy":
        return f"{figure.median:.2f}"
    low, median, high = (f"{100 * share:.0f}" for share in (figure.low, figure.median, figure.high))
    return f"{median} %" if low == high else f"{median} % ({low} to {high})"


def of_rounds(count: int) -> str:
    return "one round" if count == 1 else f"median of {count} rounds"


def seeds_of(results: Results) -> str:
    """How many seeds each task was learnt with."""
    counts = {
        task: max(
            (len(results.of(f"{task} {size}", variant)) for size in lengths_of(results, task) for variant in SPANS),
            default=0,
        )
        for task in dict.fromkeys(task for task, _ in LEARNT)
    }
    return ", ".join(f"{task} {count} seed{'s' * (count != 1)}" for task, count in counts.items() if count)


def sections(results: Results) -> dict[str, str]:
    if not results.samples:
        return {}
    about = results.about
    machine = (
        f"{about['processor']}, {about['cores']} cores, {about['threads']} threads, torch {about['torch']}, {about['date']}; "
        f"{of_rounds(about['rounds'])} for costs; tasks with one thread each, {seeds_of(results)}."
    )
    return {
        "machine": machine,
        "training": "Milliseconds of a training step over one text of so many words:\n\n"
        + cost_table(results, "train", "seconds", 1e3, 0)
        + "\n\nMegabytes it took:\n\n"
        + cost_table(results, "train", "megabytes", 1.0, 0),
        "writing": "Milliseconds for one more word after so many:\n\n"
        + cost_table(results, "write", "seconds", 1e3, 2)
        + "\n\nMegabytes kept from one word to the next:\n\n"
        + cost_table(results, "write", "kept_megabytes", 1.0, 2)
        + "\n\nMegabytes taken while the prompt is read, all of it at once, and gone on with:\n\n"
        + cost_table(results, "write", "megabytes", 1.0, 0),
        "tasks": task_table(results),
    }


def report(results: Results, page: Path, images: Path) -> None:
    images.mkdir(parents=True, exist_ok=True)
    for name, svg in charts(results).items():
        (images / f"{name}.svg").write_text(svg, encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    for name, content in sections(results).items():
        text = between(text, name, content)
    page.write_text(text, encoding="utf-8")


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="short lengths and few updates, kept apart in .bench/spans-quick.json")
    add("--only", choices=["train", "write", "tasks"], help="one part")
    add("--report", action="store_true", help="measure nothing, write the page anew")
    add("--rounds", type=int, default=3, help="samples of each cost (3; 1 with --quick)")
    add("--seeds", default="1", help="of the tasks, with commas (1)")
    add("--learn", default="", help="only the tasks whose names begin like this, such as needle")
    add("--threads", type=int, default=2, help="threads (2)")
    add("--folder", type=Path, default=ROOT / ".bench", help="logs, and what --quick measures (.bench)")
    add("--batch-tokens", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> None:
    options = arguments(sys.argv[1:] if given is None else given)
    results = Results(options.folder / "spans-quick.json" if options.quick else ROOT / "benchmarks" / "spans.json")
    rounds = 1 if options.quick else options.rounds
    if not options.report:
        if options.only != "tasks" or not results.about:
            results.about = facts(options, rounds)
        for part, wanted in (("train", training), ("write", writing)):
            if options.only in (None, part):
                measure(results, list(wanted(options.quick)), range(rounds), options.threads, options.folder)
        if options.only in (None, "tasks"):
            for seed in map(int, options.seeds.split(",")):
                asked = [task for task in tasks(options.quick, seed) if task.table.startswith(options.learn)]
                measure(results, asked, [seed - 1], 1, options.folder, together=options.threads)
    if not options.quick:
        report(results, PAGE, IMAGES)
    else:
        for name, content in sections(results).items():
            print(f"\n{name}\n\n{content}")


if __name__ == "__main__":
    main()
