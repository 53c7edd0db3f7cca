"""Where, when, how and with whom: what may follow a verb in the embedded corpus."""

from __future__ import annotations

from dataclasses import dataclass, field

from kente.data.bilingual.french import number_words
from kente.data.bilingual.lexicon import Noun, Verb, tagged
from kente.data.bilingual.phrases import (
    ME,
    THEY,
    WE,
    YOU,
    English,
    Fragment,
    French,
    NounPhrase,
    Speaker,
    english_number,
    fragments,
    text_of,
)  # fmt: skip

TIMES = {
    "present": fragments("""
every/a day/b = chaque/a jour/b
every/a morning/b = chaque/a matin/b
every/a evening/b = chaque/a soir/b
every/a week/b = chaque/a semaine/b
on/a Mondays/a = le/a lundi/a
on/a Sundays/a = le/a dimanche/a
in/a the/b evening/b = le/ab soir/b
in/a summer/b = en/a été/b
in/a winter/b = en/a hiver/b"""),
    "past": fragments("""
yesterday = hier
yesterday/a morning/b = hier/a matin/b
yesterday/a evening/b = hier/a soir/b
last/a week/b = la/b semaine/b dernière/a
last/a year/b = la/b année/b dernière/a
last/a month/b = le/b mois/b dernier/a
this/a morning/b = ce/a matin/b
on/a Monday/a = lundi/a
on/a Friday/a = vendredi/a"""),
    "future": fragments("""
tomorrow = demain
tomorrow/a morning/b = demain/a matin/b
this/a evening/b = ce/a soir/b
on/a Monday/a = lundi/a
on/a Friday/a = vendredi/a
soon = bientôt
next/a week/b = la/b semaine/b prochaine/a
next/a year/b = la/b année/b prochaine/a
next/a month/b = le/b mois/b prochain/a"""),
}  # fmt: skip
TIMES |= {
    "habit": TIMES["present"],
    "can": TIMES["future"][:3],
    "must": TIMES["future"][:5],
    "want": TIMES["future"][:3],
}
_LONG_AGO = {"past": TIMES["past"][4:5], "future": TIMES["future"][7:8]}  # for states, which last
_UNITS = fragments("days = jours\nweeks = semaines\ndays = jours\nweeks = semaines\nmonths = mois\nyears = ans")
_HOME, _HERE, _TOGETHER, _WELL, _LOT = fragments("""
at/a home/b = à/a la/b maison/b
here = ici
together = ensemble
well = bien
a lot = beaucoup""")
_MANNERS = fragments("quickly = rapidement\nslowly = lentement")
FREQUENCIES = fragments("often = souvent\nalways = toujours\nsometimes = parfois\nrarely = rarement")
_PREPOSITIONS = {
    "in": "dans", "at": "à", "to": "à", "on": "sur", "under": "sous", "behind": "derrière", "in front of": "devant",
    "with": "avec", "for": "pour", "than": "que",
}  # fmt: skip
_INSIDE = tagged("garden", "kitchen", "park", "house", "library", "hotel")
_OUTSIDE = tagged("garden", "park", "forest", "street")
_AT = tagged("school", "office", "library", "restaurant", "farm", "beach", "hospital", "university", "hotel")
_NEAR = tagged("school", "station", "church", "market", "house", "castle", "museum", "hospital")
_SHOPS, _GARDENS, _KITCHEN = tagged("market", "station", "airport"), tagged("garden", "park"), tagged("kitchen")
GOALS, _FURNITURE, _HOLDERS = tagged("goal"), tagged("furniture"), tagged("furniture", "box", "basket", "bag")
_TABLES = tagged("table", "shelf", "basket", "box", "bag")
_POSSESSIVES = {ME: "my", WE: "our", YOU: "your", THEY: "their"}


@dataclass(slots=True)
class Extra:
    """What follows the verb, in the same order in both languages."""

    english: English = field(default_factory=list)
    french: French = field(default_factory=list)
    tree: str = ""

    def add(self, english: English, french: French, tree: str) -> None:
        self.english += english
        self.french += french
        self.tree += f" {tree}"


