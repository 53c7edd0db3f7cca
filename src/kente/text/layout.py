"""A file as stretches that stay and slots that translations go into."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kente.text.reading import Reading


class Layout:
    """What stays, and readings with the line each begins on; a reading may fill several slots."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.lines: list[int] = []
        self._pieces: list[str | tuple[int, Callable[[str], str]]] = []

    def keep(self, text: str) -> None:
        """The next stretch of the file stays as it is."""
        self._pieces.append(text)

    def add(self, reading: Reading, line: int) -> int:
        """Have a reading translated; returns its number."""
        self.readings.append(reading)
        self.lines.append(line)
        return len(self.readings) - 1

    def slot(self, number: int, finish: Callable[[str], str] = str) -> None:
        """Next in the file is what the reading became, in the form `finish` gives it."""
        self._pieces.append((number, finish))

    def filled(self, texts: Sequence[str]) -> str:
        """The file, with what each reading became."""
        return "".join(piece if isinstance(piece, str) else piece[1](texts[piece[0]]) for piece in self._pieces)
