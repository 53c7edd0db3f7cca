"""Kills, flips, cuts, swaps and full disks: no damaged weight is ever used, and what was good stays good."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kente.checkpoints import Checkpoint
from kente.config import Config
from kente.errors import DiskFull, RunError
from kente.reporting import Reporter
from kente.runs import Run, weights_sha256

pytestmark = pytest.mark.faults
TRIALS = int(os.environ.get("KENTE_TRIALS", "20"))


class Ears(Reporter):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", Config())


def tensors(step: int, groups: int = 2, size: int = 40) -> dict[str, dict[str, Tensor]]:
    """Groups whose every value says which step it belongs to."""
    names = ["model", "optim", "average", *(f"extra-{number}" for number in range(groups - 3))][:groups]
    return {name: {"a": torch.full((size,), float(step)), "b": torch.full((2, 2), step)} for name in names}


def saved(run: Run, *steps: int) -> list[Checkpoint]:
    return [run.save(step, tensors(step), {"step": step}, keep=len(steps)) for step in steps]


def assert_whole(checkpoint: Checkpoint) -> None:
    assert checkpoint.problem() is None
    assert checkpoint.state == {"step": checkpoint.step}
    for group in checkpoint.groups:
        assert weights_sha256(checkpoint.load(group)) == weights_sha256(tensors(checkpoint.step)["model"])


def assert_unused(checkpoint: Checkpoint, changed: str) -> None:
    """The damage is seen by whoever wants the changed file, before they get anything from it."""
    assert checkpoint.problem() is not None
    if changed == "MANIFEST.json":
        for group in ("model", "optim"):
            with pytest.raises(RunError):
                checkpoint.load(group)
    elif changed == "state.json":
        with pytest.raises(RunError):
            _ = checkpoint.state
    else:
        with pytest.raises(RunError):
            checkpoint.load(changed.removesuffix(".safetensors"))


# ---------------------------------------------------------------- kill -9 inside a write

SAVE_UNTIL_KILLED = f"""
import os, random, signal, sys, time
import torch
from torch import Tensor
from kente.runs import Run

{inspect.getsource(tensors)}

def save_for_ever(run, step):
    while True:
        step += 1
        run.save(step, tensors(step, groups=8), {{"step": step}}, keep=2)

warm = Run.create(sys.argv[1] + "-warm", Run.open(sys.argv[1]).config)
warm.save(1, tensors(1, groups=8), {{}}, keep=2)  # what happens once in a process is over before the forks
began = time.monotonic()
for step in range(2, 7):
    warm.save(step, tensors(step, groups=8), {{}}, keep=2)
one_save = (time.monotonic() - began) / 5  # moments are drawn in saves, not seconds: machines and their load differ
dice = random.Random(int(sys.argv[2]))
for line in sys.stdin:  # one trial for each line: the tester looks at the folder in between
    run = Run.open(sys.argv[1])
    latest = run.latest()
    child = os.fork()
    if child == 0:
        save_for_ever(run, latest.step if latest else 0)
    time.sleep(dice.uniform(0.0, 5 * one_save))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(flush=True)
