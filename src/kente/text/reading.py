"""A text or a page read for translation in two rounds, and written again with everything that is not language where it was.

reading = read(text)                                    reading.sentences: what to translate
again = reading.again(translations)                     parts of sentences that lost an address, a placeholder or a tag
reading.put_together(translations, second)              the text, what to warn of, and where each sentence stands
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kente.text.answers import Answer
from kente.text.passages import Passage, page_passages, subtitle_passage
from kente.text.placing import Link
from kente.text.units import Unit, units_of
from kente.text.writing import Notice, Placed, Writer, Written

__all__ = ["Link", "Notice", "Placed", "Reading", "Written", "read"]


def read(
    text: str, kind: Literal["text", "html", "subtitle"] = "text", *, split: bool = True, lowercase: bool = False
) -> Reading:
    """Find what is to be translated.

    `split=False` is for models that learnt whole lines, `lowercase` for those that learnt small letters only.
    """
    if kind == "html":
        passages = page_passages(text)
    else:
        passages = [subtitle_passage(text) if kind == "subtitle" else Passage.of_text(text)]
    units = [unit for passage in passages for unit in units_of(passage, split=split, lowercase=lowercase)]
    return Reading(text, sorted(units, key=lambda unit: unit.page), lowercase)


class Reading:
    """What there is to translate in a text, and how to write the text again."""

    def __init__(self, page: str, units: list[Unit], lowercase: bool = False) -> None:
        self.page, self.units, self.lowercase = page, units, lowercase

    @property
    def sentences(self) -> list[str]:
        """What to translate; nothing if nothing in the text is language."""
        return [unit.asked for unit in self.units]

    @property
    def tagged(self) -> list[bool]:
        """For each sentence, whether tags stand inside it, so that links would be of use."""
        return [bool(unit.tags) for unit in self.units]

    def again(self, translations: Sequence[str], links: Sequence[Sequence[Link]] | None = None) -> list[str]:
        """What has to be translated a second time, in parts, because something was lost or tags cannot be placed; often nothing.

        `links` say for each sentence which letters became which; with them fewer sentences have to be cut at their tags.
        """
        return [part for answer in self._answers(translations, links) for part in answer.asked]

    def put_together(
        self, translations: Sequence[str], second: Sequence[str] = (), links: Sequence[Sequence[Link]] | None = None
    ) -> Written:
        """The text with its sentences translated.

        `second` translates what `again` gave for the same arguments; without it, what was lost is lost, and said.
        """
        answers = self._answers(translations, links)
        wanted = sum(len(answer.asked) for answer in answers)
        assert len(second) in (0, wanted), f"{wanted} parts were asked for, {len(second)} came back"
        remaining = iter(second)
        for answer in answers if second else ():
            if answer.asked:
                answer.parts = [next(remaining).strip() for _ in answer.asked]
        return Writer(self.page, answers, self.lowercase).write()

    def _answers(self, translations: Sequence[str], links: Sequence[Sequence[Link]] | None) -> list[Answer]:
        known = links if links is not None else [()] * len(self.units)
        return [Answer(*one) for one in zip(self.units, translations, known, strict=True)]
