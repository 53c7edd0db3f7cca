"""Runs as ONNX graphs: run in numpy after the standard's text, and by onnxruntime where it is installed, they say what the run says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from kente.config import ConvConfig, IntraAttentionConfig, RecurrentConfig, TokenizerConfig, TransformerConfig
from kente.decode.answers import length_penalty, most_tokens
from kente.errors import UsageError
from kente.export.onnx import export, obstacle
from kente.export.onnx_graph import Graph

PAD, UNK, BOS, EOS = 0, 1, 2, 3
FIXED = RecurrentConfig(width=12, embedding=10, attention="none", bidirectional="none")
ATTENTIVE = RecurrentConfig(width=12, embedding=10)
TRANSFORMER = TransformerConfig(encoder_layers=2, decoder_layers=3, width=24, feedforward=40, heads=4, max_length=64)
RECURRENT = {
    "rnn": replace(FIXED, cell="rnn"),
    "lstm": replace(FIXED, cell="lstm", encoder_layers=2, decoder_layers=2, tie="target"),
    "gru": FIXED,
    "minimal": replace(FIXED, cell="minimal", bidirectional="all", decoder_layers=2),
    "reset bias": replace(FIXED, reset_bias=True, bidirectional="first", encoder_layers=2),
    "repeated context": replace(FIXED, cell="lstm", repeat_context=True, bidirectional="all", tie="none"),
    "words as they are": replace(FIXED, embedding=0, tie="none"),
    "additive": ATTENTIVE,
    "additive minimal": replace(ATTENTIVE, cell="minimal", encoder_layers=2),
    "bilinear": replace(ATTENTIVE, attention="bilinear", cell="lstm", tie="none"),
    "dot": replace(ATTENTIVE, attention="dot", bidirectional="none", cell="rnn"),
    "projected": replace(ATTENTIVE, attention="projected", cell="lstm", tie="target", reset_bias=False),
    "gnmt": replace(
        ATTENTIVE,
        cell="lstm",
        encoder_layers=4,
        decoder_layers=4,
        bidirectional="first",
        residual=True,
        context_to="all",
    ),
}
TRANSFORMERS = {
    "paper": TRANSFORMER,
    "pre rms swiglu": replace(TRANSFORMER, norm_place="pre", norm="rms", activation="swiglu", tie="none"),
    "learned gelu": replace(TRANSFORMER, positions="learned", activation="gelu", tie="target"),
    "rotary": replace(TRANSFORMER, positions="rotary", norm_place="pre"),
    "relative": replace(TRANSFORMER, positions="relative", relative_distance=3),
    "alibi": replace(TRANSFORMER, positions="alibi", heads=6),
    "none": replace(TRANSFORMER, positions="none", decoder_layers=1),
    "marian": replace(TRANSFORMER, positions="sinusoid-halves", activation="silu", biases=True, output_bias=True),
    "m2m100": replace(
        TRANSFORMER, norm_place="pre", positions="sinusoid-fairseq", biases=True, output_bias=True, tie="target"
    ),
    "unscaled": replace(
        TRANSFORMER, scaled=False, norm_epsilon=1e-3, activation="gelu-tanh", tie="none", output_bias=True
    ),
}
MODELS = RECURRENT | TRANSFORMERS


@pytest.fixture(scope="module")
def exported(make: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Any, Path]]:
    """(the run, where its graphs are)"""
    folders: dict[str, tuple[Any, Path]] = {}

    def of(name: str) -> tuple[Any, Path]:
        if name not in folders:
            made = make(MODELS[name])
            folders[name] = made, export(made.path, tmp_path_factory.mktemp("onnx") / "model")
        return folders[name]

    return of


def written_by(start: Callable[..., Any], step: Callable[..., Any], sources: list[list[int]], targets: list[list[int]]):
    """Log-probabilities (B, T, V) by the two graphs, sentences side by side, each target word given."""
    width = max(map(len, sources)) + 1
    source = np.array([[*ids, EOS, *[PAD] * (width - 1 - len(ids))] for ids in sources], np.int64)
    state, found = start(source), []
    for tokens in zip(*([BOS, *target] for target in targets), strict=True):
        scores, state = step(state, np.array(tokens, np.int64))
        found.append(scores)
    return np.stack(found, axis=1)


def random_pairs(made: Any) -> tuple[list[list[int]], list[list[int]]]:
    draw = np.random.default_rng(3).integers
    sources = [draw(EOS + 1, made.tokenizers.source.size, length).tolist() for length in (7, 1, 15)]
    targets = [draw(EOS + 1, made.tokenizers.target.size, 6).tolist() for _ in sources]
    return sources, targets


def assert_alike(made: Any, found: Any, sources: list[list[int]], targets: list[list[int]]) -> None:
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        wanted = made.log_probabilities(source, target)
        assert torch.allclose(torch.tensor(found[row]), wanted, atol=1e-4), float(
            (torch.tensor(found[row]) - wanted).abs().max()
        )


@pytest.mark.parametrize("name", MODELS)
def test_the_graphs_mean_what_the_model_says(name: str, exported: Any, onnx_in_numpy: SimpleNamespace) -> None:
    made, folder = exported(name)
    encoder, decoder = (onnx_in_numpy.Model((folder / f"{part}.onnx").read_bytes()) for part in ("encoder", "decoder"))

    def step(state: dict[str, Any], tokens: Any) -> tuple[Any, dict[str, Any]]:
        found = decoder.run(**state, token=tokens)
        after = {name.removeprefix("next_"): value for name, value in found.items() if name.startswith("next_")}
        if "attention" in found:
            assert np.allclose(found["attention"].sum(-1), 1) and not found["attention"][~state["mask"]].any()
        return found["log_probabilities"], {**state, **after}

    sources, targets = random_pairs(made)
    found = written_by(lambda source: encoder.run(source=source), step, sources, targets)
    assert_alike(made, found, sources, targets)


@pytest.mark.parametrize("name", MODELS)
def test_onnxruntime_says_what_the_model_says(name: str, exported: Any) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (benchmarks/peers/onnxruntime.txt)")
    from kente.export.onnx_runner import Model

    made, folder = exported(name)
    model = Model(folder)
    sources, targets = random_pairs(made)
    assert_alike(made, written_by(model.start, model.step, sources, targets), sources, targets)


@pytest.mark.parametrize("name", ["gru", "gnmt", "relative"])
def test_the_file_beside_the_graphs_translates_on_its_own(name: str, exported: Any, lines: list[str]) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (benchmarks/peers/onnxruntime.txt)")
    made, folder = exported(name)
    wanted, lines = [], [lines[0], *lines[-4:]]
    for line in lines:
        ids = made.source_ids(line)[:47]
        cap = most_tokens(len(ids) + 1, made.config.decode.max_ratio, 63 if name == "relative" else None)
        wanted.append(made.tokenizers.target.decode(made.greedy(ids, cap)))
    command = [sys.executable, "-I", str(folder / "translate.py"), "--beam", "1", *lines]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n")[:-1] == [text.replace("\n", " ") for text in wanted], done.stderr


# ---------------------------------------------------------------- the runner's search, on graphs run by numpy


class InNumpy:
    """What the runner asks of onnxruntime, by numpy."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name, *_ in self.model.inputs]

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name, *_ in self.model.outputs]

    def run(self, _: None, given: dict[str, Any]) -> list[Any]:
        return list(self.model.run(**given).values())


