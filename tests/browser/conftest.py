"""One browser for all tests of this folder."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kente

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
def devtools() -> dict[str, Any]:
    return runpy.run_path(str(HERE / "devtools.py"))


@pytest.fixture(scope="session")
def browser(devtools: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on the PATH (Debian: apt install chromium)")
    with devtools["Browser"](program, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="session")
def tab(devtools: dict[str, Any], browser: Any) -> Any:
    return devtools["Page"](browser)


# ---------------------------------------------------------------- the translation page


@pytest.fixture(scope="session")
def visiting() -> dict[str, Any]:
    return runpy.run_path(str(HERE / "visiting.py"))


@pytest.fixture(scope="session")
def _listening() -> Iterator[Any]:
    server = runpy.run_path(str(HERE / "stand_in.py"))["StandIn"](Path(kente.__file__).parent / "serve" / "assets")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def stand_in(_listening: Any) -> Any:
    """A server that does as it is told, as new."""
    _listening.reset()
    return _listening


@pytest.fixture(scope="session")
def served(browser: Any, visiting: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with visiting["serving"](tmp_path_factory.mktemp("served")) as site:
        yield site


def _visit(visiting: dict[str, Any], browser: Any, site: Any) -> Iterator[Any]:
    visit = visiting["Visit"](browser, site)
    yield visit
    assert visit.in_trouble or visit.complaints() == []
    assert visit.places() == {"127.0.0.1"}
    visit.close()


@pytest.fixture
def visit(visiting: dict[str, Any], browser: Any, stand_in: Any) -> Iterator[Any]:
    """A visit to the stand-in: the console stays silent unless a test makes trouble, and nobody else is asked."""
    taught = lambda: [(body["q"], body["s"]) for body in stand_in.bodies("/suggest")]  # noqa: E731
    yield from _visit(visiting, browser, visiting["Site"](stand_in.url, taught))


@pytest.fixture(params=["stand-in", "kente serve"])
def either(request: pytest.FixtureRequest, visiting: dict[str, Any], browser: Any) -> Iterator[Any]:
    """A visit to the stand-in, and one to `kente serve` itself."""
    if request.param == "stand-in":
        yield request.getfixturevalue("visit")
    else:
        yield from _visit(visiting, browser, request.getfixturevalue("served"))
