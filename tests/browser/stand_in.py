"""A server that speaks the page's language and does as it is told: it translates by a rule anyone can check, and fails on request.

Word for word, last word first, in capitals; into Hebrew by exchanging letters. The first word written looks at the last one read.
"""

from __future__ import annotations

import email.message
import email.policy
import html
import json
import mimetypes
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE = 30.0
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
NAMES = {"en": "English", "fr": "French", "he": "Hebrew"}
PAIRS = {"en": ["fr", "he"], "fr": ["en"], "he": []}
HEBREW = "אבגדהוזחטיכלמנסעפצקרשת"
CONFIDENCES = (0.96, 0.61, 0.28)
EXAMPLES = [
    {"source": "en", "target": "fr", "q": "The black cat sleeps in the garden."},
    {"source": "en", "target": "he", "q": "Where is the old captain?"},
    {"source": "fr", "target": "en", "q": "Le vieux capitaine écrivit une lettre."},
]
EXPLORER = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Explorer</title><link rel="icon" href="/assets/icon.svg"><h1>{}</h1>
<label>Step <input type="range" min="0" max="3" value="0"></label></html>"""


def translated_word(word: str, target: str) -> str:
    if target != "he":
        return word.upper()
    return "".join(HEBREW[ord(letter) % len(HEBREW)] if letter.isalnum() else letter for letter in word)


def sentence(text: str, source_start: int, start: int, target: str) -> dict[str, Any]:
    """One sentence of an answer, as the interface describes it."""
    found = [(match.group(), match.start()) for match in re.finditer(r"\S+", text)]
    source_words = [
        {"text": word, "start": source_start + at, "end": source_start + at + len(word)} for word, at in found
    ]
    words, at = [], start
    for number, (word, _) in enumerate(reversed(found)):
        written, place = translated_word(word, target), len(found) - 1 - number
        looks_at = [[place, 0.75], [(place + 1) % len(found), 0.25]] if len(found) > 1 else [[0, 1.0]]
        confidence = CONFIDENCES[number % len(CONFIDENCES)]
        words.append(
            {"text": written, "start": at, "end": at + len(written), "confidence": confidence, "looks_at": looks_at}
        )
        at += len(written) + 1
    return {
        "source_start": source_start,
        "source_end": source_start + len(text),
        "start": start,
        "end": at - 1,
        "text": " ".join(word["text"] for word in words),
        "source_words": source_words,
        "words": words,
    }


def translation(body: dict[str, Any]) -> dict[str, Any]:
    """What /v1/translate answers to one text."""
    text, target = body["q"], body["target"]
    language = ("fr" if re.search("[éèàç]", text) else "en") if body["source"] == "auto" else body["source"]
    sentences: list[dict[str, Any]] = []
    written, read = "", 0
    for match in re.finditer(r"\S[^\n]*?(?:[.!?](?=\s|$)|(?=\n|$))", text):
        written += text[read : match.start()]
        sentences.append(sentence(match.group(), match.start(), len(written), target))
        written, read = written + sentences[-1]["text"], match.end()
    written += text[read:]
    others = [written.lower(), written.title()][: body.get("alternatives", 0)]
    warned = [{"kind": "link", "message": "A link was left as it is.", "start": 0, "end": 1}] if "http" in text else []
    return {
        "text": written,
        "source": language,
        "detected": {"language": language, "confidence": 93.0} if body["source"] == "auto" else None,
        "alternatives": [{"text": other, "score": -0.4 - place} for place, other in enumerate(others)],
        "warnings": warned,
        "sentences": sentences,
    }


class StandIn(ThreadingHTTPServer):
    """Listens on loopback until closed. What it was asked stands in `asked`, what it is to refuse in `refusals`."""

    daemon_threads = True

    def __init__(self, assets: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.assets = assets
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.reset()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def reset(self) -> None:
        """As new: no key wanted, corrections welcome, nothing refused, nothing withheld."""
        self.settings: dict[str, Any] = {
            "apiKeys": False,
            "charLimit": 2000,
            "filesTranslation": True,
            "frontendTimeout": 100,
            "keyRequired": False,
            "language": {"source": {"code": "en", "name": "English"}, "target": {"code": "fr", "name": "French"}},
            "suggestions": True,
            "supportedFilesFormat": [".txt", ".html", ".po", ".srt", ".tsv"],
            "examples": EXAMPLES,
        }
        self.key: str | None = None
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.refusals: list[tuple[int, dict[str, str], str]] = []
        self.replace: dict[str, Any] = {}
        self.go_on = threading.Event()
        self.go_on.set()
        self.files: dict[str, bytes] = {}

    def was_asked(self, path: str) -> None:
        """Waits until it was."""
        deadline = time.monotonic() + PATIENCE
        while not self.bodies(path):
            assert time.monotonic() < deadline, f"nobody asked for {path}"
            time.sleep(0.01)

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.asked if asked == path]


class Handler(BaseHTTPRequestHandler):
    server: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *values: Any) -> None:
        pass

    def do_GET(self) -> None:
        address = urllib.parse.urlsplit(self.path)
        match address.path:
            case "/":
                self._file("index.html")
            case "/languages":
                self._json([{"code": code, "name": NAMES[code], "targets": targets} for code, targets in PAIRS.items()])
            case "/frontend/settings":
                self._json(self.server.settings)
            case "/look":
                query = dict(urllib.parse.parse_qsl(address.query))
                self.server.asked.append(("/look", query))
                self._explorer(query)
            case path if path.startswith("/assets/"):
                self._file(path.removeprefix("/assets/"))
            case "/favicon.ico":  # browsers ask by themselves for a file that names no icon
                self._send(204, b"", "image/x-icon")
            case path if path in self.server.files:
                self._send(200, self.server.files[path], "application/octet-stream")
            case _:
                self._json({"error": "there is nothing here"}, 404)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        body = self._form(data) if "json" not in self.headers["Content-Type"] else json.loads(data)
        self.server.asked.append((self.path, body))
        if self.server.refusals:
            status, headers, reason = self.server.refusals.pop(0)
            self._json({"error": reason}, status, headers)
        elif self.server.key is not None and body.get("api_key") != self.server.key:
            self._json({"error": "Invalid API key"}, 403)
        else:
            self._answer(body)

    def _answer(self, body: dict[str, Any]) -> None:
        match self.path:
            case "/v1/translate":
                self.server.go_on.wait(PATIENCE)
                self._json(self._whole(body))
            case "/v1/stream":
                self._events(self._stream(body))
            case "/v1/file":
                self._events(self._translated_file(body))
            case "/suggest":
                self._json({"success": True})
            case "/look":
                self._explorer(body)

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        answer = {**translation(body), **self.server.replace}
        return {"translations": [answer], "engine": "a stand-in", "milliseconds": 12.3}

    def _stream(self, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        whole = self._whole(body)
        sentences = whole["translations"][0]["sentences"]
        for number, each in enumerate(sentences, 1):
            yield "sentence", {"number": number, "of": len(sentences), **each}
            self.server.go_on.wait(PATIENCE)
        yield "done", whole

    def _translated_file(self, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        name, data = body["file"]
        lines = data.decode().splitlines(keepends=True)
        written = []
        for number, line in enumerate(lines):
            yield "progress", {"done": number, "of": len(lines)}
            self.server.go_on.wait(PATIENCE)
            written.append(translation({"q": line, **body})["text"])
        stem, _, end = name.rpartition(".")
        url = f"/v1/file/{len(self.server.files)}-{time.monotonic_ns()}"
        self.server.files[url] = "".join(written).encode()
        yield "done", {"url": url, "name": f"{stem}.{body['target']}.{end}"}

    def _events(self, events: Iterator[tuple[str, Any]]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for name, data in events:
                self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.server.asked.append(("gone", {"path": self.path}))

    def _form(self, data: bytes) -> dict[str, Any]:
        """The fields of a form; a file is (name, bytes)."""
        kind = self.headers["Content-Type"]
        if "urlencoded" in kind:
            return dict(urllib.parse.parse_qsl(data.decode()))
        message = email.message_from_bytes(
            f"Content-Type: {kind}\r\n\r\n".encode() + data, _class=email.message.EmailMessage, policy=email.policy.HTTP
        )
        fields: dict[str, Any] = {}
        for part in message.iter_parts():
            assert isinstance(part, email.message.EmailMessage)
            value = part.get_payload(decode=True)
            assert isinstance(value, bytes)
            name = str(part.get_param("name", header="content-disposition"))
            fields[name] = (part.get_filename(), value) if part.get_filename() else value.decode()
        return fields

    def _file(self, name: str) -> None:
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if kind.endswith("/javascript"):
            kind = "text/javascript"
        self._send(200, (self.server.assets / name).read_bytes(), kind)

    def _explorer(self, fields: dict[str, str]) -> None:
        self._send(200, EXPLORER.format(html.escape(fields["q"])).encode(), "text/html; charset=utf-8")

    def _json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(value).encode(), "application/json", headers)

    def _send(self, status: int, data: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in ({"Content-Type": kind, "Content-Length": str(len(data))} | (headers or {})).items():
                self.send_header(name, value)
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            self.server.asked.append(("gone", {"path": self.path}))
