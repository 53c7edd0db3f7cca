"""A sentence's translation, judged by what it kept: whether it stands as one, and if not, which parts to translate again."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from kente.text.kept import compare_kept, places_of
from kente.text.passages import Tag
from kente.text.placing import Link, place_tags, same_words
from kente.text.sentences import Span
from kente.text.units import Asked, Copied, Kept, Unit

_FULL_STOP = re.compile(r"[.!?…。！？।።؟۔]+$")
_STOPS = (".", "。", "।", "።", "۔")
_WORD = re.compile(r"[^\W\d_]+")


class Answer:
    """What a model said to a sentence."""

    def __init__(self, unit: Unit, translation: str, links: Sequence[Link] = ()) -> None:
        self.unit, self.text = unit, without_added_stop(unit.text, translation.strip())
        self.unchanged = self.text in (unit.asked, unit.text)
        self.left = self.unchanged or not self.text
        """The sentence stands in the page as it did."""
        self.parts: list[str] | None = None
        """Translations of what `asked` says, once they are there."""
        self.tags: list[tuple[int, Tag]] | None = []
        """(place in the translation, tag), None where that is not known."""
        self.kept_at: list[Span] = []
        self.lost: list[str] = []
        self.added: list[str] = []
        if not self.left:
            self._judge(links)

    def _judge(self, links: Sequence[Link]) -> None:
        kept = [self.unit.text[start:end] for start, end in self.unit.kept_spans]
        self.lost, self.added = compare_kept(kept, self.text)
        self.kept_at = places_of(kept, self.text)
        if self.unit.tags:
            self.tags = self._place(links, complete=True) if links else self._place(self._sure_links(), complete=False)

    @cached_property
    def pieces(self) -> list[Copied | Asked]:
        """The sentence in the parts it has to be translated in; none if its translation stands as one."""
        if self.left or not (self.unit.kept or self.unit.tags):
            return []
        if self.lost or self.added:
            return self.unit.parts(around_kept=True)
        return self.unit.parts(around_kept=False) if self.tags is None else []

    @cached_property
    def asked(self) -> list[str]:
        """Parts to be translated on their own."""
        return [self.unit.asked[piece.start : piece.end] for piece in self.pieces if isinstance(piece, Asked)]

    def _place(self, links: Sequence[Link], complete: bool) -> list[tuple[int, Tag]] | None:
        return place_tags(self.unit.text, self.text, self.unit.tags, links, complete=complete)

    def _sure_links(self) -> list[Link]:
        """What is the same on both sides."""
        pairs = ((kept.start, kept.end, *span) for kept, span in self.kept_pairs())
        return [*same_words(self.unit.asked, self.text), *pairs]

    def kept_pairs(self) -> list[tuple[Kept, Span]]:
        """What must survive, and where it stands in the translation; of several that are the same, the first becomes the first."""
        waiting = defaultdict[str, list[Span]](list)
        for span in reversed(self.kept_at):
            waiting[self.text[slice(*span)]].append(span)
        pairs = ((kept, waiting[self.unit.text[kept.start : kept.end]]) for kept in self.unit.kept)
        return [(kept, spans.pop()) for kept, spans in pairs if spans]

    def place_by_parts(self) -> bool:
        """Place the tags where the translations of the parts are found, each once, in the translation of the whole."""
        if self.parts is None or self.lost or self.added:
            return False
        links, small = self._sure_links(), _small(self.text)
        spans = [piece for piece in self.pieces if isinstance(piece, Asked)]
        for (start, end), part in zip(spans, self.parts, strict=True):
            wanted = _small(fitted(self.unit.text[start:end], part, self.text))
            at = small.find(wanted)
            if wanted and at >= 0 and at == small.rfind(wanted):
                links.append((start, end, at, at + len(wanted)))
        self.tags = self._place(links, complete=False)
        return self.tags is not None


def without_added_stop(source: str, text: str) -> str:
    """A heading or a label gets no full stop: models that have only read sentences like to add one.

    A dot after a short word stays, for it may belong to the word: usw., etc.
    """
    if not source[-1:].isalnum() or text[-1:] not in _STOPS:
        return text
    body = text[:-1].rstrip()
    of_the_word = text[-1] == "." and len(body) == len(text) - 1 and not (len(body) > 3 and body[-4:].isalpha())
    return text if of_the_word or not body else body


def fitted(part: str, answer: str, whole: str) -> str:
    """An answer as part of a sentence: without the full stop and the capital that its source has not.

    A capital stays if the translation of the whole sentence has the word with it, other than at its beginning.
    """
    if not _FULL_STOP.search(part):
        answer = _FULL_STOP.sub("", answer).rstrip()
    word, first = _WORD.match(answer), _WORD.search(part)
    if word and first and word[0].istitle() and first[0][0].islower() and f" {word[0]}" not in whole:
        answer = answer[0].lower() + answer[1:]
    return answer


def _small(text: str) -> str:
    small = text.lower()
    return small if len(small) == len(text) else text
