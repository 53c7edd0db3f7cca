"""Language models on two small texts, measured by running the commands.

    python -m benchmarks.language_models shakespeare [--quick]    Tiny Shakespeare by characters: validation loss after 3 and 15 minutes,
                                                                  Transformer and LSTM, with a sample; docs/images/shakespeare.svg
                                                                  (nanoGPT's recipe for a processor: 1.88 in about 3 minutes)
    python -m benchmarks.language_models speed [--quick]          training tokens a second beside a plain torch loop, in turns
    python -m benchmarks.language_models grimm [--quick]          perplexity by words of RNN, GRU, LSTM and Transformer in equal minutes

The texts are tinyshakespeare/ and grimm/ in $KENTE_DATA (default ../shared/data). Runs go to .bench/language; results are printed as JSON.
--quick is a look at whether all of it works, not a result.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.plot import Line, lines

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("KENTE_DATA", ROOT.parent / "shared" / "data"))
RUNS = ROOT / ".bench" / "language"
PLAY = DATA / "tinyshakespeare" / "input.txt"
SHAPE = {"layers": 4, "width": 128, "feedforward": 512, "heads": 4}


def kente(*arguments: object) -> str:
    """Run a command; what it printed."""
    command = [sys.executable, "-m", "kente", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


def records(run: Path, name: str = "metrics") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def facts_of(run: Path) -> dict[str, Any]:
    """What a run reached, and at what pace."""
    told = records(run)
    scores = [record for record in told if "validation" in record]
    best = min(scores, key=lambda record: record["validation"]["loss"])
    speeds = [record["tokens_per_second"] for record in told if "tokens_per_second" in record]
    info = json.loads(kente("info", run, "--json"))
    return {
        "run": run.name,
        **{name: round(value, 4) for name, value in best["validation"].items()},
        "updates": info["step"],
        "minutes": info["minutes"],
        "parameters": info["parameters"],
        "tokens_per_second": round(statistics.median(speeds)),
        "curve": [[round(r["seconds"] / 60, 2), round(r["validation"]["loss"], 4)] for r in scores],
    }


# --- Tiny Shakespeare ---


def shakespeare(quick: bool, seeds: list[int], lasting: list[float]) -> None:
    found = []
    for minutes in (0.3,) if quick else lasting:
        for name, recipe in (("transformer", ()), ("lstm", ("--recipe", "lstm-language"))):
            for seed in seeds:
                run = RUNS / f"shakespeare-{name}-{minutes:g}-{seed}"
                how = ("--tokenizer", "characters", "--minutes", minutes, "--seed", seed, *recipe)
                kente("pretrain", "--text", PLAY, *how, "--out", run, "--force", "-q")
                facts = {"model": name, "asked_minutes": minutes, "seed": seed, **facts_of(run)}
                found.append(facts)
                print(json.dumps(facts), flush=True)
                sample = kente("generate", run, "--prompt", "ROMEO:", "--tokens", 400, "--temperature", 0.8)
                print(sample, file=sys.stderr)
    if not quick:
        shown = {"transformer": "Transformer", "lstm": "LSTM"}
        series = [
            Line(
                f"{shown[fact['model']]}, {fact['asked_minutes']:g} minutes", [tuple(point) for point in fact["curve"]]
            )
            for fact in found
            if fact["seed"] == seeds[0]
        ]
        title = "Tiny Shakespeare by characters"
        picture = lines(title, "minutes on two cores", "validation loss, nats a character", series, from_zero=False)
        (ROOT / "docs" / "images" / "shakespeare.svg").write_text(picture, encoding="utf-8")


# --- speed ---


def speed(quick: bool, rounds: int) -> None:
    """Kente's trainer and a plain loop over the same characters, shape and batch, in turns."""
    seconds = 5 if quick else 30
    rows: dict[str, list[float]] = {"kente": [], "kente, adamw": [], "plain": []}
    shape = [part for name, value in SHAPE.items() for part in ("--set", f"model.{name}={value}")]
    shape += ["--set", "model.dropout=0.1", "--set", "batches.tokens=2048", "--set", "batches.max_length=128"]
    for _ in range(1 if quick else rounds):
        for name in rows:
            if name == "plain":
                child = subprocess.run(
                    [sys.executable, "-m", "benchmarks.language_models", "plain", "--seconds", str(seconds)],
                    cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
                )  # fmt: skip
                rows[name].append(json.loads(child.stdout)["tokens_per_second"])
                continue
            run = RUNS / "speed"
            optimiser = ["--set", "optimiser.kind=adamw"] if "adamw" in name else []
            updates = 20 * seconds if quick else 10 * seconds
            how = ("--tokenizer", "characters", "--updates", updates, "--set", "train.validate_every=100000")
            kente("pretrain", "--text", PLAY, *how, *shape, *optimiser, "--out", run, "--force", "-q")
            told = [record["tokens_per_second"] for record in records(run) if "tokens_per_second" in record]
            rows[name].append(statistics.median(told))
    for name, values in rows.items():
        middle = statistics.median(values)
        print(json.dumps({"trainer": name, "tokens_per_second": round(middle), "samples": [round(v) for v in values]}))


