"""Taking turns in the loop: when a hundred requests are read, or answered, at a stroke, whoever asks meanwhile waits for all of them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

TOGETHER = 4
"""Who may go on between two looks at what has arrived."""
REST, LOOK = 0.010, 0.020
"""Seconds that the loop rests in a flood, and between two looks at whether there is one."""


class Turns:
    """Lets a few go on in each round of the loop, the others in the order they came."""

    def __init__(self, together: int = TOGETHER) -> None:
        self.together = together
        self._left = together
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Go on now, or when it is one's turn."""
        loop = asyncio.get_running_loop()
        if self._left == self.together:
            loop.call_soon(self._next)
        if self._left > 0:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self) -> None:
        """A new round."""
        self._left = self.together
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # who was called off needs no turn
                turn.set_result(None)
                self._left -= 1
        if self._left < self.together:
            asyncio.get_running_loop().call_soon(self._next)


async def rest_while(flooded: Callable[[], bool]) -> None:
    """While almost everything is refused, refuse in bundles: each a few milliseconds later, all with much less work for the processor."""
    while True:
        if flooded():
            time.sleep(REST)  # the loop itself, not only this task
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(LOOK)
