"""What a number of updates buys on Multi30k, one thing changed at a time: the trials behind docs/speedrun.md.

    python -m benchmarks.speedrun [--only lion adamw] [--seeds 1,2,3] [--updates 800] [--jobs 2]     trains what is missing
    python -m benchmarks.speedrun --table                                                            what was found, as Markdown

Minutes are noisy on a shared machine, updates are not: each trial is one process with one thread, and lands (its rate falls to nothing, its
averages are taken) after the same number of updates, or as many as read the same text where batches have another size. Validation loss in nats a token
and BLEU of greedy answers, both on the validation set; no test set is looked at. Findings go to .bench/speedrun/results.jsonl; what is there is
not done again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.processes import ROOT
from benchmarks.run import DATA

FOLDER = ROOT / ".bench" / "speedrun"
TINY = ("model.encoder_layers=4", "model.decoder_layers=4", "model.width=128", "model.feedforward=256", "model.heads=4")
USUAL = "as `--minutes` does"


@dataclass(frozen=True)
class Trial:
    """What is done otherwise: settings, an optimiser or a feed that Kente has not, batches of another size."""

    group: str
    settings: tuple[str, ...] = ()
    outside: str = ""
    batch: int = 1024
    peak: float = 0.0  # learning rate; 0 leaves it to Kente


def _shape(encoder: int, decoder: int, width: int, feedforward: int) -> tuple[str, ...]:
    layers = (f"model.encoder_layers={encoder}", f"model.decoder_layers={decoder}")
    return (*layers, f"model.width={width}", f"model.feedforward={feedforward}")


ADAMW = ("optimiser.kind=adamw", "optimiser.turns=1")
TRIALS: dict[str, Trial] = {
    USUAL: Trial(""),
    "AdamW, 3e-3": Trial("optimiser", ADAMW, peak=3e-3),
    "AdamW, 6e-3": Trial("optimiser", ADAMW, peak=6e-3),
    "Muon at every update": Trial("optimiser", ("optimiser.turns=1",)),
    "Lion, 3e-4": Trial("optimiser", ADAMW, "lion", peak=3e-4),
    "Lion, 1e-3": Trial("optimiser", ADAMW, "lion", peak=1e-3),
    "Adafactor, 1e-2": Trial("optimiser", ADAMW, "adafactor", peak=1e-2),
    "Adafactor, 3e-2": Trial("optimiser", ADAMW, "adafactor", peak=3e-2),
    "schedule-free AdamW, 5e-3": Trial("optimiser", (*ADAMW, "train.average=none"), "schedule-free", peak=5e-3),
    "schedule-free AdamW, 1e-2": Trial("optimiser", (*ADAMW, "train.average=none"), "schedule-free", peak=1e-2),
    "cosine": Trial("schedule", ("optimiser.schedule=cosine",)),
    "flat, then down (wsd)": Trial("schedule", ("optimiser.schedule=wsd",)),
    "inverse square root": Trial("schedule", ("optimiser.schedule=inverse-sqrt",)),
    "inverse square root that lands": Trial("schedule", ("optimiser.schedule=inverse-sqrt",), "landing"),
    "inverse square root that lands, 12e-3": Trial(
        "schedule", ("optimiser.schedule=inverse-sqrt",), "landing", peak=12e-3
    ),
    "linear, down to a seventh": Trial("schedule", ("optimiser.final_rate=0.15",)),
    "linear, down to a third": Trial("schedule", ("optimiser.final_rate=0.3",)),
    "linear, 4e-3": Trial("schedule", peak=4e-3),
    "linear, 5.6e-3": Trial("schedule", peak=5.6e-3),
    "batches of 512, twice the updates": Trial("batches", batch=512),
    "batches of 2,048, half the updates": Trial("batches", batch=2048),
    "batches of 512, then of 1,536": Trial("batches", outside="ramp"),
    "factors rounded to bfloat16": Trial("precision", ("train.precision=bfloat16",)),
    "words begin anywhere": Trial("beginning", ("train.begin=random",)),
    "4,000 pieces": Trial("vocabulary", ("tokenizer.vocabulary=4000",)),
    "16,000 pieces": Trial("vocabulary", ("tokenizer.vocabulary=16000",)),
    "pieces drawn anew (sampling 0.1)": Trial("vocabulary", ("tokenizer.sampling=0.1",)),
    "2 + 2 layers of 192": Trial("shape", _shape(2, 2, 192, 384)),
    "6 + 2 layers": Trial("shape", _shape(6, 2, 128, 256)),
    "7 + 1 layers": Trial("shape", _shape(7, 1, 128, 256)),
    "4 + 4, feed-forward of 512": Trial("shape", _shape(4, 4, 128, 512)),
    "dropout 0": Trial("noise", ("model.dropout=0.0",)),
    "dropout 0.05": Trial("noise", ("model.dropout=0.05",)),
    "dropout 0.15": Trial("noise", ("model.dropout=0.15",)),
    "dropout 0.2": Trial("noise", ("model.dropout=0.2",)),
    "label smoothing 0": Trial("noise", ("train.label_smoothing=0.0",)),
    "label smoothing 0.2": Trial("noise", ("train.label_smoothing=0.2",)),
    "weights as they are": Trial("averages", ("train.average=none",)),
    "mean of the last 5 checkpoints": Trial("averages", ("train.average=last", "train.validate_every={tenth}")),
}


# ---------------------------------------------------------------- what Kente has not


def install(outside: str, updates: int) -> None:
    """Put another optimiser, or another feed, in the place of Kente's."""
    import torch

    from kente.train import trainer
    from kente.train.optimiser import Optimiser

    class Other(Optimiser):
        """Kente's optimiser with something else in AdamW's place."""

        def __init__(self, model: Any, config: Any) -> None:
            super().__init__(model, config)
            self.count, self.memory = 0, {id(p): OTHERS[outside][0](p) for p in self.parameters}
            self.adafactor = torch.optim.Adafactor(self.parameters, lr=config.rate) if outside == "adafactor" else None

        @torch.no_grad()
        def step(self, rate: float, norm: Any) -> None:
            if self.config.clip and norm > self.config.clip:
                torch._foreach_mul_([p.grad for p in self.parameters], self.config.clip / (norm + 1e-6))
            self.count += 1
            if self.adafactor is not None:
                self.adafactor.param_groups[0]["lr"] = rate
                self.adafactor.step()
                return
            for parameter in self.parameters:
                OTHERS[outside][1](parameter, self.memory[id(parameter)], rate, self.count, updates, self.config)

        def state(self) -> dict[str, Any]:
            return {}

    if outside == "ramp":
        _install_ramp(updates)
    elif outside == "landing":
        _install_landing()
    elif outside:
        trainer.Optimiser = Other  # type: ignore[misc, attr-defined]


