"""What every route does around its work: let the client in, watch the clock, and stop when nobody waits any more."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse

from kente.serve.asking import Fields
from kente.serve.refusals import ClientLeft, Refusal, too_late
from kente.serve.serving import Serving

T = TypeVar("T")
PLACE = "kente.place"
"""Where a request's scope holds the room that the queue keeps for it (`queue.Place`)."""


def admit(serving: Serving, request: Request, fields: Fields | None = None) -> str:
    """Let a client in, by the key it brought or its address; what it goes by."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    key = token.strip() if scheme.lower() == "bearer" else None
    if fields is not None:
        key = fields.key or key
    return serving.clients.admit(key or None, request.client.host if request.client else "unknown")


def note(request: Request, **facts: Any) -> None:
    """Something for the log line of this request."""
    request.scope["facts"].update(facts)


async def attended(request: Request, work: Awaitable[T], seconds: float) -> T:
    """The work's result; called off when time is out or the client leaves."""
    if PLACE in request.scope:  # what is asked counts for itself as soon as the work begins
        asyncio.get_running_loop().call_soon(request.scope[PLACE].leave)
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_gone(request))
    try:
        done, _ = await asyncio.wait({task, watch}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task in done:
            return task.result()
        if watch in done:
            raise ClientLeft
        raise too_late(seconds)
    finally:
        for one in (task, watch):
            if not one.done():
                one.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)  # until what was begun is put back


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def paced(items: AsyncGenerator[T], seconds: float) -> AsyncGenerator[T]:
    """The items, until time is out."""
    end = asyncio.get_running_loop().time() + seconds
    async with contextlib.aclosing(items):
        while True:
            try:
                async with asyncio.timeout_at(end):
                    item = await anext(items)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise too_late(seconds) from None
            yield item


class Events(StreamingResponse):
    """Server-sent events, from (name, data as JSON text) pairs; what goes wrong on the way becomes the last of them."""

    def __init__(self, events: AsyncGenerator[tuple[str, str]]) -> None:
        super().__init__(_lines(events), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _lines(events: AsyncGenerator[tuple[str, str]]) -> AsyncGenerator[bytes]:
    async with contextlib.aclosing(events):
        async for name, data in events:
            yield f"event: {name}\ndata: {data}\n\n".encode()


def message_of(error: Exception) -> str:
    """What may be told of an error."""
    return error.message if isinstance(error, Refusal) else "something broke inside the server; its log says where"