def plain(seconds: float) -> None:
    """What someone writes who takes torch as it is: nn.TransformerEncoder read causally, fused AdamW, random windows."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    text = PLAY.read_text(encoding="utf-8")
    letters = sorted(set(text))
    ids = torch.tensor([letters.index(letter) for letter in text[: int(0.9 * len(text))]])
    length, rows, width = 128, 16, SHAPE["width"]
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(
        width, SHAPE["heads"], SHAPE["feedforward"], 0.1, "gelu", batch_first=True, norm_first=True
    )
    layer.self_attn.dropout = 0.0  # as Kente does: dropout there keeps torch from its fast kernel
    stack = nn.TransformerEncoder(layer, SHAPE["layers"], nn.LayerNorm(width), enable_nested_tensor=False)
    words, places = nn.Embedding(len(letters), width), nn.Embedding(length, width)
    model = nn.ModuleList([stack, words, places])
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    done, began, number = 0, 0.0, 0
    while not began or time.monotonic() - began < seconds:
        starts = torch.randint(len(ids) - length, (rows,)).tolist()
        block = torch.stack([ids[start : start + length + 1] for start in starts])
        x = words(block[:, :-1]) + places.weight
        logits = stack(x, mask, is_causal=True) @ words.weight.T
        loss = F.cross_entropy(logits.flatten(0, 1), block[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        number += 1
        if number == 5:  # the first ones set kernels up
            began, done = time.monotonic(), 0
        done += rows * length
    print(json.dumps({"tokens_per_second": done / (time.monotonic() - began), "loss": loss.item()}))


# --- Grimm ---


def grimm(quick: bool, seeds: list[int], minutes: float) -> None:
    folder = DATA / "grimm"
    for name in ("rnn-language", "gru-language", "lstm-language", "language"):
        for seed in seeds:
            run = RUNS / f"grimm-{name}-{seed}"
            text = ("--text", folder / "train.txt", "--validation", folder / "valid.txt", "--tokenizer", "words")
            how = (
                "--recipe",
                name,
                "--minutes",
                0.3 if quick else minutes,
                "--seed",
                seed,
                "--out",
                run,
                "--force",
                "-q",
            )
            kente("pretrain", *text, *how)
            test = json.loads(kente("evaluate", run, "--text", folder / "test.txt", "--json"))
            facts = {"model": name, "seed": seed, "test_perplexity": round(test["perplexity"], 2), **facts_of(run)}
            print(json.dumps(facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("shakespeare", "speed", "grimm", "plain"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--minutes", type=float, nargs="+", help="how long to train (Shakespeare 3 and 15, Grimm 5)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    RUNS.mkdir(parents=True, exist_ok=True)
    match given.part:
        case "shakespeare":
            shakespeare(given.quick, given.seeds, given.minutes or [3, 15])
        case "speed":
            speed(given.quick, given.rounds)
        case "plain":
            plain(given.seconds)
        case "grimm":
            grimm(given.quick, given.seeds, given.minutes[0] if given.minutes else 5)


if __name__ == "__main__":
    main()
