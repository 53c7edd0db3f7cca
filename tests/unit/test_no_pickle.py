"""No path through the code runs what it reads: rule 2 of the reliability page."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

import kente

SOURCE = Path(kente.__file__).parent

FORBIDDEN = re.compile(
    r"""\b(?:c?[pP]ickle | dill | joblib | shelve | marshal | yaml)\b
      | \btorch \. (?: load | save | hub | package )\b
      | (?<![\w.]) (?: eval | exec | compile | __import__ ) \(
      | \b(?: extractall | unpack_archive )\b
      | \b(?: shell | allow_pickle ) = \s* True""",
    re.VERBOSE,
)


def code_lines(text: str) -> dict[int, str]:
    """Line number -> the code on it, without comments and strings, which may speak of what the code may not do."""
    lines: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            continue
        lines[token.start[0]] = (
            lines.get(token.start[0], "") + (" " if token.type == tokenize.NAME else "") + token.string
        )
    # "torch . load" and "import pickle" as one would write them
    return {number: re.sub(r"\s*\.\s*", ".", line) for number, line in lines.items()}


def findings(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)}:{number}: {match[0]}"
        for path in sorted(root.rglob("*.py"))
        for number, line in code_lines(path.read_text(encoding="utf-8")).items()
        for match in FORBIDDEN.finditer(line)
    ]


def test_nothing_in_the_source_runs_what_it_reads() -> None:
    assert findings(SOURCE) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import yaml",
        "torch.load(path)",
        "torch . save(model, path)",
        "x = eval(text)",
        "exec(text)",
        "archive.extractall(folder)",
        "shutil.unpack_archive(path)",
        "numpy.load(path, allow_pickle=True)",
        "subprocess.run(text, shell=True)",
    ],
)
def test_the_search_finds(tmp_path: Path, code: str) -> None:
    (tmp_path / "module.py").write_text(f"import os\n{code}\n")
    assert [found.split(": ")[0] for found in findings(tmp_path)] == ["module.py:2"]


@pytest.mark.parametrize(
    "code",
    [
        "model.eval()",
        "# never torch.load",
        'TEXT = "no pickle"',
        "def evaluate(x): ...",
        "re.compile(pattern)",
        "checkpoint.load('model')",
    ],
)
def test_the_search_is_not_fooled_by(tmp_path: Path, code: str) -> None:
    (tmp_path / "module.py").write_text(code + "\n")
    assert findings(tmp_path) == []
