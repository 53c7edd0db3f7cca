"""Results on standard output: for people, or as JSON for programs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any


def print_json(value: Any) -> None:
    print(json.dumps(plain(value), ensure_ascii=False, allow_nan=False), flush=True)


def plain(value: Any) -> Any:
    """JSON knows no NaN and no infinity: they become null."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def show(result: Any, as_json: bool) -> None:
    """A result that has lines() for people and as_dict() for programs."""
    if as_json:
        print_json(result.as_dict())
    else:
        print("\n".join(result.lines()), flush=True)


def one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
