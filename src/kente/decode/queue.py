"""Sentences that wait and sentences that are worked on.

The longest go first, as many as there is room for. Finished ones leave, and where the model allows it (`refills`) waiting ones of like
length take their places at once: a batch stays full until no more like it wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol

import torch
from torch import Tensor

from kente.data.shortlist import Shortlist
from kente.decode.answers import Hypothesis
from kente.decode.guards import has_loop
from kente.decode.hypothesis import Living
from kente.decode.words import Words
from kente.models.interface import Generator, State, refill, regroup, select

FEW = 0.75
"""When no more than this share of a batch is at work, the others leave: many together, since leaving copies those who stay."""
LIKE = 0.7
"""A sentence may join those at work if it is at least this long beside the longest: padding must not cost more than is saved."""


@dataclass(frozen=True)
class Request:
    """A sentence that waits for its answer."""

    owner: int
    source: Sequence[int]
    prefix: Sequence[int]
    cap: int  # tokens its answer may have at most


class Method(Protocol):
    """How tokens are chosen: `Beam`, or `Follow` for greedy search and sampling."""

    copies: int  # rows a sentence begins with, each on its own
    several: bool  # whether a sentence may have several rows that go on from each other

    def advance(self, logits: Tensor, living: Living, words: Words) -> tuple[Tensor | None, Living]:
        """(the row that each new row continues, None where each continues itself; the rows after it)."""
        ...

    def stop(self, living: Living) -> None: ...

    def answers(self) -> list[list[Hypothesis]]: ...


class Queue:
    """Requests, the longest first; without `room` all are taken at once, in their order."""

    def __init__(self, requests: Sequence[Request], room: int | None) -> None:
        self.room = room
        by_length = sorted(requests, key=lambda r: len(r.source), reverse=True)
        self.waiting = (list(requests) if room is None else by_length)[::-1]

    def take(self) -> list[Request]:
        """A batch: of like length, and no wider than `room` with padding (beyond a single sentence)."""
        taken = [self.waiting.pop()]
        width = len(taken[0].source)
        while self.waiting and (self.room is None or width * (len(taken) + 1) <= self.room):
            taken.append(self.waiting.pop())
        return taken

    def take_like(self, width: int, most: int) -> list[Request]:
        """At most so many that may join a batch of this width."""
        taken: list[Request] = []
        while self.waiting and len(taken) < most and LIKE * width <= len(self.waiting[-1].source) <= width:
            taken.append(self.waiting.pop())
        return taken


@dataclass(frozen=True)
class Batch:
    """Sentences at work: the model's state, what has been written, and the words they may use."""

    state: State
    living: Living
    words: Words
    width: int  # source tokens of the longest, padding included

    @cached_property
    def alive(self) -> Tensor:
        """(B,) which sentences are still being answered."""
        return self.living.living()

    @cached_property
    def free(self) -> int:
        """Places of sentences that have ended."""
        return len(self.alive) - int(self.alive.sum())

    @property
    def few(self) -> bool:
        """Whether so many have ended that something should be done about it."""
        return self.free >= (1 - FEW) * len(self.alive)

    def rows_of(self, sentences: Tensor) -> Tensor:
        """The rows that belong to these sentences."""
        group = self.living.group
        return (sentences[:, None] * group + torch.arange(group, device=sentences.device)).flatten()


