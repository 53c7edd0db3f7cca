"""How long-running work speaks. Lower layers talk to a Reporter; the command line passes one that draws, libraries stay silent."""

from __future__ import annotations


class Reporter:
    """The silent reporter, and the shape of every other one."""

    def say(self, text: str) -> None:
        """A line worth reading: a choice made, a stage finished."""

    def warn(self, text: str) -> None:
        """Something a person should know about, though work goes on."""

    def progress(self, label: str, done: float, total: float | None = None, detail: str = "") -> None:
        """How far `label` is; `total` None when unknown. Called often: implementations decide how often to draw."""

    def finish(self) -> None:
        """The stage whose progress was shown is over."""


SILENT = Reporter()
