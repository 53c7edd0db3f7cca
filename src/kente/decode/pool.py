"""One process for each core: many lines translated side by side, by workers of one thread each, and put together again in order.

Two processes of one thread get more done than one process of two: a decoder's step is many small operations, too small to be shared out.
Workers are forked from the process that has loaded the model. They begin at once and have no copy of the weights, only a view. A fork
takes over one thread alone, so threads that torch has made for its operations are missing in it; a worker computes with one, and never
looks for them. Requests and answers go through pipes as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import math
import multiprocessing
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from kente import errors
from kente.decode.details import Detail
from kente.decode.torch_engine import TorchEngine
from kente.decode.translator import Alternative, Translation, Translator
from kente.errors import KenteError, WorkerError

WORTH = 64
"""Lines for each worker from which on it pays to have several."""
SMALLEST, LARGEST = 32, 1024
"""Lines in a piece of work: large pieces keep batches full, several let the faster worker help the slower."""


def translate_many(translator: Translator, texts: Sequence[str], workers: int, **how: Any) -> list[Translation]:
    """What translator.translate(texts, **how) gives, by as many processes, if there are texts enough for them."""
    workers = min(workers, len(texts) // WORTH)
    if workers < 2 or not can_fork(translator):
        return translator.translate(texts, **how)
    with Pool(translator, workers) as pool:
        return pool.translate(texts, **how)


def can_fork(translator: Translator) -> bool:
    """Whether this system allows it, and the engine computes in this process and on its processor; others share out work themselves."""
    engine = translator.engine
    return sys.platform == "linux" and isinstance(engine, TorchEngine) and engine.device.type == "cpu"


@dataclasses.dataclass(eq=False)
class Worker:
    """A process, our end of the pipe to it, and the places of the lines it is at work on."""

    process: Any
    pipe: Connection
    places: list[int] = dataclasses.field(default_factory=list)


class Pool:
    """Workers that wait for lines, until the pool is closed."""

    def __init__(self, translator: Translator, workers: int) -> None:
        context = multiprocessing.get_context("fork")
        self.workers: list[Worker] = []
        for _ in range(workers):
            ours, theirs = context.Pipe()
            inherited = [*(worker.pipe for worker in self.workers), ours]
            process = context.Process(target=_work, args=(translator, theirs, inherited), daemon=True)
            process.start()
            theirs.close()  # so that the end of the worker is the end of the pipe
            self.workers.append(Worker(process, ours))

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        for worker in self.workers:
            worker.pipe.close()
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join()

    def translate(
        self, texts: Sequence[str], *, prefix: Sequence[str] | str | None = None, **how: Any
    ) -> list[Translation]:
        """As Translator.translate. A pool that fails is closed."""
        try:
            return self._translate(texts, prefix, how)
        except BaseException:
            self.close()
            raise

    def _translate(
        self, texts: Sequence[str], prefix: Sequence[str] | str | None, how: dict[str, Any]
    ) -> list[Translation]:
        answers: list[Translation | None] = [None] * len(texts)
        waiting = share_out([len(text) for text in texts], len(self.workers))[::-1]
        idle = list(self.workers)
        while True:
            while idle and waiting:
                worker = idle.pop()
                worker.places = waiting.pop()
                own = prefix if prefix is None or isinstance(prefix, str) else [prefix[i] for i in worker.places]
                _send(worker, {"texts": [texts[i] for i in worker.places], "how": {**how, "prefix": own}})
            busy = {worker.pipe: worker for worker in self.workers if worker not in idle}
            if not busy:
                return [answer for answer in answers if answer is not None]
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                for place, answer in zip(worker.places, _receive(worker, len(texts)), strict=True):
                    answers[place] = answer
                idle.append(worker)


def share_out(lengths: Sequence[int], workers: int) -> list[list[int]]:
    """Places of lines in pieces of about the same work: each has lines of every length, the longest first."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    rounds = math.ceil(len(order) / (workers * LARGEST))
    count = max(1, min(rounds * workers, len(order) // SMALLEST))
    return [order[first::count] for first in range(count)] if order else []


def _send(worker: Worker, request: dict[str, Any]) -> None:
    try:
        worker.pipe.send_bytes(json.dumps(request).encode())
    except OSError:
        pass  # it has ended; receiving says so


def _receive(worker: Worker, lines: int) -> Iterable[Translation]:
    try:
        reply = json.loads(worker.pipe.recv_bytes())
    except (EOFError, OSError):
        worker.process.join()
        raise WorkerError(_obituary(worker, lines)) from None
    if "message" in reply:
        raise getattr(errors, reply["kind"])(reply["message"])
    if "traceback" in reply:
        raise RuntimeError(f"a worker process failed:\n{reply['traceback']}")
    return map(_translation, reply["translations"])


def _obituary(worker: Worker, lines: int) -> str:
    code = worker.process.exitcode or 0
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    return (
        f"a worker process {how} while translating {len(worker.places):,} of {lines:,} lines. The system ends processes when "
        "memory is short; use fewer at a time, such as --threads 1"
    )


def _translation(found: dict[str, Any]) -> Translation:
    """A translation as it was before it became JSON."""
    found["alternatives"] = tuple(Alternative(**other) for other in found["alternatives"])
    if found["alignment"] is not None:
        found["alignment"] = tuple((source, target) for source, target in found["alignment"])
    found["details"] = tuple(Detail(**detail) for detail in found["details"])
    for name in ("warnings", "source_pieces", "target_pieces"):
        found[name] = tuple(found[name])
    return Translation(**found)


def _work(translator: Translator, pipe: Connection, inherited: Sequence[Connection]) -> None:
    """What a worker does: answer until nobody asks."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that was started answers it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()  # or a pipe would stay open when its owner has ended
    while True:
        try:
            request = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        pipe.send_bytes(json.dumps(_answer(translator, request)).encode())


def _answer(translator: Translator, request: dict[str, Any]) -> dict[str, Any]:
    try:
        found = translator.translate(request["texts"], **request["how"])
    except KenteError as error:
        return {"kind": type(error).__name__, "message": str(error)}
    except Exception:
        return {"traceback": traceback.format_exc()}
    return {"translations": [dataclasses.asdict(translation) for translation in found]}
