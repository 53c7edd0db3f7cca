"""A run folder: whole or not there, verified before use, and clear about what is wrong."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import Tensor, nn

from kente.checkpoints import write_safetensors
from kente.config import Config, TokenizerConfig, TransformerConfig
from kente.configfile import config_hash
from kente.data.tokenizer import Tokenizers, train_tokenizers
from kente.durable import free_bytes, size_text
from kente.errors import DiskFull, Diverged, RunError
from kente.models.build import build
from kente.reporting import Reporter
from kente.runs import Run, Score, environment, load_weights, weights_sha256

TINY = Config(
    model=TransformerConfig(encoder_layers=1, decoder_layers=1, width=8, feedforward=8, heads=2),
    tokenizer=TokenizerConfig(kind="characters"),
)


class Ears(Reporter):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", TINY)


def tensors(value: float = 1.0) -> dict[str, dict[str, Tensor]]:
    return {"model": {"a": torch.full((3, 2), value), "b": torch.arange(4)}, "optim": {"a.moment": torch.rand(3, 2)}}


def scored(value: float | None, **more: Any) -> dict[str, Any]:
    return {"score": None if value is None else dataclasses.asdict(Score("bleu", value, **more))}


def steps(run: Run) -> list[int]:
    return [checkpoint.step for checkpoint in run.checkpoints()]


def message(call: Any, *arguments: Any, error: type[Exception] = RunError, **keywords: Any) -> str:
    with pytest.raises(error) as caught:
        call(*arguments, **keywords)
    return str(caught.value)


# ---------------------------------------------------------------- beginning and finding


def test_a_run_is_found_again_with_its_settings(tmp_path: Path) -> None:
    made = Run.create(tmp_path / "deep" / "run", TINY)
    found = Run.open(str(made.path))
    assert found.config == TINY and found.path == made.path
    found.write_config(Config())
    assert Run.open(made.path).config == found.config == Config()


def test_a_second_run_in_the_same_folder_is_refused(run: Run) -> None:
    assert message(Run.create, run.path, TINY) == (
        f"{run.path} already holds a run; continue it with `kente train --resume {run.path}`, or choose another folder"
    )


def test_a_folder_of_someone_else_is_refused(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        (tmp_path / name).touch()
    assert "is not empty and is not a run (it holds a.txt, b.txt, c.txt, ...)" in message(Run.create, tmp_path, TINY)
    assert "is a file; a run needs a folder of its own" in message(Run.create, tmp_path / "a.txt", TINY)
    assert not (tmp_path / "config.toml").exists()


def test_what_a_killed_create_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".part-config.toml-123").touch()
    assert Run.create(tmp_path, TINY).config == TINY


def test_force_begins_anew_and_leaves_what_is_not_the_runs(run: Run) -> None:
    run.save(1, tensors(), {}, keep=1)
    run.append("metrics", {"step": 1})
    (run.path / "notes.txt").write_text("mine")
    again = Run.create(run.path, Config(), force=True)
    assert again.config == Config() and again.checkpoints() == [] and again.read("metrics") == []
    assert (run.path / "notes.txt").read_text() == "mine"


def test_force_does_not_take_a_run_from_its_trainer(run: Run) -> None:
    with run.lock():
        assert f"is being trained by process {os.getpid()}" in message(Run.create, run.path, Config(), force=True)
    assert Run.open(run.path).config == TINY


def test_a_name_that_is_nearly_right_gets_a_hint(run: Run) -> None:
    folder = run.path.parent
    assert message(Run.open, folder / "rum") == f"there is no run {folder / 'rum'}; did you mean {run.path}?"
    assert (
        message(Run.open, folder)
        == f"{folder} is not a run: it is a folder without config.toml; did you mean {run.path}?"
    )
    inside = run.save(3, tensors(), {}, keep=1).path
    assert message(Run.open, inside).endswith(f"did you mean {run.path}?")
    (folder / "text").touch()
    assert f"{folder / 'text'} is not a run: it is a file" in message(Run.open, folder / "text")
    assert message(Run.open, folder / "x" / "y").endswith("`kente train --source F --target F --out RUN` makes one")


# ---------------------------------------------------------------- the lock


def test_two_trainers_on_one_run_refuse(run: Run) -> None:
    code = f"from kente.runs import Run\nwith Run.open({str(run.path)!r}).lock():\n    print('held', flush=True)\n    input()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdin and other.stdout
    with other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=f"being trained by process {other.pid}; wait for it"), run.lock():
            pass
        other.send_signal(signal.SIGKILL)  # the kernel lets go of the lock
        other.wait()
        with run.lock():
            pass
    with run.lock():
        pass


# ---------------------------------------------------------------- saving and keeping


def test_what_is_saved_is_what_is_loaded(run: Run) -> None:
    before = tensors()
    state = {"third": 1 / 3, "best": -math.inf, "list": [1, {"a": None}], "text": "ɛyɛ"}
    saved = run.save(7, before, state, keep=1)
    found = run.latest()
    assert (
        found is not None and found.step == 7 and found.path == saved.path == run.path / "checkpoints" / "step-00000007"
    )
    assert found.state == state and found.has("optim") and not found.has("average")
    assert sorted(found.groups) == ["model", "optim"]
    for group, wanted in before.items():
        assert weights_sha256(found.load(group)) == weights_sha256(wanted)
    assert "holds no average; it holds model, optim" in message(found.load, "average")
    assert repr(found) == f"Checkpoint({str(saved.path)!r})"


def test_the_manifest_says_what_it_was_made_by(run: Run) -> None:
    manifest = run.save(7, tensors(), {}, keep=1).manifest
    assert manifest["step"] == 7 and manifest["world_size"] == 1 and manifest["threads"] == torch.get_num_threads()
    assert manifest["config_sha256"] == config_hash(TINY) and manifest["model_sha256"] == config_hash(TINY.model)
    assert manifest["versions"]["torch"] == torch.__version__ and manifest["tokenizer_sha256"] == ""
    assert set(manifest["files"]) == {"model.safetensors", "optim.safetensors", "state.json"}


def test_the_last_and_the_best_are_kept(run: Run) -> None:
    for step, score in enumerate([5.0, 9.0, 7.0, None, 8.0], 1):
        run.save(step, tensors(step), scored(score), keep=2)
    assert steps(run) == [2, 4, 5]
    best, latest = run.best(), run.latest()
    assert best is not None and best.step == 2 and best.score == Score("bleu", 9.0)
    assert latest is not None and latest.step == 5


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([Score("bleu", 5.0), Score("bleu", 5.0)], 2),  # of equals the newer
        ([Score("loss", 1.0, higher_is_better=False), Score("loss", 2.0, higher_is_better=False)], 1),
        ([Score("bleu", 5.0), Score("bleu", math.nan)], 1),
        ([Score("loss", 1.0, higher_is_better=False), Score("bleu", 0.5)], 2),  # only like is compared with like
        ([Score("bleu", 5.0), None], 1),
        ([None, None], 2),
    ],
)
def test_which_is_best(run: Run, scores: list[Score | None], best: int) -> None:
    for step, score in enumerate(scores, 1):
        run.save(step, tensors(step), {"score": dataclasses.asdict(score) if score else None}, keep=5)
    found = run.best()
    assert found is not None and found.step == best


def test_a_better_score() -> None:
    assert Score("bleu", 2.0).better_than(Score("bleu", 1.0)) and not Score("bleu", 1.0).better_than(Score("bleu", 1.0))
    assert Score("loss", 1.0, higher_is_better=False).better_than(Score("loss", 2.0, higher_is_better=False))
    assert Score("bleu", 0.0).better_than(None) and Score("bleu", 0.0).better_than(Score("bleu", math.nan))
    assert not Score("bleu", math.nan).better_than(Score("bleu", math.nan))  # or early stopping would never come
    assert not Score("bleu", math.nan).better_than(Score("bleu", 0.0))


def test_before_the_first_checkpoint_there_is_none(run: Run) -> None:
    assert run.checkpoints() == [] and run.latest() is None and run.best() is None


def test_a_checkpoint_is_never_overwritten(run: Run) -> None:
    same = tensors()
    first = run.save(1, same, {"n": 1}, keep=1)
    inode = (first.path / "model.safetensors").stat().st_ino
    assert run.save(1, same, {"n": 2}, keep=1).path == first.path  # the same weights: what stands is good
    assert (first.path / "model.safetensors").stat().st_ino == inode and first.state == {"n": 1}
    assert "exists already and holds other weights; a checkpoint is never overwritten" in message(
        run.save, 1, tensors(2.0), {}, keep=1
    )
    assert first.problem() is None and os.listdir(run.path / "checkpoints") == ["step-00000001"]


def test_a_damaged_checkpoint_makes_way_for_the_same_step(run: Run) -> None:
    first = run.save(1, tensors(1.0), {}, keep=1)
    (first.path / "model.safetensors").write_bytes(b"damaged")
    ears = Ears()
    second = run.save(1, tensors(2.0), {}, keep=1, reporter=ears)
    assert second.problem() is None and second.load("model")["a"][0, 0] == 2.0
    assert len(ears.warnings) == 1 and "model.safetensors is damaged: it has 7 bytes" in ears.warnings[0]


def test_damaged_checkpoints_do_not_count_among_the_kept(run: Run) -> None:
    for step in (1, 2, 3):
        run.save(step, tensors(step), {}, keep=3)
    (run.path / "checkpoints" / "step-00000003" / "MANIFEST.json").unlink()
    run.save(4, tensors(4), {}, keep=2)
    assert steps(run) == [2, 4]


@pytest.mark.parametrize(("group", "value"), [("model", math.nan), ("average", math.inf)])
def test_no_checkpoint_holds_a_non_finite_weight(run: Run, group: str, value: float) -> None:
    run.save(1, tensors(), {}, keep=1)
    bad = {**tensors(), group: {"w": torch.tensor([1.0, value])}}
    assert message(run.save, 2, bad, {}, keep=1, error=Diverged) == (
        f"w ({group}) is not finite at step 2: not saved; the checkpoint before it stands"
    )
    assert steps(run) == [1]


def test_a_failed_save_leaves_nothing(run: Run) -> None:
    run.save(1, tensors(), {}, keep=1)
    with pytest.raises(TypeError, match="not JSON serializable"):
        run.save(2, tensors(), {"object": object()}, keep=1)
    with pytest.raises(TypeError, match=r"x is a torch\.sparse_coo tensor"):
        run.save(2, {"model": {}, "optim": {"x": torch.eye(2).to_sparse()}}, {}, keep=1)
    assert os.listdir(run.path / "checkpoints") == ["step-00000001"]


def test_room_is_asked_for_before_the_run(run: Run) -> None:
    run.check_room(1000, keep=2)
    free = free_bytes(run.path)
    text = message(run.check_room, free // 3, keep=2, error=DiskFull)
    assert text.startswith(f"no room for checkpoints in {run.path / 'checkpoints'}: 4 of {size_text(free // 3)} need")
    assert "bytes" in text and "--set train.keep=1" in text


@pytest.mark.parametrize(
    ("size", "text"),
    [(999, "999 bytes"), (1_234_567, "1.2 MB"), (5e9, "5.0 GB"), (2e12, "2.0 TB"), (2e15, "2000.0 TB")],
)
def test_sizes_for_people(size: float, text: str) -> None:
    assert size_text(size) == text


# ---------------------------------------------------------------- tensors as bytes: the library is the oracle

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
]


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5).filter(lambda name: name != "__metadata__" and name.isprintable()),
        st.tuples(st.sampled_from([*DTYPES, torch.uint8, torch.bool]), st.lists(st.integers(0, 3), max_size=3)),
        max_size=6,
    )
)
def test_our_safetensors_are_the_librarys(tmp_path_factory: pytest.TempPathFactory, shapes: dict[str, Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "x.safetensors"
    path.unlink(missing_ok=True)
    wanted = {name: torch.randint(0, 2, shape).to(dtype) for name, (dtype, shape) in shapes.items()}
    write_safetensors(path, wanted)
    ours, theirs = load_bytes(path.read_bytes()), load_bytes(save_bytes(wanted))
    assert weights_sha256(ours) == weights_sha256(theirs) == weights_sha256(wanted)


def test_tied_strided_and_scalar_tensors_are_saved_as_they_look(run: Run) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    odd = {"tied": base, "tied.again": base, "transposed": base.T, "slice": base[:, 1:3], "scalar": torch.tensor(3.5)}
    loaded = run.save(1, {"model": {**odd, "learned": nn.Parameter(base)}}, {}, keep=1).load("model")
    assert all(torch.equal(loaded[name], tensor) for name, tensor in odd.items())


def test_the_identity_of_weights() -> None:
    a, b = torch.rand(2, 3), torch.rand(4)
    assert weights_sha256({"a": a, "b": b}) == weights_sha256({"b": b.clone(), "a": a.T.contiguous().T})
    others = [
        {"a": a},
        {"a": a, "c": b},
        {"a": a.reshape(3, 2), "b": b},
        {"a": a, "b": b.view(torch.int32)},
        {"a": b, "b": a},
    ]
    flipped = a.clone()
    flipped.view(torch.int32)[1, 2] ^= 1
    others.append({"a": flipped, "b": b})
    assert len({weights_sha256(each) for each in [*others, {"a": a, "b": b}]}) == 7


# ---------------------------------------------------------------- records


def test_records_come_back_in_order(run: Run) -> None:
    assert run.read("metrics") == []
    for step in range(3):
        run.append("metrics", {"step": step, "text": "ɛ\u2028\n"})
    assert run.read("metrics") == [{"step": step, "text": "ɛ\u2028\n"} for step in range(3)]


def test_records_are_strict_json(run: Run) -> None:
    run.append(
        "metrics", {"nan": math.nan, "numpy": np.float32(0.5), "tensor": torch.tensor([1, 2]), "path": Path("a")}
    )
    run.append("metrics", {"score": Score("bleu", math.inf), "int": np.int64(3), "tuple": (1, None)})
    first, second = run.read("metrics")
    assert first == {"nan": None, "numpy": 0.5, "tensor": [1, 2], "path": "a"}
    assert second["score"]["value"] is None and second["int"] == 3 and second["tuple"] == [1, None]
    assert b"NaN" not in (run.path / "metrics.jsonl").read_bytes()


@given(cut=st.integers(0, 60))
def test_a_line_torn_anywhere_is_left_out_and_mended(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    run = Run(tmp_path_factory.getbasetemp(), TINY)
    path = run.path / "torn.jsonl"
    path.unlink(missing_ok=True)
    for step in range(3):
        run.append("torn", {"step": step, "text": "ɛyɛ"})
    data = path.read_bytes()[:cut]
    path.write_bytes(data)
    whole = run.read("torn")
    assert whole == [{"step": step, "text": "ɛyɛ"} for step in range(len(whole))]
    assert len(whole) >= data.count(b"\n")
    run.append("torn", {"step": 9})
    assert run.read("torn") == [*whole, {"step": 9}]


def test_a_broken_line_in_the_middle_is_named(run: Run) -> None:
    (run.path / "metrics.jsonl").write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    assert message(run.read, "metrics") == f"{run.path / 'metrics.jsonl'}:2: not a line of JSON: '{{\"st'"


def test_records_beyond_a_step_are_dropped(run: Run) -> None:
    run.truncate_after("metrics", 3)
    assert not (run.path / "metrics.jsonl").exists()
    for record in ({"note": "no step"}, {"step": 3}, {"step": 4}, {"step": 2}):
        run.append("metrics", record)
    with open(run.path / "metrics.jsonl", "a") as file:
        file.write('{"step": 3, "torn')
    run.truncate_after("metrics", 3)
    assert run.read("metrics") == [{"note": "no step"}, {"step": 3}, {"step": 2}]
    assert (run.path / "metrics.jsonl").read_bytes().endswith(b"\n")


def test_files_are_replaced_in_one_move(run: Run) -> None:
    run.write_json("environment.json", {"a": 1})
    with open(run.path / "environment.json") as before:
        run.write_json("environment.json", {"a": math.inf})
        assert json.load(before) == {"a": 1}  # who was reading keeps what they opened
    assert json.loads((run.path / "environment.json").read_text()) == {"a": None}
    run.write_text("README.md", "# ɛ\n")
    assert (run.path / "README.md").read_text() == "# ɛ\n"
    assert not list(run.path.glob(".part-*"))


# ---------------------------------------------------------------- what a translator needs


def with_tokenizers(run: Run, letters: str = "abc") -> Tokenizers:
    tokenizers = train_tokenizers(lambda: iter([(letters, letters.upper())] * 3), run.config.tokenizer)
    tokenizers.save(run.path / "tokenizer")
    return tokenizers


def trained(run: Run) -> nn.Module:
    tokenizers = with_tokenizers(run)
    return build(run.config.model, tokenizers.source.size, tokenizers.target.size, joint=tokenizers.joint)


def test_tokenizers_are_bound_to_the_weights(run: Run, tmp_path: Path) -> None:
    assert "has no tokenizer yet; continue it with `kente train --resume" in message(run.tokenizers)
    right = with_tokenizers(run)
    assert run.tokenizers().sha256 == right.sha256
    checkpoint = run.save(1, tensors(), {}, keep=1)
    assert checkpoint.manifest["tokenizer_sha256"] == right.sha256
    assert run.tokenizers().sha256 == run.tokenizers(checkpoint).sha256 == right.sha256
    (run.path / "tokenizer").rename(tmp_path / "aside")
    wrong = with_tokenizers(run, "xyz")
    for argument in (None, checkpoint):
        text = message(Run.open(run.path).tokenizers, argument)
        assert (
            f"({wrong.sha256[:12]}) is not the tokenizer {checkpoint.path} was trained with ({right.sha256[:12]})"
            in text
        )
    assert "is not the tokenizer" in message(Run.open(run.path).model)


def test_the_model_is_the_one_saved(run: Run) -> None:
    model = trained(run)
    assert "has no checkpoint yet" in message(run.model)
    weights = dict(model.named_parameters())
    average = {name: tensor.detach() + 1 for name, tensor in weights.items()}
    run.save(1, {"model": weights}, {}, keep=2)
    loaded = run.model()
    assert not loaded.training
    assert weights_sha256(loaded.state_dict()) == weights_sha256(model.state_dict())
    checkpoint = run.save(2, {"model": weights, "average": average}, {}, keep=2)
    assert weights_sha256(dict(run.model().named_parameters())) == weights_sha256(average)
    assert weights_sha256(dict(run.model(averaged=False).named_parameters())) == weights_sha256(weights)
    assert weights_sha256(dict(run.model(checkpoint).named_parameters())) == weights_sha256(average)


def test_an_average_of_some_weights_is_completed_from_the_model(run: Run) -> None:
    model = trained(run)
    weights = dict(model.named_parameters())
    name = next(iter(weights))
    run.save(1, {"model": weights, "average": {name: weights[name].detach() * 2}}, {}, keep=1)
    loaded = dict(run.model().named_parameters())
    assert torch.equal(loaded[name], weights[name] * 2)
    assert all(torch.equal(loaded[other], weights[other]) for other in weights if other != name)


def test_changed_model_settings_are_refused(run: Run) -> None:
    run.save(1, {"model": dict(trained(run).named_parameters())}, {}, keep=1)
    run.write_config(dataclasses.replace(TINY, model=dataclasses.replace(TINY.model, heads=4)))
    assert f"the [model] settings in {run.path / 'config.toml'} are not those" in message(run.model)


class Tied(nn.Module):
    """Two names for one matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out, self.norm = nn.Linear(2, 3, bias=False), nn.Linear(2, 3, bias=False), nn.BatchNorm1d(3)
        self.out.weight = self.embed.weight


