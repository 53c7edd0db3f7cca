"""What is written down about the server is what it does."""

from __future__ import annotations

import re
import shlex
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kente.serve.app import app_of
from kente.serve.logs import Log
from kente.serve.openapi import openapi
from kente.serve.server import assemble
from kente.serve.settings import Settings
from kente.serve.swagger import ROUTES
from kente.serve.translators import Pair

PAIRS = [Pair("en", "fr", Path("a")), Pair("fr", "en", Path("b"))]


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return openapi(serving().translators, Settings())


def serving() -> Any:
    return assemble(PAIRS, None, Settings(), lambda run: None, Log())  # type: ignore[arg-type, return-value]


def test_every_route_is_described_with_its_methods(description: dict[str, Any]) -> None:
    served = {
        (route.path, method.lower())
        for route in app_of(serving()).app.routes  # type: ignore[attr-defined]
        for method in route.methods - {"HEAD"}
    }
    described = {(path, method) for path, methods in description["paths"].items() for method in methods}
    assert described == served
    assert set(ROUTES) <= set(description["paths"])


def test_references_lead_somewhere_and_every_answer_is_described(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    assert {name.split('"')[0].split("'")[0] for name in str(description).split("#/components/schemas/")[1:]} <= set(
        schemas
    )
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"] and "200" in operation["responses"], (path, method)
            for status, answer in operation["responses"].items():
                assert answer["description"] and answer["content"], (path, status)
                if status in ("429", "503"):
                    assert "Retry-After" in answer["headers"]


def test_languages_and_limits_are_those_of_the_server(server: Any) -> None:
    asked = server.get("/openapi.json").json["paths"]["/translate"]["post"]["requestBody"]["content"]
    fields = asked["application/json"]["schema"]["properties"]
    assert fields["source"]["enum"] == ["auto", "en"] and fields["target"]["enum"] == ["fr"]
    assert fields["alternatives"]["maximum"] == 10


class Reader(HTMLParser):
    """Text of a page, its links and the names they may lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.text, self.links, self.names = "", set[str](), set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += "\n" if tag in ("pre", "table", "p", "td", "article") else ""
        self.links |= {value or "" for name, value in attrs if name == "href"}
        self.names |= {value or "" for name, value in attrs if name == "id"}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_tells_every_route_and_its_links_lead_somewhere(server: Any, description: dict[str, Any]) -> None:
    page = Reader()
    page.feed(server.get("/docs").data.decode())
    for path, methods in description["paths"].items():
        assert all(f"{method.upper()} {path}" in page.text for method in methods)
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.names
    assert all(server.get(f"/{link}").status == 200 for link in page.links if link and not link.startswith(("#", ".")))


def test_the_examples_of_the_page_work(server: Any, tmp_path: Path) -> None:
    page = Reader()
    page.feed(server.get("/docs").data.decode())
    (tmp_path / "letter.txt").write_text("The cat sees the dog.")
    joined = re.sub(r"\\\n", " ", page.text)
    commands = re.findall(
        r"curl http://127\.0\.0\.1:5000\S+ (?:-H 'Content-Type: application/json' +-d '[^']*'|(?:-F \S+ ?)+)", joined
    )
    assert len(commands) >= 6
    for command in commands:
        if "/look" in command:
            continue  # needs torch, which this server does without
        words = shlex.split(command.replace("http://127.0.0.1:5000", server.address))
        words += ["-sS", "-o", "/dev/null", "-w", "%{http_code}"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.stdout == "200", (command, done.stdout, done.stderr)