@pytest.fixture
def runner(exported: Any, onnx_in_numpy: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    def session(path: Path, providers: list[str]) -> InNumpy:
        return InNumpy(onnx_in_numpy.Model(path.read_bytes()))

    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(InferenceSession=session))
    from kente.export.onnx_runner import Model

    return lambda name: Model(exported(name)[1])


@pytest.mark.parametrize("name", ["additive", "paper"])
def test_the_runner_cuts_text_as_the_run_does_and_writes_what_a_plain_loop_writes(
    name: str, exported: Any, runner: Callable[[str], Any], lines: list[str]
) -> None:
    made, model = exported(name)[0], runner(name)
    assert [model.source.encode(line) for line in lines] == [made.source_ids(line) for line in lines]
    for line in lines[:3]:
        ids = made.source_ids(line)
        cap = most_tokens(len(ids) + 1, made.config.decode.max_ratio, 63 if name == "paper" else None)
        answer = made.greedy(ids, cap)
        assert model.search(ids, beam=1)[0] == answer
        assert model.translate(line, beam=1) == made.tokenizers.target.decode(answer)
    assert model.translate("  ") == ""


def test_a_beam_finds_answers_that_are_no_worse_and_knows_their_probability(
    exported: Any, runner: Callable[[str], Any], lines: list[str]
) -> None:
    made, model = exported("additive")[0], runner("additive")
    for line in lines[:4]:
        ids = made.source_ids(line)
        scores = []
        for beam in (1, 4):
            answer, total = model.search(ids, beam=beam)
            places = torch.tensor([*answer, EOS])[:, None]
            exact = float(made.log_probabilities(ids, answer).gather(1, places).sum())
            assert total == pytest.approx(exact, abs=1e-3)
            scores.append(total / length_penalty(len(answer) + 1.0, made.config.decode.length_penalty))
        assert scores[1] >= scores[0] - 1e-6


