"""Text in, text out: cut into sentences that fit the model, answered by an engine, put together again in order.

The text side needs no torch; whether the search does is the engine's affair.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from kente.config import DecodeConfig
from kente.data.tokenizer import UNK, Tokenizers
from kente.decode.answers import Hypothesis, most_tokens
from kente.decode.details import Detail
from kente.decode.engine import Deadline, Engine, Links, Question
from kente.errors import UsageError
from kente.text.sentences import Sentence, cut_in_two, glue, is_blank, split_sentences

if TYPE_CHECKING:
    import torch

    from kente.models.interface import Generator

SPLIT = "too long for the model: translated in parts"
SHORTENED = "too long for the model: the end was left out"
UNKNOWN = "has characters or words the model does not know"

_BLANKS = re.compile(r"[ \t]{2,}|\t")
_CHARACTERS_PER_TOKEN = 16  # beyond this many a text is cut before it is tokenised
_MANY = 64  # sentences whose cutting is worth more than one thread


@dataclass(frozen=True)
class Alternative:
    """Another answer, and how good the model finds it."""

    text: str
    score: float


@dataclass(frozen=True)
class Translation:
    """An answer and everything its reader should know."""

    source: str
    text: str
    score: float = 0.0
    """Log-probability over the length penalty; 0 is certainty."""
    warnings: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    """The next best answers, if more than one was asked for; fewer where several read the same."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Pairs (source piece, target piece) by attention, if asked for."""
    source_pieces: tuple[str, ...] = ()
    target_pieces: tuple[str, ...] = ()
    details: tuple[Detail, ...] = ()
    """What the model read and wrote, piece by piece, if asked for: one for each part of the line that was translated by itself."""


@dataclass
class Part:
    """A stretch of one line that goes through the model on its own."""

    gap: str
    ids: list[int]
    warnings: tuple[str, ...] = ()
    prefix: list[int] = field(default_factory=list)
    answers: list[Hypothesis] = field(default_factory=list)
    written: list[Alternative] = field(default_factory=list)
    """The answers as text."""
    alignment: Links = field(default_factory=list)
    detail: Detail | None = None


