"""Peer: JoeyNMT 2.3, its own data pipeline and training loop; we only look at the clock between two of its steps.

It is given pieces that are cut already (level "word"), which spares it sentencepiece at every step. Its token batches are not sorted by length.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sentencepiece
import torch
from joeynmt.config import parse_global_args, set_validation_args
from joeynmt.prediction import predict, prepare
from joeynmt.training import TrainManager

from benchmarks.peers import adapter
from benchmarks.peers.adapter import Enough, Job, Meter, MinutesMarks, Result
from benchmarks.shapes import SMOOTHING, Shape

VERSION = importlib.metadata.version("joeynmt")


def sides(shape: Shape, dropout: float) -> dict[str, Any]:
    """The [model] part of a JoeyNMT configuration."""
    embeddings = {"embedding_dim": shape.embedding, "dropout": dropout}
    if shape.kind == "transformer":
        layer = {
            "type": "transformer",
            "num_layers": shape.layers,
            "num_heads": shape.heads,
            "hidden_size": shape.width,
            "ff_size": shape.feedforward,
            "dropout": dropout,
            "layer_norm": "pre",
            "embeddings": embeddings | {"scale": True},
        }
        return {"encoder": layer, "decoder": dict(layer), "tied_embeddings": True, "tied_softmax": True}
    cell = {"type": "recurrent", "rnn_type": "gru", "hidden_size": shape.width, "num_layers": 1, "dropout": dropout}
    return {
        "encoder": cell | {"bidirectional": True, "embeddings": embeddings},
        "decoder": cell
        | {"embeddings": embeddings, "attention": "bahdanau", "init_hidden": "bridge", "input_feeding": True},
        "tied_embeddings": True,
        "tied_softmax": False,  # only a Transformer's can be
    }


def configuration(job: Job, folder: str) -> dict[str, Any]:
    shape, corpus = Shape(**job["shape"]), Path(job["corpus"])
    text = {"level": "word", "max_length": 256, "voc_file": str(corpus / "vocabulary.txt")}
    return {
        "name": "benchmark",
        "joeynmt_version": VERSION,
        "model_dir": folder,
        "use_cuda": False,
        "random_seed": job["seed"],
        "data": {
            "train": str(corpus / "train.pieces"),
            "dev": str(corpus / "validation.pieces"),
            "dataset_type": "plain",
            "src": {"lang": "source", **text},
            "trg": {"lang": "target", **text},
            # JoeyNMT insists on ids of its own for <unk> and <pad>; the vocabulary holds the same pieces in the same order otherwise
        },
        "testing": {"batch_size": 64, "batch_type": "sentence", "max_output_length": 60, "eval_metrics": []},
        "training": {
            "optimizer": "adamw",
            "adam_betas": [0.9, 0.98],
            "learning_rate": 2e-3,
            "learning_rate_min": 0.0,
            "learning_rate_warmup": 400,
            "scheduling": "warmupinversesquareroot",
            "clip_grad_norm": 1.0,
            "label_smoothing": SMOOTHING,
            "batch_size": job["batch_tokens"],
            "batch_type": "token",
            "normalization": "tokens",
            "epochs": 1000,
            "validation_freq": 10**9,
            "logging_freq": 100,
            "print_valid_sents": [],
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "normal",
            "embed_init_weight": shape.embedding**-0.5,
            **sides(shape, job["dropout"]),
        },
    }


class Watched(TrainManager):
    """JoeyNMT's trainer, with someone who looks on between two steps."""

    last: tuple[int, int, int] | None = None

    def watch(self, between: Callable[..., None]) -> None:
        self.between = between

    def _train_step(self, batch: Any) -> tuple[float, int]:
        if self.last is not None:
            self.between(*self.last)  # the update that ended before this one began
        source, target = batch.src.numel(), batch.trg.numel()
        self.last = (int(batch.src_length.sum()), int(batch.ntokens), source + target)
        return super()._train_step(batch)


def manager(job: Job, folder: str) -> tuple[Watched, Any, Any, Any]:
    torch.set_num_threads(job["threads"])
    arguments = parse_global_args(configuration(job, folder), mode="train")
    model, train_data, validation_data, _ = prepare(arguments, rank=0, mode="train")
    validating = set_validation_args(arguments.test)
    watched = Watched(
        model=model,
        model_dir=arguments.model_dir,
        device=arguments.device,
        n_gpu=0,
        rank=0,
        num_workers=0,
        autocast=arguments.autocast,
        seed=arguments.seed,
        train_args=arguments.train,
        dev_args=validating,
    )
    return watched, train_data, validation_data, validating


def train(job: Job) -> Result:
    meter = Meter(job["warmup"], job["updates"])

    def between(*seen: int) -> None:
        if meter.updated(*seen):
            raise Enough

    with TemporaryDirectory(dir=job["scratch"]) as folder:
        watched, train_data, validation_data, _ = manager(job, folder)
        watched.watch(between)
        try:
            watched.train_and_validate(train_data, validation_data)
        except Enough:
            pass
        parameters = sum(p.numel() for p in watched.model.parameters())
    return meter.result(version=VERSION, parameters=parameters)


def quality(job: Job) -> Result:
    pieces = sentencepiece.SentencePieceProcessor(model_file=job["pieces"])
    with TemporaryDirectory(dir=job["scratch"]) as folder:
        watched, train_data, validation_data, how = manager(job, folder)
        marks, updates = MinutesMarks(job["minutes"]), 0

        def translate() -> list[str]:
            answers = predict(watched.model, validation_data, watched.device, 0, args=how, autocast=watched.autocast)
            watched.model.train()
            return list(pieces.decode([[piece for piece in row if piece != "</s>"] for row in answers[3]]))

        def between(*_: int) -> None:
            nonlocal updates
            updates += 1
            if marks.look(updates, translate):
                raise Enough

        watched.watch(between)
        try:
            watched.train_and_validate(train_data, validation_data)
        except Enough:
            pass
    return {"points": marks.points, "version": VERSION}


if __name__ == "__main__":
    adapter.serve(train=train, quality=quality)