"""


def test_kill_9_inside_a_checkpoint_write_loses_nothing(run: Run) -> None:
    cut_short = newest = 0
    killer = subprocess.Popen(
        [sys.executable, "-c", SAVE_UNTIL_KILLED, str(run.path), "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert killer.stdin and killer.stdout
    with killer:
        for _ in range(TRIALS):
            killer.stdin.write(b"\n")
            killer.stdin.flush()
            assert killer.stdout.readline() == b"\n"
            cut_short += any(name.startswith(".part-") for name in _names(run))
            for checkpoint in run.checkpoints():
                assert_whole(checkpoint)
            latest = run.latest()
            assert (latest.step if latest else 0) >= newest
            newest = latest.step if latest else 0
    assert newest > 0 and cut_short > 0  # the kills did fall into writes
    run.save(newest + 1, tensors(newest + 1), {"step": newest + 1}, keep=2)
    assert [name for name in _names(run) if name.startswith(".")] == []
    assert len(run.checkpoints()) == 2


def _names(run: Run) -> list[str]:
    folder = run.path / "checkpoints"
    return sorted(os.listdir(folder)) if folder.exists() else []


def test_what_a_killed_save_left_goes_at_the_next(run: Run) -> None:
    saved(run, 1)
    left = run.path / "checkpoints" / ".part-step-00000002-99999"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    (run.path / "checkpoints" / ".part-file").touch()
    assert [checkpoint.step for checkpoint in run.checkpoints()] == [1]
    saved(run, 2)
    assert _names(run) == ["step-00000002"]


# ---------------------------------------------------------------- damage


def test_every_bit_flip_is_seen_before_a_weight_is_used(run: Run) -> None:
    first, second = saved(run, 1, 2)
    dice = random.Random(2)
    files = sorted(second.path.iterdir())
    places = [(file, place) for file in files for place in range(file.stat().st_size * 8)]
    for file, place in dice.sample(places, 200):
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        file.write_bytes(flipped)
        assert_unused(second, file.name)
        ears = Ears()
        found = run.latest(ears)
        assert found is not None and found.step == 1
        assert (
            len(ears.warnings) == 1
            and str(file) in ears.warnings[0]
            and "using step-00000001 instead" in ears.warnings[0]
        )
        file.write_bytes(whole)
    assert_whole(first)
    assert_whole(second)


@pytest.mark.parametrize("name", ["model.safetensors", "optim.safetensors", "state.json", "MANIFEST.json"])
@pytest.mark.parametrize("damage", ["truncated", "emptied", "longer", "missing", "a folder", "zeroed"])
def test_a_damaged_file_is_seen_and_the_one_before_is_used(run: Run, name: str, damage: str) -> None:
    first, second = saved(run, 1, 2)
    file = second.path / name
    data = file.read_bytes()
    match damage:
        case "truncated":
            file.write_bytes(data[:-1])
        case "emptied":
            file.write_bytes(b"")
        case "longer":
            file.write_bytes(data + b"\n")
        case "zeroed":
            file.write_bytes(bytes(len(data)))
        case "missing":
            file.unlink()
        case "a folder":
            file.unlink()
            file.mkdir()
    assert_unused(second, name)
    ears = Ears()
    found = run.latest(ears)
    assert found is not None and found.step == 1 and str(file) in ears.warnings[0]
    assert_whole(first)


@pytest.mark.parametrize("name", ["model.safetensors", "optim.safetensors", "state.json", "MANIFEST.json"])
def test_files_swapped_between_checkpoints_are_seen(run: Run, name: str) -> None:
    first, second, third = saved(run, 1, 2, 3)
    aside = run.path / "aside"
    (second.path / name).rename(aside)
    (third.path / name).rename(second.path / name)
    aside.rename(third.path / name)
    assert_unused(second, name)
    assert_unused(third, name)
    ears = Ears()
    found = run.latest(ears)
    assert found is not None and found.path == first.path
    assert [text.split("step-")[1][:8] for text in ears.warnings] == ["00000003", "00000002"]


def test_a_checkpoint_under_anothers_name_is_seen(run: Run) -> None:
    first, second = saved(run, 1, 2)
    shutil.copytree(first.path, first.path.with_name("step-00000009"))
    ears = Ears()
    found = run.latest(ears)
    assert found is not None and found.step == 2
    assert "MANIFEST.json belongs to step 1, not to step 9; using step-00000002 instead" in ears.warnings[0]
    assert_whole(second)


def test_the_best_falls_back_too(run: Run) -> None:
    for step, value in ((1, 5.0), (2, 9.0), (3, 7.0)):
        score = {"name": "bleu", "value": value, "signature": "", "low": None, "high": None, "higher_is_better": True}
        run.save(step, tensors(step), {"score": score}, keep=3)
    (run.path / "checkpoints" / "step-00000002" / "model.safetensors").write_bytes(b"")
    ears = Ears()
    found = run.best(ears)
    assert found is not None and found.step == 3
    assert "step-00000002/model.safetensors is damaged: it has 0 bytes" in ears.warnings[0]


def test_only_the_groups_in_use_are_read(run: Run) -> None:
    _, second = saved(run, 1, 2)
    file = second.path / "optim.safetensors"
    file.write_bytes(bytes(file.stat().st_size))
    translating, resuming = run.latest(groups=("model",)), run.latest()
    assert translating is not None and translating.step == 2
    assert resuming is not None and resuming.step == 1


def test_when_nothing_is_whole_all_of_it_is_named(run: Run) -> None:
    for checkpoint in saved(run, 1, 2):
        (checkpoint.path / "model.safetensors").unlink()
    for find in (run.latest, run.best):
        with pytest.raises(RunError) as error:
            find()
        text = str(error.value)
        assert text.startswith(f"no checkpoint of {run.path} can be used: ")
        assert (
            "step-00000002/model.safetensors is missing; " in text
            and "step-00000001/model.safetensors is missing" in text
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "it is not the JSON it should be"),
        ("{}", "its checksum does not match"),
        ('{"format": 1, "checksum": "0"}', "its checksum does not match"),
        ("[" * 100_000, "it is not the JSON it should be"),
        ("\ud800".encode("utf-8", "surrogatepass"), "it is not the JSON it should be"),
    ],
)
def test_a_manifest_of_nonsense(run: Run, text: str | bytes, message: str) -> None:
    (checkpoint,) = saved(run, 1)
    (checkpoint.path / "MANIFEST.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert checkpoint.problem() == f"{checkpoint.path / 'MANIFEST.json'} is damaged: {message}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "has format 2, from a newer Kente; this one reads up to 1"),
        ({"files": {"../../config.toml": {"bytes": 1, "sha256": ""}}}, "is damaged: it is not a manifest"),
        ({"files": []}, "is damaged: it is not a manifest"),
        ({"step": "1"}, "is damaged: it is not a manifest"),
    ],
)
def test_a_manifest_made_by_hand(run: Run, changes: dict[str, object], message: str) -> None:
    """The checksum is right, and still it may not lead out of the folder or fool the reader."""
    from kente.checkpoints import _manifest_bytes

    (checkpoint,) = saved(run, 1)
    manifest = json.loads((checkpoint.path / "MANIFEST.json").read_bytes())
    (checkpoint.path / "MANIFEST.json").write_bytes(_manifest_bytes({**manifest, **changes}))
    assert checkpoint.problem() == f"{checkpoint.path / 'MANIFEST.json'} {message}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(run: Run) -> None:
    (checkpoint,) = saved(run, 1)
    (checkpoint.path / "model.safetensors").chmod(0)
    assert checkpoint.problem() == f"{checkpoint.path / 'model.safetensors'} cannot be read: Permission denied"


# ---------------------------------------------------------------- no room


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may grow beyond `size` bytes: a write fails half way, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("limit", [0, 1, 100, 10_000, 20_100])
def test_a_file_that_may_not_grow_is_one_clear_message(run: Run, limit: int) -> None:
    (first,) = saved(run, 1)
    with pytest.raises(DiskFull) as error, largest_file(limit):
        run.save(2, tensors(2, size=5000), {"step": 2}, keep=1)
    text = str(error.value)
    assert text.startswith(f"no room to write {run.path / 'checkpoints' / 'step-00000002'}: it needs 48,")
    assert "bytes" in text and "are free (File too large)" in text
    assert _names(run) == ["step-00000001"]
    assert_whole(first)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if (
        not mount
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode
    ):
        pytest.skip("mounting a small tmpfs is not permitted here")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("filling", range(0, 200_000, 10_000))
def test_a_full_disk_costs_no_earlier_checkpoint(small_disk: Path, filling: int) -> None:
    run = Run.create(small_disk / "run", Config())
    saved(run, 1)
    (small_disk / "filling").write_bytes(bytes(filling))
    for step in range(2, 20):
        try:
            run.save(step, tensors(step, size=8000), {"step": step}, keep=20)
        except DiskFull as error:
            text = str(error)
            break
    assert f"no room to write {run.path / 'checkpoints' / f'step-{step:08d}'}: it needs " in text
    assert "bytes" in text and "are free (No space left on device)" in text
    assert [checkpoint.step for checkpoint in run.checkpoints()] == list(range(1, step))
    assert all(checkpoint.problem() is None for checkpoint in run.checkpoints())
    assert not [name for name in _names(run) if name.startswith(".")]


def test_a_full_disk_and_the_other_files(small_disk: Path) -> None:
    run = Run.create(small_disk / "run", Config())
    run.write_text("README.md", "old")
    run.append("metrics", {"step": 1})
    with pytest.raises(DiskFull, match=r"to write .*README\.md: it needs 400,000 bytes"):
        run.write_text("README.md", "x" * 400_000)
    with pytest.raises(DiskFull, match=r"to write .*metrics\.jsonl"):
        run.append("metrics", {"step": 2, "text": "x" * 400_000})
    assert (run.path / "README.md").read_text() == "old" and run.read("metrics") == [{"step": 1}]
    run.append("metrics", {"step": 3})  # the torn line is mended
    assert run.read("metrics") == [{"step": 1}, {"step": 3}]
    assert not list(run.path.glob(".part-*"))
