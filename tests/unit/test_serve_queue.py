"""Work that waits: bounded, shared out fairly, handed over in order, and taken back when nobody wants it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.serve.queue import Kind, Queue, Ticket
from kente.serve.refusals import Refusal
from kente.serve.worker import NICE, Worker

EN_FR, EN_DE = Kind("en", "fr"), Kind("en", "de")


def queue(width: int = 10, seconds: float = 2.0) -> Queue:
    return Queue(lambda kind: width, seconds)


def ticket(name: str, *tokens: int, kind: Kind = EN_FR) -> Ticket:
    return Ticket(kind, [f"{name}{number}" for number in range(len(tokens))], tokens)


def taken(waiting: Queue) -> list[str]:
    batch = waiting.take()
    assert batch is not None
    return batch.texts


# ---------------------------------------------------------------- batches


def test_a_batch_holds_as_many_tokens_as_it_may() -> None:
    waiting = queue(width=10)
    for name in "abc":
        waiting.offer(ticket(name, 4))
    assert taken(waiting) == ["a0", "b0"]
    assert taken(waiting) == ["c0"]


def test_a_sentence_wider_than_a_batch_goes_alone() -> None:
    waiting = queue(width=10)
    waiting.offer(ticket("a", 50, 3))
    assert taken(waiting) == ["a0"]
    assert taken(waiting) == ["a1"]


def test_requests_take_turns_so_that_a_long_one_does_not_hold_up_a_short_one() -> None:
    waiting = queue(width=20)
    waiting.offer(ticket("long", *[5] * 6), again=True)
    waiting.offer(ticket("short", 5), again=True)
    assert "short0" in taken(waiting)


def test_kinds_of_work_do_not_mix_and_take_turns() -> None:
    waiting = queue(width=4)
    for number in range(2):
        waiting.offer(ticket(f"french{number}", 4), again=True)
        waiting.offer(ticket(f"german{number}", 4, kind=EN_DE), again=True)
    batches = [taken(waiting) for _ in range(4)]
    assert [batch[0][:6] for batch in batches] == ["french", "german"] * 2
    assert waiting.tokens == waiting.tickets == 0


@given(
    st.lists(
        st.tuples(st.sampled_from([EN_FR, EN_DE]), st.lists(st.integers(1, 30), min_size=1, max_size=8)), max_size=12
    ),
    st.integers(1, 40),
    st.data(),
)
def test_everything_comes_out_once_and_nothing_that_was_forgotten(
    offered: list[tuple[Kind, list[int]]], width: int, data: st.DataObject
) -> None:
    waiting = queue(width)
    tickets = [ticket(f"{number}.", *tokens, kind=kind) for number, (kind, tokens) in enumerate(offered)]
    for one in tickets:
        waiting.offer(one, again=True)
    forgotten = [one for one in tickets if data.draw(st.booleans())]
    for one in forgotten:
        waiting.forget(one)
    waiting.close()
    out: list[str] = []
    while (batch := waiting.take()) is not None:
        assert len(batch.places) == 1 or batch.tokens <= width
        assert {one.kind for one, _ in batch.places} == {batch.kind}
        out += batch.texts
    assert sorted(out) == sorted(text for one in tickets if one not in forgotten for text in one.texts)
    assert waiting.tokens == waiting.tickets == 0


# ---------------------------------------------------------------- bounds


def test_what_does_not_fit_is_refused_with_a_time_to_come_back() -> None:
    waiting = queue(width=10)
    waiting.offer(ticket("a", 10, 10))
    with pytest.raises(Refusal) as refused:
        waiting.offer(ticket("b", 1))
    assert refused.value.status == 503 and int(refused.value.headers["Retry-After"]) >= 1
    assert waiting.tokens == 20 and waiting.tickets == 1
    assert waiting.full


def test_an_empty_queue_takes_whatever_it_is_given() -> None:
    waiting = queue(width=10)
    waiting.offer(ticket("a", *[10] * 50))
    assert waiting.tokens == 500


def test_a_request_that_is_half_done_is_never_refused_and_goes_first() -> None:
    waiting = queue(width=10)
    waiting.offer(ticket("a", 10, 10))
    waiting.offer(ticket("again", 10), again=True)
    assert taken(waiting) == ["again0"]


def test_the_room_is_what_is_done_in_so_many_seconds_at_the_pace_of_late() -> None:
    waiting = queue(width=10, seconds=3.0)
    waiting.offer(ticket("a", 10))
    batch = waiting.take()
    assert batch is not None
    waiting.finished(batch, seconds=0.1)  # 100 tokens a second
    waiting.offer(ticket("b", *[10] * 29))
    assert waiting.room == pytest.approx(300) and not waiting.full
    assert waiting.wait == pytest.approx(2.9)
    waiting.offer(ticket("c", 10))
    with pytest.raises(Refusal):
        waiting.offer(ticket("d", 10))


def test_small_batches_do_not_change_what_full_ones_said_about_the_pace() -> None:
    waiting = queue(width=10)
    for tokens, seconds in ((10, 0.1), (1, 1.0)):
        waiting.offer(ticket("a", tokens))
        batch = waiting.take()
        assert batch is not None
        waiting.finished(batch, seconds)
    assert waiting.pace == pytest.approx(100)


def test_who_was_let_in_has_room_kept_until_he_is_here() -> None:
    waiting = queue(width=10)  # room for 20
    waiting.offer(ticket("a", 8))
    assert not waiting.full
    coming = [waiting.place(), waiting.place()]  # each of 8 tokens, going by the one that came
    assert waiting.full
    for _ in range(2):
        coming[0].leave()  # a second time changes nothing
    assert not waiting.full
    coming[1].leave()
    waiting.offer(ticket("b", 8))
    assert not waiting.full


def test_nobody_is_refused_by_a_queue_that_knows_nothing_yet() -> None:
    waiting = queue(width=10)
    for _ in range(100):
        waiting.place()
    assert not waiting.full


def test_a_closed_queue_takes_nothing_new_and_hands_out_what_it_has() -> None:
    waiting = queue()
    waiting.offer(ticket("a", 3))
    waiting.close()
    with pytest.raises(Refusal, match="about to stop"):
        waiting.offer(ticket("b", 3))
    assert taken(waiting) == ["a0"]
    assert waiting.take() is None


# ---------------------------------------------------------------- the worker


def shout(kind: Kind, texts: Sequence[str], late: Callable[[], bool]) -> list[str]:
    return [text.upper() for text in texts]


def answered(offered: Sequence[Ticket], translate: Any = shout, width: int = 10) -> list[Any]:
    """Answers to tickets, or the error of each, as a loop gets them from a worker in its thread."""

    async def all_of_them() -> list[Any]:
        loop, waiting = asyncio.get_running_loop(), queue(width)
        for one in offered:
            waiting.offer(one, again=True)
        waiting.close()
        worker = Worker(waiting, translate, lambda done: loop.call_soon_threadsafe(lambda: [t.wake() for t in done]))
        worker.start()
        found = await asyncio.gather(*(one.all() for one in offered), return_exceptions=True)
        await asyncio.to_thread(worker.join)
        return list(found)

    return asyncio.run(all_of_them())


def test_answers_come_back_to_those_who_asked_in_their_order() -> None:
    found = answered([ticket("a", 3, 3, 3), ticket("b", 3), ticket("c", 9, 9)], width=7)
    assert found == [["A0", "A1", "A2"], ["B0"], ["C0", "C1"]]


def test_a_request_that_breaks_the_engine_does_not_spoil_its_neighbours() -> None:
    def translate(kind: Kind, texts: Sequence[str], late: Callable[[], bool]) -> list[str]:
        if "bad0" in texts:
            raise ZeroDivisionError
        return shout(kind, texts, late)

    found = answered([ticket("a", 2), ticket("bad", 2), ticket("c", 2, 2)], translate)
    assert found[0] == ["A0"] and isinstance(found[1], ZeroDivisionError) and found[2] == ["C0", "C1"]


def test_work_is_late_when_everyone_who_asked_for_it_has_left() -> None:
    seen: list[bool] = []
    one, other = ticket("a", 2), ticket("b", 2)

    def translate(kind: Kind, texts: Sequence[str], late: Callable[[], bool]) -> list[str]:
        for leaving in (one, other):
            seen.append(late())
            leaving.gone = True
        seen.append(late())
        return shout(kind, texts, late)

    answered([one, other], translate)
    assert seen == [False, False, True]


def test_a_worker_that_cannot_begin_says_so_and_takes_nothing() -> None:
    problems: list[BaseException] = []

    def prepare() -> None:
        raise ValueError("no model")

    waiting = queue()
    waiting.offer(ticket("a", 2))
    worker = Worker(waiting, shout, lambda done: None, prepare=prepare, failed=problems.append)
    worker.start()
    worker.join()
    assert [str(problem) for problem in problems] == ["no model"] and waiting.tickets == 1


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux only")
def test_engines_and_the_threads_they_start_stand_back_for_those_who_ask() -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    def prepare() -> None:
        look()
        helper = threading.Thread(target=look)
        helper.start()
        helper.join()

    look()
    waiting = queue()
    waiting.close()
    worker = Worker(waiting, shout, lambda done: None, prepare=prepare)
    worker.start()
    worker.join()
    look()
    mine = seen[0]
    assert seen == [mine, min(mine + NICE, 19), min(mine + NICE, 19), mine]


def test_many_threads_may_offer_while_one_takes() -> None:
    waiting, out = queue(width=5), list[str]()

    def offer(name: str) -> None:
        for number in range(50):
            waiting.offer(ticket(f"{name}.{number}.", 2), again=True)

    def take() -> None:
        while (batch := waiting.take()) is not None:
            out.extend(batch.texts)

    taker = threading.Thread(target=take)
    offerers = [threading.Thread(target=offer, args=(name,)) for name in "abcd"]
    for thread in (taker, *offerers):
        thread.start()
    for thread in offerers:
        thread.join()
    waiting.close()
    taker.join()
    assert len(out) == len(set(out)) == 200
