"""A client that costs little and asks on time: requests leave when they are due, whether or not earlier ones were answered (open loop).

HTTP/1.1 on kept connections, written and read by hand: a library's client would need more of the processor than the server does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_CONNECTIONS = 900
"""Below what a server takes; a request that finds none free opens one, and beyond this many counts as not sent."""


def request_bytes(host: str, port: int, path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.answer: asyncio.Future[tuple[int, bool]] | None = None
        self.open = True
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, mark, rest = self._data.partition(b"\r\n\r\n")
        if not mark:
            return
        low = head.lower()
        found = low.find(b"content-length:")
        length = int(low[found + 15 :].split(b"\r\n", 1)[0]) if found >= 0 else 0
        if len(rest) < length or self.answer is None or self.answer.done():
            return
        self._data = b""
        if b"connection: close" in low:
            self.close()
        self.answer.set_result((int(head[9:12]), b"retry-after:" in low))

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionError("closed without an answer"))

    def ask(self, request: bytes) -> asyncio.Future[tuple[int, bool]]:
        assert self.transport is not None
        self._data = b""
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.answer

    def close(self) -> None:
        self.open = False
        if self.transport is not None:
            self.transport.close()


@dataclass
class Outcomes:
    """What became of requests."""

    seconds: float = 0.0
    answers: Counter[str] = field(default_factory=Counter)
    """By status, or by what happened instead of one."""
    times: dict[int, list[float]] = field(default_factory=dict)
    """Seconds from a request's sending to its answer, by status."""
    without_retry_after: int = 0
    lag: list[float] = field(default_factory=list)
    """Seconds by which requests left late: beyond a few milliseconds, it is the client that is too slow."""

    def add(self, status: int, seconds: float, retry_after: bool) -> None:
        self.answers[str(status)] += 1
        self.times.setdefault(status, []).append(seconds)
        self.without_retry_after += status == 503 and not retry_after

    def rate(self, status: int = 200) -> float:
        return self.answers[str(status)] / self.seconds if self.seconds else 0.0

    def share(self, status: int, share: float) -> float:
        """The time that such a share of answers with this status stayed below, in milliseconds."""
        return quantile(self.times.get(status, []), share) * 1000


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Client:
    """Asks one server."""

    def __init__(self, host: str, port: int, requests: Sequence[bytes]) -> None:
        self.host, self.port, self.requests = host, port, requests
        self.idle: deque[Connection] = deque()
        self.connections = 0
        self._next = 0

    def request(self) -> bytes:
        self._next += 1
        return self.requests[self._next % len(self.requests)]

    async def _connection(self) -> Connection:
        while self.idle:
            connection = self.idle.pop()  # the last one used is the least likely to be closed by the server just now
            if connection.open:
                return connection
            self.connections -= 1
        if self.connections >= MOST_CONNECTIONS:
            raise OverflowError("no connection left")
        self.connections += 1
        try:
            _, made = await asyncio.get_running_loop().create_connection(Connection, self.host, self.port)
        except OSError:
            self.connections -= 1
            raise
        return made

    async def once(self, outcomes: Outcomes) -> int:
        """One request; its status, or 0."""
        try:
            connection = await self._connection()
        except OverflowError:
            outcomes.answers["not sent"] += 1
            return 0
        except OSError:
            outcomes.answers["no connection"] += 1
            return 0
        began = time.perf_counter()
        try:
            status, retry_after = await connection.ask(self.request())
        except ConnectionError:
            outcomes.answers["no answer"] += 1
            self.connections -= 1
            return 0
        outcomes.add(status, time.perf_counter() - began, retry_after)
        self.idle.append(connection)
        return status

    async def closed_loop(self, seconds: float, at_once: int) -> Outcomes:
        """So many clients, each asking again as soon as it was answered."""
        outcomes, end = Outcomes(), time.perf_counter() + seconds

        async def one() -> None:
            while time.perf_counter() < end:
                if await self.once(outcomes) != 200:
                    await asyncio.sleep(0.05)

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(at_once)))
        outcomes.seconds = time.perf_counter() - began
        return outcomes

    async def open_loop(self, seconds: float, rate: float, stop: asyncio.Event | None = None) -> Outcomes:
        """So many requests a second, evenly; answers are waited for at the end."""
        outcomes, tasks = Outcomes(), set[asyncio.Task[int]]()
        began = time.perf_counter()
        for number in range(int(seconds * rate)):
            due = began + number / rate
            wait = due - time.perf_counter()
            if wait > 0.001 or number % 50 == 0:  # let answers be read even when there is no time left
                await asyncio.sleep(max(0.0, wait))
            outcomes.lag.append(max(0.0, time.perf_counter() - due))
            if stop is not None and stop.is_set():
                break
            task = asyncio.ensure_future(self.once(outcomes))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        outcomes.seconds = time.perf_counter() - began
        if tasks:
            await asyncio.wait(list(tasks), timeout=60)
        return outcomes

    def close(self) -> None:
        while self.idle:
            self.idle.pop().close()


# ---------------------------------------------------------------- slow clients


async def held(host: str, port: int, how: str, patience: float) -> float:
    """Seconds after which a server cut off a client that is slow in some way; the patience if it did not.

    silent: says nothing. head: a byte of a head each second. body: a byte of a body each second. reader: asks much, and takes no answer.
    """
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, port, limit=1)
    head = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n"
    try:
        if how == "reader":
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            with contextlib.suppress(ConnectionError):
                writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
        elif how == "body":
            writer.write(head + b"\r\n")
        while time.perf_counter() - began < patience:
            if how == "reader":
                await asyncio.sleep(0.5)
                writer.write(b"\r\n")
                if writer.transport.is_closing():
                    break
                continue
            if how in ("head", "body"):
                writer.write(b"X")
            with contextlib.suppress(TimeoutError):
                if not await asyncio.wait_for(reader.read(65536), 1.0):
                    break
    except (ConnectionError, OSError):
        pass
    finally:
        writer.transport.abort()
    return time.perf_counter() - began
