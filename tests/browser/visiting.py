"""Visits to the translation page: what people do there, in words, on whatever server it comes from."""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 60.0
Page = runpy.run_path(str(Path(__file__).with_name("devtools.py")))["Page"]


@dataclass
class Site:
    """A server to visit; `taught` reads the pairs it was taught."""

    url: str
    taught: Callable[[], list[tuple[str, str]]]

    def answer(self, text: str, target: str) -> dict[str, Any]:
        """What the server tells a program about an English text: the oracle for what the page shows."""
        body = {"q": text, "source": "en", "target": target, "words": True, "alternatives": 3}
        request = urllib.request.Request(
            self.url + "v1/translate", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return dict(json.load(answer)["translations"][0])


class Visit(Page):
    """A fresh tab at a site. Names such as `words` are JavaScript expressions."""

    source = "document.getElementById('source')"
    target = "document.getElementById('target')"
    source_words = "[...document.querySelectorAll('.pane:first-child .cloth span')]"
    words = "[...document.querySelectorAll('#target-pane .cloth span')]"
    chosen = f"{words}.findIndex(span => span.classList.contains('chosen'))"

    def __init__(self, browser: Any, site: Site) -> None:
        super().__init__(browser, fresh=True)
        self.site = site
        self.in_trouble = False

    def arrive(self, query: str = "", **how: Any) -> None:
        """Opens the page and waits until it knows its languages."""
        self.open(self.site.url + query, **how)
        self.until("document.getElementById('to').options.length > 0")

    def write(self, text: str) -> None:
        """Types at the end of the source."""
        self.evaluate(f"{self.source}.focus(); {self.source}.setSelectionRange(1e6, 1e6)")
        self.type(text)

    def translate(self, text: str) -> str:
        """Types into the empty source; the translation, once its words can be chosen."""
        self.write(text)
        self.until(
            f"{self.source}.value === {json.dumps(text)} && {self.words}.length && !document.querySelector('.busy')"
        )
        return str(self.evaluate(f"{self.target}.value"))

    def until_translated(self, text: str) -> None:
        """Waits until just this stands in the translation."""
        self.until(f"{self.target}.value === {json.dumps(text)}")

    def part(self, name: str) -> str:
        return f"document.getElementById({json.dumps(name)})"

    def push(self, name: str) -> None:
        """Clicks on the part of this name."""
        self.click(self.part(name))

    def says(self, name: str) -> str:
        return str(self.evaluate(f"{self.part(name)}.textContent"))

    def until_says(self, name: str, text: str) -> None:
        self.until(f"{self.part(name)}.textContent.includes({json.dumps(text)})")

    def hidden(self, name: str) -> bool:
        return bool(self.evaluate(f"{self.part(name)}.hidden"))

    def choose(self, field: str, value: str) -> None:
        """Chooses from a list as one does without a mouse."""
        codes = self.codes(field)
        self.evaluate(f"{self.part(field)}.focus()")
        self.press("Home")
        for _ in range(codes.index(value)):
            self.press("ArrowDown")
        self.until(f"{self.part(field)}.value === {json.dumps(value)}")

    def codes(self, field: str) -> list[str]:
        """What a list offers."""
        return list(self.evaluate(f"[...{self.part(field)}.options].map(option => option.value)"))

    def texts(self, selector: str) -> list[str]:
        """The text of everything a selector finds."""
        return list(
            self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(each => each.textContent)")
        )

    def places(self) -> set[str]:
        """The hosts that were asked for anything."""
        return {url.split("/")[2].rpartition(":")[0] for url in self.requests() if url.startswith(("http", "ws"))}


@contextmanager
def serving(folder: Path) -> Iterator[Site]:
    """`kente serve` with three tiny models that have learned next to nothing."""
    runs = [_tiny_run(folder, source, target) for source, target in (("en", "fr"), ("fr", "en"), ("en", "de"))]
    corrections = folder / "corrections"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "kente", "serve", *map(str, runs)]
    command += ["--port", str(port), "--corrections", str(corrections)]
    process = subprocess.Popen(command, env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")})
    try:
        _await_ready(f"http://127.0.0.1:{port}/ready", process)
        yield Site(f"http://127.0.0.1:{port}/", lambda: _pairs(corrections))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def _tiny_run(folder: Path, source: str, target: str) -> Path:
    from kente import api  # torch is imported only where there is a browser to show its work
    from kente.data.corpus import write_pairs
    from kente.data.grammar import generate

    run = folder / f"{source}-{target}"
    files = write_pairs(folder / "corpora" / run.name, "train", generate(1, 400, max_words=6), (source, target))
    sizes = ("model.width=16", "model.heads=2", "model.feedforward=32", "tokenizer.vocabulary=300")
    api.train(api.Data(*files), run, updates=2, threads=1, settings=(*sizes, "train.validate_every=2"))
    return run


def _await_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(f"kente serve is not ready (exit code {process.poll()})")


def _pairs(folder: Path) -> list[tuple[str, str]]:
    """Source and translation of each line of the corrections files."""
    lines = [line for path in sorted(folder.rglob("*.tsv")) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(fields[0], fields[1]) for fields in (line.split("\t") for line in lines)]
