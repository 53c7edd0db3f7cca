"""A checkpoint is a folder that is whole or not there: rules 1, 2, 7 and 9 of the reliability page.

    step-00000123/  GROUP.safetensors ...  state.json  MANIFEST.json

It is written under a temporary name, every file brought to the disk, the manifest last; read back and compared; then renamed
once. The manifest holds the sha256 and size of every file and its own checksum, so that a damaged weight is never used.
Finding and verifying checkpoints needs no torch, which takes seconds to import; it is imported where tensors are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from kente.durable import PART, disk_errors, file_sha256, sync_folder, write_file
from kente.errors import Diverged, RunError
from kente.reporting import SILENT, Reporter

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FORMAT = 1  # of the manifest; a reader refuses numbers above its own
MANIFEST, STATE = "MANIFEST.json", "state.json"

_NAME = re.compile(r"[a-z][a-z0-9_-]*\.(safetensors|json)")
_DTYPES = {
    "torch.float64": "F64",
    "torch.float32": "F32",
    "torch.float16": "F16",
    "torch.bfloat16": "BF16",
    "torch.int64": "I64",
    "torch.int32": "I32",
    "torch.int16": "I16",
    "torch.int8": "I8",
    "torch.uint8": "U8",
    "torch.bool": "BOOL",
}


@dataclass(frozen=True)
class Score:
    """A measured number with what it needs to mean something: how it was taken and how far it can be trusted."""

    name: str
    value: float
    signature: str = ""
    low: float | None = None
    high: float | None = None
    higher_is_better: bool = True

    def __str__(self) -> str:
        return f"{self.name} {self.value:.4g}"

    def better_than(self, other: Score | None) -> bool:
        """Is this a better score? Not-a-number is better than nothing at all, and worse than every number."""
        if other is None or math.isnan(other.value):
            return other is None or not math.isnan(self.value)
        return self.value > other.value if self.higher_is_better else self.value < other.value


# ---------------------------------------------------------------- tensors as bytes


def tensor_bytes(tensor: Tensor) -> memoryview:
    """The values of a tensor in row-major order, without a copy when it is contiguous and on the CPU."""
    import torch

    values: Any = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return memoryview(values)


def weights_sha256(tensors: Mapping[str, Tensor]) -> str:
    """The bitwise identity of weights: over names, types, shapes and bytes, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor_bytes(tensor))
    return digest.hexdigest()


