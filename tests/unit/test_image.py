"""The serving image as far as it can be looked at without Docker: it copies what is there, pins what is tested, and knows no torch."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
HEAVY = {"torch", "sacrebleu", "jaxtyping"}
"""Packages that Kente trains and scores with, and does not serve with."""


def instructions(name: str) -> list[list[str]]:
    """The words behind each such instruction of the Dockerfile."""
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith(f"{name} ")]


def pins(path: Path) -> dict[str, str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), "every package is pinned"
    return {name.lower().replace("_", "-"): version for name, version in (line.split("==") for line in lines)}


def test_everything_it_copies_is_there_and_not_left_out_of_the_context() -> None:
    copied = [source for *sources, _ in instructions("COPY") for source in sources]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for source in copied:
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in kept, source
    needed = {"pyproject.toml", "README.md", "LICENSE", "src", "recipes"}  # what building the package reads
    assert needed <= set(copied)


def test_its_steps_are_the_script_that_is_tried_without_docker() -> None:
    assert any("/build/docker/install.sh" in words for words in instructions("RUN"))
    assert '"install.sh"' in (DOCKER / "check.py").read_text()


def test_it_installs_what_is_tested_and_no_torch() -> None:
    wanted, tested = pins(DOCKER / "requirements.txt"), pins(ROOT / "constraints.txt")
    assert not HEAVY & set(wanted)
    assert {"ctranslate2", "numpy", "safetensors", "sentencepiece", "starlette", "uvicorn"} <= set(wanted)
    differ = {name: (version, tested[name]) for name, version in wanted.items() if tested.get(name, version) != version}
    assert not differ
