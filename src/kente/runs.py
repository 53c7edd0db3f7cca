"""A run folder on disk: everything a training leaves behind, and everything a translator needs.

RUN/  config.toml  tokenizer/  data/  checkpoints/step-00000123/  metrics.jsonl  samples.jsonl  plan.jsonl
      bad-steps.jsonl  environment.json  request.json  prepared.json  README.md  languages.json  shortlist.safetensors  features.json
      start.safetensors  engines/  origin/

Opening a run needs no torch, which takes seconds to import; it is imported where tensors are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import difflib
import errno
import fcntl
import functools
import json
import math
import os
import platform
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import kente
from kente.checkpoints import (
    Checkpoint,
    Score,
    best_of,
    list_checkpoints,
    merged,
    remove_parts,
    save_checkpoint,
    tensors_size,
    weights_sha256,
)
from kente.config import Config
from kente.configfile import config_hash, dump_config, load_config
from kente.durable import PART, disk_errors, file_sha256, free_bytes, replace_file, size_text
from kente.errors import DiskFull, NoRun, RunError
from kente.reporting import SILENT, Reporter

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from kente.data.shortlist import Shortlist
    from kente.data.tokenizer import Tokenizers
    from kente.text.languages import LanguagePair

__all__ = ["Checkpoint", "Run", "Score", "environment", "tensors_size", "weights_sha256"]

CONFIG = "config.toml"
LANGUAGES = "languages.json"
SHORTLIST = "shortlist.safetensors"
START = "start.safetensors"
"""Weights a run begins with, where it goes on from another."""
FEATURES = "features.json"
"""What the network of a graph has in place of words: the features it reads and the classes it tells apart."""
FOLDERS = ("checkpoints", "data", "engines", "origin", "tokenizer")
FILES = (
    CONFIG,
    "environment.json",
    "request.json",
    "prepared.json",
    "cleaning.json",
    "README.md",
    LANGUAGES,
    SHORTLIST,
    START,
    FEATURES,
    ".lock",
    "metrics.jsonl",
    "samples.jsonl",
    "plan.jsonl",
    "bad-steps.jsonl",
)


class Run:
    """A run folder. `create` begins one, `open` finds one again."""

    def __init__(self, path: Path, config: Config) -> None:
        self.path = path
        self.config = config

    # ------------------------------------------------------------ beginning and finding

    @classmethod
    def create(cls, path: str | Path, config: Config, *, force: bool = False) -> Run:
        """Begin a run in a new or empty folder. `force` begins anew where a run stands, and leaves files that are not a run's."""
        path = Path(path)
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file; a run needs a folder of its own")
        if (path / CONFIG).exists() and not force:
            raise RunError(
                f"{path} already holds a run; continue it with `kente train --resume {path}`, or choose another folder"
            )
        if path.is_dir() and not force:
            strangers = sorted(child.name for child in path.iterdir() if not child.name.startswith((PART, ".lock")))
            if strangers:
                raise RunError(
                    f"{path} is not empty and is not a run (it holds {', '.join(strangers[:3])}"
                    f"{', ...' if len(strangers) > 3 else ''}); choose another folder"
                )
        run = cls(path, config)
        with disk_errors(path, 4096):
            path.mkdir(parents=True, exist_ok=True)
        if force:
            with run.lock():
                run._clear()
        run.write_config(config)
        return run

    def _clear(self) -> None:
        """Remove a run's own files, the config first: half a removal is no run."""
        for name in FILES:
            if name != ".lock":
                (self.path / name).unlink(missing_ok=True)
        for name in FOLDERS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        remove_parts(self.path)

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run in a folder."""
        path = Path(path)
        if (path / CONFIG).is_file():
            return cls(path, load_config(path / CONFIG))
        if not path.exists():
            problem = f"there is no run {path}"
        else:
            problem = f"{path} is not a run: it is {f'a folder without {CONFIG}' if path.is_dir() else 'a file'}"
        near = _runs_near(path)
        hint = f"did you mean {near}?" if near else "`kente train --source F --target F --out RUN` makes one"
        raise NoRun(f"{problem}; {hint}")

    def write_config(self, config: Config) -> None:
        """Make `config` the run's settings."""
        replace_file(self.path / CONFIG, dump_config(config).encode())
        self.config = config

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run for one trainer. The kernel lets go when the process ends, however it ends."""
        with open(self.path / ".lock", "a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise RunError(
                    f"{self.path} is being trained by process {file.read().strip() or 'unknown'}; "
                    "wait for it, or stop it and then resume"
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)  # now, even if a forked child still has the file open

    # ------------------------------------------------------------ checkpoints

    @property
    def _folder(self) -> Path:
        return self.path / "checkpoints"

    def check_room(self, checkpoint_bytes: int, keep: int) -> None:
        """Refuse a run whose checkpoints the disk cannot hold: the last `keep`, the best, and the one being written."""
        standing = sum(file.stat().st_size for file in self._folder.glob("step-*/*") if file.is_file())
        wanted, free = (keep + 2) * checkpoint_bytes, free_bytes(self._folder)
        if standing + free < wanted:
            raise DiskFull(
                f"no room for checkpoints in {self._folder}: {keep + 2} of {size_text(checkpoint_bytes)} need {wanted:,} bytes, "
                f"{free:,} are free; free some space, or keep fewer with --set train.keep=1"
            )

    def save(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, Tensor]],
        state: Mapping[str, Any],
        *,
        keep: int,
        reporter: Reporter = SILENT,
    ) -> Checkpoint:
        """Write the checkpoint of `step`: each group of tensors is a file. Returns when it is on the disk and read back.

        state["score"], a Score as a dict or None, is what `best` goes by.
        """
        about = {
            "config_sha256": config_hash(self.config),
            "model_sha256": config_hash(self.config.model),
            "tokenizer_sha256": self._tokenizer_sha256,
            "versions": _versions(),
            **_processes(),
        }
        return save_checkpoint(self._folder, step, tensors, state, about, keep=keep, reporter=reporter)

    def checkpoints(self) -> list[Checkpoint]:
        """All checkpoints by step; none of them verified."""
        return list_checkpoints(self._folder)

    def latest(self, reporter: Reporter = SILENT, groups: Collection[str] | None = None) -> Checkpoint | None:
        """The newest checkpoint that is whole, or None before the first. Damaged ones are passed over, and named.

        `groups` are the tensors about to be used; None, for a resume, verifies every file.
        """
        return self._first_whole(self.checkpoints()[::-1], reporter, groups)

    def best(self, reporter: Reporter = SILENT, groups: Collection[str] | None = None) -> Checkpoint | None:
        """The whole checkpoint with the best validation score; the latest where none has a score."""
        everything = self.checkpoints()[::-1]
        ranked = best_of(everything)
        rest = [checkpoint for checkpoint in everything if checkpoint.step not in {c.step for c in ranked}]
        return self._first_whole([*ranked, *rest], reporter, groups)

    def _first_whole(
        self, candidates: list[Checkpoint], reporter: Reporter, groups: Collection[str] | None
    ) -> Checkpoint | None:
        problems: list[str] = []
        for checkpoint in candidates:
            problem = checkpoint.problem(groups)
            if problem is None:
                for text in problems:
                    reporter.warn(f"{text}; using {checkpoint.path.name} instead")
                return checkpoint
            problems.append(problem)
        if problems:
            raise RunError(f"no checkpoint of {self.path} can be used: {'; '.join(problems)}")
        return None

    # ------------------------------------------------------------ records

    def append(self, name: str, record: Mapping[str, Any]) -> None:
        """Add one line of JSON to NAME.jsonl."""
        path = self.path / f"{name}.jsonl"
        line = _json(record).encode() + b"\n"
        with disk_errors(path, len(line)), open(path, "a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":
                    self._mend(path)
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # the disk took a part of it

    def _mend(self, path: Path) -> None:
        """End a file that was cut off in the middle of a line: finish the line if it is whole, drop it if not."""
        data = path.read_bytes()
        whole, _, torn = data.rpartition(b"\n")
        with open(path, "r+b") as file:
            if _record(torn) is not None:
                file.seek(0, os.SEEK_END)
                file.write(b"\n")
            else:
                file.truncate(len(whole) + 1 if whole else 0)

    def read(self, name: str) -> list[dict[str, Any]]:
        """The records of NAME.jsonl; a last line torn by a crash is left out."""
        path = self.path / f"{name}.jsonl"
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")
        records = []
        for number, line in enumerate(lines, 1):
            record = _record(line)
            if record is not None:
                records.append(record)
            elif line and number != len(lines):
                raise RunError(f"{path}:{number}: not a line of JSON: {line[:40].decode(errors='replace')!r}")
        return records

    def truncate_after(self, name: str, step: int) -> None:
        """Drop the records of NAME.jsonl whose "step" is beyond `step`, in one move; resume tells them anew."""
        path = self.path / f"{name}.jsonl"
        if path.exists():
            kept = [record for record in self.read(name) if record.get("step", step) <= step]
            replace_file(path, b"".join(_json(record).encode() + b"\n" for record in kept))

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file of the run, whole or not at all. NaN and infinity, which JSON lacks, become null."""
        replace_file(self.path / name, _json(value, indent=1).encode() + b"\n")

    def request(self) -> dict[str, Any]:
        """What was asked for when the run was begun; empty where that is not known."""
        path = self.path / "request.json"
        return dict(json.loads(path.read_bytes())) if path.is_file() else {}

    def write_text(self, name: str, text: str) -> None:
        """Write a text file of the run, whole or not at all."""
        replace_file(self.path / name, text.encode())

    # ------------------------------------------------------------ what a translator needs

    @functools.cached_property
    def _tokenizer_sha256(self) -> str:
        if (self.path / FEATURES).is_file():
            return file_sha256(self.path / FEATURES)  # it names the tokenizer too, where there is one
        if not (self.path / "tokenizer").is_dir():
            return ""  # a run on numbers has no text
        from kente.data.tokenizer import Tokenizers

        return Tokenizers.load(self.path / "tokenizer").sha256

    def tokenizers(self, checkpoint: Checkpoint | None = None) -> Tokenizers:
        """The run's tokenizers, if they are the ones the weights (of `checkpoint`, or the newest) were trained with."""
        from kente.data.tokenizer import Tokenizers

        folder = self.path / "tokenizer"
        if not folder.is_dir():
            raise RunError(f"{self.path} has no tokenizer yet; continue it with `kente train --resume {self.path}`")
        tokenizers = Tokenizers.load(folder)
        newest = [candidate for candidate in self.checkpoints() if candidate.looks_whole()][-1:]
        for candidate in [checkpoint] if checkpoint else newest:
            bound = candidate.manifest["tokenizer_sha256"]
            if bound != tokenizers.sha256:
                raise RunError(
                    f"{folder} ({tokenizers.sha256[:12]}) is not the tokenizer {candidate.path} was trained with "
                    f"({bound[:12] or 'none'}); put the run's own tokenizer folder back"
                )
        return tokenizers.speaking(self.config.decode.source_language, self.config.decode.target_language)

    @property
    def has_shortlist(self) -> bool:
        """Whether a shortlist was learnt already."""
        return (self.path / SHORTLIST).exists()

    def features(self) -> dict[str, Any]:
        """What features.json says, if it is the one the newest weights were trained with."""
        path = self.path / FEATURES
        if not path.is_file():
            raise RunError(
                f"{self.path} has no {FEATURES}: it is no run of a graph, or was stopped before it had begun"
            )
        for checkpoint in [candidate for candidate in self.checkpoints() if candidate.looks_whole()][-1:]:
            bound, seen = checkpoint.manifest["tokenizer_sha256"], file_sha256(path)
            if bound != seen:
                raise RunError(
                    f"{path} ({seen[:12]}) is not the one {checkpoint.path} was trained with ({bound[:12] or 'none'}); "
                    "put the run's own file back"
                )
        return dict(json.loads(path.read_bytes()))

    def vocabularies(self, checkpoint: Checkpoint | None = None) -> tuple[int, int]:
        """Sizes of the source's and the target's vocabulary; none for a run on numbers, which has no text. Of a graph, features and classes."""
        if (self.path / FEATURES).is_file():
            from kente.data.graphs import Schema

            schema = Schema.from_dict(self.features())
            return schema.features.size, len(schema.classes)
        if not (self.path / "tokenizer").is_dir() and checkpoint and not checkpoint.manifest["tokenizer_sha256"]:
            return 0, 0
        tokenizers = self.tokenizers(checkpoint)
        return tokenizers.source.size, tokenizers.target.size

    def shortlist(self, tokenizers: Tokenizers, reporter: Reporter = SILENT) -> Shortlist:
        """Which target words a source word may become: learnt from the run's corpus when first asked for, and kept."""
        from kente.data.shortlist import Shortlist, learn
        from kente.data.store import Store, together

        path, corpus = self.path / SHORTLIST, self.path / "data" / "train"
        if path.exists():
            try:
                return Shortlist.load(path, tokenizers.sha256)
            except RunError as error:
                if not corpus.is_dir():
                    raise RunError(
                        f"{error}; it cannot be learnt again, for {corpus} is gone; translate without: decode.shortlist=0"
                    ) from error
                reporter.warn(f"{error}; learning it again now")
        if not corpus.is_dir():
            raise RunError(
                f"{corpus} is gone, and a shortlist is learnt from it; translate without: decode.shortlist=0"
            )
        folders = [folder for folder in (corpus, corpus.with_name("old")) if folder.is_dir()]  # old: what is replayed
        stores = [Store.open(folder, tokenizers.sha256) for folder in folders]
        shortlist = learn(together(stores), joint=tokenizers.joint)
        try:
            shortlist.save(path, tokenizers.sha256)
        except OSError as error:  # not only for want of permission: the whole disk may be read-only
            reporter.warn(f"{path} cannot be written ({error.strerror}): the shortlist will be learnt each time")
        return shortlist

    def languages(self, reporter: Reporter = SILENT) -> LanguagePair:
        """From which language into which, with a detector for both; learnt from the validation pairs where training left none."""
        from kente.data.corpus import Corpus
        from kente.text.languages import LanguagePair, learn_pair

        path, texts = (
            self.path / LANGUAGES,
            [self.path / "data" / f"validation.{side}" for side in ("source", "target")],
        )
        if path.exists():
            try:
                return LanguagePair.load(path)
            except RunError as error:
                reporter.warn(f"{error}; learning it again now")
        if not all(text.exists() for text in texts):
            raise RunError(f"{self.path} has no {LANGUAGES}, and no validation pairs to learn its languages from")
        pair = learn_pair(self._codes(), ((pair.source, pair.target) for pair in Corpus.of_files(*texts)))
        try:
            pair.save(path)
        except OSError as error:
            reporter.warn(f"{path} cannot be written ({error.strerror}): the languages will be learnt each time")
        return pair

    def _codes(self) -> tuple[str, str]:
        """The languages' codes, as the corpus the run was asked to learn from is named."""
        from kente.text.languages import UNNAMED, guess_codes

        try:
            asked = json.loads((self.path / "request.json").read_bytes())["data"]
        except (OSError, ValueError, KeyError):
            return UNNAMED
        if not isinstance(asked, dict):
            return UNNAMED  # it was imported
        if "codes" in asked:
            source, target = asked["codes"]
            return source, target
        return guess_codes(asked.get("source"), asked.get("target"), asked.get("pairs"), asked.get("fields", ()))

    def chosen(self, reporter: Reporter = SILENT) -> Checkpoint:
        """The checkpoint to translate with: the best, its weights verified."""
        checkpoint = self.best(reporter, groups=("model", "average"))
        if checkpoint is None:
            raise RunError(f"{self.path} has no checkpoint yet; continue it with `kente train --resume {self.path}`")
        self._require_fit(checkpoint)
        return checkpoint

    def _require_fit(self, checkpoint: Checkpoint) -> None:
        if checkpoint.manifest["model_sha256"] != config_hash(self.config.model):
            raise RunError(
                f"the [model] settings in {self.path / CONFIG} are not those {checkpoint.path} was trained with"
            )

    def arrays(self, checkpoint: Checkpoint) -> dict[str, NDArray[np.float32]]:
        """The weights that `model` would have, in numpy: averaged where they are."""
        averaged = checkpoint.load_arrays("average") if checkpoint.has("average") else {}
        return merged(checkpoint.load_arrays("model") | averaged)

    def model(
        self, checkpoint: Checkpoint | None = None, device: str | torch.device = "cpu", averaged: bool = True
    ) -> nn.Module:
        """The trained network, ready to be used: of `checkpoint` or the best, with averaged weights where there are any."""
        from kente.models.build import build_for

        checkpoint = checkpoint or self.chosen()
        self._require_fit(checkpoint)
        model = build_for(self.config, *self.vocabularies(checkpoint))
        weights = merged(checkpoint.load("average")) if averaged and checkpoint.has("average") else {}
        if not set(dict(model.named_parameters())) <= set(weights):
            weights = merged(checkpoint.load("model")) | weights
        load_weights(model, weights, checkpoint.path)
        return model.to(device).eval()


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    """Copy weights into a model, strictly: each tensor of the model once, under any of its names, and nothing besides."""
    import torch

    wanted = model.state_dict(keep_vars=True)
    unknown = sorted(set(weights) - set(wanted))
    filled = {id(wanted[name]) for name in weights if name in wanted}
    missing = sorted(name for name, tensor in wanted.items() if id(tensor) not in filled)
    if unknown or missing:
        both = [
            f"{what} {', '.join(names[:3])}" for what, names in (("lacks", missing), ("also has", unknown)) if names
        ]
        raise RunError(f"{where} does not fit the model in {CONFIG}: it {' and '.join(both)}")
    with torch.no_grad():
        for name, tensor in weights.items():
            if tensor.shape != wanted[name].shape:
                raise RunError(
                    f"{where} does not fit the model in {CONFIG}: {name} has shape {tuple(tensor.shape)} "
                    f"where the model has {tuple(wanted[name].shape)}"
                )
            wanted[name].copy_(tensor)


