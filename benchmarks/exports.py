"""Every export of a run, loaded by the program it is for and held against the run: same tokens, same log-probabilities.

    python -m benchmarks.exports RUN ... [--source FILE] [--lines 200] [--folder .bench]

The programs live in environments of their own, made on first use from benchmarks/peers/*.txt, and see nothing of Kente: the run's own
answers are written down here, by torch, and compared there (benchmarks/checks).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from benchmarks.checks.common import BOS, EOS, PAD, UNK, Line, Result
from benchmarks.environments import Environments, Peer, PeerMissing, last_line
from kente import api
from kente.data.corpus import read_lines
from kente.data.store import Store
from kente.decode.answers import most_tokens
from kente.decode.engine import Question
from kente.decode.translator import Translator
from kente.runs import Run

ROOT = Path(__file__).resolve().parents[1]
PEERS = {
    "ctranslate2": Peer("ctranslate2", "benchmarks.checks.ctranslate2", "CTranslate2"),
    "huggingface": Peer("huggingface", "benchmarks.checks.huggingface", "transformers"),
    "argos": Peer("argos", "benchmarks.checks.argos", "Argos Translate"),
    "onnx": Peer("onnxruntime", "benchmarks.checks.onnxruntime", "onnxruntime"),
}
NUMBERS = {"ctranslate2": ("float32", "int8"), "argos": ("float32", "int8")}
SAME = 1e-4
"""Log-probabilities that differ by less are the same."""


@torch.inference_mode()
def log_probabilities(translator: Translator, source: list[int], target: list[int]) -> tuple[list[float], list[float]]:
    """Of each token of the target and its end, by the run's network; and how far the best token there is ahead of the next."""
    ids = torch.tensor([[*source, EOS]])
    model: Any = translator.model
    scores = model.predict(model(ids, ids != PAD, torch.tensor([[BOS, *target]])))[0].log_softmax(-1)
    likely = scores.gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]
    scores[:, [PAD, UNK, BOS]] = -torch.inf
    best = scores.topk(2).values
    return likely.tolist(), (best[:, 0] - best[:, 1]).tolist()


@torch.inference_mode()
def greedy(translator: Translator, source: list[int], cap: int) -> list[int]:
    """The likeliest token, and so on, with no guard against loops."""
    ids, written = torch.tensor([[*source, EOS]]), list[int]()
    state, token = translator.model.start(ids, ids != PAD), BOS
    while len(written) < cap:
        step = translator.model.step(state, torch.tensor([token]))
        step.logits[0, [PAD, UNK, BOS]] = -torch.inf
        state, token = step.state, int(step.logits[0].argmax())
        if token == EOS:
            break
        written.append(token)
    return written


def reference(run: Run, texts: Iterator[str], count: int) -> list[Line]:
    """What the run makes of the first so many texts that fit it and are one sentence."""
    translator = api.load(run.path, engine="torch", device="cpu", threads=1)
    tokenizers, found = translator.tokenizers, list[Line]()
    for text in texts:
        source = tokenizers.source.encode(" ".join(text.split()))
        if not 0 < len(source) < translator.max_source_tokens:
            continue
        cap = most_tokens(len(source) + 1, translator.config.max_ratio, translator.max_target_tokens)
        best = greedy(translator, source, cap)
        beams = []
        for penalty in (translator.config.length_penalty, 0.0):
            config = dataclasses.replace(translator.config, beam=5, length_penalty=penalty, no_repeat=0)
            beams.append(translator.engine.search([Question(source, cap)], config)[0][0].ids)
        scores, margins = log_probabilities(translator, source, best)
        pieces, written = tokenizers.target.pieces(best), tokenizers.target.decode(best)
        found.append(Line(text, source, cap, best, pieces, written, scores, margins, *beams))
        if len(found) == count:
            break
    return found


def validation(run: Run) -> Iterator[str]:
    """The run's validation sentences, as text."""
    tokenizers = run.tokenizers()
    store = Store.open(run.path / "data" / "validation", tokenizers.sha256)
    return (tokenizers.source.decode(store.source(row).tolist()) for row in range(len(store)))


def checked(peer: Peer, python: Path, export: Path, answers: Path, numbers: str) -> Result:
    command = [str(python), "-m", peer.module, str(export.resolve()), str(answers)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment["ARGOS_COMPUTE_TYPE"] = (
        numbers  # left to itself, Argos rounds every package to int8 where that is faster
    )
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise PeerMissing(f"the check failed: {last_line(done.stderr)}")
    return Result(**json.loads(done.stdout.splitlines()[-1]))


def check_run(path: Path, options: argparse.Namespace, environments: Environments) -> Iterator[dict[str, Any]]:
    run = Run.open(path)
    lines = reference(run, read_lines(options.source) if options.source else validation(run), options.lines)
    begin = 0 if run.config.model.tie == "all" else run.tokenizers().target.size
    with TemporaryDirectory() as scratch:
        answers = Path(scratch) / "answers.json"
        answers.write_text(json.dumps({"begin": begin, "lines": [dataclasses.asdict(line) for line in lines]}))
        for program, why in api.carriers(path).items():
            for numbers in NUMBERS.get(program, ("float32",)) if why is None else ("",):
                row: dict[str, Any] = {"run": path.name, "program": program, "numbers": numbers}
                try:
                    if why is not None:
                        raise PeerMissing(f"refused: {why}")
                    python = environments.python(PEERS[program])
                    languages = {"languages": ("en", "de")} if program == "argos" else {}
                    out = Path(scratch) / f"{program}-{numbers}"
                    api.export(path, program, out, numbers=numbers, **languages)
                    yield row | dataclasses.asdict(checked(PEERS[program], python, out, answers, numbers))
                except PeerMissing as error:
                    yield row | {"note": str(error)}


def shown(row: dict[str, Any]) -> str:
    name = f"{row['run']:<20} {row['program']:<12} {row['numbers']:<8}"
    if "note" in row:
        return f"{name} {row['note']}"
    beam = "-" if row["beam"] is None else f"{row['beam']}"
    ties = f" ({row['ties']} ties)" if row["ties"] else ""
    verdict = "same" if row["text"] == row["greedy"] == row["lines"] and row["worst"] < SAME else "differs"
    counts = f"{row['text']:>4} {row['greedy']:>6} {beam:>4} of {row['lines']}"
    return "\n".join(
        [f"{name} {counts}   {row['worst']:.1e}  {verdict}{ties}", *(f"    {text}" for text in row["examples"])]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--source", type=Path, help="sentences, a line each (default: the run's validation set)")
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench", help="where environments are kept")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    environments = Environments(options.folder / "environments")
    if not options.json:
        print(
            f"{'run':<20} {'program':<12} {'numbers':<8} {'text':>4} {'greedy':>6} {'beam':>4}   log-probabilities off by"
        )
    for path in options.runs:
        for row in check_run(path, options, environments):
            print(json.dumps(row) if options.json else shown(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