def _lion(p: Any, memory: dict[str, Any], rate: float, count: int, updates: int, config: Any) -> None:
    """Chen et al., 2023: the sign of a momentum that looks ahead."""
    p.sub_(memory["m"].lerp(p.grad, 0.1).sign_(), alpha=rate)
    memory["m"].lerp_(p.grad, 0.01)


def _schedule_free(p: Any, memory: dict[str, Any], rate: float, count: int, updates: int, config: Any) -> None:
    """Defazio et al., 2024: AdamW at a constant rate on z, gradients at y between z and the mean x; x is what is kept in the end."""
    beta, second = 0.9, 0.98
    rate = config.rate * min(1.0, count / max(1, config.warmup))  # no schedule but the warm-up
    memory["v"].mul_(second).addcmul_(p.grad, p.grad, value=1 - second)
    scaled = p.grad / ((memory["v"] / (1 - second**count)).sqrt() + 1e-8)
    memory["z"].sub_(scaled, alpha=rate)
    memory["weight"] += rate**2
    memory["x"].lerp_(memory["z"], float(rate**2 / memory["weight"]))
    p.copy_(memory["x"] if count == updates else memory["z"].lerp(memory["x"], beta))


def _zeros(p: Any) -> dict[str, Any]:
    import torch

    return {"m": torch.zeros_like(p)}


def _beginnings(p: Any) -> dict[str, Any]:
    import torch

    return {"v": torch.zeros_like(p), "z": p.detach().clone(), "x": p.detach().clone(), "weight": 0.0}


OTHERS: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    "lion": (_zeros, _lion),
    "schedule-free": (_beginnings, _schedule_free),
    "adafactor": (lambda p: None, lambda *_: None),
}


def _install_landing() -> None:
    """Whatever the schedule, times a line that comes down to nothing with the last update."""
    from kente.train import trainer

    planned = trainer.rate_at  # type: ignore[attr-defined]

    def landing(config: Any, step: int, progress: float, width: int) -> float:
        return float(planned(config, step, progress, width)) * (1 - progress)

    trainer.rate_at = landing  # type: ignore[attr-defined]


