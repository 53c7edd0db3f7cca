"""All that the routes share, and whether the server takes anything on now."""

from __future__ import annotations

from dataclasses import dataclass, field

from kente.serve.clients import Clients, Pace
from kente.serve.corrections import Corrections
from kente.serve.downloads import Downloads
from kente.serve.logs import Log
from kente.serve.metrics import Metrics
from kente.serve.office import Office
from kente.serve.queue import Queue
from kente.serve.refusals import Refusal, busy, leaving, not_ready
from kente.serve.settings import Settings
from kente.serve.translators import Translators

FILES_AT_ONCE = 2
LOOKS_AT_ONCE = 2
TEACHING = 30
"""Corrections a minute from one client."""


@dataclass
class Serving:
    """The parts of a server, and what it is doing."""

    settings: Settings
    translators: Translators
    queue: Queue
    office: Office
    clients: Clients
    corrections: Corrections | None
    log: Log
    metrics: Metrics = field(default_factory=Metrics)
    downloads: Downloads = field(default_factory=Downloads)
    teaching: Pace = field(default_factory=lambda: Pace(TEACHING, burst=10))
    draining: bool = False
    """Whether the server is about to stop: nothing new is taken on."""
    working: int = 0
    """Requests for work that were let in and are not answered yet."""
    files: int = 0
    looks: int = 0

    def closed(self) -> Refusal | None:
        """Why nothing can be taken on now, if so."""
        if self.draining:
            return leaving()
        return None if self.translators.ready else not_ready()

    def refusal(self) -> Refusal | None:
        """Why nothing can be put into the queue now, if so."""
        return self.closed() or (busy(self.queue.wait) if self.queue.full else None)

    def now(self) -> dict[str, float]:
        """Numbers of the moment, for the metrics."""
        return {
            "ready": float(self.closed() is None),
            "requests": self.working,
            "queued_requests": self.queue.tickets,
            "queued_tokens": self.queue.tokens,
            "queue_room_tokens": self.queue.room,
            "tokens_per_second": self.queue.pace,
            "files": self.files,
        }
