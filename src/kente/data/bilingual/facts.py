"""Small kinds of statements of the embedded corpus: there is, comparisons, professions, ages, prices, weather, commands."""

from __future__ import annotations

from dataclasses import dataclass

from kente.data.bilingual.adverbials import Extra
from kente.data.bilingual.clauses import Clause
from kente.data.bilingual.french import conjugate, number_words
from kente.data.bilingual.lexicon import COMPARED_WITH_MORE, KIND, NOUN, PREDICATES, VERBS, Adjective, Noun, tagged
from kente.data.bilingual.phrases import (
    HE,
    KIN,
    THEY,
    English,
    French,
    NounPhrase,
    article,
    english_number,
    fragments,
    text_of,
)
from kente.data.bilingual.statements import Statements
from kente.data.bilingual.verbs import AVOIR, be_form, being

_COUTER = conjugate("coûter")
_SMALL, _LARGE = tagged("held", "fruit", "food", "cat", "mouse"), tagged("person", "pet", "vehicle", "tree", "flower")
_LYING = tagged("held", "clothes", "fruit", "cat", "mouse")
_COMPARED = tagged("vehicle", "clothes", "text", "pet", "furniture")
_PRICES = {
    "fruit": (2, 6),
    "text": (5, 30),
    "thing": (5, 99),
    "clothes": (15, 99),
    "plant": (2, 12),
    "music": (60, 99),
    "furniture": (40, 99),
}
_PRICED = tuple(
    noun for noun in tagged("bought", "fruit") if noun.kind in _PRICES and not noun.mass and "pair" not in noun.tags
)
_AGES = {"young": (3, 17), "animal": (2, 15), "student": (18, 29), "grandmother": (58, 99), "grandfather": (58, 99)}
_PROFESSIONS = {
    False: ("teacher", "doctor", "baker", "farmer", "student", "lawyer", "engineer", "waiter"),
    True: ("teacher", "doctor", "nurse", "actress", "engineer"),
}
_ORDERED = tuple(
    verb for verb in VERBS
    if verb.frame in ("direct", "give", "put", "to") and not verb.stative
    and verb.base not in ("break", "lose", "meet", "see", "find", "forget", "sell", "drive", "wear", "understand", "hide")
)  # fmt: skip
_FORBIDDEN = tuple(
    verb
    for verb in VERBS
    if verb.base
    in (
        "eat",
        "drink",
        "open",
        "close",
        "take",
        "break",
        "lose",
        "forget",
        "sell",
        "hide",
        "cut",
        "buy",
        "follow",
        "wash",
        "wait",
        "read",
    )
)
_WEATHER = {
    "present": "it/a is/b raining/b = il/a pleut/b\nit/a is/b snowing/b = il/a neige/b\n"
    "it/a is/b cold/c = il/a fait/b froid/c\nit/a is/b hot/c = il/a fait/b chaud/c",
    "past": "it/a was/b raining/b = il/a pleuvait/b\nit/a was/b snowing/b = il/a neigeait/b\n"
    "it/a was/b cold/c = il/a faisait/b froid/c\nit/a was/b hot/c = il/a faisait/b chaud/c",
    "future": "it/a will/b rain/b = il/a pleuvra/b\nit/a will/b snow/b = il/a neigera/b\n"
    "it/a will/b be/b cold/c = il/a fera/b froid/c\nit/a will/b be/b hot/c = il/a fera/b chaud/c",
    "if": "it/a rains/b = il/a pleut/b\nit/a snows/b = il/a neige/b\n"
    "it/a is/b cold/c = il/a fait/b froid/c\nit/a is/b hot/c = il/a fait/b chaud/c",
}
_WEATHER_FRAGMENTS = {tense: fragments(text) for tense, text in _WEATHER.items()}


@dataclass(slots=True)
class Sentence:
    """Words without the final mark, which is "." or "?" or "!" or nothing."""

    english: English
    french: French
    tree: str
    mark: str


