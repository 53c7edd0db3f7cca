"""Who may import whom: a module imports only lower layers or its own folder (imports inside functions count too)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import kente

SOURCE = Path(kente.__file__).parent

LAYERS: list[set[str]] = [
    {"errors", "reporting", "memory"},
    {"config", "durable"},
    {"configfile"},
    {"data", "nn", "text"},
    {"models"},
    {"checkpoints"},
    {"runs"},
    {"train", "decode"},
    {"imports"},
    {"measure", "export"},
    {"show"},
    {"lectures"},
    {"api"},
    {"serve"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
FORBIDDEN_BESIDES = {"nn": {"errors", "reporting", "config", "configfile"}, "models": {"data"}}
"""nn knows tensors and nothing else; models take tensors, never a Batch."""


def imported(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, list[str]]]:
    """(line, ["kente", "data", ...]) for everything of ours a module of `package` imports, however it does."""
    for node in ast.walk(tree):
        names: list[str] = []
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(level=0, module=str(module)):
                names = [f"{module}.{alias.name}" for alias in node.names]
            case ast.ImportFrom():
                base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
                names = [".".join([*base, alias.name]) for alias in node.names]
            case ast.Call(func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module")):
                names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        yield from ((node.lineno, name.split(".")) for name in names if name.split(".")[0] == "kente")  # type: ignore[attr-defined]


def violations(root: Path) -> list[str]:
    """Every import that goes up or sideways in the package at `root`."""
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        own = parts[0]
        if own == "__init__":
            continue  # the package itself stands below every layer; its one lazy import has a test of its own
        where = "/".join(parts)
        if own not in LEVEL:
            found.append(f"{where} has no place in the layers")
            continue
        for line, name in imported(ast.parse(path.read_text(encoding="utf-8")), ["kente", *parts[:-1]]):
            other = name[1] if len(name) > 1 else ""
            if other not in LEVEL or other == own:  # kente.__version__, or its own folder
                continue
            if LEVEL[other] >= LEVEL[own] or other in FORBIDDEN_BESIDES.get(own, ()):
                found.append(f"{where}:{line} imports {'.'.join(name)}")
    return found


def test_every_module_imports_only_lower_layers_or_its_own_folder() -> None:
    assert violations(SOURCE) == []


def test_the_package_itself_imports_nothing_until_asked() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    lazy = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "__getattr__")
    inside = {line for line, _ in imported(lazy, ["kente"])}
    assert {line for line, _ in imported(tree, ["kente"])} == inside


@pytest.mark.parametrize(
    ("path", "code", "complaint"),
    [
        (
            "data/corpus.py",
            "from kente.train.trainer import Trainer",
            "data/corpus:1 imports kente.train.trainer.Trainer",
        ),
        ("data/corpus.py", "import kente.nn.masks", "data/corpus:1 imports kente.nn.masks"),
        ("data/corpus.py", "def f():\n    from kente import api", "data/corpus:2 imports kente.api"),
        ("data/corpus.py", "from ..runs import Run", "data/corpus:1 imports kente.runs.Run"),
        ("data/deep/corpus.py", "from ... import runs", "data/deep/corpus:1 imports kente.runs"),
        ("decode/a.py", "import importlib\nimportlib.import_module('kente.train')", "decode/a:2 imports kente.train"),
        ("errors.py", "import kente.config", "errors:1 imports kente.config"),
        ("checkpoints.py", "from kente.runs import Run", "checkpoints:1 imports kente.runs.Run"),
        ("nn/masks.py", "from kente.config import Config", "nn/masks:1 imports kente.config.Config"),
        ("models/a.py", "from kente.data.batches import Batch", "models/a:1 imports kente.data.batches.Batch"),
        ("helpers.py", "", "helpers has no place in the layers"),
    ],
)
def test_the_checker_catches(tmp_path: Path, path: str, code: str, complaint: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(code)
    assert violations(tmp_path) == [complaint]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (
            "data/corpus.py",
            "import kente\nfrom kente import __version__\nfrom kente.errors import KenteError\nimport json",
        ),
        ("data/corpus.py", "from kente.data.store import Store\nfrom .store import Store\nfrom . import store"),
        ("runs.py", "from kente.checkpoints import Checkpoint\nfrom kente.models.build import build"),
        ("cli/entry.py", "from kente import api\nfrom kente.cli.terminal import Terminal"),
    ],
)
def test_the_checker_allows(tmp_path: Path, path: str, code: str) -> None:
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(code)
    assert violations(tmp_path) == []