# ---------------------------------------------------------------- small helpers


def _runs_near(path: Path) -> Path | None:
    """A run the person may have meant: the one this path is inside of, one inside it, or one with nearly its name."""
    for parent in path.parents:
        if (parent / CONFIG).is_file():
            return parent
    with contextlib.suppress(OSError):
        if inside := sorted(child.parent for child in path.glob(f"*/{CONFIG}")):
            return inside[0]
        beside = {child.parent.name: child.parent for child in path.parent.glob(f"*/{CONFIG}")}
        if near := difflib.get_close_matches(path.name, beside, n=1):
            return beside[near[0]]
    return None


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value as JSON knows it."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if hasattr(value, "tolist"):  # numpy and torch
        return _plain(value.tolist())
    return str(value)


def _processes() -> dict[str, int]:
    """How many processes train together, and with how many threads each."""
    import torch

    distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    world = torch.distributed.get_world_size() if distributed else 1
    return {"world_size": world, "threads": torch.get_num_threads()}


@functools.cache
def _versions() -> dict[str, str]:
    import importlib.metadata  # here, for it is slow to import and translating has no use for it

    versions = {"kente": kente.__version__, "python": platform.python_version()}
    for package in ("torch", "numpy", "sentencepiece", "sacrebleu", "safetensors", "ctranslate2"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def processor() -> str:
    """The make of the processor."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        if names:
            return names[0]
    return platform.processor() or platform.machine()


def cores() -> int:
    """Processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment() -> dict[str, Any]:
    """What a result depends on besides the settings: versions and machine. No names of people, machines or folders."""
    import torch

    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": cores(),
        **_processes(),
        "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())],
    }
