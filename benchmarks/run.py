"""Measure Kente and its peers, interleaved, in one run.

    python -m benchmarks.run                                all parts, writes docs/benchmarks.md
    python -m benchmarks.run --quick                        under five minutes, with the peers that are installed; prints the tables
    python -m benchmarks.run --only training,decoding --peers kente,plain,ctranslate2 --rounds 3
    python -m benchmarks.run --report                       writes the page anew from the results there are

A finished sample is kept in the results file and not measured again, unless --fresh is given or the code it measured has changed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import corpus as corpora
from benchmarks import decoding, growth, quality, report, training
from benchmarks.bench import Bench
from benchmarks.environments import PEERS, Environments, PeerMissing
from benchmarks.processes import ROOT
from benchmarks.results import Results, now
from benchmarks.shapes import BATCH_TOKENS, VOCABULARY
from kente.errors import KenteError, UsageError

PARTS = ("training", "decoding", "quality", "growth")
QUICK_PARTS = ("training", "decoding", "growth")
"""Quality in less than a minute says nothing; --only quality asks for it all the same."""
DATA = Path(os.environ.get("KENTE_DATA", ROOT.parent / "shared" / "data"))


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="few, small jobs and one round: a look, not a result")
    add("--only", default="", help=f"parts to measure, with commas: {', '.join(PARTS)}")
    add("--peers", default="", help=f"peers to measure, with commas: {', '.join(PEERS)}")
    add("--rounds", type=int, help="how often each variant gets its turn (5; 1 with --quick)")
    add("--batch-tokens", type=int, default=BATCH_TOKENS, help=f"target tokens in a batch ({BATCH_TOKENS})")
    add("--threads", type=int, default=2, help="threads of every peer (2)")
    add("--minutes", default="", help="marks of quality against minutes (2,5,10)")
    add("--model-minutes", type=float, help="training of the model that all engines decode with (10)")
    add("--fresh", action="store_true", help="forget the samples there are of the parts measured")
    add("--report", action="store_true", help="measure nothing, write the page anew")
    add("--text", type=Path, help="folder of train, val and test_2016_flickr (KENTE_DATA/multi30k/tok)")
    add("--languages", default="en,de", help="endings of source and target files (en,de)")
    add("--vocabulary", type=int, default=VOCABULARY, help=f"pieces of the joint vocabulary ({VOCABULARY})")
    add("--folder", type=Path, default=ROOT / ".bench", help="environments, corpora and models (.bench)")
    add("--results", type=Path, help="samples as JSON (benchmarks/results.json; .bench/quick.json with --quick)")
    add("--page", type=Path, help="the page to write (docs/benchmarks.md; none with --quick)")
    add("--lock", type=Path, help="a file to hold while measuring, where several measure on one machine")
    add(
        "--calm",
        type=float,
        default=1.0,
        help="measure again when other programs used more than this share of the cores",
    )
    return parser.parse_args(given)


def chosen(text: str, known: tuple[str, ...] | list[str], what: str) -> list[str]:
    """The names in a list with commas, or all; one that is not known is an error that names those that are."""
    names = [name.strip() for name in text.split(",") if name.strip()] or list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"no {what} called {name}; there are {', '.join(known)}")
    return names


def facts(options: argparse.Namespace, rounds: int) -> dict[str, Any]:
    """What a result depends on besides the code: no names of people, machines or folders."""
    import torch

    import kente
    from kente.runs import environment

    about = environment()
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "date": now()[:10],
        "processor": about["processor"],
        "cores": about["cores"],
        "memory_gb": round(pages * size / 1e9),
        "platform": about["platform"],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kente": kente.__version__,
        "commit": commit.stdout.strip() or "unknown",
        "threads": options.threads,
        "batch_tokens": options.batch_tokens,
        "rounds": rounds,
    }


def command_line(given: list[str]) -> str:
    """The command as another could type it: no folders of this machine."""
    hidden = {"--calm", "--lock", "--text", "--folder", "--results", "--page"}
    shown, skip = [], False
    for word in given:
        if skip:
            skip = False
        elif word in hidden:
            skip = True
        elif word.partition("=")[0] not in hidden:
            shown.append(word)
    return " ".join(["python -m benchmarks.run", *shown])


def run(options: argparse.Namespace, given: list[str]) -> Results:
    parts = chosen(options.only or ",".join(QUICK_PARTS if options.quick else PARTS), PARTS, "part")
    peers = frozenset(chosen(options.peers, list(PEERS), "peer"))
    rounds = options.rounds or (1 if options.quick else 5)
    results = Results(
        options.results or (options.folder / "quick.json" if options.quick else ROOT / "benchmarks" / "results.json")
    )
    environments = Environments(options.folder / "environments", install=not options.quick)
    bench = Bench(
        options.folder,
        results,
        environments,
        rounds=rounds,
        threads=options.threads,
        batch_tokens=options.batch_tokens,
        quick=options.quick,
        peers=peers,
        lock=options.lock,
        calm=options.calm,
    )
    languages = tuple(options.languages.split(","))
    assert len(languages) == 2
    text = options.text or corpora.multi30k(DATA)
    folder = options.folder / "corpus" / f"{options.vocabulary}"
    bench.corpus = corpora.prepare(text, folder, options.vocabulary, languages)
    if not options.report:
        if options.fresh:
            for sample in list(results.samples):
                if sample["table"].split()[0] in _first_words(parts):
                    results.drop(sample["table"])
        about, before = facts(options, rounds), results.about.get("parts", {})
        when = {"command": command_line(given), "commit": about.pop("commit"), "date": about.pop("date")}
        results.about = about | {"parts": before | dict.fromkeys(parts, when), "corpus": bench.corpus.facts}
        minutes = tuple(float(mark) for mark in options.minutes.split(",") if mark) or None
        measures: dict[str, Callable[[], None]] = {
            "training": lambda: training.measure(bench),
            "decoding": lambda: decoding.measure(bench, options.model_minutes),
            "quality": lambda: quality.measure(bench, text, languages, minutes),
            "growth": lambda: growth.measure(bench, DATA),
        }
        began = time.monotonic()
        for part in parts:
            try:
                measures[part]()
            except PeerMissing as error:
                bench.say(f"{part}: {error}")
            bench.say(f"{part}: done after {(time.monotonic() - began) / 60:.1f} min in all")
        results.save()
    page = options.page or (None if options.quick else ROOT / "docs" / "benchmarks.md")
    if page is not None:
        report.write(page, results, bench.corpus)
    print(report.plain_text(results, bench.corpus))
    return results


def _first_words(parts: list[str]) -> set[str]:
    """How the tables of these parts begin."""
    words = {"decoding": {"decoding", "latency", "cold", "ctranslate2"}}
    return set().union(*(words.get(part, {part}) for part in parts))


def main(given: list[str] | None = None) -> int:
    given = sys.argv[1:] if given is None else given
    try:
        run(arguments(given), given)
    except KenteError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
