"""demo: the whole road on the embedded corpus, with no file and no download. Text files, training, translations, BLEU, rivals, what next."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

from kente.api.comparison import compare_runs, embedded_material
from kente.api.loading import load
from kente.api.training import prepare_corpus, train
from kente.api.using import evaluate
from kente.reporting import SILENT, Reporter

MINUTES = 5.0
"""Training in all: enough for a BLEU above 90 on two cores, and for the rivals to show what they lack."""
SHARES = {"transformer": 0.66, "gru-attention": 0.17, "gru": 0.17}
"""Of the minutes, for each model."""
TOLD = {"gru": "one fixed vector", "gru-attention": "attention", "transformer": "nothing but attention"}
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
    """Write the embedded English-French corpus as text files, train on them, translate and score; then the same with two older models."""
    began = time.monotonic() if began is None else began
    out = Path(out)
    corpus, beside = out.with_name(out.name + "-corpus"), out.with_name(out.name + "-compared")
    where: dict[str, Any] = {"device": device, "threads": threads, "reporter": reporter}
    material = embedded_material(corpus)
    reporter.say(f"the embedded English-French corpus is in {corpus}: {material.pairs:,} pairs to train on")
    shared = prepare_corpus(
        material.data, beside / "prepared", validation=material.validation, threads=threads, reporter=reporter
    )
    runs, steps = {}, {}
    for name, share in SHARES.items():
        runs[name] = out if name == "transformer" else beside / name
        reporter.say(f"training {name} ({TOLD[name]}) for {60 * minutes * share:.0f} seconds ...")
        steps[name] = train(
            material.data,
            runs[name],
            validation=material.validation,
            recipe=name,
            minutes=minutes * share,
            settings=SETTINGS,
            prepared=shared,
            force=True,
            began=time.monotonic(),
            **where,
        ).step
    scores = evaluate(out, corpus / "test.en", corpus / "test.fr", **where)
    compared = compare_runs(
        beside,
        {name: runs[name] for name in TOLD},
        material.test,
        title="One vector, attention, nothing but attention",
        corpus=material.corpus,
        budget=", ".join(f"{name} {60 * minutes * SHARES[name]:.0f} seconds" for name in TOLD),
        beam=1,
        device=device,
        reporter=reporter,
    )
    shown = ["I am good", *material.test.sources[:SHOWN]]
    translations = load(out, device=device, threads=threads).translate(shown)
    return {
        "run": str(out),
        "corpus": str(corpus),
        "page": str(compared.page),
        "step": steps["transformer"],
        "samples": [{"source": t.source, "translation": t.text} for t in translations],
        "test": scores.as_dict(),
        "lines": [
            *scores.lines()[:1],
            "",
            *compared.by_length_lines(),
            "",
            f"all three side by side, with what they look at: {compared.page}  (open it in a browser)",
        ],
        "next": next_commands(out, corpus, compared.page),
        "seconds": round(time.monotonic() - began, 1),
    }


def next_commands(out: Path, corpus: Path, page: Path) -> list[str]:
    """What a newcomer may want to type now."""
    run, text = shlex.quote(str(out)), shlex.quote(str(corpus))
    return [
        f'kente translate {run} "The old cat sleeps in the garden."',
        f"kente evaluate {run} --source {text}/test.en --reference {text}/test.fr --json",
        f"kente check --source {text}/train.en --target {text}/train.fr",
        f"kente lecture mask --run {run}",
        "kente train --source YOUR.en --target YOUR.fr --minutes 10 --out runs/mine",
        "kente compare --source YOUR.en --target YOUR.fr --minutes-each 10 --out compare",
    ]
