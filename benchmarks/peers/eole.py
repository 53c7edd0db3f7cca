"""Peer: eole, the successor of OpenNMT-py. It trains by its own program; we read what it prints (source and target tokens a second)."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.peers import adapter
from benchmarks.peers.adapter import Job, Result
from benchmarks.shapes import SMOOTHING

LINE = re.compile(r"Step\s+(\d+)/.*?([\d.]+)/\s*([\d.]+) tok/s;\s+([\d.]+) sec")
SHOWN = 2
"""Updates between two lines of its log."""


def configuration(job: Job, folder: Path) -> dict[str, Any]:
    shape, corpus = job["shape"], Path(job["corpus"])
    vocabulary = folder / "vocabulary.txt"
    pieces = (corpus / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
    vocabulary.write_text("".join(f"{piece}\t{len(pieces)}\n" for piece in pieces), encoding="utf-8")
    side = {"position_encoding_type": "SinusoidalInterleaved", "heads": shape["heads"]}
    return {
        "seed": job["seed"],
        "src_vocab": str(vocabulary),
        "tgt_vocab": str(vocabulary),
        "share_vocab": True,
        "src_vocab_size": len(pieces),
        "tgt_vocab_size": len(pieces),
        "vocab_size_multiple": 1,
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "decoder_start_token": "<s>",
        "overwrite": True,
        "report_every": SHOWN,
        "transforms": [],
        "data": {
            "train": {
                "path_src": str(corpus / "train.pieces.source"),
                "path_tgt": str(corpus / "train.pieces.target"),
            }
        },
        "training": {
            "model_path": str(folder / "model"),
            "batch_type": "tokens",
            "batch_size": job["batch_tokens"],
            "normalization": "tokens",
            "bucket_size": 30_000,
            "bucket_size_init": 30_000,
            "num_workers": 0,
            "compute_dtype": "fp32",
            "optim": "adamw",
            "learning_rate": 2e-3,
            "warmup_steps": 400,
            "decay_method": "rsqrt",
            "max_grad_norm": 1.0,
            "dropout": [job["dropout"]],
            "attention_dropout": [0.0],
            "dropout_steps": [0],
            "label_smoothing": SMOOTHING,
            "log_attention_entropy": False,
            "param_init_method": "xavier_uniform",
            "train_steps": job["warmup"] + job["updates"],
            "save_checkpoint_steps": 10**6,
            "valid_steps": 10**6,
        },
        "model": {
            "architecture": "transformer",
            "layers": shape["layers"],
            "heads": shape["heads"],
            "hidden_size": shape["width"],
            "transformer_ff": shape["feedforward"],
            "mlp_activation_fn": "relu",
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_ffnbias": True,
            "embeddings": {"word_vec_size": shape["width"], "position_encoding_type": "SinusoidalInterleaved"},
            "encoder": side,
            "decoder": side,
        },
    }


def train(job: Job) -> Result:
    with TemporaryDirectory(dir=job["scratch"]) as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(json.dumps(configuration(job, folder)))  # JSON is YAML
        command = [sys.executable, "-m", "eole.bin.main", "train", "-config", str(folder / "config.yaml")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    sys.stderr.write(done.stdout)
    lines = [(int(m[1]), float(m[2]), float(m[3])) for m in LINE.finditer(done.stdout)]
    counted = [(source, target) for update, source, target in lines if update > job["warmup"]]
    if not counted:
        sys.exit("eole did not train: " + (done.stdout.strip().splitlines() or ["no output"])[-1])
    # every line stands for SHOWN updates of about the same size, so their mean time is what adds up
    seconds = [1 / (source + target) for source, target in counted]
    speed = len(seconds) / sum(seconds)
    share = sum(target for _, target in counted) / sum(source + target for source, target in counted)
    return {
        "tokens": speed,
        "source_tokens": speed * (1 - share),
        "target_tokens": speed * share,
        "seconds": 1.0,
        "updates": len(counted) * SHOWN,
        "padding": None,
        "version": importlib.metadata.version("eole"),
    }


if __name__ == "__main__":
    adapter.serve(train=train)
