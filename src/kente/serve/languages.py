"""Languages by their codes: which ones a run translates, and what they are called in English."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kente.errors import UsageError
from kente.runs import Run
from kente.serve.names import NAMES

_CODE = re.compile(
    r"[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-(?:[A-Za-z]{2}|[0-9]{3}))?(?:-(?:[0-9][A-Za-z0-9]{3}|[A-Za-z0-9]{5,8}))*"
)
_NOT_LANGUAGES = frozenset(("gz", "src", "tgt", "txt", "tok", "low", "raw", "tsv", "csv"))
"""Endings of file names that look like codes."""


def code_of(text: str) -> str:
    """A language code as BCP 47 writes it (en, pt-BR, zh-Hant); a complaint if it is none."""
    if not _CODE.fullmatch(text):
        raise UsageError(f"{text!r} is not a language code; codes look like en, ak, pt-BR or zh-Hant (BCP 47)")
    language, *rest = text.split("-")
    kinds = {2: str.upper, 4: str.title}  # a region, a script
    return "-".join([language.lower(), *(kinds.get(len(part), str.lower)(part) for part in rest)])


def name_of(code: str) -> str:
    """What a language is called in English; its code where we do not know."""
    language, *rest = code.split("-")
    name = NAMES.get(language, language)
    return f"{name} ({', '.join(rest)})" if rest else name


def languages_of(run: Path | str, given: str | None = None) -> tuple[str, str]:
    """(source, target) of a run: as given ("en,fr"), else as the names of its training files or its folder tell."""
    folder = Run.open(run).path
    if given is not None:
        codes = [part.strip() for part in given.split(",")]
        if len(codes) != 2:
            raise UsageError(f"--languages {given}: two codes are wanted, source and target, such as en,fr")
        return code_of(codes[0]), code_of(codes[1])
    for source, target in _hints(folder):
        if _is_code(source) and _is_code(target) and source.lower() != target.lower():
            return code_of(source), code_of(target)
    raise UsageError(
        f"which languages does {run} translate? Neither its training files nor its name tell: say --languages SOURCE,TARGET, such as en,fr"
    )


def _is_code(text: str) -> bool:
    return bool(_CODE.fullmatch(text)) and text.lower() not in _NOT_LANGUAGES


def _hints(folder: Path) -> Iterator[tuple[str, str]]:
    """Places where languages may be named, the surest first."""
    data = _request(folder).get("data") or {}
    if data.get("fields"):
        source, target = data["fields"]
        yield source.split(".")[-1], target.split(".")[-1]
    if data.get("source") and data.get("target"):
        yield _ending(data["source"]), _ending(data["target"])
    names = [folder.resolve().name, *([Path(data["pairs"]).name] if data.get("pairs") else [])]
    for name in names:
        for first, second in re.findall(r"(?<![A-Za-z])([a-z]{2,3})[-_.]([a-z]{2,3})(?![A-Za-z])", name):
            if first in NAMES and second in NAMES:  # a folder may be called anything, so only names we know count
                yield first, second


def _request(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / "request.json").read_bytes()))
    except (OSError, ValueError):
        return {}


def _ending(path: str) -> str:
    """ "news/train.clean.en.gz" -> "en"."""
    endings = [part for part in Path(path).name.split(".")[1:] if part.lower() not in _NOT_LANGUAGES]
    return endings[-1] if endings else ""
