"""A sentence as it is asked of a model, with all that is needed to write its translation where it stood."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from kente.text.case import is_shouted, lowered
from kente.text.kept import blanked, kept_spans
from kente.text.passages import Passage, Tag
from kente.text.placing import partners
from kente.text.sentences import Span, line_spans, sentence_spans

_LEADING = ",;:.!?)]}»”’،؛؟、，；：。"  # of a part that is not the first: belongs to what stands before
_TRAILING = "([{«“‘"
_SPACE = re.compile(r"\s")


class Kept(NamedTuple):
    """Letters [start, end) of a sentence that must survive, and where they stand in the page."""

    start: int
    end: int
    page_start: int
    page_end: int
    fixed: bool
    """An element that is not translated: it is written as it stands in the page, tags and all."""


class Copied(NamedTuple):
    """A stretch of the page."""

    start: int
    end: int


class Asked(NamedTuple):
    """Letters [start, end) of a sentence that are translated on their own."""

    start: int
    end: int


@dataclass(frozen=True)
class Unit:
    """Letters [start, end) of a passage: one sentence."""

    passage: Passage
    start: int
    end: int
    text: str
    """The letters, with every space a plain one."""
    asked: str
    """The letters as a model should read them; as many as in `text`."""
    page: Span
    kept: tuple[Kept, ...] = ()
    tags: tuple[Tag, ...] = ()
    """Tags inside the sentence, or at its edge if their partner is inside; their places count its letters."""
    shouted: bool = False

    @property
    def kept_spans(self) -> list[Span]:
        return [(kept.start, kept.end) for kept in self.kept]

    @cached_property
    def kept_edges(self) -> frozenset[int]:
        """Where something kept begins or ends inside the sentence."""
        return frozenset(edge for span in self.kept_spans for edge in span) - {0, len(self.text)}

    @property
    def is_attribute(self) -> bool:
        return self.passage.escape not in ("text", "html")

    def page_span(self, start: int, end: int) -> Span:
        """Where letters [start, end) of the sentence stand in the page."""
        return self.passage.starts[self.start + start], self.passage.ends[self.start + end - 1]

    def parts(self, around_kept: bool) -> list[Copied | Asked]:
        """The sentence cut at its tags and untranslated elements, and if asked to around everything that must survive."""
        stops = [kept[:4] for kept in self.kept if around_kept or kept.fixed]
        covered = {place for start, end, _, _ in stops for place in range(start + 1, end)}
        stops += [(tag.place, tag.place, tag.start, tag.end) for tag in self.tags if tag.place not in covered]
        found: list[Copied | Asked] = []
        place = 0
        for start, end, page_start, page_end in sorted(stops, key=lambda stop: (stop[0], stop[2])):
            found += self._stretch(place, start)
            found.append(Copied(page_start, page_end))
            place = end
        return [*found, *self._stretch(place, len(self.text))]

    def _stretch(self, start: int, end: int) -> Iterator[Copied | Asked]:
        """Letters to be asked for, and the space and punctuation around them, which are not."""
        first, last = start, end
        while start and first < last and (self.text[first].isspace() or self.text[first] in _LEADING):
            first += 1
        while first < last and (self.text[last - 1].isspace() or self.text[last - 1] in _TRAILING):
            last -= 1
        if not _has_letters(self.text[first:last]):
            first = last = end
        if start < first:
            yield Copied(*self.page_span(start, first))
        if first < last:
            yield Asked(first, last)
        if last < end:
            yield Copied(*self.page_span(last, end))


def units_of(passage: Passage, *, split: bool, lowercase: bool) -> Iterator[Unit]:
    """The sentences (or, without `split`, the lines) of a passage that hold something to translate."""
    text, edges = passage.text, _Edges(passage)
    kept = _kept_of(passage)
    starts = [one.start for one in kept]
    for start, end in _never_inside(sentence_spans(text) if split else line_spans(text), kept):
        own = [
            one._replace(start=one.start - start, end=one.end - start)
            for one in kept[bisect_left(starts, start) : bisect_left(starts, end)]
        ]
        plain = _SPACE.sub(" ", text[start:end])
        spans = [(one.start, one.end) for one in own]
        if not _has_letters(blanked(plain, spans)):
            continue
        shouted = is_shouted(plain, spans)
        asked = lowered(plain, spans, capital=not lowercase) if shouted or lowercase else plain
        page_start = own[0].page_start if own and own[0].start == 0 else passage.starts[start]
        page_end = own[-1].page_end if own and own[-1].end == end - start else passage.ends[end - 1]
        tags = edges.tags(start, end)
        if tags:
            page_start, page_end = min(page_start, tags[0].start), max(page_end, tags[-1].end)
        moved = tuple(replace(tag, place=tag.place - start) for tag in tags)
        yield Unit(passage, start, end, plain, asked, (page_start, page_end), tuple(own), moved, shouted)


class _Edges:
    """Which tags of a passage belong to which sentence, asked from left to right."""

    def __init__(self, passage: Passage) -> None:
        self.all, self.places = passage.tags, [tag.place for tag in passage.tags]
        self.partner = partners(passage.tags)
        self.given = 0

    def tags(self, start: int, end: int) -> list[Tag]:
        """Tags between letters of [start, end), and those at its edges whose partners are such; elements around all of it are not."""
        first, last = bisect_right(self.places, start), bisect_left(self.places, end)
        inside = range(first, last)
        leading = range(max(self.given, bisect_left(self.places, start)), first)
        first = next((number for number in leading if self.partner.get(number, -1) in inside), first)
        trailing = range(last, bisect_right(self.places, end))
        last = 1 + max((n for n in trailing if self.partner.get(n, -1) in range(first, last)), default=last - 1)
        self.given = max(self.given, last)
        return list(self.all[first:last])


def _kept_of(passage: Passage) -> list[Kept]:
    fixed = [Kept(one.start, one.end, one.page_start, one.page_end, True) for one in passage.fixed]
    others = kept_spans(blanked(passage.text, [(one.start, one.end) for one in fixed]))
    return sorted(
        [*fixed, *(Kept(a, b, passage.starts[a], passage.ends[b - 1], False) for a, b in others)],
        key=lambda one: one.start,
    )


def _never_inside(spans: list[Span], kept: list[Kept]) -> list[Span]:
    """The spans, those joined that meet inside something kept; none begins or ends inside it."""
    starts = [one.start for one in kept]
    joined: list[Span] = []
    for start, end in spans:
        for at in (start, end):
            number = bisect_left(starts, at) - 1  # the last that begins before `at`
            if number >= 0 and kept[number].end > at:
                start, end = min(start, kept[number].start), max(end, kept[number].end)
        if joined and start < joined[-1][1]:
            before = joined.pop()
            start, end = before[0], max(end, before[1])
        joined.append((start, end))
    assert all(a[1] <= b[0] for a, b in pairwise(joined))
    return joined


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
