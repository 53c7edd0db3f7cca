"""How the command line speaks and listens: a Reporter that draws on standard error, and lines from standard input as they come.

On a terminal progress is one line, redrawn in place; anywhere else (a log, a pipe) it is a plain line now and then.
"""

from __future__ import annotations

import os
import select
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TextIO

from kente.errors import CorpusError
from kente.reporting import Reporter

REDRAW = 0.1
"""Seconds between two drawings of the bar."""
LOG = 10.0
"""Seconds between two progress lines where there is no terminal."""

GOLD, RED, DIM = "33", "31", "2"
# corpora and models speak through `say`: their escape sequences must not reach the terminal
_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], "\N{REPLACEMENT CHARACTER}") | {9: " ", 10: "\n"}


@dataclass
class Stage:
    """Work that goes by one label."""

    began: float
    first: float
    """How much was done already when it began: a resumed training is timed from there."""
    done: float = 0.0
    tenth: int = 0
    """Tenths of the work when it was last logged."""

    def left(self, now: float, total: float | None) -> str:
        """Time left at the pace so far; nothing while that is a guess."""
        if not total or self.done <= self.first or now - self.began < 1:
            return ""
        seconds = (now - self.began) * max(total - self.done, 0) / (self.done - self.first)
        return duration(seconds) + " left" if seconds < 100 * 3600 else ""


class Terminal(Reporter):
    """Says, warns and draws progress on one stream. Quiet, it only warns."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        colour: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.quiet = quiet
        self.interactive = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = colour and self.interactive and not os.environ.get("NO_COLOR")
        self.clock = clock
        self._unicode = (getattr(self.stream, "encoding", None) or "").lower().replace("-", "") == "utf8"
        self._line = ""  # the bar that stands on the terminal's last line
        self._stages: dict[str, Stage] = {}
        self._drawn = float("-inf") if self.interactive else clock()

    def say(self, text: str) -> None:
        if not self.quiet:
            self._above(_clean(text))

    def warn(self, text: str) -> None:
        self._above(self._paint("warning:", GOLD) + " " + _clean(text))

    def fail(self, text: str) -> None:
        """The last word of a command that did not work."""
        self.finish()
        self._write(self._paint("kente:", RED) + " " + _clean(text) + "\n")

    def progress(self, label: str, done: float, total: float | None = None, detail: str = "") -> None:
        if self.quiet:
            return
        label, detail = (_clean(text).replace("\n", " ") for text in (label, detail))
        now = self.clock()
        stage = self._stages.get(label)
        if stage is None or done < stage.done:  # begun, or begun again
            stage = self._stages[label] = Stage(now, done)
        stage.done = done
        if not (self._due_on_terminal(now) if self.interactive else self._due_in_log(now, stage, total)):
            return
        self._drawn = now
        left = stage.left(now, total)
        if self.interactive:
            self._line = self._bar(label, done, total, left, detail)
            self._write("\r" + self._line + "\x1b[K")
        else:
            share = f"{done:,.0f}" if not total else f"{_share(done, total):.0%}".replace("%", " %")
            self._write(", ".join(part for part in (f"{label}: {share}", left, detail) if part) + "\n")

    def finish(self) -> None:
        if self._line:
            self._write("\r\x1b[K")
            self._line = ""
            self._drawn = float("-inf")  # the next stage may draw at once

    def _due_on_terminal(self, now: float) -> bool:
        return now - self._drawn >= REDRAW

    def _due_in_log(self, now: float, stage: Stage, total: float | None) -> bool:
        tenth = int(10 * _share(stage.done, total)) if total else 0
        passed = tenth > stage.tenth and now - self._drawn >= LOG / 10  # quick work is not worth ten lines
        if passed or now - self._drawn >= LOG:
            stage.tenth = tenth
            return True
        return False

    def _bar(self, label: str, done: float, total: float | None, left: str, detail: str) -> str:
        """One line that fits the terminal: label, bar, percent, time left, detail; what does not fit is cut."""
        width = shutil.get_terminal_size().columns - 1
        if not total:
            return _clip("  ".join(part for part in (label, f"{done:,.0f}", detail) if part), width)
        share = _share(done, total)
        words = "  ".join(part for part in (f"{int(100 * share):3d} %", left, detail) if part)
        cells = max(10, min(30, width - columns(label) - columns(words) - 4))
        full, empty = ("━", "─") if self._unicode else ("#", "-")
        filled = round(share * cells)
        head, tail = _clip(label, width), ""
        if columns(head) + cells + 2 <= width:
            tail = "  " + self._paint(full * filled, GOLD) + self._paint(empty * (cells - filled), DIM)
            return head + tail + _clip("  " + words, width - columns(head) - cells - 2)
        return _clip(f"{label}  {words}", width)

    def _above(self, text: str) -> None:
        """Print a line above the bar and put the bar back."""
        if self._line:
            self._write("\r\x1b[K" + text + "\n" + self._line)
        else:
            self._write(text + "\n")

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text

    def _write(self, text: str) -> None:
        encoding = getattr(self.stream, "encoding", None) or "utf-8"
        self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self.stream.flush()


def duration(seconds: float) -> str:
    """Time as people say it: 45 s, 2:05, 1:02:05."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def columns(text: str) -> int:
    """Columns a text takes on a terminal: wide letters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def _clip(text: str, width: int) -> str:
    taken = 0
    for index, letter in enumerate(text):
        taken += columns(letter)
        if taken > width:
            return text[:index]
    return text


def _clean(text: str) -> str:
    return text.translate(_CONTROLS)


def _share(done: float, total: float) -> float:
    return min(max(done / total, 0.0), 1.0)


def ready_lines(stream: BinaryIO, name: str = "standard input", most: int = 2048) -> Iterator[list[str]]:
    """Lists of lines: each as many as have arrived, at least one and at most `most`, so that a person typing is answered
    line by line and a file is taken in large bites. Bytes are read by rule: \\n alone ends a line, one \\r before it is dropped."""
    rest, number, open_ = b"", 0, True
    while open_ or rest:
        waiting: list[bytes] = []
        while open_ and len(waiting) < most and (not waiting or _arrived(stream)):
            chunk = _available(stream)
            open_ = bool(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            waiting += whole
        if not open_ and rest:
            waiting.append(rest)
            rest = b""
        for begin in range(0, len(waiting), most):
            lines = []
            for raw in waiting[begin : begin + most]:
                number += 1
                lines.append(_decode(raw, name, number))
            yield lines


def _available(stream: BinaryIO) -> bytes:
    """What can be had without waiting for more; empty at the end."""
    read = getattr(stream, "read1", None) or stream.read
    return bytes(read(65536))


def _arrived(stream: BinaryIO) -> bool:
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):  # no file descriptor: all of it is in memory
        return True


def _decode(raw: bytes, name: str, number: int) -> str:
    if number == 1:
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{name}, line {number:,}: byte {error.start + 1} (0x{raw[error.start]:02x}) is not UTF-8; convert the text first, "
            "for example with iconv -f LATIN1 -t UTF-8"
        ) from None
