"""What every test may rely on: shapes checked while testing, corpora found or skipped, no surprises from the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# shapes in signatures are checked here and cost nothing in production; the hook must be in place before the first import
install_import_hook("kente.nn", "beartype.beartype")

# two cores are shared: slow is not wrong. CI draws the same examples every time; new ones are found while working.
settings.register_profile("kente", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("kente")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "KENTE_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _shapes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Shapes are checked, except in tests that train or wait for long: checking costs more than small tensors do."""
    unchecked = any(request.node.get_closest_marker(mark) for mark in ("slow", "learns", "faults"))
    jaxtyping.config.update("jaxtyping_disable", unchecked)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora beside the project; tests that need one skip where it is absent."""
    folder = Path(os.environ.get("KENTE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no corpora: KENTE_DATA or {folder} should be a folder of them")
    return folder
