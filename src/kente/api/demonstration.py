"""demo: the whole road on the embedded corpus, with no file and no download. Text files, training, translations, BLEU, what next."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

from kente.api.corpora import Data
from kente.api.training import train
from kente.api.using import evaluate, load
from kente.data.grammar import GrammarPair, splits
from kente.reporting import SILENT, Reporter

MINUTES = 3.5
"""Enough for a BLEU above 90 on two cores."""
SETTINGS = ("model.dropout=0.0",)
"""A grammar has no noise to guard against: what it says once holds always."""
SHOWN = 6


def demo(
    out: Path | str = Path("runs/demo"),
    *,
    minutes: float = MINUTES,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
    began: float | None = None,
) -> dict[str, Any]:
    """Write the embedded English-French corpus as text files, train on them, translate and score."""
    began = time.monotonic() if began is None else began
    out = Path(out)
    corpus = out.with_name(out.name + "-corpus")
    parts = splits()
    texts = {"train": parts.train, "validation": parts.validation, "test": parts.test, "test-long": parts.test_long}
    for name, pairs in texts.items():
        write_pairs(corpus, name, pairs)
    reporter.say(f"the embedded English-French corpus is in {corpus}: {len(parts.train):,} pairs to train on")
    reporter.say(f"training for {minutes:g} minutes ...")
    result = train(
        Data(corpus / "train.en", corpus / "train.fr"),
        out,
        validation=Data(corpus / "validation.en", corpus / "validation.fr"),
        minutes=minutes,
        settings=SETTINGS,
        device=device,
        threads=threads,
        reporter=reporter,
        force=True,
        began=time.monotonic(),
    )
    scores = {
        name: evaluate(
            out, corpus / f"{name}.en", corpus / f"{name}.fr", device=device, threads=threads, reporter=reporter
        )
        for name in ("test", "test-long")
    }
    translator = load(out, device=device, threads=threads)
    shown = parts.test[:SHOWN]
    translations = translator.translate(["I am good", *(pair.source for pair in shown)])
    return {
        "run": str(out),
        "corpus": str(corpus),
        "step": result.step,
        "samples": [{"source": t.source, "translation": t.text} for t in translations],
        "test": scores["test"].as_dict(),
        "test_long": scores["test-long"].as_dict(),
        "lines": [
            *("  ".join(line.split("\n")) for line in scores["test"].lines()[:1]),
            *(f"longer sentences than it was trained on: {line}" for line in scores["test-long"].lines()[:1]),
        ],
        "next": next_commands(out, corpus),
        "seconds": round(time.monotonic() - began, 1),
    }


def write_pairs(folder: Path, name: str, pairs: list[GrammarPair]) -> None:
    """Two text files, line by line."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.en").write_text("".join(pair.source + "\n" for pair in pairs), encoding="utf-8")
    (folder / f"{name}.fr").write_text("".join(pair.target + "\n" for pair in pairs), encoding="utf-8")


def next_commands(out: Path, corpus: Path) -> list[str]:
    """What a newcomer may want to type now."""
    run, text = shlex.quote(str(out)), shlex.quote(str(corpus))
    return [
        f'kente translate {run} "The old cat sleeps in the garden."',
        f"kente evaluate {run} --source {text}/test.en --reference {text}/test.fr --json",
        f"kente check --source {text}/train.en --target {text}/train.fr",
        "kente train --source YOUR.en --target YOUR.fr --minutes 10 --out runs/mine",
    ]