class Desk:
    """Where sentences are worked on."""

    def __init__(
        self,
        model: Generator,
        method: Method,
        never: Sequence[int],
        bos: int,
        shortlist: Shortlist | None,
        device: torch.device,
    ) -> None:
        self.model, self.method, self.bos, self.shortlist, self.device = model, method, bos, shortlist, device
        self.never = torch.tensor(list(never), device=device)
        self.refills = bool(getattr(model, "refills", False))

    def work(self, queue: Queue, late: Callable[[], bool]) -> None:
        """Write until nothing waits and nothing lives, or time is out."""
        batch: Batch | None = None
        while batch is not None or queue.waiting:
            if late():
                break
            if batch is None:
                batch = self._step(self._begin(queue.take()))
            elif newcomers := self._newcomers(batch, queue):
                batch = self._join(batch, self._step(self._begin(newcomers)))
            else:
                batch = self._step(self._without_the_ended(batch) if batch.few else batch)
            if batch.free == len(batch.alive):
                batch = None
        if batch is not None:
            self.method.stop(batch.living)
        if queue.waiting:
            self.method.stop(self._nothing_written(queue.waiting))

    def _begin(self, requests: Sequence[Request]) -> Batch:
        """Read the sources."""
        width = max(len(r.source) for r in requests)
        rows = [[*r.source, *[0] * (width - len(r.source))] for r in requests]
        source = torch.tensor(rows, device=self.device)
        lengths = torch.tensor([len(r.source) for r in requests], device=self.device)
        mask = torch.arange(width, device=self.device) < lengths[:, None]
        state, living = self.model.start(source, mask), self._nothing_written(requests)
        guarded = ~has_loop(source, mask)  # a source that repeats itself may be answered in kind
        if self.method.copies > 1:
            copies = torch.arange(len(source), device=self.device).repeat_interleave(self.method.copies)
            state, guarded = select(state, copies), guarded[copies]
        living.guarded = guarded
        return Batch(state, living, self._words(living), width)

    def _nothing_written(self, requests: Sequence[Request]) -> Living:
        copies, numbers = self.method.copies, partial(torch.tensor, device=self.device)
        each = [r for r in requests for _ in range(copies)]
        longest = max(len(r.prefix) for r in requests)
        prefix = numbers([[*r.prefix, *[0] * (longest - len(r.prefix))] for r in each], dtype=torch.long)
        return Living.begin(
            owner=numbers([r.owner * copies + copy for r in requests for copy in range(copies)]),
            cap=numbers([r.cap for r in each]),
            guarded=numbers([True] * len(each)),
            prefix=prefix.reshape(len(each), longest),
            allowed=self._allowed(each),
            bos=self.bos,
        )

    def _allowed(self, requests: Sequence[Request]) -> Tensor:
        """(B, V) words each sentence may use, those it must begin with among them; (B, 0) without a shortlist."""
        if self.shortlist is None:
            return torch.empty(len(requests), 0, dtype=torch.bool, device=self.device)
        allowed = self.shortlist.allowed([r.source for r in requests])
        allowed[:, self.never.tolist()] = True  # they are not chosen, but belong to all words
        for row, request in zip(allowed, requests, strict=True):
            row[list(request.prefix)] = True
        return torch.from_numpy(allowed).to(self.device)

    def _words(self, living: Living) -> Words:
        return Words.of(self.model, living, self.never, self.method.several)

    def _step(self, batch: Batch) -> Batch:
        """One token further in every row."""
        narrowed = () if batch.words.output is None else (batch.words.output,)
        step = self.model.step(batch.state, batch.living.last, *narrowed)
        parents, living = self.method.advance(step.logits, batch.living, batch.words)
        return replace(batch, state=step.state if parents is None else regroup(step.state, parents), living=living)

    def _newcomers(self, batch: Batch, queue: Queue) -> list[Request]:
        """Who may take the places of those who have ended."""
        return queue.take_like(batch.width, batch.free // self.method.copies) if self.refills and batch.few else []

    def _join(self, batch: Batch, began: Batch) -> Batch:
        """Newcomers in the places of those who have ended."""
        places = (~batch.alive).nonzero()[: len(began.alive), 0]
        where = (batch.rows_of(places), places)
        state, living = refill(batch.state, began.state, *where), refill(batch.living, began.living, *where)
        return Batch(state, living, self._words(living), batch.width)

    def _without_the_ended(self, batch: Batch) -> Batch:
        stay = batch.alive.nonzero()[:, 0]
        where = (batch.rows_of(stay), stay)
        state, living = regroup(batch.state, *where), regroup(batch.living, *where)
        return Batch(state, living, self._words(living), batch.width)
