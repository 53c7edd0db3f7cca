"""A server under load: capacity, 1, 2 and 10 times of it, slow clients, a signal in the middle, and what HTTP adds to one sentence.

    python -m benchmarks.serving RUN                                    everything, a minute for each load; about eight minutes
    python -m benchmarks.serving RUN --seconds 10 --only capacity,load  a look
    python -m benchmarks.serving RUN --peer ADDRESS --pid PID           the same loads for a server that runs already, such as LibreTranslate
    python -m benchmarks.serving RUN --peer libretranslate              installs that in .bench, gives it the run as an Argos package, and starts it

The client shares the processor with the server, as it says: on two cores it takes its part. The sentences are the run's validation set.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.load import MOST_CONNECTIONS, Client, Outcomes, Slow, quantile, request_bytes

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("capacity", "load", "slow", "stop", "latency")
LOADS = (1, 2, 10)
AT_ONCE = 64
"""Clients of a closed loop: enough to keep batches full, and no more than may wait."""
SLOW = {"head": 500, "body": 100, "silent": 100, "reader": 20}


@dataclass
class Target:
    """A server that is measured."""

    name: str
    host: str
    port: int
    pid: int
    log: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    connections: int = MOST_CONNECTIONS
    """That it takes at once."""

    def resident(self) -> int:
        """Bytes that it and its children hold."""
        return sum(_resident(pid) for pid in _family(self.pid))


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _family(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(other for child in children for other in _family(int(child)))]
    return [pid]


@contextlib.contextmanager
def kente(run: Path, folder: Path, *options: str) -> Iterator[Target]:
    """`kente serve` in a process of its own, with the settings everyone gets."""
    log = folder / "serving.log"
    command = [sys.executable, "-m", "kente", "serve", str(run), "--port", "0", "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(log, "wb"))  # noqa: SIM115  # the process keeps it
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"kente serve did not start:\n{log.read_text()}")
        address = json.loads(line)["address"]
        host, port = address.removeprefix("http://").rsplit(":", 1)
        yield Target("kente serve", host, int(port), process.pid, log, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


# ---------------------------------------------------------------- what is asked


def sentences(run: Path, most: int = 1000) -> list[str]:
    lines = (run / "data" / "validation.source").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip()][:most]


def languages(run: Path) -> tuple[str, str]:
    from kente.runs import Run

    known = Run.open(run).languages()
    return known.source, known.target


def client(target: Target, texts: Sequence[str], pair: tuple[str, str]) -> Client:
    asked = [{"q": text, "source": pair[0], "target": pair[1]} for text in texts]
    requests = [request_bytes(target.host, target.port, "/translate", one) for one in asked]
    return Client(target.host, target.port, requests, target.connections)


# ---------------------------------------------------------------- loads


def capacity(asking: Client, seconds: float) -> float:
    """Answers a second when there are always some requests waiting."""
    asking.closed_loop(min(5.0, seconds), AT_ONCE)  # warm
    return asking.closed_loop(seconds, AT_ONCE).rate()


class Memory:
    """The most a server holds while something goes on; looked at twice a second."""

    def __init__(self, target: Target) -> None:
        self.target, self.most, self._next = target, target.resident(), 0.0

    def __call__(self, now: float) -> None:
        if now >= self._next:
            self.most, self._next = max(self.most, self.target.resident()), now + 0.5


def load(target: Target, asking: Client, rate: float, seconds: float) -> dict[str, Any]:
    memory = Memory(target)
    found = asking.open_loop(seconds, rate, memory)
    time.sleep(1)
    after = asking.closed_loop(3, 4)  # is it back to normal?
    return {**described(found), "resident": memory.most, "offered": round(rate, 1), "after": described(after)}


def described(found: Outcomes) -> dict[str, Any]:
    return {
        "answers": dict(found.answers),
        "goodput": round(found.rate(), 1),
        "p50": round(found.share(200, 0.5), 1),
        "p99": round(found.share(200, 0.99), 1),
        "refused_p50": round(found.share(503, 0.5), 2),
        "refused_p99": round(found.share(503, 0.99), 2),
        "refused_most": round(found.share(503, 1.0), 2),
        "refused_without_retry_after": found.without_retry_after,
        "late_p99": round(1000 * quantile(found.lag, 0.99), 2) if found.lag else 0.0,
    }


def slow(target: Target, asking: Client, rate: float) -> dict[str, Any]:
    """Slow clients of each kind at once, while ordinary ones ask at half the capacity."""
    before = asking.open_loop(10, rate / 2)
    clients, stepped = Slow(target.host, target.port, SLOW), [0.0]

    def tick(now: float) -> None:
        if now >= stepped[0]:
            clients.step()
            stepped[0] = now + 1

    during = asking.open_loop(20, rate / 2, tick)
    return {
        "cut_off_after": {how: round(max(times), 1) for how, times in clients.cut.items() if times},
        "never_cut_off": dict(Counter(how for how, _ in clients.open.values())),
        "before": described(before),
        "during": described(during),
    }


def stop(target: Target, asking: Client, rate: float) -> dict[str, Any]:
    """SIGTERM in the middle of twice the capacity."""
    assert target.process is not None and target.log is not None
    before, signalled = _answered(target.log), list[float]()

    def tick(now: float) -> None:
        if now > 3 and not signalled:
            os.kill(target.pid, signal.SIGTERM)
            signalled.append(time.perf_counter())

    found = asking.open_loop(6, 2 * rate, tick)
    code = target.process.wait(60)
    return {
        "answers": dict(found.answers),
        "answered_by_server": _answered(target.log) - before,
        "exit_code": code,
        "seconds_to_end": round(time.perf_counter() - signalled[0], 1),
    }


def _answered(log: Path) -> int:
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    return sum(
        line["event"] == "request" and line.get("status") == 200 and line["route"] == "/translate" for line in lines
    )


# ---------------------------------------------------------------- one sentence


def latency(target: Target, run: Path, texts: Sequence[str], pair: tuple[str, str]) -> dict[str, Any]:
    """One short sentence over HTTP, and the bare engine on the same ones, in turns."""
    from kente import load as load_run

    short = [text for text in texts if 4 <= len(text.split()) <= 10][:100]
    translator = load_run(run)
    translator.translate(short[0])
    asking = client(target, short, pair)
    asking.one_by_one(20)
    over_http: list[float] = []
    bare: list[float] = []
    for text in short * 5:  # in turns: an engine that has just worked is faster than one that was waiting
        over_http += asking.one_by_one(1).times[200]
        began = time.perf_counter()
        translator.translate(text)
        bare.append(time.perf_counter() - began)
    asking.close()
    sides = {"http": over_http, "engine": bare}
    shares = {"p50": 0.5, "p99": 0.99}
    found = {
        f"{side}_{name}": round(1000 * quantile(times, share), 2)
        for side, times in sides.items()
        for name, share in shares.items()
    }
    return {**found, "added_p50": round(found["http_p50"] - found["engine_p50"], 2)}


# ---------------------------------------------------------------- all of it


def measure(target: Target, run: Path, parts: Sequence[str], seconds: float) -> dict[str, Any]:
    texts, pair = sentences(run), languages(run)
    asking = client(target, texts, pair)
    results: dict[str, Any] = {"server": target.name, "sentences": len(texts)}
    if "latency" in parts:
        results["latency"] = latency(target, run, texts, pair)
        show("latency", results["latency"])
    if {"capacity", "load", "slow", "stop"} & set(parts):
        results["resident_before"] = target.resident()
        results["capacity"] = rate = round(capacity(asking, min(20.0, seconds)), 1)
        results["resident_at_capacity"] = target.resident()
        show("capacity", f"{rate} sentences/s")
        if "load" in parts:
            results["load"] = {}
            able = rate
            for times in LOADS:
                found = load(target, asking, times * rate, seconds)
                before, able = able, round(capacity(asking, min(20.0, seconds)), 1)
                results["load"][str(times)] = {**found, "capacity_before": before, "capacity_after": able}
                show(f"{times}x", results["load"][str(times)])
        if "slow" in parts:
            results["slow"] = slow(target, asking, rate)
            show("slow", results["slow"])
        if "stop" in parts and target.process is not None:
            results["stop"] = stop(target, asking, rate)
            show("stop", results["stop"])
    asking.close()
    return results


def show(name: str, found: Any) -> None:
    print(f"{name}: {json.dumps(found) if isinstance(found, dict) else found}", flush=True)


def verdicts(results: dict[str, Any]) -> list[str]:
    """What was promised, and how it stands."""
    lines = []
    for times, found in results.get("load", {}).items():
        others = {status: count for status, count in found["answers"].items() if status not in ("200", "503")}
        able = (found["capacity_before"] + found["capacity_after"]) / 2  # a shared machine is not the same all the time
        goodput, memory = found["goodput"] / able, found["resident"] / results["resident_at_capacity"]
        lines += [
            f"{times}x: answers other than 200 and 503: {others or 'none'}",
            f"{times}x: 503 without Retry-After: {found['refused_without_retry_after']}",
            f"{times}x: goodput {goodput:.0%} of capacity, memory {memory:.2f} of that at capacity",
            f"{times}x: refused within {found['refused_p99']} ms (p99), {found['refused_most']} ms (most)",
        ]
    if "slow" in results:
        found = results["slow"]
        longest = max(found["cut_off_after"].values(), default=float("nan"))
        lines.append(f"slow clients cut off after at most {longest} s; never: {found['never_cut_off'] or 'none'}")
        lines.append(f"meanwhile, p99 of others: {found['before']['p99']} -> {found['during']['p99']} ms")
    if "stop" in results:
        found = results["stop"]
        lines.append(f"SIGTERM: exit code {found['exit_code']} after {found['seconds_to_end']} s")
        lines.append(f"SIGTERM: clients saw {found['answers']}, the server answered {found['answered_by_server']}")
    if "latency" in results:
        found = results["latency"]
        lines.append(f"one sentence, p50: {found['http_p50']} ms over HTTP, {found['engine_p50']} ms bare")
        lines.append(f"one sentence, p99: {found['http_p99']} ms over HTTP, {found['engine_p99']} ms bare")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.serving", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load (60)")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--peer", help="an address of a server that runs, or libretranslate")
    parser.add_argument("--pid", type=int, default=0, help="process of that server, to see its memory")
    parser.add_argument("--out", type=Path, default=ROOT / ".bench" / "serving.json")
    given = parser.parse_args()
    folder = given.out.parent
    folder.mkdir(parents=True, exist_ok=True)
    parts = given.only.split(",")
    if given.peer is None:
        with kente(given.run, folder) as target:
            results = measure(target, given.run, parts, given.seconds)
    elif given.peer == "libretranslate":
        from benchmarks.peers.libretranslate import libretranslate

        with libretranslate(given.run, folder) as target:
            results = measure(target, given.run, parts, given.seconds)
    else:
        host, port = given.peer.removeprefix("http://").rstrip("/").rsplit(":", 1)
        target = Target(given.peer, host, int(port), given.pid)
        results = measure(target, given.run, parts, given.seconds)
    print("\n".join(["", *verdicts(results)]))
    given.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
