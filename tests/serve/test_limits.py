"""Bounds: on lengths, on time, on how much waits, on who may ask and how often; each with its status and a sentence."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

TEXT = "The cat sees the dog."
ASKED = {"q": TEXT, "source": "en", "target": "fr"}
LONG = (TEXT + " ") * 800
KEY = "a-key-that-nobody-guesses"


# ---------------------------------------------------------------- lengths


def test_too_many_characters_texts_or_bytes_are_refused(server: Any) -> None:
    for body, words in (
        ({**ASKED, "q": "a" * 20_001}, "20,001 characters, but 20,000 is the most"),
        ({**ASKED, "q": ["a" * 10_001] * 2}, "20,002 characters"),
        ({**ASKED, "q": ["a"] * 101}, "101 texts, but 100 is the most"),
        ({**ASKED, "more": "a" * 1_000_000}, "more than 1,000,000 bytes"),
    ):
        answer = server.post("/translate", body)
        assert answer.status == 413 and words in answer.json["error"]
    assert server.upload("/translate_file", "a.txt", b"a" * 2_000_001, source="en", target="fr").status == 413


def test_a_body_without_a_length_is_read_as_far_as_it_may_be(server: Any) -> None:
    with socket.create_connection((server.host, server.port), timeout=30) as client:
        client.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        try:
            for _ in range(400):
                client.sendall(chunk)
        except OSError:
            pass  # it has heard enough
    assert server.counted("kente_refused_total") >= 1
    assert server.post("/translate", ASKED).status == 200


def test_what_is_not_there_or_not_done_is_said_in_json(server: Any) -> None:
    assert server.get("/nothing").status == 404 and "/docs" in server.get("/nothing").json["error"]
    answer = server.get("/translate")
    assert answer.status == 405 and answer.headers["allow"] == "POST" and "error" in answer.json
    assert server.ask("PUT", "/languages").status == 405


# ---------------------------------------------------------------- keys and rates


@pytest.fixture(scope="module")
def guarded(start: Any, run: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with keys, and a pace for each."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"{KEY}\nanother-long-key-of-ours\n")
    return start(run, "--keys", keys, "--rate", "120", "--no-corrections", "--characters", "100")


def test_with_keys_whoever_asks_for_work_needs_one(guarded: Any) -> None:
    assert guarded.post("/translate", ASKED).status == 400
    assert "API key" in guarded.post("/translate", ASKED).json["error"]
    assert guarded.post("/translate", {**ASKED, "api_key": "wrong"}).status == 403
    assert guarded.post("/translate", {**ASKED, "api_key": KEY}).status == 200
    assert guarded.form("/translate", **ASKED, api_key=KEY).status == 200
    assert guarded.post("/v1/translate", ASKED, Authorization=f"Bearer {KEY}").status == 200
    assert guarded.post("/detect", {"q": "a"}).status == 400
    assert (
        guarded.get("/metrics").status == 400 and guarded.get("/metrics", Authorization=f"bearer {KEY}").status == 200
    )
    for path in ("/languages", "/health", "/ready", "/frontend/settings", "/docs", "/openapi.json"):
        assert guarded.get(path).status == 200
    assert guarded.get("/frontend/settings").json["keyRequired"] is True


def test_no_corrections_are_taken_where_none_are_wanted(guarded: Any) -> None:
    taught = {"q": "a", "s": "b", "source": "en", "target": "fr", "api_key": KEY}
    answer = guarded.post("/suggest", taught)
    assert answer.status == 403 and guarded.get("/frontend/settings").json["suggestions"] is False


def test_a_client_that_asks_too_often_is_told_when_to_come_back(guarded: Any) -> None:
    other = {**ASKED, "api_key": "another-long-key-of-ours"}
    answers = [guarded.post("/translate", other) for _ in range(40)]
    assert {answer.status for answer in answers} == {200, 429}
    assert all(int(a.headers["retry-after"]) >= 1 and "error" in a.json for a in answers if a.status == 429)
    assert guarded.post("/translate", {**ASKED, "api_key": KEY}).status == 200


def test_a_limit_of_its_own_holds(guarded: Any) -> None:
    answer = guarded.post("/translate", {**ASKED, "q": "a" * 101, "api_key": KEY})
    assert answer.status == 413 and "101 characters, but 100" in answer.json["error"]


# ---------------------------------------------------------------- time and room


@pytest.fixture(scope="module")
def hurried(start: Any, run: Path) -> Any:
    """A server in which little may wait, and nothing may take long."""
    return start(run, "--waiting", "0.02", "--deadline", "0.04")


def test_what_takes_too_long_is_given_up(hurried: Any) -> None:
    answer = hurried.post("/translate", {**ASKED, "q": LONG})
    assert answer.status == 504 and "not translated within 0.04 seconds" in answer.json["error"]
    hurried.wait_until(lambda: "} 0" in str(hurried.get("/metrics").data.split(b'what="queued_tokens"')[1][:4]))


def test_a_stream_that_takes_too_long_ends_with_an_error(hurried: Any) -> None:
    answer = hurried.post("/v1/stream", {**ASKED, "q": LONG})
    if answer.status == 200:  # it had begun
        name, data = answer.events[-1]
        assert name == "error" and "not translated within" in data["error"]
    else:
        assert answer.status == 504


def test_when_too_much_waits_the_rest_is_refused_at_once_and_nothing_else_goes_wrong(server: Any) -> None:
    body = json.dumps({**ASKED, "q": LONG, "alternatives": 2}).encode()
    kind = {"Content-Type": "application/json"}
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: server.ask("POST", "/translate", body, kind), range(24)))
    assert {answer.status for answer in answers} == {200, 503}
    assert len({answer.data for answer in answers if answer.status == 200}) == 1
    for answer in answers:
        if answer.status == 503:
            assert int(answer.headers["retry-after"]) >= 1 and answer.json["error"].startswith("busy")
    assert server.post("/translate", ASKED).status == 200


def test_a_client_that_leaves_frees_its_place(server: Any) -> None:
    left = server.counted("kente_clients_left_total")
    body = json.dumps({**ASKED, "q": LONG}).encode()
    head = (
        f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    clients = [socket.create_connection((server.host, server.port)) for _ in range(3)]
    for client in clients:
        client.sendall(head.encode() + body)
    for client in clients:
        client.close()
    server.wait_until(lambda: server.counted("kente_clients_left_total") >= left + 1)
    assert server.post("/translate", ASKED).status == 200


def test_answers_do_not_depend_on_who_else_asks(server: Any) -> None:
    texts = [f"The {one} sees the {other}." for one in ("cat", "dog", "man") for other in ("tree", "house", "fish")]
    alone = [server.post("/translate", {**ASKED, "q": text}).json for text in texts]
    found: dict[int, Any] = {}

    def ask(number: int) -> None:
        found[number] = server.post("/translate", {**ASKED, "q": texts[number]}).json

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in range(len(texts))] == alone
