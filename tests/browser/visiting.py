"""Visits to the translation page: what people do there, in words, on whatever server it comes from."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
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

    def answer(self, text: str, target: str, *, plain: bool = False) -> dict[str, Any]:
        """What the server tells a program about an English text, asked as the page asks: the oracle for what it shows."""
        body = {"q": text, "source": "en", "target": target}
        if not plain:
            body |= {"words": True, "alternatives": 3}  # which takes a wider beam, and may find something better
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

    def write(self, text: str, *, keys: bool = False) -> None:
        """Adds to the end of the source: at once, as one pastes, or key by key."""
        self.evaluate(f"{self.source}.focus(); {self.source}.setSelectionRange(1e6, 1e6)")
        if keys:
            self.type(text)
        else:
            self.call("Input.insertText", text=text)

    def translate(self, text: str, *, keys: bool = False) -> str:
        """Writes into the empty source; the translation, once its words can be chosen."""
        self.write(text, keys=keys)
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

    def asked(self, path: str) -> list[dict[str, Any]]:
        """What the page sent to this path, as JSON."""
        sent = [
            event["params"]["request"]
            for event in self.browser.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [json.loads(request["postData"]) for request in sent if request["url"].endswith(path)]

    def places(self) -> set[str]:
        """The hosts that were asked for anything."""
        return {url.split("/")[2].rpartition(":")[0] for url in self.requests() if url.startswith(("http", "ws"))}


@contextmanager
def serving(folder: Path) -> Iterator[Site]:
    """`kente serve` with the tiny run of the server's own tests, under the names of three pairs of languages."""
    make = runpy.run_path(str(Path(__file__).parents[1] / "serve" / "tiny.py"))["make"]
    pairs = ("en,fr", "fr,en", "en,de")
    first = make(folder / pairs[0])
    runs = [first, *(shutil.copytree(first, folder / pair) for pair in pairs[1:])]
    command = [sys.executable, "-m", "kente", "serve", *map(str, runs), *(f"--languages={pair}" for pair in pairs)]
    command += ["--port", "0", "--json", "--corrections", str(folder / "corrections")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache")}
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line, (folder / "log").read_text()
            yield Site(json.loads(line)["address"] + "/", lambda: _pairs(folder / "corrections"))
        finally:
            process.send_signal(signal.SIGTERM)


def _pairs(folder: Path) -> list[tuple[str, str]]:
    """Source and translation of each line of the corrections files."""
    lines = [line for path in sorted(folder.rglob("*.tsv")) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(fields[0], fields[1]) for fields in (line.split("\t") for line in lines)]
