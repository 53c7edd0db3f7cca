"""Peer: torch as it is, with an ordinary loop around it. Runs in Kente's own environment, so that torch is the same."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers import adapter
from benchmarks.peers.adapter import Job, Result
from benchmarks.peers.ids import counts, padded, read_pairs, tensors, token_batches
from benchmarks.peers.plain_models import PlainTransformer, beam_search, build, greedy, put_weights
from benchmarks.shapes import EOS, PAD, SMOOTHING, Shape

PEAK_RATE, WARMUP = 2e-3, 400
"""For quality against minutes: AdamW, a short warm-up, then inverse square root; the rates of pymarian, eole and JoeyNMT too."""


def loss_of(model: nn.Module, source: Tensor, before: Tensor, output: Tensor) -> Tensor:
    logits = model(source, before)
    return F.cross_entropy(logits.flatten(0, 1), output.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING)


def updates(model: nn.Module, job: Job) -> Iterator[tuple[int, int, int]]:
    """Train for ever; after each update (source tokens, target tokens, places). `bfloat16` is torch's own way to it, autocast."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    warmed = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / WARMUP, math.sqrt(WARMUP / (step + 1)))
    )
    model.train()
    for batch in token_batches(read_pairs(job["corpus"]), job["batch_tokens"], seed=job["seed"]):
        with torch.autocast("cpu", torch.bfloat16, enabled=job.get("bfloat16", False)):
            loss = loss_of(model, *tensors(batch))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        warmed.step()
        yield counts(batch)


def new_model(job: Job) -> nn.Module:
    torch.set_num_threads(job["threads"])
    torch.manual_seed(job["seed"])
    return build(Shape(**job["shape"]), job["vocabulary"], job["dropout"], job.get("attention_dropout", True))


def train(job: Job) -> Result:
    model = new_model(job)
    meter = adapter.Meter(job["warmup"], job["updates"])
    for seen in updates(model, job):
        if meter.updated(*seen):
            break
    return meter.result(version=torch.__version__, parameters=sum(p.numel() for p in model.parameters()))


def quality(job: Job) -> Result:
    model = new_model(job)
    assert isinstance(model, PlainTransformer)
    pieces = sentencepiece.SentencePieceProcessor(model_file=job["pieces"])
    lines = adapter.read_lines(job["source"])
    marks = adapter.MinutesMarks(job["minutes"])

    def translate() -> list[str]:
        model.eval()
        texts = translate_with(model, pieces, lines, beam=1)
        model.train()
        return texts

    for number, _ in enumerate(updates(model, job), 1):
        if marks.look(number, translate):
            break
    return {"points": marks.points, "version": torch.__version__}


# --- translating with Kente's weights ---


def trained_model(job: Job) -> tuple[PlainTransformer, sentencepiece.SentencePieceProcessor]:
    torch.set_num_threads(job["threads"])
    arrays = np.load(Path(job["weights"]))
    model = PlainTransformer(Shape(**job["shape"]), job["vocabulary"], dropout=0.0).eval()
    put_weights(model, arrays)
    return model, sentencepiece.SentencePieceProcessor(model_file=job["pieces"])


def translate_with(
    model: PlainTransformer, pieces: sentencepiece.SentencePieceProcessor, lines: list[str], beam: int
) -> list[str]:
    def search(sources: list[list[int]]) -> list[list[int]]:
        source = padded(sources)
        return greedy(model, source) if beam == 1 else beam_search(model, source, beam)

    sources = [[*ids, EOS] for ids in pieces.encode(lines)]
    return list(pieces.decode(adapter.in_length_order(sources, 128 if beam == 1 else 32, search)))


def translate(job: Job) -> Result:
    model, pieces = trained_model(job)
    result = adapter.timed_translation(job, lambda lines: translate_with(model, pieces, lines, job["beam"]))
    return result | {"version": torch.__version__}


def latency(job: Job) -> Result:
    model, pieces = trained_model(job)
    result = adapter.timed_latency(job, lambda lines: translate_with(model, pieces, lines, job["beam"]))
    return result | {"version": torch.__version__}


def gemm(job: Job) -> Result:
    """The most this machine's float32 products reach, by either library that comes with torch.

    Each shape (rows, inner, columns) for a second or so, the best of its repetitions.
    """
    torch.set_num_threads(job["threads"])
    gigaflops = {}
    for rows, inner, columns in job["shapes"]:
        a, b = torch.randn(rows, inner), torch.randn(inner, columns)
        out = torch.empty(rows, columns)
        libraries: dict[str, Callable[[], object]] = {
            "torch.mm": partial(torch.mm, a, b, out=out),
            "oneDNN": partial(torch.ops.mkldnn._linear_pointwise, a, b.T, None, "none", [], ""),
        }
        for name, multiply in libraries.items():
            multiply()
            best, ended = math.inf, time.perf_counter() + job["seconds"] / 2
            while time.perf_counter() < ended:
                began = time.perf_counter()
                multiply()
                best = min(best, time.perf_counter() - began)
            gigaflops[f"{rows}x{inner}x{columns} {name}"] = 2e-9 * rows * inner * columns / best
    return {"gigaflops": gigaflops, "version": torch.__version__}


def first_answer(job: Job) -> None:
    """From nothing to one printed answer."""
    model, pieces = trained_model(job)
    print(translate_with(model, pieces, [job["text"]], job["beam"])[0], flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["start"]:
        first_answer(json.loads(sys.argv[2]))
    else:
        adapter.serve(
            train=train,
            quality=quality,
            translate=translate,
            latency=latency,
            gemm=gemm,
        )
