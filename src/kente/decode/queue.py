"""Sentences that wait and sentences that are worked on.

The longest go first, as many as there is room for, all of like length and all at the same word. As they end they leave; the few that are left
are put aside, and where the model allows it (`joins`) those of several batches are finished together: a step of few costs nearly as
much as one of many.
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
from kente.models.interface import Generator, State, Trims, join, regroup, select

FEW = 0.75
"""When no more than this share of a batch is at work, the others leave: many together, since leaving copies those who stay."""
LEFT = 0.3
"""When no more than this share of those who began a batch is left, they are put aside for others to join them."""


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


@dataclass(frozen=True)
class Batch:
    """Sentences at work: the model's state, what has been written, and the words they may use."""

    state: State
    living: Living
    words: Words
    width: int  # source tokens of the longest, padding included
    begun: int  # sentences it began with

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

    @property
    def left(self) -> int:
        """Sentences still being answered."""
        return len(self.alive) - self.free

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
        self.joins = bool(getattr(model, "joins", False))

    def work(self, queue: Queue, late: Callable[[], bool]) -> None:
        """Write until nothing waits and nothing lives, or time is out."""
        aside: list[Batch] = []
        in_time = True
        while in_time and (queue.waiting or aside):
            if late():
                break
            batch = self._step(self._next(queue, aside))
            others = self.joins and bool(queue.waiting or aside)
            enough = LEFT * batch.begun if others else 0
            while batch.left > enough and (in_time := not late()):
                batch = self._step(self._without_the_ended(batch) if batch.few else batch)
            if batch.left:
                aside.append(self._without_the_ended(batch))
        for batch in aside:
            self.method.stop(batch.living)
        if queue.waiting:
            self.method.stop(self._nothing_written(queue.waiting))

    def _next(self, queue: Queue, aside: list[Batch]) -> Batch:
        """New sentences; or those put aside, once they are enough for a batch or nothing else is there."""
        if queue.waiting and sum(batch.left for batch in aside) < max((batch.begun for batch in aside), default=1):
            return self._begin(queue.take())
        state, living = join([batch.state for batch in aside]), join([batch.living for batch in aside])
        widest = max(batch.width for batch in aside)
        aside.clear()
        return Batch(state, living, self._words(living), widest, len(living.owner))

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
        return Batch(state, living, self._words(living), width, len(living.owner))

    def _nothing_written(self, requests: Sequence[Request]) -> Living:
        copies, numbers = self.method.copies, partial(torch.tensor, device=self.device)
        each = [r for r in requests for _ in range(copies)]
        longest = max(len(r.prefix) for r in requests)
        prefix = numbers([[*r.prefix, *[0] * (longest - len(r.prefix))] for r in each], dtype=torch.long)
        return Living.begin(
            owner=numbers([r.owner * copies + copy for r in requests for copy in range(copies)]),
            length=numbers([len(r.source) for r in each]),
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

    def _without_the_ended(self, batch: Batch) -> Batch:
        stay = batch.alive.nonzero()[:, 0]
        where = (batch.rows_of(stay), stay)
        state, living = regroup(batch.state, *where), regroup(batch.living, *where)
        words = batch.words.of_some(stay) or self._words(living)
        return self._trimmed(replace(batch, state=state, living=living, words=words))

    def _trimmed(self, batch: Batch) -> Batch:
        """Without the padding that only sentences needed that have left."""
        longest = int(batch.living.length.max())
        if longest == batch.width or not isinstance(self.model, Trims):
            return batch
        return replace(batch, state=self.model.trimmed(batch.state, longest), width=longest)
