"""Noun phrases, pronouns and ready-made fragments of the embedded corpus, in both languages at once.

A word is (text, links): two words are aligned when they share a link. French words carry a third item, the form taken before a
vowel where it is not the general one of `french.BEFORE_VOWEL`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from kente.data.bilingual.french import CONTRACTED, number_words, starts_with_vowel
from kente.data.bilingual.lexicon import (
    ADJECTIVES_AFTER,
    ADJECTIVES_BEFORE,
    FEMALE_NAMES,
    MALE_NAMES,
    Adjective,
    Noun,
    tagged,
)

English = list[tuple[str, tuple[int, ...]]]
French = list[tuple[str, tuple[int, ...], str | None]]
T = TypeVar("T")

ME, HE, WE, YOU, THEY = 0, 2, 3, 4, 5  # persons, as places in a conjugation table


@dataclass(slots=True)
class NounPhrase:
    """Words, and what agrees with them."""

    english: English
    french: French
    person: int
    feminine: bool
    plural: bool  # of adjectives and participles: the polite "vous" is one man
    tree: str
    noun: Noun | None = None
    determiner: str = ""
    acts: bool = True  # may be meant by the pronoun that is the subject of a later clause


@dataclass(frozen=True, slots=True)
class Fragment:
    """A ready-made piece of both languages. Written "last/a week/b = la/b semaine/b dernière/a"; words without a mark share a link."""

    english: tuple[tuple[str, tuple[int, ...]], ...]
    french: tuple[tuple[str, tuple[int, ...]], ...]
    links: int

    @classmethod
    def of(cls, text: str) -> Fragment:
        names: dict[str, int] = {}

        def read(side: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
            marked = (word.rsplit("/", 1) if "/" in word else [word, "*"] for word in side.split())
            return tuple((word, tuple(names.setdefault(name, len(names)) for name in marks)) for word, marks in marked)

        english, french = text.split(" = ")
        return cls(read(english), read(french), len(names))


def fragments(text: str) -> tuple[Fragment, ...]:
    return tuple(Fragment.of(line) for line in text.strip().splitlines())


_PRONOUNS = {  # english: french, person, feminine, plural
    "I": ("je", ME, False, False), "you": ("vous", YOU, False, False), "he": ("il", HE, False, False), "she": ("elle", HE, True, False),
    "we": ("nous", WE, False, True), "they": ("ils", THEY, False, True),
}  # fmt: skip
POSSESSIVES = {
    "my": ("mon", "ma", "mes"), "your": ("votre", "votre", "vos"), "his": ("son", "sa", "ses"), "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"), "their": ("leur", "leur", "leurs"),
}  # fmt: skip
_OWNERS = tuple(POSSESSIVES)
_SPOUSES = {"husband": ("my", "your", "her"), "wife": ("my", "your", "his")}
_ENGLISH_NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_ENGLISH_TENS = ["-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
PERSONS, KIN, ANIMALS = tagged("person"), tagged("kin"), tagged("animal")
_RELATIVES = tuple(noun for noun in KIN if noun.english not in _SPOUSES)


def english_number(number: int) -> str:
    if number < 20:
        return _ENGLISH_NUMBERS[number]
    tens, rest = divmod(number, 10)
    return _ENGLISH_TENS[tens] + (f"-{_ENGLISH_NUMBERS[rest]}" if rest else "")


def article(word: str) -> str:
    """a or an."""
    return "an" if word[0] in "aeiou" and word != "university" else "a"


def text_of(words: Iterable[tuple[str, tuple[int, ...]]]) -> str:
    return " ".join(word[0] for word in words)


class Speaker:
    """Says noun phrases with choices drawn from a random source; collects links, features and word combinations of one sentence."""

    def __init__(self, source: Random) -> None:
        self.random = source.random
        self.begin()

    def begin(self) -> None:
        """Start a new sentence."""
        self.links = 0
        self.features: set[str] = set()
        self.named: set[str] = set()
        self.combinations: list[tuple[str, str]] = []

    def link(self) -> tuple[int, ...]:
        self.links += 1
        return (self.links,)

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random() * len(items))]

    def weighted(self, weights: dict[T, float]) -> T:
        left = self.random() * sum(weights.values())
        for item, weight in weights.items():
            left -= weight
            if left < 0:
                return item
        return next(item for item, weight in weights.items() if weight)  # only rounding leads here

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def say(self, fragment: Fragment) -> tuple[English, French]:
        """The words of a fragment, with links of their own."""
        base = self.links + 1
        self.links += fragment.links
        english = [(text, tuple(base + link for link in links)) for text, links in fragment.english]
        french: French = [(text, tuple(base + link for link in links), None) for text, links in fragment.french]
        return english, french

    # ---- noun phrases -------------------------------------------------------------------------------------------------

    def pronoun(self, word: str, feminine: bool = False) -> NounPhrase:
        """A subject pronoun. It and they take the gender of what they stand for."""
        if word == "it":
            french, person, plural = ("elle" if feminine else "il"), HE, False
        else:
            french, person, own, plural = _PRONOUNS[word]
            feminine = feminine or own
            if word == "they" and feminine:
                french = "elles"
        link = self.link()
        return NounPhrase([(word, link)], [(french, link, None)], person, feminine, plural, f"(NP {word})")

    def name(self, feminine: bool | None = None) -> NounPhrase:
        if feminine is None:
            feminine = self.chance(0.5)
        name, link = self.pick(FEMALE_NAMES if feminine else MALE_NAMES), self.link()
        if name in self.named:  # once more, so that few people are named twice
            name = self.pick(FEMALE_NAMES if feminine else MALE_NAMES)
        self.named.add(name)
        return NounPhrase([(name, link)], [(name, link, None)], HE, feminine, False, f"(NP {name})")

    def names(self) -> NounPhrase:
        """Two people: Paul and Anna."""
        first, second, link = self.name(), self.name(), self.link()
        self.features.add("coordination")
        english = [*first.english, ("and", link), *second.english]
        french: French = [*first.french, ("et", link, None), *second.french]
        return NounPhrase(
            english, french, THEY, first.feminine and second.feminine, True, f"(NP {first.tree} and {second.tree})"
        )

    def number(self, noun: Noun) -> int:
        """A count that such things come in."""
        if noun.kind == "kin":
            return 2 + int(self.random() * 4)
        many = noun.kind in ("fruit", "raw", "text", "thing", "plant") and self.chance(0.3)
        return 2 + int(self.random() * (98 if many else 11))

    def adjectives(self, noun: Noun) -> tuple[Adjective | None, Adjective | None]:
        """One before the French noun, one after it, or neither."""
        before, after = ADJECTIVES_BEFORE[noun], ADJECTIVES_AFTER[noun]
        draw = self.random()
        if noun.kind == "kin" or draw > 0.34:
            return None, None
        first = self.pick(before) if before and (draw < 0.20 or not after) else None
        second = self.pick(after) if after and (first is None or (draw < 0.04 and noun.kind != "person")) else None
        return first, second

    def noun_phrase(
        self, noun: Noun, determiner: str, plural: bool = False, bare: bool = False, owner: str = "",
        chosen: tuple[Adjective | None, Adjective | None] | None = None,
    ) -> NounPhrase:  # fmt: skip
        """Determiner, adjectives (`chosen` ones, none if `bare`, else drawn) and noun, agreeing."""
        before, after = chosen or ((None, None) if bare else self.adjectives(noun))
        noun_link = self.link()
        form = 2 * plural + noun.feminine
        english: English = []
        french: French = []
        for adjective in (before, after):
            if adjective:
                link = self.link()
                english.append((adjective.english, link))
                self.combinations.append((adjective.english, noun.english))
                self.features.add("adjective-before" if adjective.before else "adjective-after")
                if adjective.before:
                    french.append((adjective.french[form], link, adjective.before_vowel if form == 0 else None))
        english.append((noun.english_plural if plural else noun.english, noun_link))
        french.append((noun.french_plural if plural else noun.french, noun_link, None))
        if after:
            french.append((after.french[form], english[-2][1], None))
        ahead_english, ahead_french = self._determiner(
            determiner, noun, plural, noun_link, english[0][0], french[0][0], before is not None, owner
        )
        english = ahead_english + english
        french = ahead_french + french
        return NounPhrase(
            english, french, THEY if plural else HE, noun.feminine, plural, f"(NP {text_of(english)})", noun, determiner
        )

    def _determiner(
        self,
        kind: str,
        noun: Noun,
        plural: bool,
        noun_link: tuple[int, ...],
        next_english: str,
        next_french: str,
        adjective: bool,
        owner: str,
    ) -> tuple[English, French]:
        feminine = noun.feminine
        the = "les" if plural else "la" if feminine else "le"
        link = self.link()
        match kind:
            case "the":
                return [("the", link)], [(the, link, None)]
            case "a":
                return [(article(next_english), link)], [("une" if feminine else "un", link, None)]
            case "generic":
                self.features.add("generic")
                return [], [(the, noun_link, None)]
            case "some":
                return [("some", link)], self._partitive(plural, feminine, link, next_french, adjective)
            case "any" | "none":  # "not any apples", "never eats apples", "no apples": de
                self.features.add("negated-article")
                word = {"any": "any", "none": "no"}[kind]
                return [(word, link)], [("de", link, None)]
            case "bare":
                self.features.add("negated-article")
                return [], [("de", noun_link, None)]
            case "this" | "that":
                self.features.add("demonstrative")
                word = {"this": "these", "that": "those"}[kind] if plural else kind
                return [(word, link)], [("ces" if plural else "cette" if feminine else "ce", link, None)]
            case "possessive":
                self.features.add("possessive")
                word = owner or self.pick(_OWNERS)
                if noun.english in _SPOUSES and word not in _SPOUSES[noun.english]:
                    word = self.pick(_SPOUSES[noun.english])
                return [(word, link)], [(POSSESSIVES[word][2 if plural else feminine], link, None)]
            case "number":
                self.features.add("number")
                value = self.number(noun)
                return [(english_number(value), link)], [(word, link, None) for word in number_words(value, feminine)]
            case "all":
                second = self.link()
                return [("all", link), ("the", second)], [
                    ("toutes" if feminine else "tous", link, None),
                    ("les", second, None),
                ]
            case "every":
                return [("every", link)], [("chaque", link, None)]
            case "many":
                return [("many", link)], [("beaucoup", link, None), ("de", link, None)]
            case "several":
                return [("several", link)], [("plusieurs", link, None)]
            case "few":
                return [("a", link), ("few", link)], [("quelques", link, None)]
        raise AssertionError(kind)

    def _partitive(
        self, plural: bool, feminine: bool, link: tuple[int, ...], next_french: str, adjective: bool
    ) -> French:
        if plural:
            return [("de" if adjective else "des", link, None)]
        self.features.add("partitive")
        if feminine or starts_with_vowel(next_french):
            return [("de", link, None), ("la" if feminine else "le", link, None)]
        return [("du", link, None)]

    def genitive(self, noun: Noun) -> NounPhrase:
        """Paul's car, my sister's car: la voiture de Paul, de ma sœur."""
        owner = (
            self.name()
            if noun.kind == "kin" or self.chance(0.6)
            else self.noun_phrase(self.pick(_RELATIVES), "possessive", bare=True)
        )
        self.features.add("genitive")
        noun_link, link = self.link(), self.link()
        plural = "pair" in noun.tags or (self.chance(0.15) and "one" not in noun.tags and not noun.mass)
        english = [*owner.english, ("'s", link), (noun.english_plural if plural else noun.english, noun_link)]
        the = "les" if plural else "la" if noun.feminine else "le"
        french: French = [
            (the, noun_link, None),
            (noun.french_plural if plural else noun.french, noun_link, None),
            *self.joined("de", link, owner),
        ]
        tree = f"(NP {owner.tree} 's {english[-1][0]})"
        return NounPhrase(english, french, THEY if plural else HE, noun.feminine, plural, tree, noun, "genitive")

    def joined(self, preposition: str, link: tuple[int, ...], phrase: NounPhrase) -> French:
        """A French preposition and a noun phrase, contracted where French contracts: au, aux, du, des."""
        head, *rest = phrase.french
        contracted = CONTRACTED.get((preposition, head[0]))
        if contracted and not (head[0] == "le" and starts_with_vowel(rest[0][0])):
            self.features.add("contraction")
            return [(contracted, link + head[1], None), *rest]
        return [(preposition, link, None), *phrase.french]

    # ---- people and things as subjects and objects -----------------------------------------------------------------------

    def person(self, owner: str = "", alone: bool = False) -> NounPhrase:
        """Somebody who is not a pronoun. After à and de somebody `alone`: French would repeat the preposition before a second name."""
        draw = self.random()
        if draw < 0.30:
            return self.name()
        if draw < 0.36:
            return self.name() if alone else self.names()
        if draw < 0.58:
            return self.relative_of(owner)
        if draw < 0.61:
            return self.genitive(self.pick(_RELATIVES))
        return self.somebody(self.pick(PERSONS))

    def relative_of(self, owner: str = "", noun: Noun | None = None) -> NounPhrase:
        """My sister, his uncles."""
        noun = noun or self.pick(KIN)
        return self.noun_phrase(noun, "possessive", "one" not in noun.tags and self.chance(0.2), owner=owner)

    def somebody(self, noun: Noun, acted_on: bool = False) -> NounPhrase:
        """The teacher, two children, my neighbour."""
        if "own" in noun.tags:
            return self.noun_phrase(noun, "possessive" if self.chance(0.8) else "a", bare=self.chance(0.5))
        if "one" not in noun.tags and self.chance(0.28):
            weights = {
                "the": 6,
                "this": 0.6,
                "that": 0.6,
                "number": 0.8,
                "many": 0.3,
                "several": 0.5,
                "few": 0.3,
                "all": 0.5,
            }
            return self.noun_phrase(noun, "the" if acted_on and self.chance(0.5) else self.weighted(weights), True)
        if "one" in noun.tags:
            return self.noun_phrase(noun, "the")
        kind = self.weighted({"the": 6, "a": 0.3 if acted_on else 1, "this": 0.8, "that": 0.8, "every": 0.15})
        return self.noun_phrase(noun, kind, bare=kind == "every")

    def thing(self, noun: Noun, negated: str = "", owner: str = "", definite: bool = False) -> NounPhrase:
        """Something acted on. `negated` is "not" or "never", under which an indefinite article becomes "de"."""
        if noun.kind == "kin":
            return self.relative_of(owner, noun)
        if noun.kind == "person":
            if negated or definite:
                return self.noun_phrase(
                    noun, "possessive" if "own" in noun.tags else self.pick(("the", "the", "this", "that")), owner=owner
                )
            return self.somebody(noun, acted_on=True)
        own = noun.kind in ("clothes", "thing", "vehicle", "text", "music", "furniture") or "pet" in noun.tags
        if own and self.chance(0.06):
            return self.genitive(noun)
        plural = not noun.mass and noun.kind != "place" and ("pair" in noun.tags or self.chance(0.28))
        weights = {"the": 5.0, "this": 0.8, "that": 0.8, "possessive": 2.5 if own else 0.3}
        if noun.kind in ("place", "part"):
            weights["possessive"] = 0.0
        elif definite:
            pass
        elif negated:
            if plural or noun.mass:
                weights["any" if negated == "not" else "bare"] = 2.5
        elif noun.mass:
            weights = {"the": 2.5, "some": 5.0, "this": 0.4, "possessive": 0.6}
        elif plural:
            weights |= {
                "some": 2.0,
                "number": 0.0 if "pair" in noun.tags else 1.5,
                "many": 0.4,
                "several": 0.5,
                "few": 0.5,
            }
        else:
            weights["a"] = 4.0
        return self.noun_phrase(noun, self.weighted(weights), plural, owner=owner)

    def things_in_general(self, noun: Noun) -> NounPhrase:
        """Apples, coffee: les pommes, le café."""
        return self.noun_phrase(noun, "generic", not noun.mass, bare=self.chance(0.6))
