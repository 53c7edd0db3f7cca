"""What every check is given and gives back: a run's own answers in a file, and how many of them the export gives too, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

PAD, UNK, BOS, EOS = 0, 1, 2, 3
EXAMPLES = 3
"""Lines that differ of which the result tells."""
TIE = 1e-4
"""Tokens whose log-probabilities differ by less are equally good."""


@dataclass(frozen=True)
class Line:
    """A sentence, and what the run makes of it."""

    text: str
    source: list[int]
    """Its ids, without the end mark."""
    cap: int
    """Tokens an answer may have."""
    greedy: list[int]
    greedy_pieces: list[str]
    greedy_text: str
    log_probabilities: list[float]
    """Of the greedy answer's tokens, and of the end after it."""
    margins: list[float]
    """By how much each of them was likelier than the next best token; the last one's tells nothing where the answer was cut."""
    beam: list[int]
    """The run's best answer with its own length penalty ..."""
    plain_beam: list[int]
    """... and with none."""


@dataclass
class Result:
    """How many lines an export treats as the run does. None: it was not looked at."""

    lines: int = 0
    text: int = 0
    """Lines cut into the same ids."""
    greedy: int = 0
    """Lines answered with the same tokens, or with another that was equally good to the run ..."""
    ties: int = 0
    """... which are so many of them."""
    beam: int | None = None
    worst: float = 0.0
    """Largest difference of a log-probability."""
    examples: list[str] = field(default_factory=list)

    def compare(self, line: Line, ids: Sequence[int], greedy: Sequence[int], beam: Sequence[int] | None) -> None:
        self.lines += 1
        self.text += list(ids) == line.source
        same, tie = list(greedy) == line.greedy, is_tie(line, greedy)
        self.greedy += same or tie
        self.ties += tie
        if not (same or tie) and len(self.examples) < EXAMPLES:
            self.examples.append(f"{line.text!r}: {list(greedy)} instead of {line.greedy}")
        if beam is not None:
            self.beam = (self.beam or 0) + (list(beam) in (line.beam, line.plain_beam))

    def measure(self, line: Line, found: Sequence[float]) -> None:
        assert len(found) == len(line.log_probabilities)
        self.worst = max(self.worst, *(abs(a - b) for a, b in zip(found, line.log_probabilities, strict=True)))


def is_tie(line: Line, answer: Sequence[int]) -> bool:
    """Whether an answer parts from the run's where the run itself had two tokens to choose from."""
    pairs = zip([*line.greedy, EOS], [*answer, EOS], strict=False)
    place = next((place for place, (one, other) in enumerate(pairs) if one != other), None)
    return place is not None and line.margins[place] < TIE


def main(check: Callable[[Path, list[Line], int], Result]) -> None:
    """check(the export's folder, the lines, id of the source's first word), from the command line."""
    folder, reference = map(Path, sys.argv[1:3])
    given = json.loads(reference.read_text(encoding="utf-8"))
    result = check(folder, [Line(**line) for line in given["lines"]], given["begin"])
    print(json.dumps(asdict(result), ensure_ascii=False))
