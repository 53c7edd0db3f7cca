"""Clauses of the embedded corpus: a subject, a verb group, and what the verb asks for."""

from __future__ import annotations

from dataclasses import dataclass

from kente.data.bilingual.adverbials import FREQUENCIES, GOALS, Adverbials, Extra
from kente.data.bilingual.lexicon import CITIES, COUNTRIES, LANGUAGES, SPORTS, VERBS, Noun, Verb
from kente.data.bilingual.phrases import HE, ME, THEY, WE, YOU, English, French, NounPhrase, text_of
from kente.data.bilingual.verbs import Clitic, Links, ambiguous, english_group, french_group, needs_auxiliary

_OBJECT_PRONOUNS = {  # english: direct, indirect, feminine, plural (of the participle), person
    "me": ("me", "me", False, False, ME), "you": ("vous", "vous", False, False, YOU), "him": ("le", "lui", False, False, HE),
    "her": ("la", "lui", True, False, HE), "us": ("nous", "nous", False, True, WE), "them": ("les", "leur", False, True, THEY),
}  # fmt: skip
DIRECT = tuple(verb for verb in VERBS if verb.frame == "direct")
_ANY_TIME = frozenset(("sit", "hurry", "smile", "shout", "fall", "wake"))  # of too short a moment to date
WITH_PEOPLE = frozenset(
    verb for verb in VERBS if verb.frame in ("direct", "to") and any(noun.kind == "person" for noun in verb.objects)
)


@dataclass(slots=True)
class Clause:
    """A clause in both languages, without punctuation, and what later clauses may refer to."""

    english: English
    french: French
    tree: str
    subject: NounPhrase
    tense: str
    object: NounPhrase | None = None
    verb: Verb | None = None
    polarity: str = ""


def is_animal(phrase: NounPhrase) -> bool:
    return phrase.noun is not None and phrase.noun.kind == "animal"


