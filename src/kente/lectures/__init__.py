"""What the lectures claim, tried: each experiment ends in pictures and in a sentence that says what was found.

Importing this imports no torch, so that a list of experiments appears at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kente.durable import replace_file
from kente.lectures.finding import Experiment, Finding
from kente.reporting import Reporter

__all__ = ["EXPERIMENTS", "Experiment", "Finding", "write_page"]


def _gradients(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.gradients import explore

    return explore(reporter)


def _unrolled(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.unrolled import explore

    return explore(reporter)


def _order(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.order import explore

    return explore(reporter)


def _costs(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.costs import explore

    return explore(reporter)


def _bottleneck(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.bottleneck import explore

    return explore(reporter)


def _mask(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.mask import explore

    return explore(reporter, run)


def _heads(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.heads import explore

    return explore(reporter, run)


def _meanings(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.meanings import explore

    return explore(reporter, run)


def _fibonacci(reporter: Reporter, run: Path | None) -> Finding:
    from kente.lectures.fibonacci import explore

    return explore(reporter)


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment("gradients", "Gradients through time", "lecture 000", 20, _gradients),
        Experiment("unrolled", "Gates, unrolled, are attention", "lecture 000", 10, _unrolled),
        Experiment("order", "Order, and lengths never seen", "lectures 000 and 001", 60, _order),
        Experiment("costs", "What layers cost", "lecture 001", 10, _costs),
        Experiment("bottleneck", "One vector is a bottleneck", "lectures 000, 001 and 002", 45, _bottleneck),
        Experiment("mask", "The mask of the decoder", "lecture 004", 25, _mask),
        Experiment("heads", "What heads see", "lectures 001 and 004", 25, _heads),
        Experiment("meanings", "One word, two meanings", "lecture 004", 30, _meanings),
        Experiment("fibonacci", "Many to one, with and without attention", "lecture 002", 35, _fibonacci),
    )
}
"""By name, in the order of the lectures' argument. Only `mask`, `heads` and `meanings` make use of a run."""

LEAD = "Each claim in our words, what was found when it was tried, and the pictures. On one machine the same numbers come out every time, the clock's apart."


def write_page(findings: Sequence[Finding], path: Path) -> None:
    """One self-contained page of all findings."""
    from kente.show.page import Section, page

    sections = [Section(finding.title, _body(finding)) for finding in findings]
    replace_file(path, page("The lectures, tried", sections, lead=f"<p>{LEAD}</p>").encode())


def _body(finding: Finding) -> str:
    from kente.show.text import escaped

    return (
        f'<p class="soft">{escaped(finding.lecture)}</p>'
        f"<p><strong>Claim.</strong> {escaped(finding.claim)}</p><p><strong>Found.</strong> {escaped(finding.found)}</p>"
        + "".join(finding.figures)
    )
