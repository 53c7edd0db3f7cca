"""Saying no: a status, a plain sentence, and where it helps, when to ask again."""

from __future__ import annotations

import math


class Refusal(Exception):
    """An answer other than the one asked for. `why` is a word for the counters; `retry_after`, seconds from now."""

    def __init__(self, status: int, message: str, *, why: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.why = status, message, why
        self.retry_after = None if retry_after is None else max(1, math.ceil(retry_after))

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class ClientLeft(Exception):
    """Whoever asked has gone: there is nobody to answer."""


def bad_request(message: str) -> Refusal:
    return Refusal(400, message, why="bad request")


def too_large(message: str) -> Refusal:
    return Refusal(413, message, why="too large")


def busy(seconds: float) -> Refusal:
    return Refusal(503, "busy: too much is waiting already; ask again shortly", why="overload", retry_after=seconds)


def leaving() -> Refusal:
    return Refusal(503, "the server is about to stop and takes nothing new", why="draining", retry_after=5)


def not_ready() -> Refusal:
    return Refusal(503, "the models are still being loaded", why="loading", retry_after=5)


def too_late(seconds: float) -> Refusal:
    return Refusal(504, f"not translated within {seconds:g} seconds; send less at once", why="deadline")
