"""What people see while work goes on, and how lines are taken from standard input."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.cli.terminal import Terminal, columns, duration, ready_lines
from kente.errors import CorpusError


class Screen(io.StringIO):
    """A stream that says it is a terminal, and knows what would stand on it."""

    encoding = "utf-8"

    def __init__(self, tty: bool = True) -> None:
        super().__init__()
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty

    def rows(self) -> list[str]:
        """The text as a terminal shows it: \\r returns, ESC[K clears to the end of the line, colours are dropped."""
        rows, column = [""], 0
        for part in re.findall(r"\x1b\[\d*[mK]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if part == "\n":
                rows.append("")
                column = 0
            elif part == "\r":
                column = 0
            elif part == "\x1b[K":
                rows[-1] = rows[-1][:column]
            elif not part.startswith("\x1b"):
                rows[-1] = rows[-1][:column] + part + rows[-1][column + len(part) :]
                column += len(part)
        return rows


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")


def test_progress_is_one_line_with_percent_time_left_and_detail(clock: Clock) -> None:
    screen = Screen()
    terminal = Terminal(screen, clock=clock)
    for done in range(0, 51, 10):
        clock.now = done * 2.0
        terminal.progress("training", done, 100, "loss 2.31")
    (row,) = screen.rows()
    assert re.fullmatch(r"training  ━{15}─{15}   50 %  1:40 left  loss 2\.31", row)


def test_warnings_go_above_the_bar_and_leave_no_garbage(clock: Clock) -> None:
    screen = Screen()
    terminal = Terminal(screen, clock=clock)
    terminal.progress("training", 1, 4, "loss 9.99, a rather long detail")
    terminal.warn("the disk is nearly full")
    terminal.say("validation: BLEU 12.0")
    assert screen.rows()[:2] == ["warning: the disk is nearly full", "validation: BLEU 12.0"]
    assert screen.rows()[2].startswith("training  ━")
    terminal.finish()
    terminal.say("done")
    assert screen.rows() == ["warning: the disk is nearly full", "validation: BLEU 12.0", "done", ""]


def test_the_bar_is_drawn_at_most_ten_times_a_second(clock: Clock) -> None:
    screen = Screen()
    terminal = Terminal(screen, clock=clock)
    for step in range(1000):
        clock.now = step / 1000
        terminal.progress("reading", step, 1000)
    assert 9 <= screen.getvalue().count("\r") <= 11


def test_a_new_label_begins_a_new_bar_and_resumed_work_is_timed_from_where_it_began(clock: Clock) -> None:
    screen = Screen()
    terminal = Terminal(screen, clock=clock)
    terminal.progress("cleaning", 10, 10)
    terminal.progress("training", 50, 100)
    clock.now = 10.0
    terminal.progress("training", 60, 100)
    assert "40 s left" in screen.rows()[-1] and "cleaning" not in screen.rows()[-1]


def test_another_stage_in_between_does_not_disturb_the_time_left(clock: Clock) -> None:
    screen = Screen()
    terminal = Terminal(screen, clock=clock)
    terminal.progress("training", 0, 100)
    clock.now = 50.0
    terminal.progress("training", 50, 100)
    terminal.progress("validating", 1, 10)
    terminal.finish()
    clock.now = 60.0
    terminal.progress("training", 60, 100)
    assert screen.rows()[-1].endswith("60 %  40 s left")
    terminal.progress("validating", 0, 10)  # less than before: begun again
    clock.now = 61.0
    terminal.progress("validating", 5, 10)
    assert screen.rows()[-1].endswith("50 %  1 s left")


@given(st.text(max_size=50), st.floats(0, 1e9), st.floats(0.1, 1e9), st.text(max_size=50), st.integers(1, 90))
def test_no_line_is_wider_than_the_terminal(label: str, done: float, total: float, detail: str, width: int) -> None:
    screen = Screen()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        Terminal(screen, colour=False).progress(label, done, total, detail)
    (row,) = screen.rows()
    assert columns(row) < max(width, 2)


def test_work_without_an_end_shows_a_count(clock: Clock) -> None:
    screen = Screen()
    Terminal(screen, clock=clock).progress("reading", 12345, None, "pairs")
    assert screen.rows() == ["reading  12,345  pairs"]


def test_a_log_gets_a_plain_line_now_and_then(clock: Clock) -> None:
    screen = Screen(tty=False)
    terminal = Terminal(screen, clock=clock)
    for second in range(101):
        clock.now = float(second)
        terminal.progress("training", second, 1000, "loss 2.31")
    assert screen.getvalue().splitlines()[0] == "training: 1 %, 16:30 left, loss 2.31"
    assert len(screen.getvalue().splitlines()) == 10
    assert "\r" not in screen.getvalue() and "\x1b" not in screen.getvalue()


def test_quick_work_says_nothing_in_a_log(clock: Clock) -> None:
    screen = Screen(tty=False)
    terminal = Terminal(screen, clock=clock)
    for done in range(101):
        clock.now = done / 200
        terminal.progress("reading", done, 100)
    terminal.finish()
    assert screen.getvalue() == ""


def test_quiet_only_warns() -> None:
    screen = Screen()
    terminal = Terminal(screen, quiet=True)
    terminal.say("a choice")
    terminal.progress("training", 1, 2)
    terminal.warn("something")
    terminal.finish()
    assert screen.rows() == ["warning: something", ""]


@pytest.mark.parametrize(
    ("tty", "colour", "no_color", "painted"),
    [(True, True, "", True), (True, False, "", False), (True, True, "1", False), (False, True, "", False)],
)
def test_colour_only_where_it_is_wanted_and_can_be_seen(
    tty: bool, colour: bool, no_color: str, painted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    screen = Screen(tty)
    Terminal(screen, colour=colour).warn("look")
    assert ("\x1b[33m" in screen.getvalue()) is painted


def test_text_from_corpora_cannot_steer_the_terminal() -> None:
    screen = Screen()
    Terminal(screen, colour=False).say("a\x1b[2Jb\x07\rc\td")
    assert screen.getvalue() == "a\ufffd[2Jb\ufffd\ufffdc d\n"


def test_a_terminal_without_unicode_gets_plain_letters(clock: Clock) -> None:
    screen = Screen()
    screen.encoding = "ascii"
    terminal = Terminal(screen, clock=clock, colour=False)
    terminal.progress("training", 1, 2)
    terminal.say("là")
    assert "#####-----" in screen.getvalue() and "l\\xe0" in screen.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (59.4, "59 s"), (60, "1:00"), (605, "10:05"), (3725, "1:02:05")]
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# ---------------------------------------------------------------- standard input


@given(st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", exclude_categories=["Cs"]))), st.integers(1, 5))
def test_lines_come_back_as_they_went_in(lines: list[str], most: int) -> None:
    stream = io.BytesIO("".join(line + "\n" for line in lines).encode())
    batches = list(ready_lines(stream, most=most))
    assert [line for batch in batches for line in batch] == lines
    assert all(1 <= len(batch) <= most for batch in batches)


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("a\u2028b\u0085c\x0b\x0cd\n\n\n".encode(), ["a\u2028b\u0085c\x0b\x0cd", "", ""]),
    ],
)
def test_only_newline_ends_a_line(raw: bytes, lines: list[str]) -> None:
    assert [line for batch in ready_lines(io.BytesIO(raw)) for line in batch] == lines


def test_bytes_that_are_not_utf8_are_named_by_line() -> None:
    with pytest.raises(CorpusError, match=r"standard input, line 2: byte 4 \(0xe9\) is not UTF-8"):
        list(ready_lines(io.BytesIO(b"good\ncaf\xe9\n")))


def test_a_slow_writer_is_answered_line_by_line_and_what_has_come_is_taken_together() -> None:
    reading, writing = os.pipe()
    answered = threading.Event()

    def write() -> None:
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            pipe.write(b"one\n")
            assert answered.wait(10)  # the second line is only sent once the first was handed out
            pipe.write(b"two\nthree\nfo")
            pipe.write(b"ur")

    writer = threading.Thread(target=write)
    writer.start()
    with os.fdopen(reading, "rb") as pipe:
        batches: Iterator[list[str]] = ready_lines(pipe)
        assert next(batches) == ["one"]
        answered.set()
        assert [line for batch in batches for line in batch] == ["two", "three", "four"]
    writer.join()