def merged(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Weights of a plain model: where maps of low rank stand beside fixed ones (nn/low_rank.py), W + B A takes the place of the three.

    Works on tensors and on arrays alike.
    """
    plain = {}
    for name, tensor in weights.items():
        stem, _, last = name.rpartition(".")
        place, _, fixed = stem.rpartition(".")
        if fixed == "fixed" and f"{place}.up" in weights:
            low_rank = last == "weight"
            plain[f"{place}.{last}"] = (
                tensor + weights[f"{place}.up"] @ weights[f"{place}.down"] if low_rank else tensor
            )
        elif not (last in ("up", "down") and f"{stem}.fixed.weight" in weights):
            plain[name] = tensor
    return plain


def tensors_size(tensors: Mapping[str, Mapping[str, Tensor]]) -> int:
    """Bytes that a checkpoint of these groups takes, near enough."""
    values = sum(
        tensor.numel() * tensor.element_size() + len(name) + 100
        for group in tensors.values()
        for name, tensor in group.items()
    )
    return values + 8192


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write a safetensors file and bring it to the disk; returns the sha256 of what should stand there.

    Written here rather than by the library for three reasons: the hash is taken from memory and not from the file it should
    check, a full disk is an OSError with its number, and tied tensors are simply written under each of their names.
    """
    for name, tensor in tensors.items():
        if str(tensor.layout) != "torch.strided" or str(tensor.dtype) not in _DTYPES:
            raise TypeError(f"{name} is a {tensor.layout} tensor of {tensor.dtype}, which safetensors cannot hold")
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))  # wide first keeps all aligned
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _DTYPES[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    with open(path, "xb", buffering=0) as file:

        def write(data: bytes | memoryview) -> None:
            digest.update(data)
            view = memoryview(data)
            while view.nbytes:
                view = view[file.write(view[: 1 << 30]) :]  # one write() may take less than it is given

        write(len(text).to_bytes(8, "little") + text)
        for name in order:
            write(tensor_bytes(tensors[name]))
        os.fsync(file.fileno())
    return digest.hexdigest()


# ---------------------------------------------------------------- the folder


def _manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """A manifest as it stands on the disk, to the byte: the checksum is over the rest."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    checksum = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return json.dumps({**rest, "checksum": checksum}, indent=1, sort_keys=True).encode() + b"\n"


def _well_formed(manifest: Mapping[str, Any]) -> bool:
    """Is it a manifest at all? A run may come from anywhere: names of files must not lead out of the folder."""
    files = manifest.get("files")
    return (
        isinstance(manifest.get("format"), int)
        and isinstance(manifest.get("step"), int)
        and isinstance(files, dict)
        and all(_NAME.fullmatch(name) and {"bytes", "sha256"} <= set(file) for name, file in files.items())
        and {STATE, "score", "model_sha256", "tokenizer_sha256"} <= {*files, *manifest}
    )


class Checkpoint:
    """One checkpoint on disk. Nothing of it is read before it is asked for, and nothing is handed out unverified."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.step = int(path.name.removeprefix("step-"))

    def __repr__(self) -> str:
        return f"Checkpoint({str(self.path)!r})"

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, if it is whole and belongs to this step."""
        path = self.path / MANIFEST
        try:
            data = path.read_bytes()
            manifest = json.loads(data)
            written = _manifest_bytes(manifest)
        except FileNotFoundError:
            raise RunError(f"{path} is missing") from None
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, AttributeError, RecursionError):
            raise RunError(f"{path} is damaged: it is not the JSON it should be") from None
        if data != written:
            raise RunError(f"{path} is damaged: its checksum does not match")
        if not _well_formed(manifest):
            raise RunError(f"{path} is damaged: it is not a manifest")
        if manifest["format"] > FORMAT:
            raise RunError(f"{path} has format {manifest['format']}, from a newer Kente; this one reads up to {FORMAT}")
        if manifest["step"] != self.step:
            raise RunError(f"{path} belongs to step {manifest['step']:,}, not to step {self.step:,}")
        return dict(manifest)

    def _verified(self, name: str, manifest: Mapping[str, Any]) -> Path:
        """The path of a file whose size and sha256 are those the manifest recorded."""
        path, wanted = self.path / name, manifest["files"][name]
        try:
            size = path.stat().st_size
            if size != wanted["bytes"]:
                raise RunError(f"{path} is damaged: it has {size:,} bytes instead of {wanted['bytes']:,}")
            if file_sha256(path) != wanted["sha256"]:
                raise RunError(f"{path} is damaged: its sha256 is not the one in {MANIFEST}")
        except FileNotFoundError:
            raise RunError(f"{path} is missing") from None
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        return path

    def problem(self, groups: Collection[str] | None = None) -> str | None:
        """What is wrong with this checkpoint, or None. Only the files of `groups` (None is all) are read to the last byte."""
        try:
            manifest = self.manifest
            for name in manifest["files"]:
                if groups is None or name == STATE or name.removesuffix(".safetensors") in groups:
                    self._verified(name, manifest)
        except RunError as error:
            return str(error)
        return None

    def looks_whole(self) -> bool:
        """A quick look, without reading the weights: the manifest is whole and every file has its size."""
        try:
            return all((self.path / n).stat().st_size == f["bytes"] for n, f in self.manifest["files"].items())
        except (RunError, OSError):
            return False

    @property
    def state(self) -> dict[str, Any]:
        """What the trainer put beside the tensors."""
        return dict(json.loads(self._verified(STATE, self.manifest).read_bytes()))

    @property
    def score(self) -> Score | None:
        """The validation score recorded with it."""
        score = self.manifest["score"]
        return Score(**score) if score else None

    @property
    def groups(self) -> list[str]:
        """Names of the groups of tensors it holds."""
        return [name.removesuffix(".safetensors") for name in self.manifest["files"] if name.endswith(".safetensors")]

    def has(self, group: str) -> bool:
        return group in self.groups

    def load(self, group: str, device: str | torch.device = "cpu") -> dict[str, Tensor]:
        """The tensors of one group, after their sha256 was found right. They may be mapped from the file: copy them to keep."""
        from safetensors.torch import load_file

        path = self._verified_group(group)
        try:
            return dict(load_file(path, device=str(device)))
        except (SafetensorError, OSError) as error:
            raise RunError(f"{path} cannot be read: {error}") from None

    def load_arrays(self, group: str) -> dict[str, NDArray[np.float32]]:
        """Like `load`, in numpy and without torch."""
        from safetensors.numpy import load_file

        path = self._verified_group(group)
        try:
            return dict(load_file(path))
        except (SafetensorError, OSError, KeyError, TypeError) as error:  # numpy lacks some of torch's types
            raise RunError(f"{path} cannot be read: {error}") from None

    def _verified_group(self, group: str) -> Path:
        manifest = self.manifest
        if f"{group}.safetensors" not in manifest["files"]:
            raise RunError(f"{self.path} holds no {group}; it holds {', '.join(self.groups)}")
        return self._verified(f"{group}.safetensors", manifest)


def list_checkpoints(folder: Path) -> list[Checkpoint]:
    """The checkpoints in a folder by step; none of them verified."""
    if not folder.is_dir():
        return []
    found = [Checkpoint(path) for path in folder.iterdir() if re.fullmatch(r"step-\d{8,}", path.name) and path.is_dir()]
    return sorted(found, key=lambda checkpoint: checkpoint.step)


def best_of(checkpoints: Collection[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints that carry a score like the newest one's, best first; of equals the newer comes first."""
    scored: list[tuple[Checkpoint, Score]] = []
    for checkpoint in sorted(checkpoints, key=lambda c: -c.step):
        with contextlib.suppress(RunError):
            if score := checkpoint.score:
                scored.append((checkpoint, score))
    alike = [(c, s) for c, s in scored if s.name == scored[0][1].name and s.value == s.value]
    alike.sort(key=lambda pair: -pair[1].value if pair[1].higher_is_better else pair[1].value)
    return [checkpoint for checkpoint, _ in alike]


def remove_parts(folder: Path) -> None:
    """Remove what an interrupted save left behind."""
    for path in folder.glob(f"{PART}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _remove(checkpoint: Checkpoint) -> None:
    """Remove a checkpoint so that a crash half way leaves a temporary folder, not half a checkpoint."""
    part = checkpoint.path.with_name(f"{PART}old-{checkpoint.path.name}-{os.getpid()}")
    os.rename(checkpoint.path, part)
    shutil.rmtree(part, ignore_errors=True)


def save_checkpoint(
    folder: Path,
    step: int,
    tensors: Mapping[str, Mapping[str, Tensor]],
    state: Mapping[str, Any],
    about: Mapping[str, Any],
    *,
    keep: int,
    reporter: Reporter = SILENT,
) -> Checkpoint:
    """Write the checkpoint of `step`, read it back, give it its name, then let go of all but the last `keep` and the best.

    `about` and state["score"] (a Score as a dict, or None) go into the manifest. A whole checkpoint of the same step is never
    replaced: with the same tensors it stands and is returned, with others it is an error. A damaged one makes way.
    """
    assert step >= 0 and keep >= 1 and all(_NAME.fullmatch(f"{group}.safetensors") for group in tensors)
    _refuse_non_finite(step, tensors)
    size = tensors_size(tensors)
    final = folder / f"step-{step:08d}"
    part = folder / f"{PART}{final.name}-{os.getpid()}"
    with disk_errors(final, size):
        if not folder.is_dir():
            folder.mkdir(parents=True)
            sync_folder(folder.parent)
        remove_parts(folder)
        try:
            part.mkdir()
            files = _write_files(part, tensors, state)
            manifest = {
                "format": FORMAT,
                "step": step,
                "files": files,
                "score": state.get("score"),
                **about,
            }
            write_file(part / MANIFEST, _manifest_bytes(manifest))
            sync_folder(part)
            _read_back(part, files)
            if (standing := _standing(final, tensors, files, reporter)) is not None:
                return standing
            os.rename(part, final)
            sync_folder(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    _let_go(folder, keep)
    return Checkpoint(final)


def _refuse_non_finite(step: int, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
    for group in ("model", "average"):
        for name, tensor in tensors.get(group, {}).items():
            if tensor.is_floating_point() and not tensor.isfinite().all():
                raise Diverged(
                    f"{name} ({group}) is not finite at step {step:,}: not saved; the checkpoint before it stands"
                )


def _write_files(
    part: Path, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Write all but the manifest; what should stand there, by name."""
    sums = {f"{g}.safetensors": write_safetensors(part / f"{g}.safetensors", group) for g, group in tensors.items()}
    # Python's own JSON: numbers come back to the last bit, infinity included
    sums[STATE] = write_file(part / STATE, json.dumps(state, indent=1, ensure_ascii=False).encode())
    return {name: {"sha256": sha256, "bytes": (part / name).stat().st_size} for name, sha256 in sums.items()}


def _read_back(part: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    for name, wanted in files.items():
        if file_sha256(part / name) != wanted["sha256"]:
            raise RunError(f"{part / name} reads back differently from what was written; check the disk")


def _standing(
    final: Path,
    tensors: Mapping[str, Mapping[str, Tensor]],
    files: Mapping[str, Mapping[str, Any]],
    reporter: Reporter,
) -> Checkpoint | None:
    """A checkpoint of this step that is there already and stays; a damaged one makes way."""
    if not final.exists():
        return None
    checkpoint = Checkpoint(final)
    if (problem := checkpoint.problem()) is not None:
        reporter.warn(f"{problem}; written again")
        _remove(checkpoint)
        return None
    standing = checkpoint.manifest["files"]
    if all(standing.get(f"{g}.safetensors") == files[f"{g}.safetensors"] for g in tensors):
        return checkpoint
    raise RunError(f"{final} exists already and holds other weights; a checkpoint is never overwritten")


def _let_go(folder: Path, keep: int) -> None:
    """Remove all but the last `keep` whole checkpoints and the best one."""
    checkpoints = list_checkpoints(folder)
    whole = [checkpoint for checkpoint in checkpoints if checkpoint.looks_whole()]
    kept = {checkpoint.step for checkpoint in [*whole[-keep:], *best_of(whole)[:1]]}
    for checkpoint in checkpoints:
        if checkpoint.step not in kept:
            _remove(checkpoint)
