"""Dropout whose randomness is cheap: on a CPU, drawing numbers is most of what dropout costs.

Inside `noise(seed)` masks are windows, at places drawn at random, of one supply of random values; elsewhere they are drawn anew.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 256
"""One byte of randomness for each value: a share p is rounded to a multiple of 1/256."""
SUPPLY = 2**18
"""Values in a supply, if the largest mask does not need more."""


def _draw(count: int, silent: int, generator: torch.Generator | None) -> Tensor:
    """So many factors: 0 for `silent` of 256, and for the others what makes up for the silent ones."""
    words = torch.empty((count + 7) // 8, dtype=torch.int64)
    chance = words.random_(-(2**63), None, generator=generator).view(torch.uint8)[:count]
    return (chance >= silent).float().mul_(LEVELS / (LEVELS - silent))


class _Supply:
    """The random values of one reading of a batch; all follow from the seed."""

    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed)
        self.places = random.Random(seed)
        self.factors: dict[int, Tensor] = {}

    def window(self, count: int, silent: int) -> Tensor:
        """`count` factors that no other reading has; two windows of one reading may overlap, never in step."""
        factors = self.factors.get(silent)
        if factors is None or 2 * count > len(factors):
            factors = self.factors[silent] = _draw(max(SUPPLY, 4 * count), silent, self.generator)
        start = self.places.randrange(len(factors) - count)
        return factors[start : start + count]

    def copy(self) -> _Supply:
        """One that will give what this one would."""
        other = _Supply(0)
        other.generator.set_state(self.generator.get_state())
        other.places.setstate(self.places.getstate())
        other.factors = dict(self.factors)
        return other


_here = threading.local()


@contextmanager
def noise(seed: int) -> Iterator[None]:
    """What dropout does inside, on a CPU, follows from the seed alone, whatever other threads do meanwhile."""
    before = getattr(_here, "supply", None)
    _here.supply = _Supply(seed)
    try:
        yield
    finally:
        _here.supply = before


class Moment:
    """The randomness of now, to come back to:  with moment: ...  drops what was dropped from here on the first time.

    For what is computed again while gradients are taken, and must be the same again.
    """

    def __init__(self) -> None:
        supply: _Supply | None = getattr(_here, "supply", None)
        self.supply = supply.copy() if supply else None
        # torch's own stream feeds dropout where there is no supply, and on other devices
        self.cards = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else range(0)
        self.own = None if supply else torch.get_rng_state()
        self.theirs = [torch.cuda.get_rng_state(card) for card in self.cards]
        self.leaving: list[ExitStack] = []

    def __enter__(self) -> None:
        leaving = ExitStack()
        before = getattr(_here, "supply", None)
        leaving.callback(setattr, _here, "supply", before)
        _here.supply = self.supply.copy() if self.supply else None
        if self.own is not None or self.theirs:
            leaving.enter_context(torch.random.fork_rng(devices=self.cards))
        if self.own is not None:
            torch.set_rng_state(self.own)
        for card, state in zip(self.cards, self.theirs, strict=True):
            torch.cuda.set_rng_state(state, card)
        self.leaving.append(leaving)

    def __exit__(self, *_: object) -> None:
        self.leaving.pop().close()


def _factors(x: Tensor, p: float) -> Tensor:
    silent = max(1, round(p * LEVELS))
    supply: _Supply | None = getattr(_here, "supply", None)
    flat = supply.window(x.numel(), silent) if supply else _draw(x.numel(), silent, None)
    return flat.view(x.shape)


def drop(x: Tensor, p: float) -> Tensor:
    """Silence a share `p` of the values and scale the rest up, so that sums keep their size.

    On a CPU p is rounded to a multiple of 1/256 and the scale follows the rounded share exactly.
    """
    if not p:
        return x
    return x * _factors(x, p) if x.is_cpu else F.dropout(x, p)


class Dropout(nn.Module):
    """`drop` while training, nothing otherwise."""

    def __init__(self, p: float):
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.p) if self.training else x

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + dropout(y), in one pass over both."""
        if self.training and self.p and y.is_cpu:
            return torch.addcmul(x, y, _factors(y, self.p))
        return x + self(y)

    def extra_repr(self) -> str:
        return f"p={self.p}"
