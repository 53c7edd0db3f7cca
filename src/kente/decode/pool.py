"""One process for each core: many questions answered side by side, each process computing with one thread.

Two processes of one thread get more done than one process of two: a decoder's step is many small operations, too small to be shared out.
They are forked from the process that has loaded the model, when there is something to do. They begin at once and have no copy of the
weights and the questions, only a view. A fork takes over one thread alone, so threads that torch has made for its operations are missing in it;
a worker computes with one, and never looks for them. Answers come back through pipes as JSON.
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch

from kente import errors
from kente.decode.answers import Hypothesis
from kente.decode.engine import Question
from kente.errors import KenteError, WorkerError

WORTH = 64
"""Questions for each worker from which on it pays to have several."""

END_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of linux/prctl.h: a worker whose parent was killed has nobody to answer."""

Search = Callable[[Sequence[Question]], list[list[Hypothesis]]]


def workers_for(questions: int) -> int:
    """Processes that so many questions are worth on this processor; 1, this one, where it may not be forked."""
    if sys.platform != "linux" or threading.active_count() > 1 or multiprocessing.current_process().daemon:
        return 1  # a fork while another thread holds a lock would wait for that lock for ever
    return max(1, min(torch.get_num_threads(), questions // WORTH))


def side_by_side(search: Search, questions: Sequence[Question], workers: int) -> list[list[Hypothesis]]:
    """What search(questions) gives, by as many processes. If one fails, or this one is interrupted, all are ended."""
    shares = share_out([len(question.source) for question in questions], workers)
    started = [Worker(search, questions, places) for places in shares]
    try:
        answers: list[list[Hypothesis]] = [[] for _ in questions]
        for worker in started:
            for place, found in zip(worker.places, worker.answers(len(questions)), strict=True):
                answers[place] = found
        return answers
    finally:
        for worker in started:
            worker.end()


def share_out(lengths: Sequence[int], workers: int) -> list[list[int]]:
    """Places of questions in shares of about the same work: each has some of every length, the longest first."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    return [order[first::workers] for first in range(min(workers, len(order)))]


class Worker:
    """A process at work on the questions in these places, and our end of the pipe from it."""

    def __init__(self, search: Search, questions: Sequence[Question], places: list[int]) -> None:
        context = multiprocessing.get_context("fork")
        self.places = places
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(search, [questions[p] for p in places], theirs), daemon=True)
        self.process.start()
        theirs.close()  # so that the end of the worker is the end of the pipe

    def answers(self, questions: int) -> list[list[Hypothesis]]:
        """Waited for. What the worker could not do raises here what it raised there."""
        try:
            reply = json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            self.process.join()
            raise WorkerError(self._obituary(questions)) from None
        if "message" in reply:
            raise getattr(errors, reply["kind"])(reply["message"])
        if "traceback" in reply:
            raise RuntimeError(f"a worker process failed:\n{reply['traceback']}")
        return [[_hypothesis(fields) for fields in found] for found in reply["answers"]]

    def _obituary(self, questions: int) -> str:
        code = self.process.exitcode or 0
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return (
            f"a worker process {how} while translating {len(self.places):,} of {questions:,} sentences. The system ends processes when "
            "memory is short; use fewer at a time, such as --threads 1"
        )

    def end(self) -> None:
        """Whatever it is doing."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _hypothesis(fields: dict[str, Any]) -> Hypothesis:
    """An answer as it was before it became JSON."""
    return Hypothesis(**{**fields, "warnings": tuple(fields["warnings"])})


def _work(search: Search, questions: Sequence[Question], pipe: Connection) -> None:
    """What a worker does."""
    ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that was started answers it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pipe.send_bytes(json.dumps(_reply(search, questions)).encode())


def _reply(search: Search, questions: Sequence[Question]) -> dict[str, Any]:
    try:
        found = search(questions)
    except KenteError as error:
        return {"kind": type(error).__name__, "message": str(error)}
    except Exception:
        return {"traceback": traceback.format_exc()}
    return {"answers": [[vars(answer) for answer in some] for some in found]}