def test_weights_must_fit_by_name_and_shape() -> None:
    model, where = Tied(), Path("step-1")
    whole = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    once = {name: tensor + 1 for name, tensor in whole.items() if name != "embed.weight"}  # tied: one name is enough
    load_weights(model, once, where)
    assert torch.equal(model.embed.weight, whole["out.weight"] + 1)
    lacking = {name: tensor for name, tensor in once.items() if name != "norm.bias"}
    assert (
        message(load_weights, model, lacking, where)
        == "step-1 does not fit the model in config.toml: it lacks norm.bias"
    )
    text = message(load_weights, model, {**lacking, "scale": torch.ones(1)}, where)
    assert text.endswith("it lacks norm.bias and also has scale")
    text = message(load_weights, model, {**once, "norm.bias": torch.ones(4)}, where)
    assert text.endswith("norm.bias has shape (4,) where the model has (3,)")


def test_the_environment_names_versions_and_no_one() -> None:
    facts = environment()
    assert facts["versions"]["torch"] == torch.__version__ and facts["threads"] == torch.get_num_threads()
    assert set(facts["versions"]) >= {"kente", "python", "numpy", "sentencepiece", "sacrebleu", "safetensors"}
    text = json.dumps(facts)
    assert os.uname().nodename not in text and str(Path.home()) + "/" not in text and os.getcwd() not in text
