"""Which languages a run translates between, for programs that must know."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from kente.errors import UsageError

CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
NO_LANGUAGES = frozenset(("txt", "tsv", "csv", "src", "tgt", "trg", "tok", "json", "gz"))
"""Endings of file names that look like the code of a language and seldom are one."""


def languages_of(run: Path, given: tuple[str, str] | None) -> tuple[str, str]:
    """(source, target) as codes such as en: those given, or what the names of the run's corpus end with."""
    if given is not None:
        for code in given:
            if not CODE.fullmatch(code):
                raise UsageError(f"{code!r} is not a language code; --languages wants two such as en,tw (BCP 47)")
        return given
    try:
        data = json.loads((run / "request.json").read_bytes())["data"]
    except (OSError, ValueError, KeyError, TypeError):
        data = {}
    found = _from_names(data if isinstance(data, dict) else {})
    if found is None:
        raise UsageError(f"which languages does {run} translate between? --languages en,tw says it")
    return found


def _from_names(data: dict[str, Any]) -> tuple[str, str] | None:
    fields = data.get("fields")
    names = fields if isinstance(fields, list) else [_ending(data.get(side)) for side in ("source", "target")]
    codes = [name for name in names if isinstance(name, str) and CODE.fullmatch(name) and name not in NO_LANGUAGES]
    return (codes[0], codes[1]) if len(codes) == 2 and codes[0] != codes[1] else None


def _ending(path: Any) -> str | None:
    """train.en.gz -> en"""
    return Path(path.removesuffix(".gz")).suffix.removeprefix(".") if isinstance(path, str) else None
