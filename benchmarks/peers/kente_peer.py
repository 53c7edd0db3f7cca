"""Peer: Kente, through its public Python interface. Times are taken from outside, by a reporter that looks at the clock."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import kente
from benchmarks.peers import adapter
from benchmarks.peers.adapter import Enough, Job, Meter, Result
from benchmarks.shapes import Shape
from kente import api
from kente.data.batches import Batches
from kente.reporting import Reporter
from kente.runs import Run
from kente.train.prepare import Prepared


class Clock(Reporter):
    """Notes when each update ends, and ends the training once it has seen enough of them."""

    def __init__(self, enough: int):
        self.enough, self.ends = enough, list[float]()

    def progress(self, label: str, done: float, total: float | None = None, detail: str = "") -> None:
        if label == "training":
            self.ends.append(time.perf_counter())
            if len(self.ends) >= self.enough:
                raise Enough


def model_settings(shape: Shape) -> list[str]:
    if shape.kind == "recurrent":
        return [f"model.width={shape.width}", f"model.embedding={shape.embedding}"]
    return [
        *(f"model.{side}_layers={shape.layers}" for side in ("encoder", "decoder")),
        f"model.width={shape.width}",
        f"model.feedforward={shape.feedforward}",
        f"model.heads={shape.heads}",
        "model.norm_place=pre",
    ]


def train(job: Job) -> Result:
    """The command a person would give, with everything fixed that peers must share, and a line of metrics for each update."""
    shape = Shape(**job["shape"])
    settings = [
        *job["text_settings"],
        *model_settings(shape),
        f"model.dropout={job['dropout']}",
        f"batches.tokens={job['batch_tokens']}",
        "train.log_every=1",
        *job.get("settings", ()),
    ]
    clock = Clock(job["warmup"] + job["updates"])
    with TemporaryDirectory(dir=job["scratch"]) as folder:
        run = Path(folder) / "run"
        try:
            api.train(
                api.Data(source=Path(job["source"]), target=Path(job["target"])),
                run,
                recipe="gru-attention" if shape.kind == "recurrent" else None,
                updates=100 * clock.enough,
                seed=job["seed"],
                settings=settings,
                threads=job["threads"],
                reporter=clock,
                prepared=job["prepared"],
            )
        except Enough:
            pass
        meter = _count(Run.open(run), clock, job["warmup"])
    return meter.result(version=kente.__version__)


def _count(run: Run, clock: Clock, warmup: int) -> Meter:
    """The tokens of the very batches that were timed: batch = f(seed, step), so they can be had again."""
    prepared, config = Prepared.open(run), run.config
    batches = Batches(prepared.train, config.batches, config.train.seed, config.tokenizer.sampling, prepared.tokenizers)
    meter = Meter(0, len(clock.ends) - warmup)
    parts = config.batches.accumulation
    for step in range(warmup * parts, len(clock.ends) * parts):
        batch = batches.batch(step)
        meter.updated(batch.source_tokens, batch.target_tokens, batch.source.numel() + batch.target_output.numel())
    meter.began, meter.ended = clock.ends[warmup - 1], clock.ends[-1]
    meter.updates = len(clock.ends) - warmup
    return meter


def quality(job: Job) -> Result:
    """`kente train --minutes M`, everything left to it: what it says to the validation set when the minutes are over."""
    (minutes,) = job["minutes"]
    lines = adapter.read_lines(job["source"])
    with TemporaryDirectory(dir=job["scratch"]) as folder:
        result = api.train(
            api.Data(source=Path(job["train_source"]), target=Path(job["train_target"])),
            Path(folder) / "run",
            validation=api.Data(source=Path(job["source"]), target=Path(job["reference"])),
            minutes=minutes,
            seed=job["seed"],
            threads=job["threads"],
            began=time.monotonic(),
        )
        translator = api.load(result.run.path, threads=job["threads"])
        texts = [answer.text for answer in translator.translate(lines, beam=1)]
        test = adapter.read_lines(job["test_source"])
        tests = [answer.text for answer in translator.translate(test, beam=5)]
    points = [{"minutes": minutes, "updates": result.step, "texts": texts, "test_texts": tests}]
    return {"points": points, "version": kente.__version__, "seconds": result.seconds}


def fit(job: Job) -> Result:
    """The one model that every engine decodes with: shape and vocabulary fixed, the rest as Kente trains in so many minutes."""
    result = api.train(
        api.Data(source=Path(job["source"]), target=Path(job["target"])),
        job["run"],
        minutes=job["minutes"],
        seed=job["seed"],
        settings=[*job["text_settings"], *model_settings(Shape(**job["shape"])), *job.get("settings", ())],
        threads=job["threads"],
        prepared=job["prepared"],
        force=True,
    )
    best = result.best.value if result.best else None
    return {"updates": result.step, "validation": best, "version": kente.__version__}


def translate(job: Job) -> Result:
    translator = kente.load(job["run"], threads=job["threads"], **job.get("options", {}), **adapter.length_rule(job))
    result = adapter.timed_translation(
        job, lambda lines: [answer.text for answer in translator.translate(lines, beam=job["beam"])]
    )
    return result | {"version": kente.__version__}


def latency(job: Job) -> Result:
    translator = kente.load(job["run"], threads=job["threads"], **job.get("options", {}))
    result = adapter.timed_latency(
        job, lambda lines: [answer.text for answer in translator.translate(lines, beam=job["beam"])]
    )
    return result | {"version": kente.__version__}


if __name__ == "__main__":
    adapter.serve(train=train, quality=quality, fit=fit, translate=translate, latency=latency)
