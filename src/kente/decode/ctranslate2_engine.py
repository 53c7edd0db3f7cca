"""The engine that is fast on a processor: a Transformer converted for CTranslate2, no torch needed.

What CTranslate2 has no way to do (reproducible sampling, a beam without repeats) is done in torch, which is loaded for it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kente.config import DecodeConfig
from kente.data.tokenizer import SPECIALS, Tokenizers
from kente.decode.answers import Hypothesis, too_late
from kente.decode.conversion import Numbers, names_of
from kente.decode.ctranslate2_search import Asker, Candidate, Promise
from kente.decode.engine import Deadline, Links, Question, ReadBack, batches, rows_for
from kente.decode.library import ctranslate2

if TYPE_CHECKING:
    from kente.decode.torch_engine import TorchEngine

TURNS = 4
"""Batches for each of several workers at least: with two, one of them waited for the other's last."""


@dataclass(frozen=True)
class Layout:
    """How CTranslate2 is set up: kind of numbers, workers side by side, threads of each, tokens (times beam) in a batch; with a `shortlist`,
    answers are made of the words that the model's vocabulary map names for their batch."""

    numbers: Numbers = "float32"
    workers: int = 1
    threads: int = 1
    batch_tokens: int = 4096
    shortlist: bool = False

    def __str__(self) -> str:
        return f"{self.numbers}, {self.workers} x {self.threads} threads{', shortlist' if self.shortlist else ''}"


