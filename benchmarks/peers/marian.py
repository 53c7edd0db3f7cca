"""Peer: pymarian, the Marian toolkit with a Python package around it. It trains by its own program; we read what it prints.

Marian counts target tokens; source tokens are added in the proportion the whole corpus has them in. It has two workers of one thread each,
which together read `batch_tokens` for an update.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.peers import adapter
from benchmarks.peers.adapter import Job, Result
from benchmarks.shapes import DROPOUT, SMOOTHING

LINE = re.compile(r"Up\. (\d+) .*?Sen\. ([\d,]+).*?Time ([\d.]+)s : ([\d.,]+) words/s")
SHOWN = 4
"""Updates between two lines of its log."""


def arguments(job: Job, folder: Path) -> list[str]:
    shape, corpus = job["shape"], Path(job["corpus"])
    vocabulary = folder / "vocabulary.yml"
    write_vocabulary(corpus / "vocabulary.txt", vocabulary)
    options = {
        "model": folder / "model.npz",
        "train-sets": [corpus / "train.pieces.source", corpus / "train.pieces.target"],
        "vocabs": [vocabulary, vocabulary],
        "type": "transformer",
        "enc-depth": shape["layers"],
        "dec-depth": shape["layers"],
        "dim-emb": shape["width"],
        "transformer-dim-ffn": shape["feedforward"],
        "transformer-heads": shape["heads"],
        "transformer-ffn-activation": "relu",
        "transformer-preprocess": "n",
        "transformer-postprocess": "da",
        "transformer-postprocess-top": "n",
        "transformer-dropout": DROPOUT,
        "label-smoothing": SMOOTHING,
        "mini-batch-words": job["batch_tokens"] // job["threads"],
        "maxi-batch": 100,
        "maxi-batch-sort": "trg",
        "max-length": 256,
        "cpu-threads": job["threads"],
        "workspace": 1000,
        "optimizer-params": ["0.9", "0.98", "1e-09"],
        "learn-rate": "0.002",
        "lr-warmup": 400,
        "clip-norm": 1,
        "disp-freq": SHOWN,
        "after": f"{job['warmup'] + job['updates'] + SHOWN}u",
        "seed": job["seed"],
        "tempdir": folder,
    }
    written = [
        f"--{name} {' '.join(map(str, value)) if isinstance(value, list) else value}" for name, value in options.items()
    ]
    return " ".join([*written, "--tied-embeddings-all", "--sync-sgd", "--overwrite", "--no-restore-corpus"]).split()


def write_vocabulary(pieces: Path, file: Path) -> None:
    """Marian's own two special words come first; all other pieces keep their order."""
    others = [piece for piece in pieces.read_text(encoding="utf-8").split("\n")[:-1] if piece not in ("</s>", "<unk>")]
    lines = [
        f"{json.dumps(piece, ensure_ascii=False)}: {number}" for number, piece in enumerate(["</s>", "<unk>", *others])
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def train(job: Job) -> Result:
    facts = json.loads((Path(job["corpus"]) / "facts.json").read_text())
    both = (facts["source_tokens"] + facts["target_tokens"]) / facts["target_tokens"]
    with TemporaryDirectory(dir=job["scratch"]) as folder:
        command = [sys.executable, "-m", "pymarian", *arguments(job, Path(folder))]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    sys.stderr.write(done.stdout)
    lines = [(int(m[1]), float(m[3]), float(m[4].replace(",", ""))) for m in LINE.finditer(done.stdout)]
    counted = [(seconds, seconds * speed) for update, seconds, speed in lines if update > job["warmup"] + SHOWN - 1]
    if done.returncode or not counted:
        sys.exit("pymarian did not train: " + (done.stdout.strip().splitlines() or ["no output"])[-1])
    seconds, target = (sum(column) for column in zip(*counted, strict=True))
    return {
        "tokens": target * both,
        "source_tokens": target * (both - 1),
        "target_tokens": target,
        "seconds": seconds,
        "updates": len(counted) * SHOWN,
        "padding": None,
        "version": importlib.metadata.version("pymarian"),
    }


if __name__ == "__main__":
    adapter.serve(train=train)
