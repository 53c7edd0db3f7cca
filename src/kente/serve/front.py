"""Every request passes here: refused at once where there is no room, answered in JSON where something is wrong, counted and logged."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kente.errors import KenteError
from kente.serve.attending import PLACE
from kente.serve.connection import canned
from kente.serve.docs import refusal_page
from kente.serve.refusals import ClientLeft, Refusal
from kente.serve.serving import Serving

QUEUED = frozenset(("/translate", "/v1/translate", "/v1/stream"))
"""Where work is asked for that has to fit into the queue."""
QUEUED_BYTES = frozenset(path.encode() for path in QUEUED)
OTHER_WORK = frozenset(("/translate_file", "/v1/file", "/look", "/detect", "/suggest"))
"""Where work is asked for that may wait, or takes no place in the queue."""
PAGES = frozenset(("/look",))
"""What people open in a tab of its own, where JSON would be a riddle."""
NAMED = ("/assets", "/download_file")
"""Paths below which things have names."""
SAFE = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
}
"""Headers of every answer that does not say otherwise."""
STYLED = (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'")

_SAYINGS = {
    404: "there is nothing here; /docs lists what there is",
    405: "not with this method; /docs lists what there is",
}


class Exchange:
    """A request and its answer, watched on their way."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self.status = 0
        self.received = False  # the whole body

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            self.received = True
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message["headers"])
            there = {name for name, _ in headers}
            headers += [(name, value) for name, value in SAFE.items() if name not in there]
            if self.status >= 400 and not self.received and self._has_body():
                headers.append((b"connection", b"close"))  # the rest of it is not waited for
            message = {**message, "headers": headers}
        await self._send(message)

    def _has_body(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self._scope["headers"])

    async def refuse(self, status: int, message: str, headers: dict[str, str]) -> None:
        """The sentence as JSON; as a page to a browser that asked for one."""
        if self._is_read_in_a_browser():
            data, raw = refusal_page(message).encode(), [(b"content-type", b"text/html; charset=utf-8"), STYLED]
        else:
            data, raw = (
                json.dumps({"error": message}, ensure_ascii=False).encode(),
                [(b"content-type", b"application/json")],
            )
        raw += [(b"content-length", str(len(data)).encode())]
        raw += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        await self.send({"type": "http.response.body", "body": data})

    def _is_read_in_a_browser(self) -> bool:
        accepts = next((value for name, value in self._scope["headers"] if name == b"accept"), b"")
        return self._scope["path"] in PAGES and b"text/html" in accepts


class Gate:
    """Refusals in bytes, for requests that are refused before anything is made of them."""

    def __init__(self, serving: Serving) -> None:
        self.serving, self._made = serving, dict[tuple[str, int | None], bytes]()

    def closed(self) -> bool:
        return self.serving.queue.full

    def __call__(self, method: bytes, path: bytes, scope: Scope) -> bytes | None:
        """The answer to a request for work that does not fit into the queue; None if it does, and has a place now, or is of another kind."""
        if path not in QUEUED_BYTES or method != b"POST":
            return None
        refusal = self.serving.refusal()
        if refusal is None:
            scope[PLACE] = self.serving.queue.place()
            return None
        self.serving.metrics.refused.add(why=refusal.why)
        self.serving.log.refused(refusal.why)
        key = refusal.why, refusal.retry_after
        if key not in self._made:
            headers = [f"{name.decode()}: {value.decode()}" for name, value in SAFE.items()]
            headers += [f"{name.lower()}: {value}" for name, value in refusal.headers.items()]
            self._made[key] = canned("503 Service Unavailable", refusal.message, *headers, close=False)
        return self._made[key]


class Front:
    """The routes, with manners."""

    def __init__(self, app: ASGIApp, serving: Serving, paths: Iterable[str]) -> None:
        """`paths` may be named in counters and logs; all others are "other"."""
        self.app, self.serving, self.paths = app, serving, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", scope["type"]
        exchange, began, serving = Exchange(scope, receive, send), time.perf_counter(), self.serving
        is_work = scope["path"] in QUEUED or scope["path"] in OTHER_WORK
        refusal = self._no_room(scope) if is_work else None
        if refusal is not None:
            await self._refuse_at_once(exchange, refusal)
            return
        serving.working += is_work
        try:
            if is_work:
                await serving.office.turns.take()
            await self._answer(scope, exchange, began)
        finally:
            serving.working -= is_work
            if PLACE in scope:
                scope[PLACE].leave()

    def _no_room(self, scope: Scope) -> Refusal | None:
        """Why the work that is asked for cannot be taken on, if so."""
        if scope["path"] in QUEUED and scope["method"] == "POST" and PLACE not in scope:
            return self.serving.refusal()
        return self.serving.closed()

    async def _refuse_at_once(self, exchange: Exchange, refusal: Refusal) -> None:
        """The cheapest answer there is: a flood of them must not cost those who are being served."""
        await exchange.receive()  # what has arrived of the body; most often all of it
        await exchange.refuse(refusal.status, refusal.message, refusal.headers)
        self.serving.metrics.refused.add(why=refusal.why)
        self.serving.log.refused(refusal.why)

    async def _answer(self, scope: Scope, exchange: Exchange, began: float) -> None:
        scope["app"] = self  # makes the router raise where it finds nothing
        scope["facts"] = facts = {}
        route = self._route(scope["path"])
        metrics = self.serving.metrics
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except Refusal as refusal:
            metrics.refused.add(why=refusal.why)
            await self._say(exchange, refusal.status, refusal.message, refusal.headers)
        except HTTPException as error:
            message = _SAYINGS.get(error.status_code, str(error.detail))
            await self._say(exchange, error.status_code, message, dict(error.headers or {}))
        except ClientLeft:
            metrics.left.add()
            facts["left"] = True
        except KenteError as error:
            await self._say(exchange, 400, str(error), {})
        except Exception as error:
            self.serving.log.failure(error, route=route)
            await self._say(exchange, 500, "something broke inside the server; its log says where", {})
        seconds = time.perf_counter() - began
        metrics.requests.add(route=route, status=str(exchange.status))
        metrics.seconds.see(seconds, route=route)
        self.serving.log.write(
            "request",
            route=route,
            method=scope["method"],
            status=exchange.status,
            milliseconds=round(1000 * seconds, 1),
            **facts,
        )

    def _route(self, path: str) -> str:
        """The path without what a client put into it."""
        prefix = next((prefix for prefix in NAMED if path.startswith(f"{prefix}/")), path)
        return prefix if prefix in self.paths or prefix in NAMED else "other"

    async def _say(self, exchange: Exchange, status: int, message: str, headers: dict[str, str]) -> None:
        if not exchange.status:  # what has begun cannot be taken back
            await exchange.refuse(status, message, headers)