class CTranslate2Engine:
    """A converted Transformer. `folders` finds the model for a kind of numbers, `in_torch` loads the same one in torch when it must."""

    def __init__(
        self,
        folders: Callable[[Numbers], Path],
        tokenizers: Tokenizers,
        in_torch: Callable[[], TorchEngine],
        layout: Layout | None = None,
    ) -> None:
        self.folders, self.in_torch = folders, in_torch
        self.layout = layout or Layout()
        self.vocabulary = tokenizers.target.size
        self.writes_unknown = not tokenizers.target.spells_everything
        self.names = names_of(max(tokenizers.source.size, tokenizers.target.size))
        self._loaded: dict[tuple[Numbers, int, int], Any] = {}  # shared by all layouts of this engine

    @property
    def name(self) -> str:
        return f"CTranslate2 {self.layout.numbers}"

    def with_layout(self, layout: Layout) -> CTranslate2Engine:
        """The same models, set up otherwise."""
        other = copy.copy(self)
        other.layout = layout
        return other

    @property
    def translator(self) -> Any:
        """The ctranslate2.Translator of this layout."""
        key = (self.layout.numbers, self.layout.workers, self.layout.threads)
        if key not in self._loaded:
            path, settings = str(self.folders(key[0])), {"inter_threads": key[1], "intra_threads": key[2]}
            self._loaded[key] = ctranslate2().Translator(path, device="cpu", **settings)
        return self._loaded[key]

    def keep(self, *layouts: Layout) -> None:
        """Let go of all models but those of these layouts."""
        kept = {(layout.numbers, layout.workers, layout.threads) for layout in layouts}
        for key in [*self._loaded]:
            if key not in kept:
                del self._loaded[key]

    def search(
        self, questions: Sequence[Question], config: DecodeConfig, *, n_best: int = 1, deadline: Deadline | None = None
    ) -> list[list[Hypothesis]]:
        """Answers to the questions. Late, an answer is empty: a search that has not ended has nothing to show here."""
        if self.cannot(config, n_best) is not None:
            return self.in_torch().search(questions, config, n_best=n_best, deadline=deadline)
        asker = Asker(self.translator, config, n_best, self.names, self.layout.shortlist, deadline)
        found = dict(self._asked(asker, questions))
        self._make_exact(asker, questions, found)
        answers = [[too_late()] for _ in questions]
        doubtful = []
        for place, candidates in found.items():
            at_once = asker.answers(questions[place], candidates)
            if at_once is not None:
                answers[place] = at_once
            else:
                doubtful.append(place)
        settled = asker.settle([questions[place] for place in doubtful], [found[place] for place in doubtful])
        for place, hypotheses in settled.items():
            answers[doubtful[place]] = hypotheses
        return answers

    def cannot(self, config: DecodeConfig, n_best: int = 1) -> str | None:
        """Why CTranslate2 would not find what our search finds; None where it does."""
        beam = rows_for(config, n_best)
        if config.sample:
            return "its draws do not follow our seed"
        if beam > 1 and config.no_repeat:
            return "words that must not be repeated disturb the order of its beam"
        if 2 * beam + len(SPECIALS) > self.vocabulary:
            return f"{self.vocabulary} words are too few for its beam of {beam}"
        return None

    def _asked(self, asker: Asker, questions: Sequence[Question]) -> Iterator[tuple[int, list[Candidate]]]:
        """(place of the question, candidates) as they come; the rest is missing once time is out."""

        def ask(places: list[int]) -> list[Promise]:
            batch = [questions[place] for place in places]
            return asker.ask(batch, max(question.cap for question in batch) + 1)

        for places, candidates in asker.in_turn(self._batches(questions, asker.beam, asker.config.batch_tokens), ask):
            yield from zip(places, candidates, strict=True)

    def _batches(self, questions: Sequence[Question], beam: int, most: int) -> list[list[int]]:
        """Places of questions to be asked together, `most` tokens (times beam) at once. Beginnings are forced by batch, and must not be felt by those
        who have none."""
        lengths = [len(question.source) + 1 for question in questions]
        tokens = min(self.layout.batch_tokens, most) / beam
        if self.layout.workers > 1:  # none shall be idle, nor wait long for the last of them
            tokens = min(tokens, sum(lengths) / (TURNS * self.layout.workers))
        free, begun = ([p for p, q in enumerate(questions) if bool(q.prefix) == forced] for forced in (False, True))
        return [
            [some[place] for place in batch]
            for some in (free, begun)
            for batch in batches([lengths[place] for place in some], tokens)
        ]

    def _make_exact(self, asker: Asker, questions: Sequence[Question], found: dict[int, list[Candidate]]) -> None:
        """Read answers again where words that may not be written, or a forced beginning, take more than a trace of the probability.
        What cannot be read in time is let go."""
        for place, candidates in found.items():
            prefix = questions[place].prefix
            if prefix and asker.beam > 1:  # right after it, CTranslate2 hardly lets an answer end
                candidates.append(Candidate(prefix, 0.0, ended=True))
        everything = self.writes_unknown or asker.config.no_repeat > 0
        unsure = [place for place in found if everything or questions[place].prefix]
        if unsure:
            exact = asker.read_again([questions[place] for place in unsure], [found[place] for place in unsure])
            found.update(zip(unsure, exact, strict=False))
            for place in unsure[len(exact) :]:
                del found[place]

    def read_back(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[ReadBack]:
        """The answers, with the model's own numbers."""
        asker = Asker(self.translator, DecodeConfig(beam=1), 1, self.names)
        weights = self._weights(asker, questions, answers)
        return [
            ReadBack(numbers, rows)
            for numbers, rows in zip(asker.log_probabilities(questions, answers), weights, strict=True)
        ]

    def _weights(
        self, asker: Asker, questions: Sequence[Question], answers: Sequence[Sequence[int]]
    ) -> list[list[list[float]]]:
        found: list[list[list[float]]] = [[] for _ in questions]
        lengths = [len(q.source) + len(answer) + 2 for q, answer in zip(questions, answers, strict=True)]
        for places in batches(lengths, self.layout.batch_tokens):
            rows = asker.attention([questions[place] for place in places], [answers[place] for place in places])
            for place, weights in zip(places, rows, strict=True):
                found[place] = weights
        return found

    def align(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[Links]:
        """For each target piece the source piece that is looked at most."""
        asker = Asker(self.translator, DecodeConfig(beam=1), 1, self.names)
        weights = self._weights(asker, questions, answers)
        return [[(row.index(max(row)), place) for place, row in enumerate(rows)] for rows in weights]
