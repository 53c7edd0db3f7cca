"""One measurement of a span, in a process of its own: a job as JSON on standard input, its result on standard output.

train   one training step over a single text of some length: seconds, and the memory it took beyond what was held before
write   a prompt of some length read, then words written one by one: seconds, memory, and what is kept from one word to the next
learn   a task that needs the span, for so many updates: how much of it was learnt, and in how many seconds
"""

from __future__ import annotations

import dataclasses
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kente.config import LanguageModelConfig, OptimiserConfig
from kente.data.batches import Batch, collate
from kente.memory import forget_peak, keep_freed_memory, peak_megabytes
from kente.models.build import build
from kente.nn.loss import linear_cross_entropy
from kente.train.gradients import Gradients
from kente.train.objectives import CrossEntropy
from kente.train.optimiser import Optimiser, rate_at

VOCABULARY = 72
SYMBOLS, FILLER, KEYS = range(4, 20), range(20, 36), range(36, 52)
"""Ids of the tasks; those below 4 are PAD, UNK, BOS and EOS."""
COPIED = 12
"""Symbols to be copied."""


def model_of(job: dict[str, Any], vocabulary: int = VOCABULARY) -> nn.Module:
    torch.manual_seed(job.get("seed", 1))
    return build(LanguageModelConfig(**job["model"]), vocabulary, vocabulary)


def nothing(rows: int) -> tuple[Tensor, Tensor]:
    """No source: a text from its beginning."""
    return torch.zeros(rows, 0, dtype=torch.long), torch.zeros(rows, 0, dtype=torch.bool)


def extra_megabytes(work: Callable[[], Any]) -> float:
    """The most that some work held beyond what was held before it."""
    forget_peak()
    before = peak_megabytes()
    work()
    return peak_megabytes() - before


# --- cost ---


def train(job: dict[str, Any]) -> dict[str, Any]:
    model = model_of(job).train()
    text = torch.randint(4, VOCABULARY, (1, job["length"] + 1))
    parameters = list(model.parameters())
    weight: Tensor = model.output.weight  # type: ignore[union-attr, assignment]

    def step() -> None:
        hidden = model(*nothing(1), text[:, :-1])
        loss = linear_cross_entropy(hidden.flatten(0, 1), weight, text[0, 1:])
        torch.autograd.grad(loss, parameters, allow_unused=True)

    megabytes = extra_megabytes(step)
    keep_freed_memory()
    return {"seconds": _median(step, job["repeat"]), "megabytes": megabytes}


def _median(work: Callable[[], Any], repeat: int) -> float:
    seconds = []
    work()
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


@torch.inference_mode()
def write(job: dict[str, Any]) -> dict[str, Any]:
    model = model_of(job).eval()
    prompt = torch.randint(4, VOCABULARY, (1, job["length"]))
    tokens = torch.randint(4, VOCABULARY, (job["words"], 1))
    reading, writing, kept = 0.0, [0.0], 0.0

    def go_on() -> None:
        nonlocal reading, kept
        began = time.perf_counter()
        state = model.start(prompt, torch.ones_like(prompt, dtype=torch.bool))  # type: ignore[operator]
        state = model.step(state, tokens[0]).state  # type: ignore[operator]
        reading = time.perf_counter() - began
        writing.clear()
        for token in tokens:
            began = time.perf_counter()
            state = model.step(state, token).state  # type: ignore[operator]
            writing.append(time.perf_counter() - began)
        kept = sum({x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors_of(state)}.values())

    megabytes = extra_megabytes(go_on)
    go_on()
    found = {"prompt_seconds": reading, "seconds": statistics.median(writing), "megabytes": megabytes}
    return found | {"kept_megabytes": kept / 1e6}


