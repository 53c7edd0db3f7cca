"""Translated files that wait to be fetched: in memory, for a while, under names nobody can guess."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

KEPT = 600.0
"""Seconds a file waits."""
MOST_BYTES = 50_000_000
"""Of all files; the oldest make way."""


@dataclass(frozen=True)
class Download:
    """A file under the name its owner will see."""

    name: str
    data: bytes
    until: float


class Downloads:
    """Files by their random names."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._files: OrderedDict[str, Download] = OrderedDict()

    def put(self, name: str, data: bytes) -> str:
        """Keep a file; what it can be fetched as."""
        suffix = PurePath(name).suffix.lower()
        token = secrets.token_urlsafe(24) + (suffix if suffix.isascii() and suffix[1:].isalnum() else "")
        self._let_go(len(data))
        self._files[token] = Download(name, data, self.clock() + KEPT)
        return token

    def get(self, token: str) -> Download | None:
        self._let_go(0)
        return self._files.get(token)

    def _let_go(self, more: int) -> None:
        """Drop what has waited too long, and the oldest until there is room for so many bytes more."""
        held = sum(len(file.data) for file in self._files.values())
        for token, file in list(self._files.items()):
            if file.until > self.clock() and held + more <= MOST_BYTES:
                break
            held -= len(file.data)
            del self._files[token]
