"""Signals only set a flag: the loop saves at its next step boundary and leaves. A second signal leaves at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any


class StopRequest:
    """Listens for SIGINT and SIGTERM while it is entered."""

    def __init__(self) -> None:
        self.received: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python lets nobody listen
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(130)
        self.received = signal.Signals(number).name
