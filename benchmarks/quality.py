"""Part: validation BLEU after the same minutes of training, greedy. Kente gets each number of minutes as a run of its own, as `--minutes` is meant;
its clock holds cleaning, vocabulary and validations. The others train on the prepared ids in one run each, and their clock stands still while
they are validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.bench import Bench, Table, Variant
from benchmarks.decoding import SHAPE, bleu
from benchmarks.peers.adapter import read_lines
from benchmarks.shapes import DROPOUT

TABLE = "quality"
MINUTES, QUICK_MINUTES = (2.0, 5.0, 10.0), (0.3,)
BATCH_TOKENS = 1024
"""Small batches: in a few minutes the number of updates counts."""


def measure(bench: Bench, text: Path, languages: tuple[str, str], minutes: tuple[float, ...] | None = None) -> None:
    minutes = minutes or (QUICK_MINUTES if bench.quick else MINUTES)
    corpus = bench.text
    common: dict[str, Any] = bench.job(
        "quality",
        shape=SHAPE.as_dict(),
        vocabulary=corpus.vocabulary,
        dropout=DROPOUT,
        batch_tokens=BATCH_TOKENS,
        corpus=str(corpus.folder),
        pieces=str(corpus.pieces),
        source=str(corpus.text("validation.source")),
        reference=str(corpus.text("validation.target")),
    )
    ours = common | {
        "train_source": str(text / f"train.{languages[0]}"),
        "train_target": str(text / f"train.{languages[1]}"),
        "test_source": str(corpus.text("test.source")),
    }
    rows = [
        *(Variant(f"Kente, {mark:g} min", "kente", ours | {"minutes": [mark]}) for mark in minutes),
        Variant("nn.Transformer", "plain", common | {"minutes": minutes}),
        Variant("JoeyNMT", "joeynmt", common | {"minutes": minutes}),
    ]
    references = read_lines(corpus.text("validation.target"))
    test = read_lines(corpus.text("test.target"))

    def finish(result: dict[str, Any]) -> dict[str, Any]:
        points = []
        for point in result["points"]:
            scored = {"minutes": point["minutes"], "updates": point["updates"]}
            scored["bleu"] = round(bleu(point["texts"], references), 2)
            if "test_texts" in point:
                scored["test_bleu"] = round(bleu(point["test_texts"], test), 2)
            points.append(scored)
        return result | {"points": points}

    longest = 60 * max(minutes) + 60
    bench.timeout = max(bench.timeout, 3 * longest)
    bench.measure(Table(TABLE, tuple(rows), 1, longest, finish))
