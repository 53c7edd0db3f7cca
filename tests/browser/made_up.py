"""A comparison nobody measured: plausible curves, hostile text, and every value that may be missing missing somewhere."""

from __future__ import annotations

import math
import random

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
from kente.runs import Score

HOSTILE = (
    "</script><script>window.broken = 1</script>",
    '<img src=x onerror="window.broken = 2">',
    "&lt;b&gt; \"quoted\" 'single' -->",
    "\u202eright to left\u202c שלום עולם",
    "e\u0301\u0301\u0301 \u0301alone \x00\x1b[31m",
    "x" * 300,
    "漢字かな交じり文",
)
REASON = "Its decoder sees the source through one vector: there are no weights to show."
LENGTHS = ((1, 5), (6, 10), (11, 15), (16, 20), (21, 25), (26, 30), (31, 40), (41, 50), (51, 75), (76, 100))
COUNTS = (1204, 2311, 1120, 1088, 702, 251, 120, 88, 9, 0)
BUCKETS = tuple(Bucket(low, high, count) for (low, high), count in zip(LENGTHS, COUNTS, strict=True))


def comparison(systems: int = 6, samples: int = 6, length: int = 8, *, hostile: bool = False) -> Comparison:
    """The first system has no attention, the last is the best; hostile text stands wherever people's text may."""
    source = random.Random(1)
    trained = [_system(source, place, systems, hostile) for place in range(systems)]
    return Comparison(
        title="English to French" + (HOSTILE[0] if hostile else ""),
        created="2025-03-02 14:11 UTC",
        corpus="made up, 24,000 pairs" + (HOSTILE[1] if hostile else ""),
        test="made up, 1,000 lines",
        budget="5 minutes each on 2 threads",
        systems=tuple(trained),
        buckets=BUCKETS,
        trained_length=20,
        samples=tuple(_sample(source, place, samples, length, trained, hostile) for place in range(samples)),
        settings={
            "model.width": {s.name: 64 + place for place, s in enumerate(trained)},
            "model.heads": {trained[-1].name: 4},
        },
        environment={"torch": "2.13.0", "threads": 2, "cpu": HOSTILE[5] if hostile else "a made-up one"},
        findings=(
            f"{trained[-1].name} is best.",
            HOSTILE[2] if hostile else "Attention helps where sentences are long.",
        ),
        decoding="beam 5",
    )


def _system(source: random.Random, place: int, systems: int, hostile: bool) -> System:
    best, attends = place == systems - 1, place > 0
    bleu = 10.0 + 2 * place
    name = f"system-{place}" + (HOSTILE[place % len(HOSTILE)] if hostile else "")
    curve = [
        Point(
            100 * step,
            0.2 * step,
            math.nan if step == 3 else 2 + 5 / step,
            None if step == 5 else bleu - 9 / step,
            None,
        )
        for step in range(1, 12)
    ]
    return System(
        name=name,
        description="a network with so many layers and heads",
        run=f"runs/{place}",
        parameters=2_100_000 + place,
        updates=2000 - place,
        minutes=4.9 + place / 100,
        tokens_per_second=31_200.0 / (place + 1),
        sentences_per_second=210.0 / (place + 1),
        peak_memory=612.0 + place,
        bleu=Score("BLEU", bleu, "nrefs:1|case:mixed|tok:13a", bleu - 0.9, bleu + 0.9),
        chrf=Score("chrF++", bleu + 20, "nrefs:1|case:mixed|nc:6", bleu + 19.5, bleu + 20.5),
        significance=None
        if best
        else Significance(f"system-{systems - 1}", 2.0 * (place - systems + 1), 0.0005 if place % 2 else 0.2),
        by_length=tuple(
            None if bucket.sentences == 0 else bleu - i + source.random() for i, bucket in enumerate(BUCKETS)
        ),
        curve=tuple(curve),
        alignment=Alignment(0.3 + place / 50, 0.7, 0.6, 1, 3) if attends else None,
        why_no_attention="" if attends else REASON,
    )


def _sample(
    source: random.Random, place: int, samples: int, length: int, systems: list[System], hostile: bool
) -> Sample:
    text = HOSTILE[place % len(HOSTILE)] if hostile else "le vieux capitaine écrivit une lettre"
    pieces = tuple(HOSTILE if hostile else (f"▁piece{n}" for n in range(length)))[:length]
    answers = []
    for system in systems:
        attention = (
            None if system.why_no_attention else Attention(pieces, (*pieces, "</s>"), _weights(source, len(pieces)), 1)
        )
        answers.append(Answer(system.name, text, 30 + 10 * source.random(), attention))
    return Sample(("best", "worst", "random")[3 * place // samples], text, text, tuple(answers))


def _weights(source: random.Random, pieces: int) -> tuple[tuple[float, ...], ...]:
    rows = [[source.random() ** 3 + 1e-3 for _ in range(pieces)] for _ in range(pieces + 1)]
    return tuple(tuple(weight / sum(row) for weight in row) for row in rows)