def tensors_of(state: Any) -> Iterator[Tensor]:
    """All tensors in a model's state."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, tuple | list):
        for part in state:
            yield from tensors_of(part)
    elif dataclasses.is_dataclass(state):
        for field in dataclasses.fields(state):
            yield from tensors_of(getattr(state, field.name))


# --- tasks that need the span ---


def copy_at_distance(chance: random.Random, rows: int, distance: int) -> Batch:
    """Symbols, then so many others; answer: the symbols again."""
    symbols = [chance.choices(SYMBOLS, k=COPIED) for _ in range(rows)]
    return collate([row + chance.choices(FILLER, k=distance) for row in symbols], symbols)


def needle_in_a_text(chance: random.Random, rows: int, length: int) -> Batch:
    """Keys, each followed by a symbol, at any places of a text; then the keys again in another order; answers: their symbols."""
    sources, answers = [], []
    for _ in range(rows):
        text = chance.choices(FILLER, k=length)
        places = chance.sample(range(0, length - 1, 2), len(KEYS))
        needles = list(zip(KEYS, chance.choices(SYMBOLS, k=len(KEYS)), strict=True))
        for place, needle in zip(places, needles, strict=True):
            text[place : place + 2] = needle
        (first, symbol), *others = chance.sample(needles, len(needles))
        sources.append([*text, first])
        answers.append([symbol, *(token for needle in others for token in needle)])
    return collate(sources, answers)


class Characters:
    """A text as ids of its characters; the last tenth is held out."""

    def __init__(self, path: Path):
        text = path.read_text(encoding="utf-8")
        letters = {letter: number for number, letter in enumerate(sorted(set(text)), start=4)}
        self.vocabulary = 4 + len(letters)
        ids = [letters[letter] for letter in text]
        cut = len(ids) * 9 // 10
        self.train, self.held_out = ids[:cut], ids[cut:]

    def blocks(self, chance: random.Random, rows: int, length: int) -> Batch:
        """Stretches of the text, from anywhere."""
        starts = [chance.randrange(len(self.train) - length) for _ in range(rows)]
        return collate([[]] * rows, [self.train[start : start + length] for start in starts])


def learn(job: dict[str, Any]) -> dict[str, Any]:
    """Train, then judge on what training has not seen."""
    size, rows = job["size"], job["rows"]
    text = Characters(Path(job["text"])) if job["task"] == "characters" else None
    model = model_of(job, text.vocabulary if text else VOCABULARY)
    tasks = {"copy": copy_at_distance, "needle": needle_in_a_text}
    make = text.blocks if text else tasks[job["task"]]
    seconds = _updates(model, job, lambda step: make(random.Random(f"{job['seed']} {step}"), rows, size))
    if text:
        return {"seconds": seconds, **_bits(model.eval(), text, size, job["judged"])}
    tests = [make(random.Random(f"test {number}"), rows, size) for number in range(job["judged"])]
    return {"seconds": seconds, "accuracy": _accuracy(model.eval(), tests)}


def _updates(model: nn.Module, job: dict[str, Any], batch: Callable[[int], Batch]) -> float:
    """The trainer's own gradients and optimiser, without its run folder; seconds."""
    keep_freed_memory()
    updates = job["updates"]
    config = OptimiserConfig(kind="muon", rate=job["rate"], schedule="linear", warmup=max(1, updates // 20), turns=2)
    optimiser, gradients = Optimiser(model, config), Gradients(model.train(), CrossEntropy())
    began = time.perf_counter()
    for step in range(1, updates + 1):
        optimiser.zero()
        loss = gradients([batch(step)], job["seed"], step)
        rate = rate_at(config, step, (step - 1) / updates, job["model"]["width"])
        optimiser.step(rate, optimiser.gradient_norm())
        if step % 50 == 0:
            print(f"{step}: {loss:.3f}", file=sys.stderr, flush=True)
    return time.perf_counter() - began


@torch.inference_mode()
def _accuracy(model: nn.Module, tests: list[Batch]) -> float:
    """Share of the answer's symbols that are the likeliest, all that is right before them given."""
    right = count = 0
    for batch in tests:
        logits = model.predict(model(batch.source, batch.source_mask, batch.target_input))  # type: ignore[operator]
        asked = (batch.target_output >= SYMBOLS.start) & (batch.target_output < SYMBOLS.stop)
        right += int((logits.argmax(-1) == batch.target_output)[asked].sum())
        count += int(asked.sum())
    return right / count


@torch.inference_mode()
def _bits(model: nn.Module, text: Characters, length: int, judged: int) -> dict[str, float]:
    """Bits for each held-out character: of all, and of the last quarter of each block, where the past is longest."""
    starts = range(0, min(judged * length, len(text.held_out) - length), length)
    losses = []
    for start in starts:
        batch = collate([[]], [text.held_out[start : start + length]])
        logits = model.predict(model(batch.source, batch.source_mask, batch.target_input))  # type: ignore[operator]
        losses.append(
            nn.functional.cross_entropy(logits[0, :length], batch.target_output[0, :length], reduction="none")
        )
    bits = torch.stack(losses) / torch.log(torch.tensor(2.0))
    return {"bits": bits.mean().item(), "late_bits": bits[:, -length // 4 :].mean().item()}


if __name__ == "__main__":
    job = json.load(sys.stdin)
    json.dump({"train": train, "write": write, "learn": learn}[job["do"]](job), sys.stdout)
