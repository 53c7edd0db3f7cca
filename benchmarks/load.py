"""A client that costs little and asks on time: requests leave when they are due, whether or not earlier ones were answered (open loop).

HTTP/1.1 on kept connections, by hand on plain sockets: it shares the machine with the server, and a library's client, or asyncio,
would take more of it than the server does.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_CONNECTIONS = 900
"""Below what a server takes; a request that finds none free opens one, and beyond this many counts as not sent."""
PATIENCE = 60.0
"""Seconds that answers are waited for when the last request has left."""


def request_bytes(host: str, port: int, path: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


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

    def rate(self, status: int = 200) -> float:
        return self.answers[str(status)] / self.seconds if self.seconds else 0.0

    def share(self, status: int, share: float) -> float:
        """The time that such a share of answers with this status stayed below, in milliseconds."""
        return quantile(self.times.get(status, []), share) * 1000


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Asking:
    """A connection with a request on its way."""

    __slots__ = ("data", "sent", "socket")

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self.sent, self.data = connection, 0.0, b""


class Client:
    """Asks one server, from one thread."""

    def __init__(self, host: str, port: int, requests: Sequence[bytes], most: int = MOST_CONNECTIONS) -> None:
        self.address, self.requests, self.most = (host, port), requests, most
        self.idle: list[Asking] = []
        self.busy: dict[int, Asking] = {}
        self._epoll = select.epoll()
        self._next = 0

    def close(self) -> None:
        for one in (*self.idle, *self.busy.values()):
            one.socket.close()
        self._epoll.close()

    # ------------------------------------------------------------ one request

    def send(self, outcomes: Outcomes) -> bool:
        """Let the next request leave; False if it could not."""
        one = (
            self.idle.pop() if self.idle else self._connect(outcomes)
        )  # the last one used is the least likely to be closed just now
        if one is None:
            return False
        self._next += 1
        one.data, one.sent = b"", time.perf_counter()
        self.busy[one.socket.fileno()] = one
        try:
            one.socket.send(self.requests[self._next % len(self.requests)])  # small: it goes out whole
        except OSError:
            self._lost(one, outcomes)
            return False
        return True

    def _connect(self, outcomes: Outcomes) -> Asking | None:
        if len(self.busy) >= self.most:
            outcomes.answers["not sent"] += 1
            return None
        try:
            connection = socket.create_connection(self.address, timeout=5)
        except OSError:
            outcomes.answers["no connection"] += 1
            return None
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._epoll.register(connection, select.EPOLLIN | select.EPOLLRDHUP)
        return Asking(connection)

    def _lost(self, one: Asking, outcomes: Outcomes) -> None:
        """A connection that ended; if something was asked on it, it stays unanswered."""
        if self.busy.pop(one.socket.fileno(), None) is not None:
            outcomes.answers["no answer"] += 1
        else:
            self.idle.remove(one)
        self._epoll.unregister(one.socket)
        one.socket.close()

    def listen(self, outcomes: Outcomes, wait: float) -> int:
        """Take the answers that come within so many seconds, or at least those that are there; how many."""
        found = 0
        for number, event in self._epoll.poll(max(0.0, wait)):
            one = self.busy.get(number)
            if one is None:
                one = next(idle for idle in self.idle if idle.socket.fileno() == number)
                self._lost(one, outcomes)
                continue
            try:
                data = one.socket.recv(65536)
            except OSError:
                data = b""
            if data:
                found += self._heard(one, data, outcomes)
            elif event:
                self._lost(one, outcomes)
        return found

    def _heard(self, one: Asking, data: bytes, outcomes: Outcomes) -> int:
        one.data += data
        head, mark, rest = one.data.partition(b"\r\n\r\n")
        if not mark:
            return 0
        low = head.lower()
        begin = low.find(b"content-length:")
        length = int(low[begin + 15 :].split(b"\r\n", 1)[0]) if begin >= 0 else 0
        if len(rest) < length:
            return 0
        status = int(head[9:12])
        outcomes.answers[str(status)] += 1
        outcomes.times.setdefault(status, []).append(time.perf_counter() - one.sent)
        outcomes.without_retry_after += status == 503 and b"retry-after:" not in low
        del self.busy[one.socket.fileno()]
        if b"connection: close" in low:
            self._epoll.unregister(one.socket)
            one.socket.close()
        else:
            self.idle.append(one)
        return 1

    # ------------------------------------------------------------ many

    def closed_loop(self, seconds: float, at_once: int) -> Outcomes:
        """So many clients, each asking again as soon as it was answered; after a refusal, a little later."""
        outcomes, began = Outcomes(), time.perf_counter()
        while time.perf_counter() - began < seconds:
            refused = outcomes.answers["503"]
            while len(self.busy) < at_once and self.send(outcomes):
                pass
            self.listen(outcomes, 0.05)
            if outcomes.answers["503"] > refused:
                time.sleep(0.005)
        outcomes.seconds = time.perf_counter() - began
        self._rest(outcomes)
        return outcomes

    def open_loop(self, seconds: float, rate: float, tick: Callable[[float], None] = lambda now: None) -> Outcomes:
        """So many requests a second, evenly; answers are waited for at the end. `tick(seconds so far)` is called now and then."""
        outcomes, began = Outcomes(), time.perf_counter()
        for number in range(int(seconds * rate)):
            due = began + number / rate
            while True:
                now = time.perf_counter()
                self.listen(outcomes, due - now)
                if now >= due:
                    break
            outcomes.lag.append(now - due)
            self.send(outcomes)
            tick(now - began)
        outcomes.seconds = time.perf_counter() - began
        self._rest(outcomes)
        return outcomes

    def one_by_one(self, count: int) -> Outcomes:
        """Each request when the one before it was answered."""
        outcomes, began = Outcomes(), time.perf_counter()
        for _ in range(count):
            self.send(outcomes)
            self._rest(outcomes)
        outcomes.seconds = time.perf_counter() - began
        return outcomes

    def _rest(self, outcomes: Outcomes) -> None:
        end = time.perf_counter() + PATIENCE
        while self.busy and time.perf_counter() < end:
            self.listen(outcomes, 0.5)


# ---------------------------------------------------------------- slow clients

HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n"


class Slow:
    """Clients that keep a server waiting, all in one thread, and when each was cut off.

    silent: says nothing. head: a byte of a head each second. body: a byte of a body each second. reader: asks much, and takes no answer.
    """

    def __init__(self, host: str, port: int, counts: dict[str, int]) -> None:
        self.open: dict[socket.socket, tuple[str, float]] = {}
        self.cut: dict[str, list[float]] = {how: [] for how in counts}
        for how, count in counts.items():
            for _ in range(count):
                one = socket.socket()
                if how == "reader":
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.settimeout(5)
                one.connect((host, port))
                one.setblocking(False)
                self.open[one] = (how, time.perf_counter())
                if how == "head":
                    one.send(HEAD + b"X-More: ")
                if how == "body":
                    one.send(HEAD + b"\r\n")
                if how == "reader":
                    with contextlib.suppress(OSError):
                        one.send(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 200)

    def step(self) -> None:
        """What they do once a second."""
        for one, (how, since) in list(self.open.items()):
            if self._gone(one, how):
                self.cut[how].append(time.perf_counter() - since)
                del self.open[one]
                one.close()

    def _gone(self, one: socket.socket, how: str) -> bool:
        try:
            if how in ("head", "body"):
                one.send(b"X")
            if how == "reader":  # taking nothing, it learns of its end only from the system
                return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)) or _state(one) not in (1,)
            return one.recv(65536) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


def _state(one: socket.socket) -> int:
    """Of a TCP connection: 1 is established."""
    return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
