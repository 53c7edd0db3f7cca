"""The thread that keeps the engines busy: a batch at a time, whichever run it is for, since they share the processor."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from kente.serve.queue import Batch, Kind, Queue, Ticket

Late = Callable[[], bool]
Translate = Callable[[Kind, Sequence[str], Late], Sequence[Any]]

NICE = 5
"""How far engines stand back for the loop: reading and refusing takes it moments, and those should not wait behind a batch."""


class Worker(threading.Thread):
    """Takes batches from a queue, translates them, and tells of it.

    `tell(tickets)` is called in this thread after each batch. `prepare()` runs first; if it fails, `failed(error)` hears of it and nothing
    is taken. `done(batch, seconds)` hears of each batch.
    """

    def __init__(
        self,
        queue: Queue,
        translate: Translate,
        tell: Callable[[Sequence[Ticket]], None],
        *,
        prepare: Callable[[], None] = lambda: None,
        failed: Callable[[BaseException], None] = lambda error: None,
        done: Callable[[Batch, float], None] = lambda batch, seconds: None,
    ) -> None:
        super().__init__(name="kente-worker", daemon=True)
        self.queue, self.translate, self.tell = queue, translate, tell
        self.prepare, self.failed, self.done = prepare, failed, done

    def run(self) -> None:
        _stand_back()
        try:
            self.prepare()
        except BaseException as error:
            self.failed(error)
            return
        while (batch := self.queue.take()) is not None:
            began = time.perf_counter()
            self.work(batch)
            seconds = time.perf_counter() - began
            self.queue.finished(batch, seconds)
            self.done(batch, seconds)
            self.tell(batch.tickets)

    def work(self, batch: Batch) -> None:
        """Answer a batch. Where that fails, each request of it is tried by itself, so that one does not spoil the others'."""
        try:
            batch.answer(self.translate(batch.kind, batch.texts, batch.abandoned))
        except Exception as error:
            tickets = batch.tickets
            if len(tickets) == 1:
                tickets[0].failure = error
                return
            for ticket in tickets:
                self.work(Batch(batch.kind, [(owner, place) for owner, place in batch.places if owner is ticket]))


def _stand_back() -> None:
    """For this thread, and those that engines start from it. Only Linux knows of threads with a priority of their own."""
    if sys.platform == "linux":
        me = threading.get_native_id()
        with contextlib.suppress(OSError):  # some sandboxes allow no such thing
            os.setpriority(os.PRIO_PROCESS, me, os.getpriority(os.PRIO_PROCESS, me) + NICE)
