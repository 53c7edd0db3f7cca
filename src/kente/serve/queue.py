"""Work that waits: bounded, and shared out into batches.

Sentences of the same languages and settings are translated together, whoever asked for them. Requests take turns, a sentence at a time, so
that a long one does not hold up short ones; kinds of work take turns, a batch at a time. How much may wait is counted in tokens: as many
as are translated in a few seconds.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kente.serve.refusals import busy, leaving

MEMORY = 50
"""Requests over which their usual size is a mean."""


@dataclass(frozen=True)
class Kind:
    """What sentences must have in common to share a batch."""

    source: str
    target: str
    answers: int = 1
    words: bool = False


class Ticket:
    """The sentences of one request, and their answers as they come.

    The worker's thread writes `answers` and `failure`; the loop reads them after `wake` was called there.
    """

    def __init__(self, kind: Kind, texts: Sequence[str], tokens: Sequence[int]) -> None:
        assert len(texts) == len(tokens) and texts
        self.kind, self.texts, self.tokens = kind, texts, tokens
        self.answers: list[Any] = [None] * len(texts)
        self.failure: Exception | None = None
        self.gone = False
        self.next = 0  # the first sentence that no batch has taken
        self._news = asyncio.Event()

    def wake(self) -> None:
        """There is something new. To be called in the loop."""
        self._news.set()

    async def in_order(self) -> AsyncIterator[tuple[int, Any]]:
        """(place, answer) of each sentence, in the order of the text, as soon as that is possible."""
        for place in range(len(self.texts)):
            while self.answers[place] is None:
                if self.failure is not None:
                    raise self.failure
                self._news.clear()
                await self._news.wait()
            yield place, self.answers[place]

    async def all(self) -> list[Any]:
        return [answer async for _, answer in self.in_order()]


@dataclass
class Batch:
    """Sentences that are translated together, with their places in the tickets they come from."""

    kind: Kind
    places: list[tuple[Ticket, int]] = field(default_factory=list)
    tokens: int = 0

    @property
    def texts(self) -> list[str]:
        return [ticket.texts[place] for ticket, place in self.places]

    @property
    def tickets(self) -> list[Ticket]:
        return list(dict.fromkeys(ticket for ticket, _ in self.places))

    def abandoned(self) -> bool:
        """Whether nobody waits for any of it."""
        return all(ticket.gone for ticket, _ in self.places)

    def answer(self, answers: Sequence[Any]) -> None:
        for (ticket, place), answer in zip(self.places, answers, strict=True):
            ticket.answers[place] = answer


class Place:
    """Room kept in a queue; given back once, however often it is left."""

    def __init__(self, left: Callable[[], None]) -> None:
        self._left: Callable[[], None] | None = left

    def leave(self) -> None:
        if self._left is not None:
            self._left()
            self._left = None


class Queue:
    """Tickets that wait. `width` says how many tokens a batch of a kind may have; `seconds`, for how long the longest queue keeps the engines busy."""

    def __init__(
        self, width: Callable[[Kind], int], seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.width, self.seconds, self.clock = width, seconds, clock
        self.tokens = 0
        self.tickets = 0
        self._lines: OrderedDict[Kind, deque[Ticket]] = OrderedDict()
        self._changed = threading.Condition()
        self._closed = False
        self._done, self._took = 0.0, 0.0  # tokens of late, and seconds for them
        self._coming, self._usual = 0, 0.0  # requests that were let in and are not here yet, and tokens of one of late

    @property
    def pace(self) -> float:
        """Tokens a second of late; 0 while unknown."""
        return self._done / self._took if self._took else 0.0

    @property
    def room(self) -> float:
        """Tokens that may wait: two batches at least, or there would be nothing to make the next one of."""
        widest = max((self.width(kind) for kind in list(self._lines)), default=0)
        return max(2 * widest, self.pace * self.seconds)

    @property
    def full(self) -> bool:
        waiting = self.tokens + self._coming * self._usual
        return waiting > 0 and waiting >= self.room

    def place(self) -> Place:
        """Keep room for a request until it has been read. In a flood, hundreds come before the first of them is here."""
        self._coming += 1
        return Place(self._left)

    def _left(self) -> None:
        self._coming -= 1

    @property
    def wait(self) -> float:
        """Seconds until what waits is done, at the pace of late."""
        return self.tokens / self.pace if self.pace else self.seconds

    def offer(self, ticket: Ticket, *, again: bool = False) -> None:
        """Let a ticket wait; refused if there is no room. `again`: its request is half done, so it goes on, and goes first."""
        with self._changed:
            if self._closed and not again:
                raise leaving()
            line = self._lines.setdefault(ticket.kind, deque())
            if not again and self.tokens and self.tokens + sum(ticket.tokens) > self.room:
                if not line:
                    del self._lines[ticket.kind]
                raise busy(self.wait)
            (line.appendleft if again else line.append)(ticket)
            self.tokens += sum(ticket.tokens)
            self.tickets += 1
            self._usual += (sum(ticket.tokens) - self._usual) / (MEMORY if self._usual else 1)
            self._changed.notify()

    def forget(self, ticket: Ticket) -> None:
        """Nobody waits for it any more; what no batch has taken is taken out."""
        with self._changed:
            ticket.gone = True
            line = self._lines.get(ticket.kind)
            if line is not None and ticket in line:
                line.remove(ticket)
                self._out(ticket, sum(ticket.tokens[ticket.next :]))
                if not line:
                    del self._lines[ticket.kind]

    def take(self) -> Batch | None:
        """The next batch, waited for; None when the queue is closed and empty."""
        with self._changed:
            while not self._lines:
                if self._closed:
                    return None
                self._changed.wait()
            kind, line = next(iter(self._lines.items()))
            batch, room = Batch(kind), self.width(kind)
            while line:
                ticket = line[0]
                cost = ticket.tokens[ticket.next]
                if batch.places and batch.tokens + cost > room:
                    break
                line.popleft()
                batch.places.append((ticket, ticket.next))
                batch.tokens += cost
                ticket.next += 1
                if ticket.next < len(ticket.texts):
                    line.append(ticket)
                    self.tokens -= cost
                else:
                    self._out(ticket, cost)
            if line:
                self._lines.move_to_end(kind)
            else:
                del self._lines[kind]
            return batch

    def _out(self, ticket: Ticket, tokens: int) -> None:
        self.tokens -= tokens
        self.tickets -= 1

    def finished(self, batch: Batch, seconds: float) -> None:
        """Remember how long a batch took. Small ones say little about the pace when there is much to do."""
        full = 2 * batch.tokens >= self.width(batch.kind)
        with self._changed:
            if full or not self._took:
                memory = 0.8 if full else 0.0
                self._done = memory * self._done + batch.tokens
                self._took = memory * self._took + max(seconds, 1e-6)

    def close(self) -> None:
        """Take nothing new; what waits is still handed out."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
