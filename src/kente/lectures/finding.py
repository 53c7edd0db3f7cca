"""What an experiment hands back: the claim, a sentence with the numbers, pictures. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kente.reporting import Reporter


@dataclass(frozen=True)
class Finding:
    """A lecture's claim, tried."""

    name: str
    title: str
    lecture: str
    """The lectures that claim it: "lecture 000"."""
    claim: str
    found: str
    """What the numbers allow to be said, and the numbers, whichever way they fell."""
    figures: tuple[str, ...]
    """Pieces of HTML, charts and tables, in the order to be read."""
    data: dict[str, Any]
    """The numbers behind the figures, ready to be written as JSON."""


@dataclass(frozen=True)
class Experiment:
    """A claim waiting to be tried."""

    name: str
    title: str
    lecture: str
    seconds: int
    """Roughly how long it takes on two cores."""
    run: Callable[[Reporter, Path | None], Finding]
    """Takes the folder of a trained run too, for the experiments that look into a translator; None trains a small one."""


def beside(*figures: str) -> str:
    """Figures side by side, where the page is wide enough."""
    return f'<div class="pair">{"".join(figures)}</div>'
