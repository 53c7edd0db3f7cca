"""Questions of the embedded corpus. French asks with "est-ce que", or with a question word as subject."""

from __future__ import annotations

from collections.abc import Callable

from kente.data.bilingual.clauses import DIRECT, WITH_PEOPLE, Clause
from kente.data.bilingual.facts import Facts, Sentence
from kente.data.bilingual.lexicon import VERB, VERBS, Noun, Verb
from kente.data.bilingual.phrases import HE, THEY, English, Fragment, French, NounPhrase, fragments, text_of
from kente.data.bilingual.verbs import AVOIR, be_form

WHERE, WHY, WHEN, WHAT = fragments("where = où\nwhy = pourquoi\nwhen = quand\nwhat = que")
PLACED = tuple(
    verb for verb in VERBS if not {"place", "shop"}.isdisjoint(verb.options) and verb.frame in ("alone", "direct")
)
_TIMED = tuple(
    verb for verb in VERBS if not verb.stative and verb.base not in ("watch", "shout", "smile", "carry", "wear")
)
_REASONED = tuple(verb for verb in VERBS if verb.base not in ("have", "know", "understand"))
_WHAT = tuple(
    VERB[name]
    for name in (
        "eat", "drink", "buy", "sell", "see", "look for", "read", "write", "draw", "paint", "prepare", "choose", "want", "find",
        "learn", "take", "repair", "hide", "lose", "forget",
    )
)  # fmt: skip
_SELECTING = tuple(verb for verb in DIRECT if not verb.stative and verb.base not in ("protect", "feed", "carry"))
_SELECTED = {
    verb: tuple(noun for noun in verb.objects if noun.kind not in ("kin", "part") and not noun.mass and not {"own", "one"} & set(noun.tags))
    for verb in _SELECTING
}  # fmt: skip
_CHOICES = tuple(VERB[name] for name in ("want", "eat", "drink", "buy"))


class Questions(Facts):
    """Asks."""

    def question(self) -> Sentence:
        kinds: dict[Callable[[], Sentence], float] = {
            self.ask_yes_no: 4.0, self.ask_where_why_when: 2.5, self.ask_who: 1.5, self.ask_what: 1.2, self.ask_which: 1.5,
            self.ask_state: 1.5, self.ask_choice: 0.4, self.ask_age: 0.2,
        }  # fmt: skip
        self.features.add("question")
        return self.weighted(kinds)()

    def _asked_tense(self, verb: Verb) -> str:
        if verb.stative:
            return "present"
        weights = {"present": 2.0, "past": 2.0, "future": 1.0}
        if "momentary" in verb.options:
            weights |= {"present": 0.0, "past": 3.0}
        return self.weighted(weights)

    def ask_yes_no(self) -> Sentence:
        verb = self.verb()
        subject = self.subject(verb, asked=True)
        clitic = self.person_clitic(verb, subject, False) if verb in WITH_PEOPLE and self.chance(0.2) else None
        clause = self.clause(subject, verb, self._asked_tense(verb), inverted=True, clitic=clitic, details=0.7)
        return Sentence(clause.english, clause.french, f"(SQ {clause.tree})", "?")

    def ask_state(self) -> Sentence:
        clause = self.state(inverted=True, polarity="", tense="past" if self.chance(0.25) else "present")
        return Sentence(clause.english, clause.french, f"(SQ {clause.tree})", "?")

    def ask_choice(self) -> Sentence:
        """Do you want some tea or some coffee?"""
        verb = self.pick(_CHOICES)
        subject = self.subject(asked=True)
        given = self.two_things(verb, subject, "or")
        clause = self.clause(subject, verb, self._asked_tense(verb), inverted=True, given=given, details=0.0)
        return Sentence(clause.english, clause.french, f"(SQ {clause.tree})", "?")

    def _with(self, word: Fragment, clause: Clause) -> Sentence:
        english, french = self.say(word)
        self.features.add("wh-question")
        tree = f"(SQ (WH {text_of(english)}) {clause.tree})"
        return Sentence(english + clause.english, french + clause.french, tree, "?")

    def ask_where_why_when(self) -> Sentence:
        word = self.pick((WHERE, WHY, WHEN))
        verb = self.pick(PLACED) if word is WHERE else self.pick(_TIMED) if word is WHEN else self.pick(_REASONED)
        subject = self.subject(verb, asked=True)
        tense = self._asked_tense(verb)
        if word is WHEN and tense == "present":
            tense = self.pick(("past", "future"))
        polarity = "not" if word is WHY and self.chance(0.3) else ""
        clause = self.clause(
            subject, verb, tense, inverted=True, polarity=polarity, frequency=False, time=False, place=word is not WHERE,
            details=0.3,
        )  # fmt: skip
        return self._with(word, clause)

    def ask_who(self) -> Sentence:
        """Who ate the apple? Qui a mangé la pomme ?"""
        link, verb = self.link(), self.verb()
        who = NounPhrase([("who", link)], [("qui", link, None)], HE, False, False, "(WH who)")
        clause = self.clause(who, verb, self._asked_tense(verb), frequency=False, details=0.6)
        self.features.add("wh-question")
        return Sentence(clause.english, clause.french, f"(SQ {clause.tree})", "?")

    def ask_what(self) -> Sentence:
        verb = self.pick(_WHAT)
        nothing = NounPhrase([], [], HE, False, False, "")
        subject = self.subject(verb, asked=True)
        tense = self._asked_tense(verb)
        return self._with(
            WHAT, self.clause(subject, verb, tense, inverted=True, gap=nothing, frequency=False, details=0.6)
        )

    def ask_which(self) -> Sentence:
        """Which book did you read, how many apples did she eat: quel livre, combien de pommes; the participle agrees."""
        verb = self.pick(_SELECTING)
        while not _SELECTED[verb]:
            verb = self.pick(_SELECTING)
        noun = self.pick(_SELECTED[verb])
        subject = self.subject(asked=True)
        fronted = self._selected(noun)
        self.combinations.append((verb.base, noun.english))
        tense = self._asked_tense(verb)
        clause = self.clause(subject, verb, tense, inverted=True, gap=fronted, frequency=False, details=0.5)
        self.features.add("wh-question")
        tree = f"(SQ {fronted.tree} {clause.tree})"
        return Sentence(fronted.english + clause.english, fronted.french + clause.french, tree, "?")

    def _selected(self, noun: Noun) -> NounPhrase:
        link, noun_link = self.link(), self.link()
        many = noun.kind != "place" and self.chance(0.5)
        plural = many or "pair" in noun.tags
        english: English = [("how", link), ("many", link)] if many else [("which", link)]
        which = "quel" + "le" * noun.feminine + "s" * plural
        french: French = [("combien", link, None), ("de", link, None)] if many else [(which, link, None)]
        english.append((noun.english_plural if plural else noun.english, noun_link))
        french.append((noun.french_plural if plural else noun.french, noun_link, None))
        return NounPhrase(
            english, french, THEY if plural else HE, noun.feminine, plural, f"(WH {text_of(english)})", noun
        )

    def ask_age(self) -> Sentence:
        """How old is your sister? Quel âge a votre sœur ?"""
        subject = self.relative_of() if self.chance(0.6) else self.name()
        be_link, old, be = self.link(), self.link(), be_form(subject.person, False)
        self.features |= {"wh-question", "age"}
        english: English = [("how", old), ("old", old), (be, be_link), *subject.english]
        french: French = [("quel", old, None), ("âge", old, None), (AVOIR.present[subject.person], be_link, None)]
        return Sentence(english, french + subject.french, f"(SQ (WH how old) {be} {subject.tree})", "?")
