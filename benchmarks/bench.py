"""The run itself: tables of variants, measured in turns (A B C, A B C, ...), each sample kept as soon as it is there."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus
from benchmarks.environments import PEERS, Environments, PeerMissing
from benchmarks.processes import ROOT, Others, Outcome, holding, run_job, time_to_first_line
from benchmarks.results import Results, code_hash, fingerprint
from benchmarks.shapes import BATCH_TOKENS

LOOK_SECONDS, PATIENCE = 3.0, 900.0
"""How long to look whether other programs rest, and how long to wait for it at most."""
HARNESS = ("adapter.py", "ids.py", "plain_models.py")


@dataclass(frozen=True)
class Variant:
    """A row of a table: one peer, the job it is given, and what the row is called. `command` is for cold starts: a process, not a job."""

    name: str
    peer: str
    job: dict[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """Variants that are compared with each other. `finish` turns a raw result into what is kept of it."""

    name: str
    variants: tuple[Variant, ...]
    rounds: int
    expected_seconds: float = 20.0
    finish: Callable[[dict[str, Any]], dict[str, Any]] = lambda result: result


class Bench:
    """What all parts share: the corpus, the environments, the results, and how a job is run."""

    def __init__(
        self,
        folder: Path,
        results: Results,
        environments: Environments,
        *,
        rounds: int,
        threads: int,
        batch_tokens: int = BATCH_TOKENS,
        quick: bool = False,
        peers: frozenset[str] | None = None,
        lock: Path | None = None,
        calm: float = 1.0,
        timeout: float = 900.0,
        say: Callable[[str], None] | None = None,
    ):
        self.folder, self.results, self.environments = folder, results, environments
        self.rounds, self.threads, self.quick, self.peers = rounds, threads, quick, peers
        self.batch_tokens, self.lock, self.calm, self.timeout = batch_tokens, lock, calm, timeout
        self.say = say or (lambda text: print(text, file=sys.stderr, flush=True))
        self.corpus: Corpus | None = None
        self._seconds: dict[tuple[str, str], float] = {}

    @property
    def text(self) -> Corpus:
        assert self.corpus is not None, "the corpus comes first"
        return self.corpus

    def wanted(self, peer: str) -> bool:
        """Whether the user left this peer in; Kente and plain torch are what the others are compared with."""
        return self.peers is None or peer in self.peers

    # --- one job ---

    def code_of(self, variant: Variant) -> str:
        """A sample belongs to its job and to the code that did it: Kente's for Kente, the adapter's for all."""
        peer = PEERS[variant.peer]
        folder = ROOT / "benchmarks" / "peers"
        paths = [folder / f"{peer.module.rpartition('.')[2]}.py", *(folder / name for name in HARNESS)]
        if peer.name == "kente":
            paths += (path for ending in ("py", "c", "h") for path in (ROOT / "src" / "kente").rglob(f"*.{ending}"))
        return fingerprint(variant.job, variant.command, code_hash(paths))

    def run(self, variant: Variant, name: str, *, lock: Path | None) -> Outcome:
        """Run a variant once, holding `lock`; a peer that cannot be had is an outcome too."""
        peer = PEERS[variant.peer]
        log = self.folder / "logs" / f"{name.replace('/', '-').replace(' ', '-')}.log"
        try:
            python = self.environments.python(peer)
        except PeerMissing as error:
            return Outcome(None, str(error), 0.0, 0.0)
        with holding(lock):
            others = Others()
            if variant.command:
                command = [str(python), *variant.command]
                outcome = time_to_first_line(command, self.threads, self.timeout, log)
            else:
                outcome = run_job(python, peer.module, variant.job, self.threads, self.timeout, log)
            return replace(outcome, others_busy=others.share())

    def run_in_peace(self, variant: Variant, name: str) -> Outcome:
        """Run a variant, and again if other programs were busier than `calm`; the least disturbed of four tries counts."""
        tries: list[Outcome] = []
        while len(tries) < (4 if self.calm < 1 else 1):
            if tries:
                self.say(f"{name}: other programs used {tries[-1].others_busy:.0%} of the cores; once more")
            self._wait_for_calm()
            tries.append(self.run(variant, name, lock=self.lock))
            if tries[-1].error is not None or tries[-1].others_busy <= self.calm:
                return tries[-1]
        return min(tries, key=lambda outcome: outcome.others_busy)

    def _wait_for_calm(self) -> None:
        """Until other programs rest, or patience is over. The lock is not held: others may be waiting for it too."""
        patience = time.monotonic() + PATIENCE
        while self.calm < 1 and time.monotonic() < patience:
            others = Others()
            time.sleep(LOOK_SECONDS)
            if others.share() <= self.calm:
                return

    def once(self, name: str, peer: str, job: dict[str, Any]) -> dict[str, Any]:
        """Something that is made, not measured (a model, a conversion). Fails with the peer's own words."""
        self.say(f"{name} ...")
        outcome = self.run(Variant(name, peer, job), name, lock=None)
        if outcome.result is None:
            raise PeerMissing(f"{PEERS[peer].title}: {outcome.error}")
        return outcome.result

    # --- tables ---

    def measure(self, table: Table) -> None:
        """Fill a table: what is there from an earlier run with the same code and jobs stays."""
        variants = [variant for variant in table.variants if self.wanted(variant.peer)]
        prints = {variant.name: self.code_of(variant) for variant in variants}
        if changed := self.results.stale(table.name, prints):
            self.say(f"{table.name}: {', '.join(changed)} changed since; measured anew, the peers beside it")
            self.results.drop(table.name)
        waiting = [
            (turn, variant)
            for turn in range(table.rounds)
            for variant in variants
            if self.results.find(table.name, variant.name, turn) is None
        ]
        missing: set[str] = set()
        for place, (turn, variant) in enumerate(waiting):
            if variant.name in missing:
                continue
            outcome = self._sample(table, variant, turn, prints[variant.name])
            self._seconds[table.name, variant.name] = outcome.wall_seconds
            if outcome.error is not None:
                missing.add(variant.name)
            left = [v for _, v in waiting[place + 1 :] if v.name not in missing]
            self._progress(table, variant, turn, outcome, left)

    def _sample(self, table: Table, variant: Variant, turn: int, code: str) -> Outcome:
        outcome = self.run_in_peace(variant, f"{table.name} {variant.name}")
        sample = {
            "table": table.name,
            "variant": variant.name,
            "peer": variant.peer,
            "round": turn,
            "code": code,
            "wall_seconds": round(outcome.wall_seconds, 2),
            "peak_megabytes": round(outcome.peak_megabytes),
            "others_busy": round(outcome.others_busy, 3),
            "error": outcome.error,
        }
        if outcome.result is not None:
            sample |= table.finish(outcome.result)
        self.results.add(sample)
        return outcome

    def _progress(self, table: Table, variant: Variant, turn: int, outcome: Outcome, left: list[Variant]) -> None:
        known = self._seconds
        seconds = sum(known.get((table.name, other.name), table.expected_seconds) for other in left)
        what = f"failed: {outcome.error}" if outcome.error else f"{outcome.wall_seconds:.0f} s"
        rest = f"; {len(left)} more in this table, about {_minutes(seconds)}" if left else ""
        self.say(f"{table.name}, round {turn + 1}: {variant.name}: {what}{rest}")

    # --- what jobs have in common ---

    def job(self, action: str, **more: Any) -> dict[str, Any]:
        return {"action": action, "threads": self.threads, "seed": 1, "scratch": str(self.scratch), **more}

    @property
    def scratch(self) -> Path:
        folder = self.folder / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
