"""Part: training throughput of the same architecture, in real tokens a second, beside the GEMM peak measured in the same rounds."""

from __future__ import annotations

from typing import Any

from benchmarks.bench import Bench, Table, Variant
from benchmarks.corpus import settings
from benchmarks.shapes import DROPOUT, SHAPES, Shape
from kente.nn.linear import rounds_fast

GEMM = "GEMM peak"
OWN_WAY = "Kente, Muon and averaged weights"
NO_ATTENTION_DROPOUT = "nn.Transformer, no attention dropout"
SAME_BATCHES = "transformers, bucketed as nn.Transformer"
ROUNDED, PLAIN_ROUNDED = "Kente, bfloat16", "nn.Transformer, bfloat16 (autocast)"
"""Where the processor has units for it: what `--minutes` may choose, and torch's own way to the same."""
NOT_IF_QUICK = (OWN_WAY, NO_ATTENTION_DROPOUT, SAME_BATCHES, ROUNDED, PLAIN_ROUNDED)
SAME_OPTIMISER = ("optimiser.kind=adamw", "train.average=none")
"""For Kente beside its peers: AdamW and no average of weights, as they have."""


def gemm_shapes(shape: Shape, vocabulary: int, tokens: int) -> list[tuple[int, int, int]]:
    """(rows, inner, columns): a large square, and the products a model of this shape is made of."""
    width, inner = shape.width, shape.feedforward or shape.embedding
    return [(2048, 2048, 2048), (tokens, width, inner), (tokens, width, 3 * width), (256, shape.embedding, vocabulary)]


def variants(bench: Bench, shape: Shape) -> tuple[Variant, ...]:
    """The rows of one shape's table."""
    corpus, quick = bench.text, bench.quick
    warmup, updates = (2, 4) if quick else (4, 8)
    common: dict[str, Any] = bench.job(
        "train",
        shape=shape.as_dict(),
        vocabulary=corpus.vocabulary,
        dropout=DROPOUT,
        batch_tokens=bench.batch_tokens,
        corpus=str(corpus.folder),
        warmup=warmup,
        updates=updates,
    )
    ours = common | {
        "prepared": str(corpus.prepared),
        "source": str(corpus.text("validation.source")),  # named for the record: the ids come from `prepared`
        "target": str(corpus.text("validation.target")),
        "text_settings": settings(corpus.facts["asked_vocabulary"]),
    }
    products = gemm_shapes(shape, corpus.vocabulary, bench.batch_tokens)
    gemm = bench.job("gemm", shapes=products, seconds=0.3 if quick else 1.0)
    rows = [
        Variant(GEMM, "plain", gemm),
        Variant("Kente", "kente", ours | {"settings": SAME_OPTIMISER}),
        Variant(OWN_WAY, "kente", ours),
    ]
    if rounds_fast():
        rows.append(Variant(ROUNDED, "kente", ours | {"settings": (*SAME_OPTIMISER, "train.precision=bfloat16")}))
    if shape.kind == "recurrent":
        rows += [
            Variant("torch nn.GRU and nn.GRUCell", "plain", common),
            Variant("JoeyNMT", "joeynmt", common),
        ]
        return tuple(rows)
    rows += [
        Variant("nn.Transformer", "plain", common),
        Variant(NO_ATTENTION_DROPOUT, "plain", common | {"attention_dropout": False}),
        *([Variant(PLAIN_ROUNDED, "plain", common | {"bfloat16": True})] if rounds_fast() else ()),
        Variant("transformers, Trainer", "huggingface", common | {"loop": "trainer"}),
        Variant(SAME_BATCHES, "huggingface", common | {"loop": "own"}),
        Variant("pymarian", "marian", common),
        Variant("eole", "eole", common),
        Variant("JoeyNMT", "joeynmt", common),
    ]
    return tuple(row for row in rows if not quick or row.name not in NOT_IF_QUICK)


def measure(bench: Bench) -> None:
    names = ("tiny",) if bench.quick else ("tiny", "small", "gru")
    for name in names:
        bench.measure(Table(table_name(name), variants(bench, SHAPES[name]), bench.rounds, finish=finish))


def table_name(shape: str) -> str:
    return f"training {shape}"


def finish(result: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a result, with the one number that the table shows."""
    if "gigaflops" in result:
        return result
    return result | {"tokens_per_second": result["tokens"] / result["seconds"]}