class Facts(Statements):
    """Says sentences of fixed shapes."""

    def statement(self, clause: Clause) -> Sentence:
        return Sentence(clause.english, clause.french, f"(S {clause.tree})", ".")

    def located(self) -> Sentence:
        """The key is on the table."""
        noun, extra = self.pick(_LYING), Extra()
        phrase = self.thing(noun, definite=True)
        self.support(extra, food=noun.kind == "fruit")
        tense, polarity = self.weighted({"present": 3.0, "past": 1.5}), self.weighted({"": 8.0, "not": 1.5})
        return self.statement(self.be(phrase, tense, extra, polarity=polarity))

    def existential(self) -> Sentence:
        """There are two cats under the table: il y a deux chats sous la table."""
        tense, small = self.weighted({"present": 3.0, "past": 1.2}), self.chance(0.6)
        noun = self.pick(_SMALL if small else _LARGE)
        while "one" in noun.tags or "own" in noun.tags:
            noun = self.pick(_LARGE)
        none = self.chance(0.15)
        plural = not noun.mass and ("pair" in noun.tags or none or self.chance(0.5))
        kind = "a"
        if none:
            kind = "none"
        elif noun.mass:
            kind = "some"
        elif plural:
            kind = self.weighted({"number": 2.0, "some": 2.0, "many": 1.0, "several": 1.0})
        phrase, link, be_link = self.noun_phrase(noun, kind, plural), self.link(), self.link()
        verb = be_form(THEY if plural else HE, tense == "past")
        there: French = [("il", link, None), ("y", link, None), (being(AVOIR, tense, HE), be_link, None)]
        if none:
            self.features.add("negation")
            no = phrase.english[0][1]
            there = [there[0], ("ne", no, None), *there[1:], ("pas", no, None)]
        where = Extra()
        if small:
            self.support(where, food=noun.kind in ("food", "fruit"))
        elif noun.kind == "person":
            self.public_place(where)
        else:
            self.outdoors(where)
        self.features |= {"existential", tense}
        english: English = [("there", link), (verb, be_link), *phrase.english, *where.english]
        tree = f"(S there (VP {verb} {phrase.tree}{where.tree}))"
        return Sentence(english, there + phrase.french + where.french, tree, ".")

    def comparison(self) -> Sentence:
        """My brother is taller than Anna: mon frère est plus grand qu'Anna."""
        if self.chance(0.5):
            noun = NOUN["man"]
            left, right = self._one_person(), self._one_person()
            while text_of(left.english) == text_of(right.english):
                right = self._one_person()
        else:
            noun = self.pick(_COMPARED)
            other = self.pick([same for same in KIND[noun.kind] if same is not noun])
            left = self.noun_phrase(noun, self.pick(("this", "the", "possessive")), "pair" in noun.tags, bare=True)
            right = self.noun_phrase(other, self.pick(("that", "the", "possessive")), "pair" in other.tags, bare=True)
        adjective = self.pick(self._compared(noun))
        extra, link, more = Extra(), self.link(), self.link()
        form = adjective.french[2 * left.plural + left.feminine]
        if adjective.comparative:
            english: English = [(adjective.comparative, link)]
            french: French = [("plus", link, None), (form, link, None)]
        else:
            english, french = [("more", more), (adjective.english, link)], [("plus", more, None), (form, link, None)]
        extra.add(english, french, f"(AP {text_of(english)})")
        self.features.add("comparison")
        self.preposition(extra, "than", right)
        tense, polarity = self.weighted({"present": 5.0, "past": 1.0}), self.weighted({"": 8.0, "not": 1.0})
        return self.statement(self.be(left, tense, extra, polarity=polarity))

    def _compared(self, noun: Noun) -> list[Adjective]:
        """Adjectives to compare with. An older person is "plus âgé" in French, so age is left to things."""
        unfit = ("old",) if noun.kind == "person" else ("sad", "good")
        graded = [a for a in PREDICATES[noun] if a.comparative or a.english in COMPARED_WITH_MORE]
        return [a for a in graded if a.english not in unfit]

    def _one_person(self) -> NounPhrase:
        draw = self.random()
        if draw < 0.5:
            return self.name()
        return (
            self.relative_of()
            if draw < 0.85
            else self.genitive(self.pick(tagged("brother", "sister", "cousin", "uncle")))
        )

    def profession(self) -> Sentence:
        """My sister is a doctor: ma sœur est médecin, without article."""
        feminine, draw = self.chance(0.5), self.random()
        if draw < 0.3:
            subject = self.pronoun("she" if feminine else "he")
        elif draw < 0.65:
            subject = self.name(feminine)
        else:
            noun = self.pick([relative for relative in KIN if relative.feminine == feminine])
            subject = self.noun_phrase(noun, "possessive", bare=True)
        noun, link, extra = NOUN[self.pick(_PROFESSIONS[feminine])], self.link(), Extra()
        english: English = [(article(noun.english), link), (noun.english, link)]
        extra.add(english, [(noun.french, link, None)], f"(NP {text_of(english)})")
        self.features.add("profession")
        tense = self.weighted({"present": 5.0, "past": 1.5, "future": 0.5})
        return self.statement(self.be(subject, tense, extra, polarity=self.weighted({"": 8.0, "not": 2.0})))

    def age(self) -> Sentence:
        """She is twenty-one years old: elle a vingt et un ans."""
        subject = self.subject()
        noun = subject.noun
        keys = (noun.english, *noun.tags) if noun is not None else ()
        low, high = next((_AGES[key] for key in keys if key in _AGES), (18, 99) if noun is not None else (2, 99))
        value, number, years, extra = low + int(self.random() * (high - low + 1)), self.link(), self.link(), Extra()
        english: English = [(english_number(value), number), ("years", years), ("old", years)]
        french: French = [*((word, number, None) for word in number_words(value)), ("ans", years, None)]
        extra.add(english, french, f"(AP {text_of(english)})")
        self.features |= {"number", "age"}
        return self.statement(self.be(subject, "present", extra, AVOIR))

    def price(self) -> Sentence:
        """This lamp costs forty-two euros."""
        noun = self.pick(_PRICED)
        low, high = _PRICES[noun.kind]
        subject = self.noun_phrase(noun, self.pick(("this", "that", "the")), bare=self.chance(0.5))
        value, verb, number, euros = low + int(self.random() * (high - low + 1)), self.link(), self.link(), self.link()
        tense = "past" if self.chance(0.3) else "present"
        word = "cost" if tense == "past" else "costs"
        english: English = [*subject.english, (word, verb), (english_number(value), number), ("euros", euros)]
        french: French = [*subject.french, (being(_COUTER, tense, HE), verb, None)]
        french += [*((part, number, None) for part in number_words(value)), ("euros", euros, None)]
        self.features |= {"number", "price", tense}
        return Sentence(english, french, f"(S {subject.tree} (VP {word} (NP {english_number(value)} euros)))", ".")

    def weather(self, tense: str = "") -> Clause:
        """It is raining: il pleut."""
        tense = tense or self.weighted({"present": 2.0, "past": 1.5, "future": 1.0})
        english, french = self.say(self.pick(_WEATHER_FRAGMENTS[tense]))
        self.features |= {"weather", "present" if tense == "if" else tense}
        subject = NounPhrase(english[:1], french[:1], HE, False, False, "(NP it)", acts=False)
        return Clause(english, french, f"(NP it) (VP {text_of(english[1:])})", subject, tense)

    def weather_report(self) -> Sentence:
        """It was cold yesterday."""
        clause = self.weather()
        if self.chance(0.7):
            words = self.time_words(clause.tense) if clause.tense != "present" else None
            if words:
                clause.english, clause.french = clause.english + words[0], clause.french + words[1]
                clause.tree += f" (TIME {text_of(words[0])})"
        return self.statement(clause)

    def command(self) -> Sentence:
        """Open the door: ouvrez la porte."""
        self.features.add("imperative")
        you = self.pronoun("you")
        if self.chance(0.3):
            verb = self.pick(_FORBIDDEN)
            clause = self.clause(
                you, verb, "present", polarity="not", silent=True, frequency=False, time=False, details=0.0
            )
            return Sentence(clause.english, clause.french, f"(S {clause.tree})", "!")
        verb = self.pick(_ORDERED)
        clause = self.clause(you, verb, "present", silent=True, frequency=False, time=False, details=0.2)
        if self.chance(0.65):
            return Sentence(clause.english, clause.french, f"(S {clause.tree})", "!")
        link = self.link()
        polite: French = [(word, link, None) for word in (",", "s'", "il", "vous", "plaît")]
        return Sentence([("please", link), *clause.english], clause.french + polite, f"(S please {clause.tree})", ".")
