"""The embedded corpus: English and French sentences from a grammar of our own, with gold alignments and structure. Needs no download."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from kente.data.bilingual.facts import Sentence
from kente.data.bilingual.french import ASPIRATED, BEFORE_VOWEL, starts_with_vowel
from kente.data.bilingual.sentences import Sentences
from kente.data.bilingual.stock import STOCK
from kente.errors import UsageError

_MARKS = frozenset(",.?!")
_WORDS = {
    "english": re.compile(r"o'clock|'s|\w+(?:-\w+)*|[,.?!]"),
    "french": re.compile(r"[Aa]ujourd'hui|\w+(?:-\w+)*'?|[,.?!]"),
}


@dataclass(frozen=True, slots=True)
class GrammarPair:
    """An English sentence, its French translation, and what is known about both."""

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]
    """Pairs (index in source_words, index in target_words) of words that translate each other."""
    tree: str
    """Bracketed structure of the English side."""
    features: frozenset[str]
    """Phenomena in the sentence: negation, relative, question, clitic, elision, ..."""
    combinations: tuple[tuple[str, str], ...] = ()
    """(adjective, noun) and (verb, object) that stand together."""

    @property
    def length(self) -> int:
        """English words, punctuation not counted."""
        return sum(word not in _MARKS for word in self.source_words)


def words(text: str, language: Literal["english", "french"]) -> tuple[str, ...]:
    """The words and punctuation marks of a text; l', d', qu' and their like are words of their own, and so is the English 's."""
    return tuple(_WORDS[language].findall(text))


def join(parts: tuple[str, ...] | list[str], language: Literal["english", "french"]) -> str:
    """The text whose words are `parts`: the inverse of `words`."""
    text = ""
    for part in parts:
        tight = not text or (part in ",." or (language == "english" and (part in _MARKS or part == "'s")))
        text += part if tight or (language == "french" and text.endswith("'")) else " " + part
    return text


# ---- from words to a pair ---------------------------------------------------------------------------------------------------


def _spell_french(sentence: Sentence, features: set[str]) -> list[str]:
    """The French words as their neighbours make them: l'ami, cet homme, mon école, un bel arbre, s'il."""
    spelled = []
    french = sentence.french
    for place, (text, _, before_vowel) in enumerate(french):
        following = french[place + 1][0] if place + 1 < len(french) else "."
        if text == "si":
            if following in ("il", "ils"):
                text = "s'"
        elif before_vowel or text in BEFORE_VOWEL:
            if starts_with_vowel(following):
                text = before_vowel or BEFORE_VOWEL[text]
                features.add("elision" if text[-1] == "'" else "vowel-form")
            elif following in ASPIRATED:
                features.add("aspirated-h")
        spelled.append(text)
    return spelled


def _pair(sentence: Sentence, speaker: Sentences) -> GrammarPair:
    features = speaker.features
    source = [text for text, _ in sentence.english]
    target = _spell_french(sentence, features)
    places: dict[int, list[int]] = {}
    for place, word in enumerate(sentence.french):
        for link in word[1]:
            places.setdefault(link, []).append(place)
    alignment = {
        (i, j) for i, (_, links) in enumerate(sentence.english) for link in links for j in places.get(link, ())
    }
    if sentence.mark:
        alignment.add((len(source), len(target)))
        source.append(sentence.mark)
        target.append(sentence.mark)
    source[0] = source[0][0].upper() + source[0][1:]
    target[0] = target[0][0].upper() + target[0][1:]
    tree = f"{sentence.tree[:-1]} {sentence.mark})" if sentence.mark else sentence.tree
    return GrammarPair(
        join(source, "english"), join(target, "french"), tuple(source), tuple(target), tuple(sorted(alignment)), tree,
        frozenset(features), tuple(speaker.combinations),
    )  # fmt: skip


def _stock(speaker: Sentences, place: int) -> GrammarPair:
    fragment, mark = STOCK[place]
    speaker.begin()
    english, french = speaker.say(fragment)
    speaker.features.add("phrase")
    return _pair(Sentence(english, french, f"(PHRASE {' '.join(word for word, _ in english)})", mark), speaker)


def _sentence(speaker: Sentences, min_words: int, max_words: int) -> Sentence:
    """One sentence of a kind drawn at random; its length is only roughly in the bounds."""
    if min_words > 14:
        return speaker.several(min_words + int(speaker.random() * (max_words - min_words + 1)))
    kinds: dict[Callable[[], Sentence], float] = {
        speaker.one_clause: 36.0, speaker.question: 13.0, lambda: speaker.statement(speaker.state()): 12.0, speaker.located: 3.0,
        speaker.existential: 3.5, speaker.comparison: 3.0, speaker.profession: 1.2, speaker.age: 1.5, speaker.price: 1.5,
        speaker.weather_report: 0.6, speaker.command: 4.0, speaker.two_clauses: 18.0,
        lambda: speaker.several(13 + int(speaker.random() * (max_words - 12))): 4.0 if max_words > 13 else 0.0,
    }  # fmt: skip
    return speaker.weighted(kinds)()


_PATIENCE = 2_000  # sentences said before, in a row, until we say that there are no more
_MISSES = 100_000  # sentences of other lengths, in a row, until we say that there are none


def _stream(seed: str, min_words: int, max_words: int, phrases: bool = True) -> Iterator[GrammarPair]:
    """Sentences without end, not all distinct."""
    if not 1 <= min_words <= max_words:
        raise UsageError(
            f"a grammar sentence has from min_words to max_words words, but {min_words} to {max_words} were asked for"
        )
    missed = 0
    speaker = Sentences(Random(seed))  # a text seed is hashed by Random itself, the same everywhere
    while True:
        if phrases and speaker.chance(0.015):
            pair = _stock(speaker, int(speaker.random() * len(STOCK)))
        else:
            speaker.begin()
            sentence = _sentence(speaker, min_words, max_words)
            if sentence.mark == "." and len(sentence.english) < 7 and speaker.chance(0.04):
                sentence.mark = ""
            pair = _pair(sentence, speaker)
        if min_words <= pair.length <= max_words:
            missed = 0
            yield pair
        elif (missed := missed + 1) > _MISSES:
            raise UsageError(f"the grammar has no sentences of {min_words} to {max_words} words; allow other lengths")


def _distinct(stream: Iterator[GrammarPair], count: int, seen: set[str]) -> Iterator[GrammarPair]:
    """`count` sentences whose sources are not in `seen`, which grows with them."""
    missed = made = 0
    while made < count:
        pair = next(stream)
        if pair.source in seen:
            missed += 1
            if missed > _PATIENCE:
                raise UsageError(
                    f"the grammar ran out after {made:,} distinct sentences, but {count:,} were asked for; allow longer ones"
                )
            continue
        missed = 0
        made += 1
        seen.add(pair.source)
        yield pair


def generate(seed: int, count: int, min_words: int = 2, max_words: int = 25) -> Iterator[GrammarPair]:
    """`count` pairs with distinct sources of min_words to max_words English words (punctuation not counted), the same for the same seed."""
    return _distinct(_stream(f"generate {seed}", min_words, max_words), count, set())


# ---- splits -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GrammarSplits:
    """What to learn from and what to be tried on."""

    train: list[GrammarPair]
    validation: list[GrammarPair]
    test: list[GrammarPair]
    """As long as those trained on, never seen; the first half holds a combination of words never seen together (feature "unseen")."""
    test_long: list[GrammarPair]
    """Longer than any trained on."""


def held_out(combination: tuple[str, str]) -> bool:
    """Whether an (adjective, noun) or (verb, object) is kept from training: one in twelve, by a hash that does not change."""
    return zlib.crc32("+".join(combination).encode()) % 12 == 0


def _has_unseen(pair: GrammarPair) -> bool:
    return any(held_out(combination) for combination in pair.combinations)


def splits(
    seed: int = 1,
    train: int = 30_000,
    validation: int = 500,
    test: int = 500,
    test_long: int = 300,
    max_words: int = 20,
) -> GrammarSplits:
    """Training, validation and test sentences without a source in common. The tests do not depend on how much is trained on."""
    seen: set[str] = set()

    def part(
        name: str, count: int, unseen: bool | None, min_words: int = 2, longest: int = max_words
    ) -> list[GrammarPair]:
        stream = _stream(f"{name} {seed}", min_words, longest, phrases=False)
        wanted = (pair for pair in stream if unseen is None or _has_unseen(pair) == unseen)
        return list(_distinct(wanted, count, seen))

    for place in range(len(STOCK)):  # everyday phrases are for training
        seen.add(_stock(_LISTENER, place).source)
    tests = [replace(pair, features=pair.features | {"unseen"}) for pair in part("unseen", test - test // 2, True)]
    tests += part("test", test // 2, False)
    longer = part("long", test_long, None, max_words + 6, max_words + 35)
    validations = part("validation", validation, False)
    phrases = [_stock(_LISTENER, place) for place in range(min(len(STOCK), train))]
    trains = phrases + part("train", train - len(phrases), False)
    Random(f"order {seed}").shuffle(trains)
    return GrammarSplits(trains, validations, tests, longer)


_LISTENER = Sentences(Random("phrases"))
