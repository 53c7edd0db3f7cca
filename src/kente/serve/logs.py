"""What happened, one JSON object a line. Never the users' text, their address or their key: a route, a status, lengths and times."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

SUMMARY = 1.0
"""Seconds between two lines that sum up refusals: under a flood, a line for each would be a flood of its own."""


class Log:
    """Writes lines to a stream; silent without one."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self._refused: dict[str, int] = {}
        self._summed_up = 0.0

    def write(self, event: str, **facts: Any) -> None:
        if self.stream is None:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            self.stream.write(json.dumps({"time": now, "event": event, **facts}, ensure_ascii=False) + "\n")
            self.stream.flush()
        except (OSError, ValueError):
            self.stream = None  # nobody reads it any more

    def refused(self, why: str) -> None:
        """Count a refusal; now and then they are summed up."""
        self._refused[why] = self._refused.get(why, 0) + 1
        if time.monotonic() - self._summed_up >= SUMMARY:
            self.sum_up()

    def sum_up(self) -> None:
        self._summed_up = time.monotonic()
        if self._refused:
            self.write("refused", **self._refused)
            self._refused = {}

    def failure(self, error: BaseException, **facts: Any) -> None:
        """An error of ours: its kind and where it happened. Not its message, which may quote a text."""
        frames = traceback.extract_tb(error.__traceback__)
        where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        self.write("failure", error=type(error).__name__, where=where, **facts)


class Forwarded(logging.Handler):
    """Lines of other people's loggers, such as uvicorn's, in our form."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.log.failure(record.exc_info[1], logger=record.name)
        else:
            self.log.write("server", level=record.levelname.lower(), logger=record.name, message=record.getMessage())


def to_stderr() -> Log:
    return Log(sys.stderr)