class Clauses(Adverbials):
    """Says clauses."""

    def clause(
        self, subject: NounPhrase, verb: Verb, tense: str, *, polarity: str = "", inverted: bool = False, silent: bool = False,
        french_tense: str = "", gap: NounPhrase | None = None, given: NounPhrase | None = None, clitic: Clitic | None = None,
        frequency: bool = True, time: bool = True, place: bool = True, details: float = 1.0,
    ) -> Clause:  # fmt: skip
        """A clause around a verb.

        polarity      "", "not" or "never"                       inverted  a question
        silent        the subject is understood                  gap       its object, which stands before the clause
        given         its object                                 clitic    its object, as a pronoun
        french_tense  where it is not the English one            details   how readily adverbials come
        """
        assert not ambiguous(verb, tense, subject, "not" if inverted else polarity), (verb.name, tense)
        self._note(verb, tense, polarity, inverted)
        self.verb_link = self.link()
        auxiliary_link = self.link() if needs_auxiliary(tense, polarity, inverted) else self.verb_link
        links = Links(auxiliary_link, self.verb_link, self.link())
        auxiliary, negation, main = english_group(subject, verb, tense, links, polarity, inverted)
        timed = time and polarity != "never" and verb.base not in _ANY_TIME and self.chance(0.3 * details)
        middle_english: English = []
        adverb: French = []
        if frequency and not timed and polarity != "never" and "momentary" not in verb.options and self.chance(0.12):
            middle_english, adverb = self.how_often(verb, tense, bool(polarity) or inverted)
        extra = Extra()
        thing = self.complement(extra, subject, verb, polarity, gap, clitic, given)
        if verb.frame in ("alone", "sing") and polarity != "never" and not adverb:
            adverb = self.short_adverb(extra, verb, details)
        if place and (not adverb or middle_english):
            self.surroundings(extra, verb, subject, details, thing is not None)
        if timed:
            self.time(extra, tense, verb.stative)
        preceding = (gap.feminine, gap.plural) if gap else clitic.preceding if clitic else None
        if (
            tense == "past"
            and preceding not in (None, (False, False))
            and not verb.french.with_etre
            and not verb.stative
        ):
            self.features.add("participle-agreement")
        french = french_group(subject, verb, french_tense or tense, links, polarity, adverb, clitic, preceding)
        french += extra.french
        english = negation + middle_english + main + (clitic.english if clitic else [])
        tree = f"(VP {text_of(english if inverted else auxiliary + english)}{extra.tree})"
        english += extra.english
        if silent:
            return Clause(auxiliary + english, french, tree, subject, tense, thing, verb, polarity)
        if inverted:
            ask: French = [("est-ce", links.auxiliary, None), ("que", links.auxiliary, None)]
            tree = f"{text_of(auxiliary)} {subject.tree} {tree}"
            return Clause(
                auxiliary + subject.english + english,
                ask + subject.french + french,
                tree,
                subject,
                tense,
                thing,
                verb,
                polarity,
            )
        english = subject.english + auxiliary + english
        return Clause(english, subject.french + french, f"{subject.tree} {tree}", subject, tense, thing, verb, polarity)

    def _note(self, verb: Verb, tense: str, polarity: str, inverted: bool) -> None:
        self.features.add("modal" if tense in ("can", "must", "want") else tense)
        if polarity:
            self.features |= {"negation", polarity}
        if verb.french.reflexive:
            self.features.add("reflexive")
        if inverted:
            self.features.add("question")

    def how_often(self, verb: Verb, tense: str, simple: bool) -> tuple[English, French]:
        """An adverb between subject and verb: often, always, sometimes, rarely. Habits are of the present."""
        if tense != "present" or (verb.stative and simple):
            return [], []
        self.features.add("adverb")
        if verb.stative:
            return self.say(FREQUENCIES[1])
        return self.say(self.pick(FREQUENCIES[:2] if simple else FREQUENCIES))

    # ---- what the verb asks for ---------------------------------------------------------------------------------------

    def complement(
        self, extra: Extra, subject: NounPhrase, verb: Verb, polarity: str, gap: NounPhrase | None, clitic: Clitic | None,
        given: NounPhrase | None,
    ) -> NounPhrase | None:  # fmt: skip
        """Adds objects and the like; returns the direct object if it is there in words."""
        thing = None
        match verb.frame:
            case "direct" | "give" | "put" if gap is None and (clitic is None or clitic.preceding is None):
                thing = given or self.object_of(verb, subject, polarity)
                extra.add(thing.english, thing.french, thing.tree)
            case "to" if clitic is None:
                person = self.object_of(verb, subject, "definite")  # "to" belongs to the verb in English: talk to
                extra.add(person.english, self.joined("à", self.verb_link, person), person.tree)
            case "instrument":
                instrument = self.the(verb.objects)
                extra.add(instrument.english, self.joined("de", self.verb_link, instrument), instrument.tree)
            case "sport" | "language" | "the-language" | "reside" | "journey" | "goal" as frame:
                self.named_complement(extra, frame)
        if verb.frame == "give" and (clitic is None or clitic.preceding is not None):
            self.preposition(extra, "to", self.person(self.owner(subject), alone=True))
        elif verb.frame == "put":
            self.support(extra)
        return thing

    def named_complement(self, extra: Extra, frame: str) -> None:
        """Sports, languages, cities and countries, which English leaves without an article."""
        link = self.link()
        if frame == "sport":
            sport, to_the, french = self.pick(SPORTS)
            extra.add([(sport, link)], [(to_the, self.verb_link, None), (french, link, None)], f"(NP {sport})")
        elif frame in ("language", "the-language"):
            english, french = self.pick(LANGUAGES)
            the: French = [("le", link, None)] if frame == "the-language" else []
            extra.add([(english, link)], [*the, (french, link, None)], f"(NP {english})")
        elif frame == "goal" and self.chance(0.75):
            self.preposition(extra, "to", self.the(GOALS))
        else:
            preposition, word = self.link(), "to" if frame == "goal" else "in"
            if frame != "journey" and self.chance(0.6):
                (english, french), to_the = self.pick(CITIES), "à"
            else:
                english, to_the, french = self.pick(COUNTRIES)
            words: French = [(to_the, preposition, None), (french, link, None)]
            extra.add([(word, preposition), (english, link)], words, f"(PP {word} (NP {english}))")

    def object_of(self, verb: Verb, subject: NounPhrase, polarity: str = "") -> NounPhrase:
        """An object for the verb. `polarity` may be "definite": neither negated nor indefinite."""
        noun = self.pick(verb.fodder if verb.fodder and is_animal(subject) else verb.objects)
        if noun.kind in ("person", "kin") and verb.base not in ("have", "love") and self.chance(0.25):
            return self.name()
        self.combinations.append((verb.base, noun.english))
        if verb.base == "have" and polarity != "definite":
            return self.possession(noun, polarity)
        if verb.base in ("love", "wear", "drive") and noun.kind != "kin":
            plural = "pair" in noun.tags
            kind = "the" if noun.kind == "person" else self.weighted({"possessive": 3, "this": 1, "that": 1})
            if not polarity and noun.kind != "person" and not plural and self.chance(0.4):
                kind = "a"
            return (
                self.noun_phrase(noun, kind, plural or self.chance(0.2), owner=self.owner(subject))
                if kind != "a"
                else self.noun_phrase(noun, "a")
            )
        general = noun.kind in ("fruit", "food", "drink", "animal")
        if "generic" in verb.options and general and (verb.base == "hate" or self.chance(0.75)):
            return self.things_in_general(noun)
        if polarity == "definite" or verb.base in ("forget", "close", "lose"):
            return self.thing(noun, owner=self.owner(subject), definite=True)
        return self.thing(noun, polarity, self.owner(subject))

    def possession(self, noun: Noun, polarity: str) -> NounPhrase:
        """What somebody has: a brother, two cars, not any books."""
        if polarity:
            return self.noun_phrase(noun, "any" if polarity == "not" else "bare", True)
        if "pair" not in noun.tags and self.chance(0.6):
            return self.noun_phrase(noun, "a")
        kinds = {"number": 1.0} if noun.kind == "kin" else {"number": 2.0, "some": 1.5, "several": 1.0, "many": 0.6}
        return self.noun_phrase(noun, self.weighted(kinds), True)

    # ---- object pronouns ------------------------------------------------------------------------------------------------

    def person_clitic(self, verb: Verb, subject: NounPhrase, later: bool) -> Clitic:
        """me, you, him, her, us, them: people known from elsewhere.

        In a later clause "them" would point back to somebody, whose gender it would have to take, so it is left out.
        """
        allowed = [word for word, row in _OBJECT_PRONOUNS.items() if row[4] != subject.person or row[4] == HE]
        if subject.person in (ME, WE):
            allowed = [word for word in allowed if word not in ("me", "us")]
        if later and "them" in allowed:
            allowed.remove("them")
        return self.clitic(self.pick(allowed), verb.frame in ("to", "give"))

    def clitic(self, word: str, indirect: bool, feminine: bool = False) -> Clitic:
        link = self.link()
        self.features.add("clitic")
        if word == "it":
            assert not indirect
            return Clitic([("it", link)], [("la" if feminine else "le", link, None)], (feminine, False))
        direct, dative, own, plural, _ = _OBJECT_PRONOUNS[word]
        if indirect:
            self.features.add("dative")
            return Clitic([(word, link)], [(dative, link, None)], None)
        return Clitic([(word, link)], [(direct, link, None)], (own or feminine, plural))

    def pointing_back(self, phrase: NounPhrase, indirect: bool = False) -> Clitic:
        """it, him, her or them for something just mentioned."""
        self.features.add("anaphora")
        if phrase.plural:
            return self.clitic("them", indirect, phrase.feminine)
        human = phrase.noun is None or phrase.noun.kind in ("person", "kin")
        return self.clitic(("her" if phrase.feminine else "him") if human else "it", indirect, phrase.feminine)