class Translator:
    """An engine with the tokenizers of its model and settings, ready to translate."""

    def __init__(
        self,
        engine: Engine,
        tokenizers: Tokenizers,
        config: DecodeConfig | None = None,
        max_source_tokens: int = 256,
        max_target_tokens: int | None = None,
        split_sentences: bool = True,
        threads: int = 1,
    ) -> None:
        """`max_source_tokens` counts the end mark, longer sentences are translated in parts; `max_target_tokens` does not count it.

        `split_sentences` is right for a model trained on one sentence a line. `threads` are for text; the engine has its own.
        """
        assert max_source_tokens >= 2, max_source_tokens
        self.engine = engine
        self.tokenizers = tokenizers
        self.config = config or DecodeConfig()
        self.max_source_tokens = max_source_tokens
        self.max_target_tokens = max_target_tokens
        self.split_sentences = split_sentences
        self.threads = threads

    @property
    def model(self) -> Generator:
        """The network in torch, to look inside; loaded now if the engine does without."""
        return self.engine.in_torch().model

    @property
    def device(self) -> torch.device:
        """Where `model` is."""
        return self.engine.in_torch().device

    def translate(
        self,
        texts: Sequence[str] | str,
        *,
        beam: int | None = None,
        n_best: int = 1,
        prefix: Sequence[str] | str | None = None,
        split: bool | None = None,
        align: bool = False,
        details: bool = False,
        deadline: Deadline | None = None,
    ) -> list[Translation]:
        """Translations of the texts, in their order.

        `prefix` is how every answer begins, or one beginning for each text. `split` overrules `split_sentences`. `deadline` is asked
        while the search goes on: once it says True, unfinished answers come back as they are, with a warning.
        """
        texts = [texts] if isinstance(texts, str) else list(texts)
        prefixes = [prefix or ""] * len(texts) if prefix is None or isinstance(prefix, str) else list(prefix)
        if len(prefixes) != len(texts):
            raise UsageError(
                f"{len(texts)} texts but {len(prefixes)} prefixes; give one prefix for each text, or one for all"
            )
        if n_best < 1:
            raise UsageError(f"n_best ({n_best}) must be at least 1")
        config = self.config if beam is None else replace(self.config, beam=beam)
        split = self.split_sentences if split is None else split
        lines = self._lines(texts, prefixes, split)
        parts = [part for line in lines for part in line]
        questions = [self._question(part, config) for part in parts]
        answers = self.engine.search(questions, config, n_best=n_best, deadline=deadline)
        before, begun = (len(marks) for marks in self.tokenizers.marks)
        chosen = [found[0].ids for found in answers]
        if align:
            for part, links in zip(parts, self.engine.align(questions, chosen), strict=True):
                part.alignment = [(s - before, t - begun) for s, t in links if s >= before and t >= begun]
        if details:
            self._read_back(parts, questions, chosen)
        for part, found in zip(parts, answers, strict=True):
            part.answers = [replace(answer, ids=answer.ids[begun:]) for answer in found] if begun else found
        self._write(parts)
        return [self._join(text, line, n_best, align) for text, line in zip(texts, lines, strict=True)]

    def _read_back(self, parts: Sequence[Part], questions: Sequence[Question], chosen: Sequence[list[int]]) -> None:
        before, begun = (len(marks) for marks in self.tokenizers.marks)
        for part, ids, read in zip(parts, chosen, self.engine.read_back(questions, chosen), strict=True):
            part.detail = Detail.of(part.ids, ids[begun:], read.without(before, begun), self.tokenizers)

    def question(self, sentence: str, *, beam: int | None = None) -> tuple[Question, DecodeConfig]:
        """One sentence, whole, as the engine is asked it, and the settings it is searched with."""
        config = self.config if beam is None else replace(self.config, beam=beam)
        ids = [] if is_blank(sentence) else self.tokenizers.source.encode(_BLANKS.sub(" ", sentence.strip()))
        if not ids:
            raise UsageError("the sentence is empty: there is nothing to read")
        marks = 1 + len(self.tokenizers.source_marks)
        if len(ids) + marks > self.max_source_tokens:
            raise UsageError(
                f"the sentence has {len(ids) + marks:,} tokens with its end mark, but the model reads {self.max_source_tokens:,} at most; "
                "give a shorter one"
            )
        return self._question(Part("", ids), config), config

    def answer(self, text: str) -> list[int]:
        """The ids of a translation that is to be read, not written."""
        begin, ids = self.tokenizers.target_marks, self.tokenizers.target.encode(text.strip())
        if not ids:
            raise UsageError("the target is empty: there is nothing to read")
        ids = [*begin, *ids]
        if self.max_target_tokens is not None and len(ids) > self.max_target_tokens:
            raise UsageError(
                f"the target has {len(ids):,} tokens, but the model reads {self.max_target_tokens:,} at most; give a shorter one"
            )
        return ids

    def stream(self, lines: Iterable[str], *, lookahead: int = 256, **how: Any) -> Iterator[Translation]:
        """Translations as they come, in order; `how` as for `translate`.

        At most `lookahead` lines are read ahead of the answers: 1 answers each line before the next is read.
        """
        assert lookahead >= 1, lookahead
        remaining = iter(lines)
        while window := list(islice(remaining, lookahead)):
            yield from self.translate(window, **how)

    def _lines(self, texts: Sequence[str], prefixes: Sequence[str], split: bool) -> list[list[Part]]:
        """The parts of each text; all sentences are cut into pieces at once."""
        lines = [self._sentences(text, split) for text in texts]
        cut = iter(self._encoded([sentence for line in lines for sentence in line]))
        found = []
        for line, prefix in zip(lines, prefixes, strict=True):
            parts = [part for sentence in line for part in self._fit(sentence, next(cut)) if part.ids]
            if parts and prefix:
                parts[0].prefix = self._begin(prefix)
            found.append(parts)
        return found

    def _sentences(self, text: str, split: bool) -> list[Sentence]:
        if is_blank(text):
            return []
        sentences = split_sentences(text) if split else [Sentence(text.strip())]
        return [Sentence(_BLANKS.sub(" ", sentence.text), sentence.gap) for sentence in sentences]

    def _encoded(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        """Ids of each; none of those that are too long for the model at a glance."""
        texts = ["" if self._wide(sentence) else sentence.text for sentence in sentences]
        return self.tokenizers.source.encode_many(texts, self._threads_for(texts))

    def _wide(self, sentence: Sentence) -> bool:
        return len(sentence.text) > _CHARACTERS_PER_TOKEN * self.max_source_tokens

    def _threads_for(self, work: Sequence[object]) -> int:
        return self.threads if len(work) >= _MANY else 1

    def _write(self, parts: Sequence[Part]) -> None:
        """The text of every answer."""
        rows = [answer.ids for part in parts for answer in part.answers]
        texts = iter(self.tokenizers.target.decode_many(rows, self._threads_for(rows)))
        for part in parts:
            part.written = [Alternative(next(texts).strip(), answer.score) for answer in part.answers]

    def _begin(self, prefix: str) -> list[int]:
        ids = self.tokenizers.target.encode(prefix.strip())
        if self.max_target_tokens is not None and len(ids) > self.max_target_tokens:
            raise UsageError(
                f"the prefix {prefix[:40]!r} has {len(ids):,} tokens, but the model writes {self.max_target_tokens:,} at most; shorten it"
            )
        return ids

    def _fit(self, sentence: Sentence, ids: list[int]) -> list[Part]:
        """The sentence as parts the model can read, none longer than max_source_tokens with its end mark."""
        fitting, waiting = list[Part](), [(sentence, ids)]
        most = self.max_source_tokens - len(self.tokenizers.source_marks)
        while waiting:
            piece, ids = waiting.pop()
            if self._wide(piece) or len(ids) >= most:
                halves = cut_in_two(piece)
                if halves:
                    waiting += reversed(list(zip(halves, self._encoded(halves), strict=True)))
                    continue
                short = piece.text[: _CHARACTERS_PER_TOKEN * self.max_source_tokens]
                ids = self.tokenizers.source.encode(short)[: most - 1]
                fitting.append(Part(piece.gap, ids, (SHORTENED,)))
            else:
                fitting.append(Part(piece.gap, ids))
        for part in fitting:
            part.warnings += (SPLIT,) * (len(fitting) > 1) + (UNKNOWN,) * (UNK in part.ids)
        return fitting

    def _question(self, part: Part, config: DecodeConfig) -> Question:
        cap = most_tokens(len(part.ids) + 1, config.max_ratio, self.max_target_tokens)
        before, begin = self.tokenizers.marks
        prefix = [*begin, *part.prefix]
        return Question([*before, *part.ids], max(cap, len(prefix)), prefix)

    def _join(self, text: str, parts: list[Part], n_best: int, align: bool) -> Translation:
        if not parts:
            return Translation(text, "", alignment=() if align else None)
        distinct: dict[str, Alternative] = {}
        for choice in best_combinations([part.written for part in parts], n_best):
            answer = _combine(parts, choice)
            distinct.setdefault(answer.text, answer)
        best, *others = distinct.values()
        warnings = dict.fromkeys(w for part in parts for w in (*part.warnings, *part.answers[0].warnings))
        details = tuple(part.detail for part in parts if part.detail is not None)
        translation = Translation(text, best.text, best.score, tuple(warnings), tuple(others), details=details)
        return self._with_alignment(translation, parts) if align else translation

    def _with_alignment(self, translation: Translation, parts: list[Part]) -> Translation:
        source: list[str] = []
        target: list[str] = []
        pairs: list[tuple[int, int]] = []
        for part in parts:
            pairs += [(s + len(source), t + len(target)) for s, t in part.alignment]
            source += self.tokenizers.source.pieces(part.ids)
            target += self.tokenizers.target.pieces(part.answers[0].ids)
        return replace(translation, alignment=tuple(pairs), source_pieces=tuple(source), target_pieces=tuple(target))


def _combine(parts: Sequence[Part], answers: Sequence[Alternative]) -> Alternative:
    """One text from the answers to its parts; its score is their mean."""
    text, gap = "", ""
    for part, answer in zip(parts, answers, strict=True):
        text += (glue(text, gap) if text and answer.text else "") + answer.text
        gap = part.gap
    return Alternative(text, sum(answer.score for answer in answers) / len(answers))


def best_combinations(answers: list[list[Alternative]], count: int) -> list[tuple[Alternative, ...]]:
    """The `count` best ways of taking one answer from each list, best first."""
    if count == 1:
        return [tuple(choices[0] for choices in answers)]
    ways: list[tuple[Alternative, ...]] = [()]
    for choices in answers:
        longer = [(*way, choice) for way in ways for choice in choices]
        ways = heapq.nlargest(count, longer, key=lambda way: sum(answer.score for answer in way))
    return ways
