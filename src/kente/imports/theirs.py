"""What another program's files say: settings that are looked at one by one, and tensors that are all accounted for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from kente.errors import UsageError
from kente.imports.folder import CONFIG, read_json, weight_files

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "silu": "silu",
    "swish": "silu",
}
"""Their names for ours; the three of the tanh form differ in how they are computed, not in what."""


class Settings:
    """A config.json: a setting that our layers cannot have is a reason to refuse the model."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CONFIG
        self.values = read_json(self.path)
        if "auto_map" in self.values:
            raise UsageError(
                f"{self.path} names code that comes with the model (auto_map); Kente runs no code but its own, "
                "and reads the layouts it knows: BERT, GPT-2, Marian, M2M100"
            )
        if self.values.get("quantization_config"):
            raise UsageError(f"{self.path}: the weights are quantised; take the model in float32, float16 or bfloat16")

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of these settings that is there and not null."""
        return next((self.values[name] for name in names if self.values.get(name) is not None), default)

    def count(self, *names: str, default: int | None = None) -> int:
        value = self.get(*names, default=default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"{self.path}: {names[0]} should be a whole number, not {value!r}")
        return value

    def number(self, *names: str, default: float | None = None) -> float:
        value = self.get(*names, default=default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"{self.path}: {names[0]} should be a number, not {value!r}")
        return float(value)

    def truth(self, name: str, default: bool) -> bool:
        value = self.get(name, default=default)
        if not isinstance(value, bool):
            raise UsageError(f"{self.path}: {name} should be true or false, not {value!r}")
        return value

    def require(self, name: str, wanted: Any) -> None:
        """Refuse a value that is not the one our layers have, which is also what a missing setting means."""
        value = self.get(name, default=wanted)
        if value != wanted:
            raise UsageError(f"{self.path}: {name} = {value!r}; Kente's layers have {wanted!r} only")

    def same(self, *names: str) -> int:
        """One value of settings that must agree: those of encoder and decoder."""
        values = [self.count(name) for name in names]
        if len(set(values)) > 1:
            said = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
            raise UsageError(f"{self.path}: {said}; Kente's Transformers have one value for both")
        return values[0]

    def activation(self, *names: str, default: str) -> Any:
        value = self.get(*names, default=default)
        if value not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise UsageError(f"{self.path}: {names[0]} = {value!r} is no activation Kente has; it has {known}")
        return ACTIVATIONS[value]


class Tensors:
    """The tensors of a model's files, by short names: without the model's own name before them."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder = folder
        self._files: dict[str, tuple[Path, str]] = {}
        self._taken: set[str] = set()
        for path in weight_files(folder):
            try:
                with safe_open(path, framework="pt") as file:
                    for name in file.keys():  # noqa: SIM118 (it is no dict)
                        self._files[_short(name, prefix)] = (path, name)
            except (SafetensorError, OSError) as error:
                raise UsageError(f"{path} cannot be read as safetensors: {error}") from None

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def prefix_of(self, prefix: str) -> str:
        """The prefix, if their names have it: a model that is part of no larger one has none."""
        return prefix if any(full.startswith(prefix) for _, full in self._files.values()) else ""

    def first(self, *names: str) -> str:
        """The first of these names that is there: tied tensors are stored under any of theirs."""
        return next((name for name in names if name in self), names[0])

    def rows(self, name: str) -> int:
        """How many rows a tensor has."""
        path, full = self._files.get(name, (None, ""))
        if path is None:
            raise UsageError(f"the weights in {self.folder} do not fit its {CONFIG}: {name} is missing")
        with safe_open(path, framework="pt") as file:
            return int(file.get_slice(full).get_shape()[0])

    def take(self, name: str) -> Tensor:
        """A tensor in float32, which is then accounted for."""
        if name not in self:
            raise UsageError(f"the weights in {self.folder} do not fit its {CONFIG}: {name} is missing")
        path, full = self._files[name]
        with safe_open(path, framework="pt") as file:
            tensor: Tensor = file.get_tensor(full)
        if not tensor.is_floating_point():
            raise UsageError(f"{path}: {full} holds {tensor.dtype}, not floating-point numbers")
        tensor = tensor.to(torch.float32)
        if not bool(torch.isfinite(tensor).all()):
            raise UsageError(f"{path}: {full} holds values that are not finite numbers")
        self._taken.add(name)
        return tensor

    def left_out(self, known: re.Pattern[str]) -> list[str]:
        """Tensors nobody took. Those that are not `known` to be of no use here are a reason to refuse the model."""
        left = sorted(self._files.keys() - self._taken)
        strange = [name for name in left if not known.fullmatch(name)]
        if strange:
            more = f" and {len(strange) - 3} more" if len(strange) > 3 else ""
            raise UsageError(
                f"{self.folder} holds weights that its layout does not know: {', '.join(strange[:3])}{more}; "
                "without them the model would be another one"
            )
        return left


def _short(name: str, prefix: str) -> str:
    """Old files say gamma and beta for a norm's weight and bias."""
    short = name.removeprefix(prefix)
    return re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", short))
