"""Is this training healthy? Non-finite numbers never reach the weights; a loss that climbs away stops the run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kente.errors import Diverged

BAD_IN_A_ROW = 3
BAD_WINDOW = 1000
BAD_SHARE = 0.01
PATIENCE = 50
"""Updates the loss must stay high before it counts as diverged."""


@dataclass
class Health:
    """Small enough to be saved with every checkpoint, so that a resumed run judges as an unbroken one."""

    bad_steps: list[int] = field(default_factory=list)
    """Updates skipped among the last BAD_WINDOW."""
    fast: float | None = None
    """Average loss over about the last 10 updates."""
    slow: float | None = None
    """Average loss over about the last 100."""
    lowest: float | None = None
    """The lowest the slow average has been."""
    high: int = 0
    """Updates in a row whose fast average stood far above the lowest slow one."""

    def skipped(self, step: int) -> None:
        """An update was not made because a number was not finite."""
        self.bad_steps = [s for s in self.bad_steps if s > step - BAD_WINDOW] + [step]
        if self.bad_steps[-BAD_IN_A_ROW:] == list(range(step - BAD_IN_A_ROW + 1, step + 1)):
            raise Diverged(
                f"updates {step - BAD_IN_A_ROW + 1} to {step} all gave a loss or gradient that is not a finite number; "
                "the weights were not touched by them. See bad-steps.jsonl; a lower optimiser.rate or longer "
                "optimiser.warmup usually helps"
            )
        if len(self.bad_steps) > BAD_SHARE * BAD_WINDOW:
            raise Diverged(
                f"{len(self.bad_steps)} of the last {BAD_WINDOW:,} updates gave numbers that are not finite; "
                "see bad-steps.jsonl for the sentences they held, and try a lower optimiser.rate"
            )

    def saw(self, loss: float, step: int, *, watch: bool = True) -> None:
        """An update was made with this loss for each token."""
        self.fast = loss if self.fast is None else 0.9 * self.fast + 0.1 * loss
        self.slow = loss if self.slow is None else 0.99 * self.slow + 0.01 * loss
        self.lowest = self.slow if self.lowest is None else min(self.lowest, self.slow)
        self.high = self.high + 1 if self.fast > 1.5 * self.lowest + 0.5 else 0
        if watch and self.high >= PATIENCE:
            raise Diverged(
                f"the loss climbed to {self.fast:.2f} by update {step} after having been at {self.lowest:.2f}: training diverged. "
                "The last checkpoint from before stands; try a lower optimiser.rate or a longer optimiser.warmup"
            )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
