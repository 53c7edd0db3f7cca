"""Starting and stopping: what was taken on is finished, what comes later is refused, and a second signal does not wait."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

LONG = "The cat sees the dog. " * 150
ASKED = {"q": LONG, "source": "en", "target": "fr"}


def test_a_signal_under_load_loses_nothing_that_was_taken_on(start: Any, run: Path) -> None:
    server = start(run, "--waiting", "20")
    assert server.post("/translate", ASKED).status == 200  # how fast it is decides how much it takes on
    answers: list[Any] = []
    problems: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(server.post("/translate", ASKED))
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    server.wait_until(
        lambda: b'what="requests"} 8' in server.get("/metrics").data or not any(t.is_alive() for t in threads)
    )
    server.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join()
    assert server.process.wait(timeout=60) == 0
    assert problems == [] and [answer.status for answer in answers] == [200] * 8
    events = [line["event"] for line in server.logged()]
    assert events.index("stopping") < events.index("stopped") == len(events) - 1


def test_while_it_stops_nothing_new_is_taken_on(start: Any, run: Path) -> None:
    server = start(run, "--waiting", "20", "--characters", "200000")
    held = threading.Thread(target=lambda: server.post("/translate", {**ASKED, "q": LONG * 40}))
    held.start()
    server.wait_until(lambda: b'what="requests"} 1' in server.get("/metrics").data)
    server.process.send_signal(signal.SIGTERM)
    server.wait_until(lambda: server.get("/health").status == 200 and server.get("/ready").status == 503)
    refused = server.post("/translate", {**ASKED, "q": "a"})
    assert refused.status == 503 and "about to stop" in refused.json["error"] and refused.headers["retry-after"]
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=20)
    held.join()


def test_an_idle_server_stops_at_once_even_if_connections_are_open(start: Any, run: Path) -> None:
    server = start(run)
    with socket.create_connection((server.host, server.port)) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        client.recv(65536)
        assert server.stop() == 0


def fails(*arguments: object) -> str:
    """What `kente serve` says when it cannot."""
    command = [sys.executable, "-m", "kente", "serve", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and not done.stdout and "Traceback" not in done.stderr
    return done.stderr


def test_a_port_that_is_taken_is_said(server: Any, run: Path) -> None:
    assert f"cannot listen on 127.0.0.1 port {server.port}" in fails(run, "--port", server.port)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no run nowhere"),
        (["RUN", "--host", "0.0.0.0"], "there are no API keys"),
        (["RUN", "--languages", "en"], "two codes are wanted"),
        (["RUN", "--languages", "en,fr", "--languages", "fr,en"], "1 runs but 2 times --languages"),
        (["RUN", "RUN"], "both translate en-fr"),
        (["RUN", "--keys", "nowhere"], "cannot be read as a file of API keys"),
        (["RUN", "--port", "70000"], "--port (70000) must be between 0 and 65535"),
    ],
)
def test_what_cannot_be_served_is_said(run: Path, arguments: list[str], words: str) -> None:
    assert words in fails(*[run if argument == "RUN" else argument for argument in arguments])


def test_a_run_without_weights_ends_the_server_with_its_reason(run: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for name in ("config.toml", "languages.json"):
        (empty / name).write_bytes((run / name).read_bytes())
    assert "has no checkpoint yet" in fails(empty, "--port", "0")


def test_languages_can_be_named_otherwise(start: Any, run: Path) -> None:
    server = start(run, "--languages", "en-GB,fr-CA")
    assert [one["code"] for one in server.get("/languages").json] == ["en-GB", "fr-CA"]
    answer = server.post("/translate", {"q": "The cat sees the dog.", "source": "auto", "target": "fr-CA"})
    assert json.loads(answer.data)["detectedLanguage"]["language"] == "en-GB"