class Adverbials(Speaker):
    """Says circumstances."""

    def add(self, extra: Extra, fragment: Fragment, label: str = "ADV") -> None:
        english, french = self.say(fragment)
        extra.add(english, french, f"({label} {text_of(english)})")

    def preposition(self, extra: Extra, word: str, phrase: NounPhrase) -> None:
        link = self.link()
        if word == "near":
            french: French = [("près", link, None), *self.joined("de", link, phrase)]
        else:
            french = self.joined(_PREPOSITIONS[word], link, phrase)
        extra.add([(part, link) for part in word.split()] + phrase.english, french, f"(PP {word} {phrase.tree})")

    def the(self, nouns: tuple[Noun, ...], bare: bool = True) -> NounPhrase:
        """One of the nouns with a definite article."""
        return self.noun_phrase(self.pick(nouns), "the", bare=bare)

    def owner(self, subject: NounPhrase) -> str:
        """The possessive that fits a subject, most of the time."""
        if self.chance(0.2):
            return ""
        return _POSSESSIVES.get(subject.person) or ("her" if subject.feminine else "his")

    # ---- where --------------------------------------------------------------------------------------------------------

    def place(self, extra: Extra) -> None:
        """Where people do things."""
        draw = self.random()
        if draw < 0.12:
            self.add(extra, _HERE)
        elif draw < 0.24:
            self.add(extra, _HOME, "PP")
        else:
            self.public_place(extra)

    def public_place(self, extra: Extra) -> None:
        """Where people are found."""
        draw = self.random()
        if draw < 0.45:
            self.preposition(extra, "in", self.the(_INSIDE, bare=False))
        elif draw < 0.74:
            self.preposition(extra, "at", self.the(_AT))
        else:
            self.nearby(extra)

    def nearby(self, extra: Extra) -> None:
        self.preposition(extra, self.pick(("near", "near", "behind", "in front of")), self.the(_NEAR))

    def outdoors(self, extra: Extra) -> None:
        """Where animals and vehicles are found."""
        if self.chance(0.5):
            self.nearby(extra)
        else:
            self.preposition(extra, "in", self.the(_OUTSIDE, bare=False))

    def support(self, extra: Extra, food: bool = False) -> None:
        """What things lie on, under or in."""
        holder = self.pick(_TABLES if food else _HOLDERS)
        if holder.english in ("wardrobe", "box", "basket", "bag"):
            word = "in"
        else:
            word = "on" if food or holder.english == "shelf" or self.chance(0.6) else "under"
        self.preposition(extra, word, self.noun_phrase(holder, self.pick(("the", "the", "possessive"))))

    def surroundings(self, extra: Extra, verb: Verb, subject: NounPhrase, details: float, has_object: bool) -> None:
        """Manner, company and place, as far as the verb allows; seldom more than one."""
        options = verb.options
        if "manner" in options and self.chance(0.25 * details):
            self.add(extra, self.pick(_MANNERS[:1] if verb.base == "leave" else _MANNERS))
        elif "for" in options and self.chance(0.15 * details):
            self.preposition(extra, "for", self.person(self.owner(subject)))
        elif "company" in options and self.chance(0.18 * details):
            if subject.person in (WE, THEY) and self.chance(0.5):
                self.add(extra, _TOGETHER)
            else:
                self.preposition(extra, "with", self.person(self.owner(subject)))
        elif "placed" in options or self.chance(0.42 * details * (0.5 if has_object else 1.0)):
            self.usual_place(extra, verb, subject)

    def usual_place(self, extra: Extra, verb: Verb, subject: NounPhrase) -> None:
        options = verb.options
        if subject.noun is not None and subject.noun.kind == "animal":
            self.outdoors(extra)
        elif "place" in options:
            self.place(extra)
        elif "shop" in options:
            self.preposition(extra, "at", self.the(_SHOPS))
        elif "kitchen" in options:
            self.preposition(extra, "in", self.the(_KITCHEN))
        elif "garden" in options:
            self.preposition(extra, "in", self.the(_GARDENS))
        elif "walk" in options:
            self.preposition(extra, "in", self.the(_OUTSIDE, bare=False))
        elif "arrival" in options:
            self.preposition(extra, "at", self.the(GOALS))
        elif "clock" in options:
            self.clock(extra)

    # ---- how and when ---------------------------------------------------------------------------------------------------

    def short_adverb(self, extra: Extra, verb: Verb, details: float) -> French:
        """well and a lot: last in English, after the finite verb in French."""
        for option, fragment in (("well", _WELL), ("lot", _LOT)):
            if option in verb.options and self.chance(0.22 * details):
                english, french = self.say(fragment)
                extra.add(english, [], f"(ADV {text_of(english)})")
                self.features.add("adverb")
                return french
        return []

    def clock(self, extra: Extra) -> None:
        """at seven o'clock, at half past six"""
        hour, at, number = 5 + int(self.random() * 7), self.link(), self.link()
        o_clock, (french_hour,) = self.link(), number_words(hour)
        self.features.add("clock")
        french: French = [("à", at, None), (french_hour, number, None), ("heures", o_clock, None)]
        if self.chance(0.25):
            half = self.link()
            english: English = [("at", at), ("half", half), ("past", o_clock), (english_number(hour), number)]
            french += [("et", half, None), ("demie", half, None)]
        else:
            english = [("at", at), (english_number(hour), number), ("o'clock", o_clock)]
        extra.add(english, french, f"(TIME {text_of(english)})")

    def time_words(self, tense: str, state: bool = False) -> tuple[English, French] | None:
        """A time that fits a tense, if there is one."""
        if state:
            return self.say(self.pick(_LONG_AGO[tense])) if tense in _LONG_AGO else None
        if tense in ("past", "future") and self.chance(0.2):
            return self._so_long(tense)
        return self.say(self.pick(TIMES[tense])) if tense in TIMES else None

    def _so_long(self, tense: str) -> tuple[English, French]:
        """three days ago, in two weeks"""
        self.features.add("number")
        value, link, outer = 2 + int(self.random() * 9), self.link(), self.link()
        unit_english, unit_french = self.say(self.pick(_UNITS))
        english = [(english_number(value), link), *unit_english]
        french: French = [(number_words(value)[0], link, None), *unit_french]
        if tense == "past":
            ago: French = [("il", outer, None), ("y", outer, None), ("a", outer, None)]
            return [*english, ("ago", outer)], ago + french
        return [("in", outer), *english], [("dans", outer, None), *french]

    def time(self, extra: Extra, tense: str, state: bool) -> None:
        words = self.time_words(tense, state)
        if words:
            self.features.add("time")
            extra.add(words[0], words[1], f"(TIME {text_of(words[0])})")
