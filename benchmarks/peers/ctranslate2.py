"""Peer: CTranslate2, with Kente's weights put into its own TransformerSpec. It decodes only."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import sentencepiece
from ctranslate2.specs import common_spec, transformer_spec

from benchmarks.peers import adapter
from benchmarks.peers.adapter import Job, Result


def convert(job: Job) -> Result:
    """Kente's weights as a CTranslate2 model in each of the types asked for."""
    shape, arrays = job["shape"], dict(np.load(job["weights"]).items())
    pieces = Path(job["vocabulary_file"]).read_text(encoding="utf-8").split("\n")[:-1]
    for kind in job["types"]:
        spec = transformer_spec.TransformerSpec.from_config(
            num_layers=(shape["layers"], shape["layers"]),
            num_heads=shape["heads"],
            pre_norm=True,
            activation=common_spec.Activation.RELU,
        )
        fill(spec, arrays, shape["layers"])
        spec.register_source_vocabulary(pieces)
        spec.register_target_vocabulary(pieces)
        spec.config.add_source_eos = True
        spec.config.decoder_start_token = "<s>"
        folder = Path(job["folder"]) / kind
        folder.mkdir(parents=True, exist_ok=True)
        spec.validate()
        spec.optimize(quantization=None if kind == "float32" else kind)
        spec.save(str(folder))
    return {"version": ctranslate2.__version__}


def fill(spec: Any, arrays: dict[str, np.ndarray], layers: int) -> None:
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = part.embeddings[0] if side == "encoder" else part.embeddings
        embeddings.weight = arrays["embedding"]
        part.position_encodings.encodings = arrays["positions"]
        norm(part.layer_norm, arrays, f"{side}.norm")
        for layer in range(layers):
            ours, theirs = f"{side}.{layer}", part.layer[layer]
            attention = theirs.self_attention
            norm(attention.layer_norm, arrays, f"{ours}.self.norm")
            attention.linear[0].weight = arrays[f"{ours}.self.query_key_value"]
            attention.linear[1].weight = arrays[f"{ours}.self.output"]
            if side == "decoder":
                cross = theirs.attention
                norm(cross.layer_norm, arrays, f"{ours}.cross.norm")
                for place, name in enumerate(("query", "key_value", "output")):
                    cross.linear[place].weight = arrays[f"{ours}.cross.{name}"]
            norm(theirs.ffn.layer_norm, arrays, f"{ours}.feedforward.norm")
            for linear, name in ((theirs.ffn.linear_0, "inner"), (theirs.ffn.linear_1, "outer")):
                linear.weight = arrays[f"{ours}.feedforward.{name}.weight"]
                linear.bias = arrays[f"{ours}.feedforward.{name}.bias"]
    spec.decoder.projection.weight = arrays["embedding"]


def norm(spec: Any, arrays: dict[str, np.ndarray], name: str) -> None:
    spec.gamma, spec.beta = arrays[f"{name}.weight"], arrays[f"{name}.bias"]


class Engine:
    """One way of running it: the type of its weights, workers x threads, and how many sentences (or tokens) at once."""

    def __init__(self, job: Job, workers: int, threads: int, batch: int, batch_type: str = "examples"):
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=job["pieces"])
        self.translator = ctranslate2.Translator(
            str(Path(job["folder"]) / job["type"]),
            compute_type=job["type"],
            inter_threads=workers,
            intra_threads=threads,
        )
        self.how = {
            "beam_size": job["beam"],
            "max_batch_size": batch,
            "batch_type": batch_type,
            **adapter.length_rule(job),
        }

    def translate(self, lines: list[str]) -> list[str]:
        sources = self.pieces.encode(lines, out_type=str)
        longest = 2 * (max(map(len, sources)) + 1) + 10
        answers = self.translator.translate_batch(sources, max_decoding_length=longest, **self.how)
        return list(self.pieces.decode([answer.hypotheses[0] for answer in answers]))


def modes(job: Job) -> Result:
    """Every way of running it, each timed once or twice: which one the rounds should use."""
    lines = adapter.read_lines(job["source"], job["sentences"])
    found = []
    for workers, threads in job["thread_modes"]:
        for batch, batch_type in job["batches"]:
            engine = Engine(job, workers, threads, batch, batch_type)
            engine.translate(lines[: len(lines) // 4])
            best = float("inf")
            for _ in range(job["repeats"]):
                began = time.perf_counter()
                engine.translate(lines)
                best = min(best, time.perf_counter() - began)
            mode = {"workers": workers, "threads": threads, "batch": batch, "batch_type": batch_type}
            found.append({**mode, "sentences_per_second": len(lines) / best})
    return {"modes": found, "version": ctranslate2.__version__}


def translate(job: Job) -> Result:
    result = adapter.timed_translation(job, Engine(job, **job["mode"]).translate)
    return result | {"version": ctranslate2.__version__, "mode": job["mode"]}


def latency(job: Job) -> Result:
    """One sentence at a time needs one worker; it gets the number of threads that is quicker. Each choice is tried with no other one's threads
    about: those of two teams would wait for each other."""
    lines = adapter.read_lines(job["source"], 40)
    medians = {}
    for threads in job["thread_choices"]:
        engine = Engine(job, 1, threads, 1)
        times = []
        for line in lines:
            began = time.perf_counter()
            engine.translate([line])
            times.append(time.perf_counter() - began)
        medians[threads] = adapter.quantile(times[len(times) // 2 :], 0.5)
        del engine
    threads = min(medians, key=lambda choice: medians[choice])
    result = adapter.timed_latency(job, Engine(job, 1, threads, 1).translate)
    tried = {str(choice): round(1000 * seconds, 2) for choice, seconds in medians.items()}
    return result | {"version": ctranslate2.__version__, "threads": threads, "tried_milliseconds": tried}


if __name__ == "__main__":
    if sys.argv[1:2] == ["start"]:
        start = json.loads(sys.argv[2])
        print(Engine(start, 1, 1, 1).translate([start["text"]])[0], flush=True)
    else:
        adapter.serve(convert=convert, modes=modes, translate=translate, latency=latency)
