"""lecture: the claims of the lectures, tried. Listing them needs no torch."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kente.errors import UsageError
from kente.lectures import EXPERIMENTS, write_page
from kente.lectures.finding import Experiment, Finding
from kente.reporting import SILENT, Reporter

PAGE = "lecture.html"


@dataclass(frozen=True)
class Learnt:
    """What some experiments found, and where their pictures are."""

    findings: tuple[Finding, ...]
    page: Path

    def as_dict(self) -> dict[str, Any]:
        """The numbers without the pictures, which are in the page."""
        found = [{name: value for name, value in asdict(f).items() if name != "figures"} for f in self.findings]
        return {"page": str(self.page), "findings": found}

    def lines(self) -> list[str]:
        told = [line for f in self.findings for line in (f"{f.name}: {f.title} ({f.lecture})", f"  {f.found}", "")]
        return [*told, f"page: {self.page}"]


def experiments() -> dict[str, Experiment]:
    """What can be tried, by name."""
    return EXPERIMENTS


def lecture(
    names: Sequence[str],
    out: Path | str = Path("lecture"),
    *,
    run: Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    reporter: Reporter = SILENT,
) -> Learnt:
    """Run experiments by name ("all" runs every one) and write one page with their pictures. `run` is a trained run to look into."""
    wanted = list(EXPERIMENTS) if list(names) == ["all"] else list(dict.fromkeys(names))
    for name in wanted:
        if name not in EXPERIMENTS:
            near = difflib.get_close_matches(name, EXPERIMENTS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(EXPERIMENTS)}, and all"
            raise UsageError(f"no experiment called {name}; {hint}")
    from kente.api.inputs import pick_device, use_threads
    from kente.runs import Run

    if pick_device(device).type != "cpu":
        reporter.say("the experiments are small and run on the processor")
    use_threads(threads)
    if run is not None:
        Run.open(run)  # said before minutes are spent
    findings = []
    for number, name in enumerate(wanted, 1):
        reporter.say(f"{EXPERIMENTS[name].title} ({number} of {len(wanted)}) ...")
        findings.append(EXPERIMENTS[name].run(reporter, run))
        reporter.finish()
    page = Path(out) / PAGE
    page.parent.mkdir(parents=True, exist_ok=True)
    write_page(findings, page)
    return Learnt(tuple(findings), page)
