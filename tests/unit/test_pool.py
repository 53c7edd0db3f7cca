"""Workers answer what one process would have answered, in order; when one dies, that is said; nothing is left behind."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kente.config import DecodeConfig, TransformerConfig
from kente.decode import pool
from kente.decode.engine import Question
from kente.decode.pool import share_out, side_by_side, workers_for
from kente.decode.torch_engine import TorchEngine
from kente.errors import UsageError, WorkerError
from kente.models.interface import Step
from kente.models.transformer import Transformer, TransformerState

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forked"),
    pytest.mark.timeout(120),  # a worker that waits for a thread it does not have would wait for ever
]

WORDS = 8
DEADLY = 4 + WORDS - 1
TINY = TransformerConfig(encoder_layers=1, decoder_layers=1, width=16, feedforward=32, heads=2, dropout=0.0)


class Mortal(Transformer):
    """Dies when it reads a certain word, loudly or silently."""

    def start(self, source: Tensor, source_mask: Tensor) -> TransformerState:
        if (source == self.deadly).any():
            self.die()
        return super().start(source, source_mask)

    def step(self, state: TransformerState, tokens: Tensor, output: object = None) -> Step:
        time.sleep(self.seconds)
        return super().step(state, tokens, output)  # type: ignore[arg-type]

    deadly, seconds = -1, 0.0

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def engine(model: type[Transformer] = Transformer) -> TorchEngine:
    torch.manual_seed(1)
    return TorchEngine(model(TINY, 4 + WORDS, 4 + WORDS).eval())


def questions(count: int) -> list[Question]:
    generator = torch.Generator().manual_seed(count)
    lengths = torch.randint(1, 9, (count,), generator=generator).tolist()
    return [
        Question(torch.randint(4, 4 + WORDS, (n,), generator=generator).tolist(), n + 5, [4 + n][: n % 2])
        for n in lengths
    ]


def search(ours: TorchEngine, n_best: int = 1, **settings: object):
    return functools.partial(ours._search, config=DecodeConfig(**settings), n_best=n_best)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "n_best"), [({"beam": 1}, 1), ({"beam": 3}, 2), ({"sample": True, "temperature": 2.0}, 1)]
)
def test_workers_answer_what_one_process_answers(settings: dict[str, object], n_best: int) -> None:
    one = search(engine(), n_best, **settings)
    for count, workers in ((300, 2), (7, 3), (2, 5), (0, 2)):
        asked = questions(count)
        alone, shared = one(asked), side_by_side(one, asked, workers)
        for first, second in zip(alone, shared, strict=True):
            assert [(a.ids, a.finished, a.warnings) for a in first] == [(a.ids, a.finished, a.warnings) for a in second]
            assert [a.score for a in first] == pytest.approx([a.score for a in second], abs=1e-4)
    assert not multiprocessing.active_children()


def test_threads_that_were_at_work_before_the_fork_are_not_waited_for() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        big = torch.randn(600, 600)
        for _ in range(5):
            big = (big @ big).tanh()  # shared out among threads, which a fork does not take along
        one, asked = search(engine(), beam=2), questions(200)
        assert [a[0].ids for a in side_by_side(one, asked, 2)] == [a[0].ids for a in one(asked)]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_few_questions_or_other_threads_are_not_worth_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert [workers_for(count) for count in (0, 1, 127, 128, 10_000)] == [1, 1, 1, 2, 2]
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert workers_for(10_000) == 1


def test_an_engine_shares_out_what_is_worth_it_unless_there_is_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, shared = questions(130), []
    monkeypatch.setattr("kente.decode.torch_engine.workers_for", lambda count: 2 if count >= 128 else 1)
    monkeypatch.setattr(
        "kente.decode.torch_engine.side_by_side", lambda one, some, workers: shared.append(workers) or one(some)
    )
    ours, config = engine(), DecodeConfig(beam=1)
    ours.search(asked[:120], config)
    ours.search(asked, config, deadline=lambda: False)
    assert shared == []
    ours.search(asked, config)
    assert shared == [2]


def test_a_mistake_is_the_same_mistake_in_a_worker() -> None:
    def refuse(_: object) -> None:
        raise UsageError("n_best (0) must be at least 1")

    with pytest.raises(UsageError, match=r"n_best \(0\) must be at least 1"):
        side_by_side(refuse, questions(20), 2)  # type: ignore[arg-type]


def test_a_bug_in_a_worker_is_told_with_its_place() -> None:
    ours = engine(Mortal)
    ours.model.deadly = DEADLY  # type: ignore[attr-defined]
    ours.model.die = lambda: 1 / 0  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match=r"(?s)a worker process failed:.*ZeroDivisionError"):
        side_by_side(search(ours, beam=1), questions(200), 2)


def test_a_worker_that_dies_is_reported_and_the_others_end() -> None:
    ours = engine(Mortal)
    ours.model.deadly = DEADLY  # type: ignore[attr-defined]
    with pytest.raises(WorkerError, match=r"was ended by SIGKILL while translating 100 of 200 sentences.*--threads 1"):
        side_by_side(search(ours, beam=1), questions(200), 2)
    assert not multiprocessing.active_children()


INTERRUPTED = """
import sys
sys.path.insert(0, {folder!r})
from test_pool import Mortal, engine, questions, search, side_by_side
ours = engine(Mortal)
ours.model.seconds = 5
print("begun", flush=True)
side_by_side(search(ours, beam=1), questions(200), 2)
"""


def children(process: int) -> list[int]:
    return [int(number) for number in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(ending: signal.Signals) -> None:
    """Ctrl-C goes to all of them at once; kill -9 to one alone."""
    started = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(folder=str(Path(__file__).parent))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),  # a shell's background jobs ignore it
        env={**os.environ, "PYTHONPATH": str(Path(pool.__file__).parents[2])},
    )
    assert started.stdout is not None and started.stdout.readline() == "begun\n"
    for _ in range(100):
        workers = children(started.pid)
        if len(workers) == 2:
            break
        time.sleep(0.05)
    assert len(workers) == 2 and all(map(alive, workers))
    time.sleep(0.2)
    if ending == signal.SIGINT:
        os.killpg(started.pid, ending)
    else:
        started.kill()
    _, said = started.communicate(timeout=60)
    for _ in range(100):
        if not any(map(alive, workers)):
            break
        time.sleep(0.05)
    assert not any(map(alive, workers))
    if ending == signal.SIGINT:
        assert said.count("Traceback") == 1 and "KeyboardInterrupt" in said  # of the one process that was started


def test_work_is_shared_out_evenly_by_length() -> None:
    lengths = [(7 * number) % 101 for number in range(5000)]
    shares = share_out(lengths, 3)
    assert sorted(place for share in shares for place in share) == list(range(5000))
    assert all([lengths[i] for i in share] == sorted((lengths[i] for i in share), reverse=True) for share in shares)
    work = [sum(lengths[place] for place in share) for share in shares]
    assert max(work) <= 1.01 * sum(work) / 3
    assert share_out([5, 9], 2) == [[1], [0]] and share_out([], 2) == []
