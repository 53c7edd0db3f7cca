"""Two feeds in turn: what is new, and now and then a batch of what was learned before, so that it is not forgotten."""

from __future__ import annotations

import math
from typing import Any

from kente.data.batches import Feed


class Mixed:
    """A batch of `old` for a share of the steps, evenly spread, and of `new` for the others.

    Before step s there were floor(s share) old ones: like every feed, it needs nothing but the step.
    """

    def __init__(self, new: Feed, old: Feed, share: float) -> None:
        assert 0 < share < 1
        self.new, self.old, self.share = new, old, share

    def __len__(self) -> int:
        """Batches in which all of the new is read once."""
        return math.ceil(len(self.new) / (1 - self.share))

    def batch(self, step: int) -> Any:
        before, after = self._old_ones(step), self._old_ones(step + 1)
        return self.old.batch(before) if after > before else self.new.batch(step - before)

    def _old_ones(self, step: int) -> int:
        return int(step * self.share)
