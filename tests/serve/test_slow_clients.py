"""Clients that keep a server waiting are cut off, and others do not notice."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path
from typing import Any

import pytest

RECEIPT = 0.5
ASKED = {"q": "The cat sees the dog.", "source": "en", "target": "fr"}


@pytest.fixture(scope="module")
def impatient(start: Any, run: Path) -> Any:
    return start(run, "--receipt", str(RECEIPT), "--connections", "30")


def connect(server: Any) -> socket.socket:
    return socket.create_connection((server.host, server.port), timeout=30)


def heard(client: socket.socket) -> bytes:
    """All that comes until the connection ends."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while part := client.recv(65536):
            data += part
    return data


def dribble(client: socket.socket, data: bytes) -> bytes:
    """Send a byte at a time, for as long as the server listens; what it said."""
    for number in range(100):
        try:
            client.sendall(data[number : number + 1] or b"a")
        except ConnectionError:
            break
        client.settimeout(0.1)
        try:
            said = client.recv(65536)
        except TimeoutError:
            continue
        client.settimeout(30)
        return said + heard(client)
    return heard(client)


HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"


def test_a_client_that_says_nothing_is_cut_off(impatient: Any) -> None:
    with connect(impatient) as client:
        assert b"408 Request Timeout" in heard(client)


def test_a_head_that_never_ends_is_cut_off(impatient: Any) -> None:
    with connect(impatient) as client:
        assert b'{"error": "the request took too long to arrive"}' in dribble(client, HEAD)


def test_a_body_that_never_ends_is_cut_off(impatient: Any) -> None:
    with connect(impatient) as client:
        client.sendall(HEAD + b"\r\n")
        assert b"408 Request Timeout" in dribble(client, b"{")


def test_a_second_request_that_never_ends_is_cut_off_too(impatient: Any) -> None:
    with connect(impatient) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in client.recv(65536)
        assert b"408 Request Timeout" in dribble(client, HEAD)


def test_answers_that_nobody_takes_are_not_kept(impatient: Any) -> None:
    before = impatient.counted("kente_connections_cut_total")
    with connect(impatient) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with contextlib.suppress(ConnectionError, TimeoutError):
            client.settimeout(2)
            client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
        impatient.wait_until(lambda: impatient.counted("kente_connections_cut_total") > before)


def test_a_head_without_measure_is_refused(impatient: Any) -> None:
    with connect(impatient) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(b"GET / HTTP/1.1\r\n" + b"X-Long: " + b"a" * 200_000)
        said = heard(client)
    assert not said or b"HTTP/1.1 431" in said or b"HTTP/1.1 400" in said


def test_what_is_not_http_is_refused_in_json(impatient: Any) -> None:
    with connect(impatient) as client:
        client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        said = heard(client)
    assert said.startswith(b"HTTP/1.1 400") and b'{"error": ' in said


def test_there_are_only_so_many_connections(impatient: Any) -> None:
    time.sleep(2 * RECEIPT)  # those of other tests are gone
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(impatient)) for _ in range(40)]
        said = [heard(client) for client in clients]
    assert sum(b"503 Service Unavailable" in words and b"retry-after: 1" in words for words in said) >= 10
    assert impatient.get("/health").status == 200


def test_meanwhile_others_are_served(impatient: Any) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connect(impatient)).sendall(HEAD)
        assert impatient.post("/translate", ASKED).status == 200
