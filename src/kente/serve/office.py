"""Texts in, translations out: read, put in the queue, waited for, put together again."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kente.decode.answers import CUT, LATE, LOOPED, NOTHING
from kente.decode.translator import SHORTENED, SPLIT, UNKNOWN, Translation
from kente.serve.asking import AUTO, Asked
from kente.serve.queue import Kind, Queue, Ticket
from kente.serve.refusals import Refusal, bad_request
from kente.serve.translators import Pair, Translators
from kente.serve.turns import Turns
from kente.serve.wording import Detector, Document, Link, Placed, Reading, read
from kente.serve.words import links_of

LONG, SHORT = 2_000, 200
"""Characters from which on a text is read beside the loop, so that others need not wait for it; and its language found out there."""
WINDOW = 64
"""Sentences of a file that wait at a time."""
PATIENCE = 0.5
"""Seconds before a file asks again for room in the queue."""

KINDS = {
    SPLIT: "split",
    SHORTENED: "shortened",
    UNKNOWN: "unknown",
    CUT: "cut",
    LOOPED: "repetition",
    LATE: "late",
    NOTHING: "nothing",
}
"""Words for what the translator warns of."""

Progress = Callable[[int, int], Awaitable[None]]
T = TypeVar("T")


@dataclass(frozen=True)
class Guess:
    """The language a text seems to be in."""

    language: str
    confidence: float


@dataclass(frozen=True)
class Warned:
    """Something a reader should know: a word for it, a sentence, and the place in the translation it is about."""

    kind: str
    message: str
    start: int
    end: int


@dataclass
class Text:
    """One text on its way."""

    source: str
    language: str
    target: str
    detected: Guess | None = None
    pair: Pair | None = None
    """None where there is nothing to translate: it is in the right language already."""
    reading: Reading | None = None
    sentences: list[str] = field(default_factory=list)
    found: list[Translation] = field(default_factory=list)

    @property
    def links(self) -> list[list[Link]] | None:
        """Which letters became which, for tags to be put in their places; None where that was not asked for."""
        if not any(translation.details for translation in self.found):
            return None
        return [links_of(sentence, found) for sentence, found in zip(self.sentences, self.found, strict=True)]


@dataclass(frozen=True)
class Variant:
    """A way to write the translation: one wording for each sentence, how good the model finds it, what has to be asked for again."""

    sentences: list[str]
    score: float
    links: list[list[Link]] | None
    again: list[str]


@dataclass(frozen=True)
class Done:
    """A translated text and everything known about it."""

    source: str
    text: str
    language: str
    detected: Guess | None = None
    alternatives: tuple[tuple[str, float], ...] = ()
    warnings: tuple[Warned, ...] = ()
    sentences: tuple[tuple[str, Translation, Placed], ...] = ()
    """What the model was asked, what it said, and where that stands in both texts."""


class Office:
    """Translates what is asked. `detector` tells languages apart, where there is one."""

    def __init__(self, translators: Translators, queue: Queue, detector: Detector | None = None) -> None:
        self.translators, self.queue, self.detector = translators, queue, detector
        self.turns = Turns()

    # ------------------------------------------------------------ languages

    def detect(self, text: str) -> list[Guess]:
        """Languages the text may be in, the likeliest first."""
        if self.detector is not None:
            return [Guess(code, confidence) for code, confidence in self.detector.detect(text)]
        known = list(dict.fromkeys([*self.translators.sources, *self.translators.targets]))
        if len(known) > 2 or len(self.translators.pairs) > 1:
            raise bad_request(f"languages cannot be told apart here; name the source, one of {', '.join(known)}")
        return [Guess(self.translators.sources[0], 0.0)]  # there is only one it could be

    def check(self, source: str, target: str) -> None:
        """Refuse languages that nothing here translates."""
        sources, targets = self.translators.sources, self.translators.targets
        if source != AUTO and source not in (*sources, *targets):
            raise bad_request(f"{source[:40]} is not translated here; sources are {', '.join([AUTO, *sources])}")
        if target not in (*targets, *sources):
            raise bad_request(f"{target[:40]} is not translated to here; targets are {', '.join(targets)}")
        if source not in (AUTO, target) and (source, target) not in self.translators.pairs:
            offered = self.translators.targets_of(source)
            where = f"targets for it are {', '.join(offered)}" if offered else "it is a target only"
            raise bad_request(f"{source} is not translated to {target} here; {where}")

    async def _text(self, source: str, asked: Asked) -> Text:
        language, detected = asked.source, None
        if language == AUTO:
            possible = {*self.translators.sources_of(asked.target), asked.target}
            guesses = self.detect(source) if len(source) < SHORT else await asyncio.to_thread(self.detect, source)
            detected = next((guess for guess in guesses if guess.language in possible), None)
            if detected is None:
                seen = guesses[0].language if guesses else "unknown"
                raise bad_request(
                    f"the text seems to be {seen}, which is not translated to {asked.target} here; name the source"
                )
            language = detected.language
        pair = self.translators.pairs.get((language, asked.target))
        return Text(source, language, asked.target, detected, pair)

    # ------------------------------------------------------------ texts

    async def translate(self, asked: Asked) -> list[Done]:
        """All texts of a request, translated."""
        self.check(asked.source, asked.target)
        texts = [await self._text(source, asked) for source in asked.texts]
        for text in texts:
            await self._read(text, asked.html)
        groups: dict[Kind, list[Text]] = {}
        for text in texts:
            if text.sentences:
                groups.setdefault(self._kind(text, asked), []).append(text)
        sentences = [[sentence for text in some for sentence in text.sentences] for some in groups.values()]
        answers = await self._ask(list(groups), sentences)
        for some, found in zip(groups.values(), answers, strict=True):
            left = iter(found)
            for text in some:
                text.found = [next(left) for _ in text.sentences]
        return await self._finish(texts, asked)

    async def stream(self, asked: Asked) -> AsyncGenerator[tuple[Text, int] | Done]:
        """(the text, number of a sentence that was found) as they come, and the whole at the end.

        Nothing comes before the queue has taken the text.
        """
        self.check(asked.source, asked.target)
        text = await self._text(asked.texts[0], asked)
        await self._read(text, asked.html)
        if text.sentences:
            ticket = self._ticket(self._kind(text, asked), text.sentences)
            try:
                self.queue.offer(ticket)
                async for place, found in ticket.in_order():
                    text.found.append(found)
                    yield text, place
            finally:
                self.queue.forget(ticket)
        for done in await self._finish([text], asked):
            yield done

    async def _read(self, text: Text, html: bool) -> None:
        if text.pair is None:
            return
        split, lowercase = self.translators.habits(text.pair)
        text.reading = await _aside(text, read, text.source, html, split, lowercase)
        text.sentences = text.reading.sentences

    def _kind(self, text: Text, asked: Asked) -> Kind:
        assert text.reading is not None
        words = asked.words or any(text.reading.tagged)  # tags follow the words they stand at
        return Kind(text.language, text.target, asked.alternatives + 1, words)

    def _ticket(self, kind: Kind, sentences: Sequence[str]) -> Ticket:
        return Ticket(kind, sentences, [self.translators.tokens(kind, sentence) for sentence in sentences])

    async def _ask(
        self, kinds: Sequence[Kind], sentences: Sequence[Sequence[str]], *, again: bool = False
    ) -> list[list[Translation]]:
        """Answers to lists of sentences, each of one kind: all of them are taken or none."""
        if not kinds:
            return []
        tickets = [self._ticket(kind, some) for kind, some in zip(kinds, sentences, strict=True)]
        try:
            for ticket in tickets:
                self.queue.offer(ticket, again=again)
            answers = [await ticket.all() for ticket in tickets]
        finally:
            for ticket in tickets:
                self.queue.forget(ticket)
        await self.turns.take()
        return answers

    async def _finish(self, texts: Sequence[Text], asked: Asked) -> list[Done]:
        """Put together what was found; what was lost on the way is asked for once more, for all texts at once."""
        variants: dict[int, list[Variant]] = {}
        for place, text in enumerate(texts):
            if text.reading is not None:
                variants[place] = await _aside(text, _variants, text, asked.alternatives + 1)
        lost: dict[Kind, list[str]] = {}
        for place, some in variants.items():
            pair = texts[place].pair
            assert pair is not None
            missing = [part for variant in some for part in variant.again]
            if missing:
                lost.setdefault(Kind(pair.source, pair.target), []).extend(missing)
        answers = await self._ask(list(lost), list(lost.values()), again=True)
        second = {kind: iter(found) for kind, found in zip(lost, answers, strict=True)}
        finished = []
        for place, text in enumerate(texts):
            if place not in variants:
                finished.append(Done(text.source, text.source, text.language, text.detected))
                continue
            assert text.pair is not None
            more = second.get(Kind(text.pair.source, text.pair.target), iter(()))
            finished.append(await _aside(text, _put_together, text, variants[place], more))
        return finished

    # ------------------------------------------------------------ files

    async def translate_document(self, document: Document, source: str, target: str, told: Progress | None) -> bytes:
        """A file, a window of sentences at a time; where the queue is full it waits for room."""
        sentences = document.sentences
        kind = Kind(source, target, words=any(document.tagged))
        found = await self._windows(kind, sentences, told)
        texts = [answer.text for answer in found]
        links = [links_of(sentence, answer) for sentence, answer in zip(sentences, found, strict=True)]
        again = await asyncio.to_thread(document.again, texts, links if kind.words else None)
        second = [answer.text for answer in await self._windows(Kind(source, target), again, None)]
        written = await asyncio.to_thread(document.put_together, texts, second, links if kind.words else None)
        return written.data

    async def _windows(self, kind: Kind, sentences: Sequence[str], told: Progress | None) -> list[Translation]:
        found: list[Translation] = []
        for begin in range(0, len(sentences), WINDOW):
            found += await self._patiently(kind, sentences[begin : begin + WINDOW])
            if told is not None:
                await told(len(found), len(sentences))
        return found

    async def _patiently(self, kind: Kind, sentences: Sequence[str]) -> list[Translation]:
        while True:
            try:
                return (await self._ask([kind], [sentences]))[0]
            except Refusal as refusal:
                if refusal.why != "overload":
                    raise
            await asyncio.sleep(PATIENCE)


async def _aside(text: Text, function: Callable[..., T], *arguments: Any) -> T:
    """function(*arguments): at once for a short text, in a thread of its own for a long one."""
    if len(text.source) < LONG:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def _variants(text: Text, count: int) -> list[Variant]:
    """The best ways to word the whole text, best first: a sentence's alternatives beside the best of the others."""
    ways: list[tuple[float, list[str]]] = [(0.0, [])]
    for translation in text.found:
        options = [(translation.score, translation.text), *((a.score, a.text) for a in translation.alternatives)]
        longer = [(total + score, [*words, wording]) for total, words in ways for score, wording in options[:count]]
        ways = heapq.nlargest(count, longer, key=lambda way: way[0])
    assert text.reading is not None
    number, links, made = max(1, len(text.found)), text.links, []
    for total, words in ways:
        made.append(Variant(words, total / number, links, text.reading.again(words, links)))
        links = None  # they are those of the best wording
    return made


def _put_together(text: Text, variants: Sequence[Variant], second: Any) -> Done:
    assert text.reading is not None
    written = [
        text.reading.put_together(variant.sentences, [next(second).text for _ in variant.again], variant.links)
        for variant in variants
    ]
    best = written[0]
    others: dict[str, float] = {}
    for variant, other in zip(variants[1:], written[1:], strict=True):
        if other.text != best.text:
            others.setdefault(other.text, variant.score)
    warnings = [Warned(w.kind, w.message, w.start, w.end) for w in best.warnings]
    for translation, placed in zip(text.found, best.sentences, strict=True):
        warnings += [Warned(KINDS.get(message, "model"), message, *placed.target) for message in translation.warnings]
    sentences = tuple(zip(text.sentences, text.found, best.sentences, strict=True))
    return Done(text.source, best.text, text.language, text.detected, tuple(others.items()), tuple(warnings), sentences)
