"""A tiny run with random weights, and servers of it: real processes on loopback, in which torch cannot be imported."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

WITHOUT_TORCH = "import sys; sys.modules['torch'] = None; from kente.cli import main; sys.exit(main())"


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = runpy.run_path(str(Path(__file__).parent / "tiny.py"))["make"]
    return make(tmp_path_factory.mktemp("serve") / "en-fr")


class Answer:
    """What came back."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.data = response.status, response.headers, response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """(name, data) of server-sent events."""
        blocks = [block.split("\n") for block in self.data.decode().split("\n\n") if block]
        return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


class Served:
    """A server in a process of its own."""

    def __init__(self, log: Path, *arguments: object, torch: bool = False) -> None:
        start = ["-m", "kente"] if torch else ["-c", WITHOUT_TORCH]
        self.log = log
        with open(log, "wb") as told:
            self.process = subprocess.Popen(
                [sys.executable, *start, "serve", *map(str, arguments), "--port", "0", "--json"],
                stdout=subprocess.PIPE,
                stderr=told,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.address: str = json.loads(line)["address"]
        self.host, port = self.address.removeprefix("http://").rsplit(":", 1)
        self.port = int(port)

    def ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            return Answer(connection.getresponse())

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        """POST an object as JSON."""
        own = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.ask("POST", path, json.dumps(body).encode(), own)

    def form(self, path: str, **fields: str) -> Answer:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, urlencode(fields).encode(), kind)

    def upload(self, path: str, name: str, data: bytes, **fields: str) -> Answer:
        """POST a form with a file."""
        parts = [
            f'Content-Disposition: form-data; name="{key}"\r\n\r\n{value}'.encode() for key, value in fields.items()
        ]
        parts.append(
            f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'.encode()
            + b"Content-Type: application/octet-stream\r\n\r\n"
            + data
        )
        body = b"".join(b"--boundary\r\n" + part + b"\r\n" for part in parts) + b"--boundary--\r\n"
        return self.ask("POST", path, body, {"Content-Type": "multipart/form-data; boundary=boundary"})

    def counted(self, name: str) -> float:
        """The sum of a counter over its labels."""
        lines = self.get("/metrics").data.decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        for _ in range(600):
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError("this never came true")

    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


Start = Callable[..., Served]


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts servers, and ends them when the tests are over."""
    started: list[Served] = []

    def begin(*arguments: object, torch: bool = False) -> Served:
        started.append(Served(tmp_path_factory.mktemp("log") / "log", *arguments, torch=torch))
        return started[-1]

    yield begin
    for server in started:
        server.close()


@pytest.fixture(scope="session")
def server(start: Start, run: Path) -> Served:
    """A server as most people run it."""
    return start(run)
