"""Connections that cannot be held for nothing, and refusals that cost next to nothing.

uvicorn waits for a request's head and body, and for an answer to be taken, as long as a client likes. Here every connection is looked at
once a second, and cut when a request takes too long to arrive, when an answer is not taken, or when its head is too large; and there are
only so many at once. What is refused for want of room is refused here, as bytes, before anything is made of the request: under ten times
the load that can be served, nine of ten requests are.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import math
import re
import socket
import struct
import termios
from collections.abc import Callable, Iterable
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_BYTES = 65_536
"""Of a request's line and headers at most."""
_OTHER_FIELDS = rb"(?:(?!content-length|transfer-encoding|connection|expect|upgrade)[a-z-]++:[^\r\n]*+\r\n)*+"
PLAIN = re.compile(
    rb"POST (?P<path>/[a-z0-9/]+) HTTP/1\.1\r\n"
    + _OTHER_FIELDS
    + rb"content-length: *(?P<length>\d{1,7})\r\n"
    + _OTHER_FIELDS
    + rb"\r\n",
    re.IGNORECASE,
)
"""The head of a request whose body has a known length, and which says nothing about the connection."""
LOOK = 1.0
"""Seconds between two looks at the connections at most."""
UNREAD = 0.1
"""Seconds for what has come to be read."""


def canned(status: str, message: str, *headers: str, close: bool = True) -> bytes:
    """A whole answer in bytes, after which the connection closes unless told otherwise."""
    body = json.dumps({"error": message}).encode()
    head = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*head, "connection: close"] if close else head).encode() + b"\r\n\r\n" + body


SLOW = canned("408 Request Timeout", "the request took too long to arrive")
LARGE = canned("431 Request Header Fields Too Large", f"the request's head has more than {HEAD_BYTES:,} bytes")
UNREADABLE = canned("400 Bad Request", "this is not a request that can be read as HTTP/1.1")
FULL = canned("503 Service Unavailable", "busy: too many connections; ask again shortly", "retry-after: 1")


class Guarded(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # uvicorn chooses its base when it is imported
    """A connection of uvicorn's that knows since when it has been waiting for its client.

    `guard` must be set before the first one: see `guarded`.
    """

    guard: Guard

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.reading_since: float | None = self.loop.time()  # a client that connects should say something
        self.unsent_since: float | None = None
        self._head_bytes = 0
        self._refusal: bytes | None = None  # what to say when the body has arrived
        self._refused, self._refused_at = 0, -math.inf
        if len(self.connections) > self.guard.most:
            self.cut("too many", FULL)

    def data_received(self, data: bytes) -> None:
        if self.reading_since is None:
            self.reading_since = self.loop.time()
        if self.guard.closed() and self._refuse_unread(data):
            return
        before, within_body = (self.cycle, self._refused), self._within_body()
        super().data_received(data)
        begun = self.cycle is not before[0] or self._refused != before[1]  # a head is complete
        self._head_bytes = 0 if begun or within_body else self._head_bytes + len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.cut("large head", LARGE)
        if (begun or within_body) and not self._within_body():
            self.reading_since = None

    def _within_body(self) -> bool:
        return self._refusal is not None or (self.cycle is not None and self.cycle.more_body)

    # ------------------------------------------------------------ refusing

    def _refuse_unread(self, data: bytes) -> bool:
        """Refuse a plain request that came in one piece, without a parser: most of the cost of a flood. All others take the usual way."""
        if self._head_bytes or self._within_body() or not (self.cycle is None or self.cycle.response_complete):
            return False
        plain = PLAIN.match(data)
        if plain is None or plain.end() + int(plain["length"]) != len(data):
            return False
        refusal = self.guard.refusal(b"POST", plain["path"], {})
        if refusal is None:
            return False
        self.transport.write(refusal)
        self._refused_at, self.reading_since = self.loop.time(), None
        if self.timeout_keep_alive_task is None:
            self._rest(self.timeout_keep_alive)
        return True

    def timeout_keep_alive_handler(self) -> None:
        """It has rested long enough, unless something was refused meanwhile, or has come and only waits to be read."""
        left = self._refused_at + self.timeout_keep_alive - self.loop.time()
        if left > 0 or self._has_unread():
            self._rest(max(left, UNREAD))
        else:
            super().timeout_keep_alive_handler()

    def _has_unread(self) -> bool:
        connection = self.transport.get_extra_info("socket")
        return connection is not None and fcntl.ioctl(connection, termios.FIONREAD, bytes(4)) != bytes(4)

    def _rest(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    # only httptools calls these three

    def on_headers_complete(self) -> None:
        answered = self.cycle is None or self.cycle.response_complete
        if answered and not self.expect_100_continue:
            self._refusal = self.guard.refusal(self.parser.get_method(), self.url, self.scope)
        if self._refusal is None:
            super().on_headers_complete()
        else:
            self._refused += 1

    def on_body(self, body: bytes) -> None:
        if self._refusal is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._refusal is None:
            super().on_message_complete()
            return
        self.transport.write(self._refusal)
        self._refusal = None
        if self.parser.should_keep_alive():
            self._rest(self.timeout_keep_alive)
        else:
            self.transport.close()

    # ------------------------------------------------------------ cutting off

    def send_400_response(self, msg: str) -> None:
        self.cut("not HTTP", UNREADABLE)

    def look(self, now: float) -> None:
        """Cut the connection if its client keeps us waiting."""
        self.unsent_since = (self.unsent_since or now) if self.transport.get_write_buffer_size() else None
        if self.unsent_since is not None and now - self.unsent_since > self.guard.seconds:
            self.cut("slow reader")
        elif self.reading_since is not None and now - self.reading_since > self.guard.seconds:
            answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
            self.cut("slow sender", b"" if answering else SLOW)

    def cut(self, why: str, last: bytes = b"") -> None:
        """Say `last`, if it can be said without waiting, and close."""
        self.guard.tell(why)
        if last and not (self.transport.is_closing() or self.transport.get_write_buffer_size()):
            self.transport.write(last)
            self.transport.close()
        else:
            self._forget_unsent()
            self.transport.abort()

    def _forget_unsent(self) -> None:
        """Let the system drop what the client does not take, rather than keep it for minutes."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Guard:
    """Looks at all connections again and again. `tell(why)` hears of each one cut; `refusal(method, path, scope)` gives the answer to a
    request that cannot be taken on, if so; what it notes in the scope, the application sees. `closed()`: nothing that has to wait is taken on."""

    def __init__(
        self,
        seconds: float,
        most: int,
        tell: Callable[[str], None],
        refusal: Callable[[bytes, bytes, Any], bytes | None] = lambda method, path, scope: None,
        closed: Callable[[], bool] = lambda: False,
    ) -> None:
        self.seconds, self.most, self.tell, self.refusal, self.closed = seconds, most, tell, refusal, closed

    async def watch(self, connections: Callable[[], Iterable[Any]]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(LOOK, self.seconds / 4))
            for connection in list(connections()):
                connection.look(loop.time())


def guarded(guard: Guard) -> type[Guarded]:
    """The kind of connection that this guard looks after."""
    return type("GuardedConnection", (Guarded,), {"guard": guard})
