"""A page written from left to right, its sentences translated, with count kept of where everything lands."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Literal

from kente.text.answers import Answer, fitted
from kente.text.case import dressed
from kente.text.kept import blanked, compare_kept, compare_numbers, places_of
from kente.text.markup import escaped
from kente.text.placing import spread_tags
from kente.text.sentences import UNSPACED, Span, glue
from kente.text.units import Asked, Copied, Unit

_UNSPACED = re.compile(f"[{UNSPACED}]")

Kind = Literal["lost", "added", "number", "parts", "tags", "untranslated", "search"]


@dataclass(frozen=True)
class Notice:
    """Something a reader should know about letters [start, end) of the written text.

    Kinds: lost and added (an address, placeholder or tag), number, parts (translated in parts, to keep something), tags (their place is
    a guess), untranslated (the model gave no answer), search (what a translator says of its answer; never said here).
    """

    kind: Kind
    message: str
    start: int
    end: int


@dataclass(frozen=True)
class Placed:
    """A sentence's place in the text that was read and in the text that was written."""

    source: Span
    target: Span
    unit: Unit = field(repr=False)
    letters: Sequence[Span] | None = field(default=None, repr=False)
    """Where each letter of the translation was written; None if the translation does not stand there as one."""

    def source_span(self, start: int, end: int) -> Span:
        """Where letters [start, end) of the sentence stand in the text that was read."""
        return self.unit.page_span(start, end) if start < end else (self.source[0], self.source[0])

    def target_span(self, start: int, end: int) -> Span | None:
        """Where letters [start, end) of the translation, stripped, stand in the text that was written; None if they do not."""
        if self.letters is None or not 0 <= start < end <= len(self.letters):
            return None
        return self.letters[start][0], self.letters[end - 1][1]


@dataclass(frozen=True)
class Written:
    """A translated text."""

    text: str
    warnings: tuple[Notice, ...] = ()
    sentences: tuple[Placed, ...] = ()
    """In the order of `Reading.sentences`."""