# ---------------------------------------------------------------- files and refusals


def test_other_tokenizers_are_read_by_the_runner_too(
    make: Callable[..., Any],
    tmp_path: Path,
    onnx_in_numpy: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[str],
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(InferenceSession=lambda *_, **__: None))
    from kente.export.onnx_runner import Model

    for kind in ("characters", "words", "bpe"):
        tokenizer = TokenizerConfig(kind=kind, joint=False, vocabulary=360 if kind == "bpe" else 0)
        made = make(replace(ATTENTIVE, tie="target"), tokenizer)
        model = Model(export(made.path, tmp_path / kind))
        for line in lines:
            ids = made.source_ids(line)
            assert model.source.encode(line) == ids
            known = [i for i in made.tokenizers.target.encode("L'éàü voit le café .") if i > EOS]
            assert model.target.decode(known) == made.tokenizers.target.decode(known)


def test_a_folder_holds_graphs_tokenizer_runner_and_words_about_them(exported: Any) -> None:
    _, folder = exported("additive")
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "decoder.onnx",
        "encoder.onnx",
        "model.json",
        "tokenizer",
        "translate.py",
    }
    assert json.loads((folder / "model.json").read_text())["beam"] == 2
    assert "next_state, attention" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (ConvConfig(), "there are graphs for recurrent models and Transformers, and this is a conv model"),
        (IntraAttentionConfig(), "there are graphs for recurrent models and Transformers, and this is a lstmn model"),
        (
            replace(TRANSFORMER, span="memory"),
            "there is no graph for attention to less than everything (model.span = memory)",
        ),
        (
            replace(TRANSFORMER, positions="xl"),
            "there is no graph for positions of Transformer-XL (model.positions = xl)",
        ),
        (
            replace(TRANSFORMER, norm_place="pre", activations="reversible"),
            "there is no graph for reversible layers (model.activations = reversible)",
        ),
        (replace(TRANSFORMER, experts=4), "there is no graph for a mixture of experts (model.experts = 4)"),
    ],
)
def test_what_has_no_graph_is_refused(config: Any, why: str, make: Callable[..., Any], tmp_path: Path) -> None:
    assert obstacle(config) == why
    run = make(replace(config, **({"embedding": 8} if hasattr(config, "embedding") else {}))).path
    with pytest.raises(UsageError) as caught:
        export(run, tmp_path / "out")
    assert str(caught.value) == f"{run} cannot be exported to ONNX: {why}" and not list(tmp_path.iterdir())


def test_numbers_of_every_size_are_written_as_the_standard_has_them(onnx_in_numpy: SimpleNamespace) -> None:
    graph = Graph("numbers")
    big = np.array([-(2**63), -1, 0, 1, 127, 128, 2**62], np.int64)
    x = graph.input("x", "int64", ("n",))
    graph.output("y", x + big, ("n",), "int64")
    graph.output("z", x.cast("float32").op("Softmax", axis=-1), (len(big),))
    model = onnx_in_numpy.Model(graph.to_bytes({"note": "ẹ̀"}))
    found = model.run(x=np.zeros(len(big), np.int64))
    assert found["y"].tolist() == big.tolist() and found["z"].sum() == pytest.approx(1)
    assert model.metadata == {"note": "ẹ̀"} and [sizes for *_, sizes in model.outputs] == [["n"], [7]]


def test_a_constant_used_twice_is_written_once(onnx_in_numpy: SimpleNamespace) -> None:
    graph, table = Graph("twice"), np.ones((50, 3), np.float32)
    ids = graph.input("ids", "int64", ("n",))
    hidden = graph.op("Gather", table, ids, axis=0) * 2.0 + 2.0
    graph.output("y", graph.linear(hidden, table), ("n", 50))
    model = onnx_in_numpy.Model(graph.to_bytes())
    assert sorted(array.shape for array in model.constants.values()) == [(), (50, 3)]
    assert (model.run(ids=np.array([4]))["y"] == 12).all()
