"""One browser for all tests of this folder."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def made_up() -> Callable[..., Any]:
    """Makes up a comparison."""
    return runpy.run_path(str(HERE / "made_up.py"))["comparison"]


@pytest.fixture(scope="session")
def made_up_look() -> Callable[..., Any]:
    """Makes up an exploration."""
    return runpy.run_path(str(HERE / "made_up_look.py"))["explored"]


@pytest.fixture(scope="session")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on the PATH (Debian: apt install chromium)")
    devtools = runpy.run_path(str(HERE / "devtools.py"))
    with devtools["Browser"](program, tmp_path_factory.mktemp("profile")) as browser:
        yield devtools["Page"](browser)
