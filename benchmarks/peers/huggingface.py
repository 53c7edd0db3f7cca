"""Peer: Hugging Face transformers. Training is MarianMTModel, by its Trainer or fed with the same bucketed batches as `nn.Transformer`.

Decoding is `generate` twice: Marian, which is post-norm and cannot carry Kente's weights, with random weights and answers forced to one length;
and the Pegasus classes, which are the same decoder with the norm before each sub-layer, with Kente's own weights.
"""

from __future__ import annotations

import json
import sys
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

from benchmarks.peers import adapter
from benchmarks.peers.adapter import Job, Meter, Result
from benchmarks.peers.ids import Pair, counts, padded, read_pairs, tensors, token_batches
from benchmarks.shapes import BOS, EOS, PAD, SMOOTHING, Shape

transformers.logging.set_verbosity_error()
IGNORED = -100
"""What a label must be for the Trainer's loss to pass it over."""


def settings(shape: Shape, vocabulary: int, dropout: float) -> dict[str, Any]:
    """A model's configuration in transformers' words."""
    return {
        "vocab_size": vocabulary,
        "d_model": shape.width,
        **{f"{side}_layers": shape.layers for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": shape.feedforward for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": shape.heads for side in ("encoder", "decoder")},
        "dropout": dropout,
        "activation_function": "relu",
        "scale_embedding": True,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "bos_token_id": BOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": None,
        "max_position_embeddings": 512,
    }


def marian(job: Job, dropout: float) -> transformers.MarianMTModel:
    torch.set_num_threads(job["threads"])
    torch.manual_seed(job["seed"])
    config = transformers.MarianConfig(**settings(Shape(**job["shape"]), job["vocabulary"], dropout))
    return transformers.MarianMTModel(config)


def train(job: Job) -> Result:
    model = marian(job, job["dropout"])
    pairs = read_pairs(job["corpus"])
    meter = Meter(job["warmup"], job["updates"])
    (with_trainer if job["loop"] == "trainer" else with_own_loop)(model, pairs, job, meter)
    return meter.result(version=transformers.__version__, parameters=sum(p.numel() for p in model.parameters()))