class Writer:
    """Writes one page once."""

    def __init__(self, page: str, answers: list[Answer], lowercase: bool) -> None:
        self.page, self.answers, self.lowercase = page, answers, lowercase
        self.attributes = [number for number, answer in enumerate(answers) if answer.unit.is_attribute]
        self.attribute_starts = [answers[number].unit.page[0] for number in self.attributes]
        self.pieces: list[str] = []
        self.length = 0
        self.placed: dict[int, Placed] = {}
        self.notices: list[Notice] = []

    def write(self) -> Written:
        place, before = 0, None
        for number, answer in enumerate(self.answers):
            if answer.unit.is_attribute:
                continue  # is written with the tag it stands in
            self._glue(before, answer)
            self._copy(place, answer.unit.page[0])
            self._answer(number)
            place, before = answer.unit.page[1], answer
        self._copy(place, len(self.page))
        sentences = tuple(self.placed[number] for number in range(len(self.answers)))
        return Written("".join(self.pieces), tuple(self.notices), sentences)

    def _copy(self, start: int, end: int) -> None:
        """The page as it stands, but for attributes that are translated."""
        first, last = (bisect_left(self.attribute_starts, place) for place in (start, end))
        before = None
        for number in self.attributes[first:last]:
            answer = self.answers[number]
            self._glue(before, answer)
            self._put(self.page[start : answer.unit.page[0]])
            self._answer(number)
            start, before = answer.unit.page[1], answer
        self._put(self.page[start:end])

    def _copy_of(self, unit: Unit, start: int, end: int) -> None:
        """A stretch of a sentence as it stands; inside an attribute there are no others."""
        if unit.is_attribute:
            self._put(self.page[start:end])
        else:
            self._copy(start, end)

    def _glue(self, before: Answer | None, answer: Answer) -> None:
        """A space between sentences that have none in the source, because its script needs none, if that of the target does."""
        if before is None or before.unit.passage is not answer.unit.passage or before.unit.end != answer.unit.start:
            return
        if not (before.unchanged and answer.unchanged):
            self._put(glue(self._last(), ""))

    def _put(self, text: str) -> None:
        if text:
            self.pieces.append(text)
            self.length += len(text)

    def _last(self) -> str:
        return self.pieces[-1][-1] if self.pieces else ""

    # ------------------------------------------------------------ one sentence

    def _answer(self, number: int) -> None:
        answer, start = self.answers[number], self.length
        letters: Sequence[Span] | None = None
        messages: list[tuple[Kind, str]] = list(_judged(answer))
        if answer.left:
            self._copy_of(answer.unit, *answer.unit.page)
            if answer.unchanged:
                letters = self._unmoved(answer.unit, start)
        elif answer.parts is not None and not answer.place_by_parts():
            messages += self._in_parts(answer)
        else:
            letters = self._whole(answer)
            plain = blanked(answer.unit.text, answer.unit.kept_spans), blanked(answer.text, answer.kept_at)
            messages += (("number", message) for message in compare_numbers(*plain))
        self.placed[number] = Placed(answer.unit.page, (start, self.length), answer.unit, letters)
        self.notices += (Notice(kind, message, start, self.length) for kind, message in messages)

    def _unmoved(self, unit: Unit, start: int) -> list[Span] | None:
        """Where the letters of a sentence stand that was copied to `start`."""
        if self.length - start != unit.page[1] - unit.page[0]:
            return None  # an attribute inside has changed
        offset = start - unit.page[0]
        spans = (unit.page_span(place, place + 1) for place in range(len(unit.text)))
        return [(begin + offset, end + offset) for begin, end in spans]

    def _whole(self, answer: Answer) -> list[Span]:
        """The translation as one, with tags at their places and untranslated elements as they stand in the page."""
        unit, text = answer.unit, answer.text
        letters = dressed(
            text, answer.kept_at, unit.text, unit.kept_spans, shouted=unit.shouted, lowercase=self.lowercase
        )
        tags = answer.tags if answer.tags is not None else spread_tags(unit.text, text, unit.tags)
        fixed = {span[0]: kept for kept, span in answer.kept_pairs() if kept.fixed}
        written = [escaped(letter, unit.passage.escape) for letter in letters]
        if not tags and not fixed:  # nearly always
            begins = accumulate(map(len, written), initial=self.length)
            self._put("".join(written))
            return list(pairwise(begins))
        places: list[Span] = []
        waiting = 0
        while len(places) <= len(text):
            place = len(places)
            while waiting < len(tags) and tags[waiting][0] <= place:
                self._copy(tags[waiting][1].start, tags[waiting][1].end)
                waiting += 1
            if place == len(text):
                break
            begin, kept = self.length, fixed.get(place)
            if kept is not None:
                self._copy(kept.page_start, kept.page_end)
            else:
                self._put(written[place])
            places += [(begin, self.length)] * (kept.end - kept.start if kept else 1)
        return places

    def _in_parts(self, answer: Answer) -> Iterator[tuple[Kind, str]]:
        """What stands between the parts as it is, and their translations."""
        unit, translations = answer.unit, iter(answer.parts or ())
        starts = [kept.start for kept in unit.kept]
        gap = ""  # a space that the last part needs behind it, and behind the tags that close there
        if not (answer.lost or answer.added):
            yield "parts", "translated in parts, to keep tags in their places"
        for piece in answer.pieces:
            if isinstance(piece, Asked) or not self.page.startswith("</", piece.start):
                self._put(gap)
                gap = ""
            if isinstance(piece, Copied):
                self._copy_of(unit, *piece)
                continue
            source = unit.text[piece.start : piece.end]
            part = fitted(source, next(translations), answer.text)
            if not part:
                self._copy_of(unit, *unit.page_span(*piece))
                yield "untranslated", f"the model gave no answer to {source!r}; it stands as it was"
                continue
            own = unit.kept[bisect_left(starts, piece.start) : bisect_left(starts, piece.end)]
            inside = [(kept.start - piece.start, kept.end - piece.start) for kept in own]
            kept = [source[start:end] for start, end in inside]
            kept_at = places_of(kept, part)
            yield from (("lost", f"{item} is not in the translation") for item in compare_kept(kept, part)[0])
            yield from (("number", text) for text in compare_numbers(blanked(source, inside), blanked(part, kept_at)))
            gap = self._part(unit, piece, part, kept_at, inside)

    def _part(self, unit: Unit, piece: Asked, part: str, kept_at: list[Span], inside: list[Span]) -> str:
        """One translated part, after a space where the source's script has none and the target's needs one; returns the space it needs behind."""
        text, (start, end) = unit.text, piece
        letters = dressed(
            part,
            kept_at,
            text[start:end],
            inside,
            shouted=unit.shouted,
            lowercase=self.lowercase,
            begins=start == 0,
        )
        if _needs_space(text[start], part[0]) and start in unit.kept_edges and not self._last().isspace():
            self._put(" ")
        self._put(escaped("".join(letters), unit.passage.escape))
        followed = end in unit.kept_edges or text[end : end + 1].isalnum()
        return " " if followed and _needs_space(text[end - 1], part[-1]) else ""


def _needs_space(source: str, target: str) -> bool:
    """Whether a letter of a script without spaces became one of a script that has them."""
    return bool(_UNSPACED.match(source)) and target.isalnum() and not _UNSPACED.match(target)


def _judged(answer: Answer) -> Iterator[tuple[Kind, str]]:
    """What there is to say about an answer, however it is written."""
    if answer.left:
        if not answer.unchanged:
            yield "untranslated", "the model gave no answer; the text stands as it was"
    elif answer.parts is not None and (answer.lost or answer.added):
        missed = answer.lost or [answer.unit.text[slice(*span)] for span in answer.unit.kept_spans]
        yield "parts", f"translated in parts, to keep {', '.join(dict.fromkeys(missed))}"
    else:
        yield from (("lost", f"{item} is not in the translation") for item in answer.lost)
        yield from (("added", f"the translation has {item}, which the text has not") for item in answer.added)
        if answer.tags is None and answer.parts is None:
            yield "tags", "the place of the tags is a guess"
