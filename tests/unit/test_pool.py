"""Workers answer what one process would have answered, in order; when one dies, that is said; nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from kente.config import DecodeConfig, TransformerConfig
from kente.data.tokenizer import Symbols, Tokenizers
from kente.decode import pool
from kente.decode.pool import Pool, share_out, translate_many
from kente.decode.torch_engine import TorchEngine
from kente.decode.translator import Translator
from kente.errors import UsageError, WorkerError
from kente.models.interface import Step
from kente.models.transformer import Transformer, TransformerState

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forked"),
    pytest.mark.timeout(120),  # a worker that waits for a thread it does not have would wait for ever
]

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
TINY = TransformerConfig(encoder_layers=1, decoder_layers=1, width=16, feedforward=32, heads=2, dropout=0.0)


class Mortal(Transformer):
    """Dies when it reads "eight", loudly or silently."""

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


def translator(model: type[Transformer] = Transformer, **settings: object) -> Translator:
    side = Symbols("words", WORDS, "nfc")
    torch.manual_seed(1)
    engine = TorchEngine(model(TINY, side.size, side.size).eval())
    return Translator(engine, Tokenizers(side, side, joint=True), DecodeConfig(**settings))


def lines(count: int) -> list[str]:
    generator = torch.Generator().manual_seed(count)
    drawn = [
        torch.randint(0, 8, (int(length),), generator=generator)
        for length in torch.randint(0, 9, (count,), generator=generator)
    ]
    return [" ".join(WORDS[word] for word in line) for line in drawn]


@pytest.mark.parametrize(
    ("settings", "how"),
    [
        ({"beam": 1}, {}),
        ({"beam": 3}, {"n_best": 2, "align": True, "prefix": "two"}),
        ({"sample": True, "temperature": 2.0}, {"split": False}),
    ],
)
def test_workers_answer_what_one_process_answers(settings: dict[str, object], how: dict[str, object]) -> None:
    ours, texts = translator(**settings), lines(300)
    alone, shared = ours.translate(texts, **how), translate_many(ours, texts, 2, **how)  # type: ignore[arg-type]
    assert [answer.source for answer in shared] == texts
    for one, other in zip(alone, shared, strict=True):
        assert (one.text, one.warnings, one.alignment) == (other.text, other.warnings, other.alignment)
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert [a.text for a in one.alternatives] == [a.text for a in other.alternatives]


def test_each_line_keeps_its_own_prefix() -> None:
    ours, texts = translator(beam=1), lines(200)
    prefixes = [WORDS[number % 8] for number in range(200)]
    shared = translate_many(ours, texts, 2, prefix=prefixes)
    assert [a.text for a in shared] == [a.text for a in ours.translate(texts, prefix=prefixes)]
    for text, begin, answer in zip(texts, prefixes, shared, strict=True):
        assert answer.text.startswith(begin) or not text


def test_a_pool_serves_many_times() -> None:
    ours = translator(beam=1)
    with Pool(ours, 3) as workers:
        for count in (1, 40, 0, 150):
            assert [a.text for a in workers.translate(lines(count))] == [a.text for a in ours.translate(lines(count))]
        processes = [worker.process for worker in workers.workers]
        assert all(process.is_alive() for process in processes)
    assert not any(process.is_alive() for process in processes)


def test_threads_that_were_at_work_before_the_fork_are_not_waited_for() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        big = torch.randn(600, 600)
        for _ in range(5):
            big = (big @ big).tanh()  # shared out among threads, which a fork does not take along
        ours = translator(beam=2)
        assert [a.text for a in translate_many(ours, lines(200), 2)] == [a.text for a in ours.translate(lines(200))]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_few_lines_are_not_worth_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "Pool", None)
    ours = translator(beam=1)
    assert translate_many(ours, lines(100), 2) == ours.translate(lines(100))
    assert translate_many(ours, lines(200), 1) == ours.translate(lines(200))
    assert translate_many(ours, [], 2) == []


def test_a_mistake_is_the_same_mistake_in_a_worker() -> None:
    ours = translator(beam=1)
    with Pool(ours, 2) as workers, pytest.raises(UsageError, match=r"n_best \(0\) must be at least 1"):
        workers.translate(lines(200), n_best=0)


def test_a_bug_in_a_worker_is_told_with_its_place() -> None:
    ours = translator(Mortal)
    ours.model.deadly = WORDS.index("eight") + 4
    ours.model.die = lambda: 1 / 0  # type: ignore[assignment]
    with (
        Pool(ours, 2) as workers,
        pytest.raises(RuntimeError, match=r"(?s)a worker process failed:.*ZeroDivisionError"),
    ):
        workers.translate(lines(200))


def test_a_worker_that_dies_is_reported_and_the_others_end() -> None:
    ours = translator(Mortal)
    ours.model.deadly = WORDS.index("eight") + 4
    with Pool(ours, 2) as workers:
        with pytest.raises(
            WorkerError, match=r"was ended by SIGKILL while translating [\d,]+ of 200 lines.*--threads 1"
        ):
            workers.translate(lines(200))
        assert not any(worker.process.is_alive() for worker in workers.workers)


INTERRUPTED = """
import os, sys
sys.path.insert(0, {folder!r})
from test_pool import Mortal, Pool, lines, translator
ours = translator(Mortal, beam=1)
ours.model.seconds = 0.5
with Pool(ours, 2) as workers:
    print(*(worker.process.pid for worker in workers.workers), flush=True)
    {what}
"""


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(ending: signal.Signals) -> None:
    """Ctrl-C goes to all of them at once; kill -9 to one alone, and the others find their pipes closed when they next look."""
    what = "while True: workers.translate(lines(200))" if ending == signal.SIGINT else "import time; time.sleep(60)"
    script = INTERRUPTED.format(folder=str(Path(__file__).parent), what=what)
    started = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),  # a shell's background jobs ignore it
        env={**os.environ, "PYTHONPATH": str(Path(pool.__file__).parents[2])},
    )
    assert started.stdout is not None
    workers = [int(number) for number in started.stdout.readline().split()]
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
        time.sleep(0.1)
    assert not any(map(alive, workers))
    if ending == signal.SIGINT:
        assert said.count("Traceback") == 1 and "KeyboardInterrupt" in said  # of the one process that was started


def test_work_is_shared_out_evenly_by_length() -> None:
    lengths = [(7 * number) % 101 for number in range(5000)]
    pieces = share_out(lengths, 2)
    assert sorted(place for piece in pieces for place in piece) == list(range(5000))
    assert all([lengths[i] for i in piece] == sorted((lengths[i] for i in piece), reverse=True) for piece in pieces)
    work = [sum(lengths[place] for place in piece) for piece in pieces]
    assert max(work) <= 1.01 * sum(work) / 6 and len(pieces) == 6
    assert len(share_out(lengths[:1000], 2)) == 2  # full batches for both
    assert share_out([5, 9], 2) == [[1, 0]] and share_out([], 2) == []