def with_own_loop(model: nn.Module, pairs: list[Pair], job: Job, meter: Meter) -> None:
    """The very batches and loop of the nn.Transformer peer."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0, fused=True)
    model.train()
    for batch in token_batches(pairs, job["batch_tokens"], job["seed"]):
        source, before, output = tensors(batch)
        logits = model(input_ids=source, attention_mask=source != PAD, decoder_input_ids=before).logits
        loss = F.cross_entropy(logits.flatten(0, 1), output.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if meter.updated(*counts(batch)):
            return


def with_trainer(model: nn.Module, pairs: list[Pair], job: Job, meter: Meter) -> None:
    """Seq2SeqTrainer as people use it: a fixed number of sentences, grouped by length, about `batch_tokens` target tokens."""
    usual = sum(len(target) + 1 for _, target in pairs) / len(pairs)
    waiting: list[tuple[int, int, int]] = []  # what each batch holds, in the order they will be used

    def collate(rows: list[dict[str, list[int]]]) -> dict[str, Tensor]:
        batch = [(row["input_ids"][:-1], row["labels"][:-1]) for row in rows]
        waiting.append(counts(batch))
        source, before, labels = tensors(batch)
        labels[labels == PAD] = IGNORED
        mask = (source != PAD).long()
        return {"input_ids": source, "attention_mask": mask, "decoder_input_ids": before, "labels": labels}

    class Watch(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if meter.updated(*waiting.pop(0)):
                control.should_training_stop = True

    with TemporaryDirectory(dir=job["scratch"]) as folder:
        arguments = transformers.Seq2SeqTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=round(job["batch_tokens"] / usual),
            train_sampling_strategy="group_by_length",
            label_smoothing_factor=SMOOTHING,
            learning_rate=1e-3,
            max_steps=10_000,
            seed=job["seed"],
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        )
        rows = [{"input_ids": [*source, EOS], "labels": [*target, EOS]} for source, target in pairs]
        transformers.Seq2SeqTrainer(
            model, arguments, data_collator=collate, train_dataset=rows, callbacks=[Watch()]
        ).train()


# --- decoding ---


def convert(job: Job) -> Result:
    """Kente's weights as a Pegasus model that `from_pretrained` reads."""
    shape = Shape(**job["shape"])
    config = transformers.PegasusConfig(**settings(shape, job["vocabulary"], dropout=0.0))
    model = transformers.PegasusForConditionalGeneration(config).eval()
    arrays = {name: torch.from_numpy(array) for name, array in np.load(job["weights"]).items()}
    state = {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
    put(state, "model.shared.weight", arrays["embedding"])
    for side in ("encoder", "decoder"):
        put(state, f"model.{side}.embed_tokens.weight", arrays["embedding"])
        put(state, f"model.{side}.embed_positions.weight", arrays["positions"][: config.max_position_embeddings])
        for layer in range(shape.layers):
            put_layer(state, arrays, side, layer)
        for kind in ("weight", "bias"):
            put(state, f"model.{side}.layer_norm.{kind}", arrays[f"{side}.norm.{kind}"])
    put(state, "lm_head.weight", arrays["embedding"])
    model.load_state_dict(state)
    model.save_pretrained(job["folder"])
    return {"version": transformers.__version__}


def put(state: dict[str, Tensor], name: str, tensor: Tensor) -> None:
    assert state[name].shape == tensor.shape, (name, state[name].shape, tensor.shape)
    state[name] = tensor.clone()


def put_layer(state: dict[str, Tensor], arrays: dict[str, Tensor], side: str, layer: int) -> None:
    ours, theirs = f"{side}.{layer}", f"model.{side}.layers.{layer}"
    attentions = {"self": "self_attn"} | ({"cross": "encoder_attn"} if side == "decoder" else {})
    for name, module in attentions.items():
        if name == "self":
            parts = arrays[f"{ours}.self.query_key_value"].chunk(3)
        else:
            parts = (arrays[f"{ours}.cross.query"], *arrays[f"{ours}.cross.key_value"].chunk(2))
        for letter, part in zip("qkv", parts, strict=True):
            put(state, f"{theirs}.{module}.{letter}_proj.weight", part)
        put(state, f"{theirs}.{module}.out_proj.weight", arrays[f"{ours}.{name}.output"])
        for kind in ("weight", "bias"):
            put(state, f"{theirs}.{module}_layer_norm.{kind}", arrays[f"{ours}.{name}.norm.{kind}"])
    for kind in ("weight", "bias"):
        put(state, f"{theirs}.final_layer_norm.{kind}", arrays[f"{ours}.feedforward.norm.{kind}"])
        put(state, f"{theirs}.fc1.{kind}", arrays[f"{ours}.feedforward.inner.{kind}"])
        put(state, f"{theirs}.fc2.{kind}", arrays[f"{ours}.feedforward.outer.{kind}"])


class Engine:
    """`generate` behind the one interface: lines in, lines out."""

    def __init__(self, job: Job):
        torch.set_num_threads(job["threads"])
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=job["pieces"])
        self.beam, self.forced = job["beam"], job.get("forced_tokens")
        self.length_rule = adapter.length_rule(job)
        if self.forced:
            self.model: Any = marian(job, dropout=0.0).eval()
        else:
            self.model = transformers.PegasusForConditionalGeneration.from_pretrained(job["folder"]).eval()

    @torch.inference_mode()
    def search(self, sources: list[list[int]]) -> list[list[int]]:
        source = padded(sources)
        if self.forced:
            limits = {"min_new_tokens": self.forced, "max_new_tokens": self.forced}
        else:
            limits = {"max_new_tokens": 2 * source.shape[1] + 10}
        answers = self.model.generate(
            input_ids=source,
            attention_mask=source != PAD,
            num_beams=self.beam,
            do_sample=False,
            **limits,
            **self.length_rule,
        )
        return [[i for i in row if i not in (PAD, BOS, EOS)] for row in answers[:, 1:].tolist()]

    def translate(self, lines: list[str]) -> list[str]:
        sources = [[*ids, EOS] for ids in self.pieces.encode(lines)]
        return list(self.pieces.decode(adapter.in_length_order(sources, 128 if self.beam == 1 else 32, self.search)))


def forced(job: Job, result: Result) -> Result:
    """Answers that were forced to a length say nothing, but how many tokens there were is known."""
    result["version"] = transformers.__version__
    if job.get("forced_tokens"):
        result["output_tokens"] = job["forced_tokens"] * len(result.pop("texts"))
    return result


def translate(job: Job) -> Result:
    return forced(job, adapter.timed_translation(job, Engine(job).translate))


def latency(job: Job) -> Result:
    return forced(job, adapter.timed_latency(job, Engine(job).translate))


if __name__ == "__main__":
    if sys.argv[1:2] == ["start"]:
        start = json.loads(sys.argv[2])
        print(Engine(start).translate([start["text"]])[0], flush=True)
    else:
        adapter.serve(train=train, convert=convert, translate=translate, latency=latency)
