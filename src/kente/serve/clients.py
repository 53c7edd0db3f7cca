"""Who may ask, and how often."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

from kente.errors import UsageError
from kente.serve.refusals import Refusal, bad_request

REMEMBERED = 10_000
"""Clients whose pace is remembered; the one that has been quiet for longest is forgotten first."""
SHORTEST_KEY = 16


class Keys:
    """API keys. Only their sha256 is kept, and every one is compared, in a time that does not tell how far a guess was right."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    @classmethod
    def read(cls, path: Path) -> Keys:
        """Keys from a file: the first word of each line; what follows it, and lines that begin with #, are for people."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} cannot be read as a file of API keys: {error}") from None
        keys = [line.split()[0] for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not keys:
            raise UsageError(f"{path} holds no API key; write one a line, for example from `openssl rand -hex 16`")
        if any(len(key) < SHORTEST_KEY for key in keys):
            raise UsageError(f"{path} holds a key of fewer than {SHORTEST_KEY} characters, which can be guessed")
        return cls(keys)

    def know(self, key: str) -> bool:
        digest, known = _digest(key), False
        for other in self._digests:
            known |= hmac.compare_digest(digest, other)
        return known


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class Pace:
    """At most so many requests a minute for each client: a bucket that fills up evenly and holds `burst` of them."""

    def __init__(self, per_minute: int, burst: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = per_minute / 60, burst or max(1, per_minute // 6), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> (requests left, when)

    def take(self, client: str) -> None:
        """Count a request; refused if the client has none left."""
        if not self.rate:
            return
        now = self.clock()
        left, since = self._buckets.pop(client, (float(self.burst), now))
        left = min(float(self.burst), left + (now - since) * self.rate)
        allowed = left >= 1
        self._buckets[client] = (left - allowed, now)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        if not allowed:
            wait = (1 - left) / self.rate
            raise Refusal(429, "too many requests from you in so short a time; slow down", why="rate", retry_after=wait)


class Clients:
    """Lets clients in: with a key where keys are wanted, and at their pace."""

    def __init__(self, keys: Keys | None, pace: Pace) -> None:
        self.keys, self.pace = keys, pace

    def admit(self, key: str | None, address: str) -> str:
        """What the client goes by from here on: a fingerprint of its key, or its address."""
        if self.keys is None:
            self.pace.take(address)
            return address
        if key is None:
            self.pace.take(address)
            raise bad_request("an API key is needed: send it as api_key, or as Authorization: Bearer KEY")
        if not self.keys.know(key):
            self.pace.take(address)
            raise Refusal(403, "this API key is not known here", why="key")
        client = _digest(key).hex()
        self.pace.take(client)
        return client