def _install_ramp(updates: int) -> None:
    """Half of the updates with half as many tokens, the other half with half as many again."""
    from kente.api import translation
    from kente.data.batches import Batches

    class Ramp(Batches):
        def __init__(self, store: Any, config: Any, *more: Any, **others: Any) -> None:
            super().__init__(store, replace(config, tokens=config.tokens // 2), *more, **others)
            self.later = Batches(store, replace(config, tokens=config.tokens * 3 // 2), *more, **others)

        def batch(self, step: int) -> Any:
            return super().batch(step) if step < updates // 2 else self.later.batch(step)

    translation.Batches = Ramp  # type: ignore[misc, attr-defined]


# ---------------------------------------------------------------- one trial


def run(name: str, seed: int, updates: int) -> dict[str, Any]:
    """Train once, in this process."""
    from kente import api
    from kente.runs import Run

    trial, text = TRIALS[name], DATA / "multi30k" / "tok"
    updates = updates * 1024 // trial.batch
    install(trial.outside, updates)
    settings = [
        *TINY,
        "tokenizer.vocabulary=8000",
        f"batches.tokens={trial.batch}",
        "model.dropout=0.1",
        f"train.validate_every={updates}",
        *(setting.format(tenth=updates // 10) for setting in trial.settings),
        *([f"optimiser.rate={trial.peak}"] if trial.peak else []),
    ]
    last = {setting.partition("=")[0]: setting for setting in settings}
    began = time.monotonic()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=FOLDER) as folder:
        data, held_out = (api.Data(text / f"{part}.en", text / f"{part}.de") for part in ("train", "val"))
        result = api.train(
            data,
            Path(folder) / "run",
            validation=held_out,
            updates=updates,
            seed=seed,
            threads=1,
            settings=list(last.values()),
        )
        told = [
            json.loads(line) for line in (Run.open(result.run.path).path / "metrics.jsonl").read_text().splitlines()
        ]
    (*_, final) = (record["validation"] for record in told if "validation" in record)
    took = [record["seconds"] for record in told if "tokens_per_second" in record]
    return {
        "trial": name,
        "seed": seed,
        "updates": updates,
        "loss": round(final["loss"], 4),
        "bleu": round(final["bleu"], 2),
        "milliseconds": round(1000 * (took[-1] - took[0]) / (updates - 20)),
        "seconds": round(time.monotonic() - began),
    }


def known() -> list[dict[str, Any]]:
    path = FOLDER / "results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(updates: int) -> str:
    """Mean over seeds, and how far the usual trial of the same seeds is away."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for record in known():
        if record["updates"] * TRIALS[record["trial"]].batch // 1024 == updates:
            found.setdefault(record["trial"], {})[record["seed"]] = record
    usual = found.get(USUAL, {})
    lines = ["| | what | loss | BLEU, greedy | to the usual, BLEU | seeds |", "|---|---|---|---|---|---|"]
    for name in (name for name in TRIALS if name in found):
        records = found[name]
        loss, bleu = (statistics.mean(r[key] for r in records.values()) for key in ("loss", "bleu"))
        both = [records[seed]["bleu"] - usual[seed]["bleu"] for seed in records if seed in usual]
        apart = f"{statistics.mean(both):+.1f} ({min(both):+.1f} to {max(both):+.1f})" if both and name != USUAL else ""
        lines.append(f"| {TRIALS[name].group} | {name} | {loss:.3f} | {bleu:.1f} | {apart} | {len(records)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="trials, by a part of their names")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--updates", type=int, default=800, help="of batches of 1,024 target tokens")
    parser.add_argument("--jobs", type=int, default=2, help="trials side by side, a thread each")
    parser.add_argument("--table", action="store_true", help="train nothing")
    parser.add_argument("--one", nargs=2, metavar=("TRIAL", "SEED"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run(given.one[0], int(given.one[1]), given.updates)))
        return 0
    names = [name for name in TRIALS if not given.only or any(part.lower() in name.lower() for part in given.only)]
    done = {(r["trial"], r["seed"], r["updates"]) for r in known()}
    work = [
        (name, seed)
        for seed in map(int, given.seeds.split(","))
        for name in names
        if (name, seed, given.updates * 1024 // TRIALS[name].batch) not in done
    ]

    def one(name: str, seed: int) -> None:
        command = [
            sys.executable,
            "-m",
            "benchmarks.speedrun",
            "--one",
            name,
            str(seed),
            "--updates",
            str(given.updates),
        ]
        made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if made.returncode:
            print(f"{name}, seed {seed}: {(made.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
            return
        with (FOLDER / "results.jsonl").open("a") as file:
            file.write(made.stdout.splitlines()[-1] + "\n")
        print(made.stdout.splitlines()[-1], flush=True)

    if not given.table:
        FOLDER.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(lambda pair: one(*pair), work))
    print(table(given.updates))
    return 0


if __name__ == "__main__":
    sys.exit(main())
