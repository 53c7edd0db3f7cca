"""Sentences of the embedded corpus: statements, questions, commands, and clauses woven together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from kente.data.bilingual.clauses import (
    AVOIR,
    DIRECT,
    ETRE,
    TIMES,
    WITH_PEOPLE,
    Clause,
    Clauses,
    Extra,
    ambiguous,
    be_form,
)
from kente.data.bilingual.french import FrenchVerb, conjugate
from kente.data.bilingual.lexicon import (
    COMPARED_WITH_MORE,
    NOUN,
    NOUNS,
    PREDICATES,
    SCRIPTS,
    VERB,
    VERBS,
    Adjective,
    Noun,
    Verb,
    tagged,
)
from kente.data.bilingual.phrases import (
    ANIMALS,
    HE,
    KIN,
    PERSONS,
    THEY,
    English,
    Fragment,
    French,
    I,
    NounPhrase,
    english_number,
    fragments,
    text_of,
)
from kente.data.bilingual.french import number_words

ALLER, SAVOIR, PENSER, DIRE, ESPERER, CROIRE, COUTER = (
    conjugate(verb) for verb in ("aller", "savoir", "penser", "dire", "espérer", "croire", "coûter")
)
_ALONE = tuple(verb for verb in VERBS if verb.frame == "alone")
_ANIMAL_VERBS = tuple(verb for verb in VERBS if verb.animal)
_OTHERS = tuple(verb for verb in VERBS if verb.frame not in ("alone", "direct"))
_PLACED = tuple(
    verb for verb in VERBS if not {"place", "shop"}.isdisjoint(verb.options) and verb.frame in ("alone", "direct")
)
_VERBS_OF = {
    noun: tuple(verb for verb in DIRECT if noun in verb.objects and verb.base not in ("have", "hate", "love"))
    for noun in NOUNS
}
_DOERS_OF = tuple(verb for verb in VERBS if verb.frame in ("alone", "direct", "instrument", "language", "reside"))
_SCRIPTS = tuple(
    (first, second, tuple(noun for noun in first.objects if noun in second.objects))
    for first, second in (
        (VERB[a.replace("_", " ")], VERB[b.replace("_", " ")]) for a, b in (script.split() for script in SCRIPTS)
    )
)
_PREDICATED = tuple(noun for noun in NOUNS if PREDICATES[noun] and noun.kind not in ("kin",))
_THINGS = tuple(noun for noun in _PREDICATED if noun.kind not in ("person", "animal"))
_PRICED = tagged("bought", "fruit")
_IDIOMS = fragments("hungry = faim\nthirsty = soif\nafraid = peur\nright = raison\nwrong = tort\nsleepy = sommeil")
_DEGREES = fragments("very = très\ntoo = trop\nreally = vraiment")
_PROFESSIONS = {
    False: ("teacher", "doctor", "baker", "farmer", "student", "lawyer", "engineer", "waiter"),
    True: ("teacher", "doctor", "nurse", "actress", "engineer"),
}
_WEATHER = {
    "present": fragments("it/a is/b raining/b = il/a pleut/b\nit/a is/b snowing/b = il/a neige/b\nit/a is/b cold/c = il/a fait/b froid/c\nit/a is/b hot/c = il/a fait/b chaud/c"),
    "past": fragments("it/a was/b raining/b = il/a pleuvait/b\nit/a was/b snowing/b = il/a neigeait/b\nit/a was/b cold/c = il/a faisait/b froid/c\nit/a was/b hot/c = il/a faisait/b chaud/c"),
    "future": fragments("it/a will/b rain/b = il/a pleuvra/b\nit/a will/b snow/b = il/a neigera/b\nit/a will/b be/b cold/c = il/a fera/b froid/c\nit/a will/b be/b hot/c = il/a fera/b chaud/c"),
    "if": fragments("it/a rains/b = il/a pleut/b\nit/a snows/b = il/a neige/b\nit/a is/b cold/c = il/a fait/b froid/c\nit/a is/b hot/c = il/a fait/b chaud/c"),
}  # fmt: skip
_AND, _BUT, _BECAUSE, _WHEN, _IF, _THAT, _WHILE = fragments(
    "and = et\nbut = mais\nbecause = parce que\nwhen = quand\nif = si\nthat = que\nwhile = pendant que"
)
_WHERE, _WHY, _WHEN_ASKED, _WHAT, _WHO = fragments("where = où\nwhy = pourquoi\nwhen = quand\nwhat = que\nwho = qui")
_REASON_TENSE = {"present": "present", "past": "past", "future": "present", "habit": "past", "progressive": "past"}
Words = tuple[English, French, str]


@dataclass(slots=True)
class Sentence:
    """Words without the final mark, which is "." or "?" or "!" or nothing."""

    english: English
    french: French
    tree: str
    mark: str


class Sentences(Clauses):
    """Says sentences."""

    def __init__(self, source: Random) -> None:
        super().__init__(source)
        self.previous: Clause | None = None

    # ---- who, and when -----------------------------------------------------------------------------------------------------

    def subject(self, verb: Verb | None = None, *, asked: bool = False, before: Clause | None = None) -> NounPhrase:
        """Somebody for the verb. `before`: the clause said last, which pronouns may point back to."""
        if before is not None and self.chance(0.45):
            return self.same(before.subject)
        if verb is not None and verb.animal and self.chance(0.3):
            return self.noun_phrase(
                self.pick(ANIMALS),
                *self.pick(
                    (
                        ("the", False),
                        ("the", False),
                        ("the", True),
                        ("a", False),
                        ("possessive", False),
                        ("number", True),
                        ("this", False),
                    )
                ),
            )
        if self.chance(0.42):
            if asked:
                weights = {"you": 5.0, "he": 2.0, "she": 2.0, "we": 0.7, "they": 1.5}
            else:
                weights = {"I": 3.0, "you": 1.2, "he": 2.0, "she": 2.0, "we": 1.7, "they": 1.5}
            if before is not None:
                del weights["they"]  # it would point back to someone
            return self.pronoun(self.weighted(weights))
        return self.person()

    def same(self, phrase: NounPhrase) -> NounPhrase:
        """The pronoun for someone just mentioned."""
        self.features.add("anaphora")
        if phrase.person == HE and phrase.noun is not None and phrase.noun.kind not in ("person", "kin"):
            return self.pronoun("it", phrase.feminine)
        if phrase.person == HE:
            if text_of(phrase.english) == "it":
                return self.pronoun("it", phrase.feminine)
            return self.pronoun("she" if phrase.feminine else "he")
        word = {I: "I", 3: "we", 4: "you", THEY: "they"}[phrase.person]
        return self.pronoun(word, phrase.feminine if word == "they" else False)

    def verb(self) -> Verb:
        draw = self.random()
        return self.pick(DIRECT if draw < 0.56 else _ALONE if draw < 0.8 else _OTHERS)

    def tense(self, verb: Verb, subject: NounPhrase, polarity: str = "") -> str:
        weights = {
            "present": 4.0,
            "past": 3.2,
            "future": 1.6,
            "progressive": 0.6,
            "habit": 0.4,
            "can": 0.3,
            "must": 0.35,
            "want": 0.35,
        }
        options = verb.options
        if verb.stative:
            weights = {"present": 4.0, "past": 1.5, "future": 0.8}
            if verb.base in ("know", "like", "hate", "want", "love"):
                weights["future"] = 0.0
        elif "momentary" in options:
            weights |= {"present": 1.5, "progressive": 0.0, "habit": 0.1}
        if verb.base in ("break", "lose", "forget", "fall", "meet", "cry"):
            weights |= {"present": 0.4, "can": 0.0, "must": 0.0, "want": 0.0, "future": 0.5}
        if polarity == "never":
            weights |= {"progressive": 0.0, "can": 0.0, "want": 0.0, "must": 0.3}
        if polarity:
            weights["habit"] = 0.0
        if ambiguous(verb, "past", subject, polarity):
            weights["past"] = 0.0
        return self.weighted(weights)

    def polarity(self) -> str:
        draw = self.random()
        return "not" if draw < 0.11 else "never" if draw < 0.15 else ""

    # ---- one clause ------------------------------------------------------------------------------------------------------------

    def event(
        self,
        *,
        before: Clause | None = None,
        tense: str = "",
        details: float = 1.0,
        relative: float = 0.10,
        french_tense: str = "",
        verb: Verb | None = None,
        plain: bool = False,
    ) -> Clause:
        """A statement about an action, of a random kind unless told otherwise."""
        polarity = "" if plain else self.polarity()
        verb = verb or self.verb()
        subject = self.subject(verb, before=before)
        while tense and (not self.allows(verb, tense) or ambiguous(verb, tense, subject, polarity)):
            verb = self.verb()
            if subject.noun is not None and subject.noun.kind == "animal" or text_of(subject.english) == "it":
                verb = self.pick(_ANIMAL_VERBS)
        if not verb.animal and (
            subject.noun is not None and subject.noun.kind == "animal" or text_of(subject.english) == "it"
        ):
            verb = self.pick([other for other in _ANIMAL_VERBS if not tense or self.allows(other, tense)])
        chosen = tense or self.tense(verb, subject, polarity)
        clitic = None
        given = None
        if verb in WITH_PEOPLE and self.chance(0.22):
            clitic = self.person_clitic(verb, subject, before is not None)
        elif verb.frame == "give" and self.chance(0.3):
            clitic = self.person_clitic(verb, subject, before is not None)
        elif verb.frame == "direct" and self.chance(relative):
            given = self.with_relative(self.object_of(verb, subject, "definite"), chosen, subject)
            if given.noun:
                self.combinations.append((verb.base, given.noun.english))
        if given is None and self.chance(relative):
            subject = self.with_relative(subject, chosen, None)
        return self.clause(
            subject,
            verb,
            chosen,
            polarity=polarity,
            clitic=clitic,
            details=details if given is None else 0.0,
            tense_of_french=french_tense,
            given=given,
        )

    def allows(self, verb: Verb, tense: str) -> bool:
        if tense == "progressive":
            return not verb.stative and "momentary" not in verb.options
        if tense == "future":
            return verb.base not in ("know", "like", "hate", "want", "love", "break", "lose", "forget", "fall", "cry")
        if tense == "present":
            return verb.base not in ("break", "lose", "forget", "fall", "meet")
        return tense != "past" or not verb.stative

    def with_relative(self, phrase: NounPhrase, tense: str, actor: NounPhrase | None) -> NounPhrase:
        """The phrase and a relative clause that tells which one: who works here, that I bought, where he lives."""
        noun = phrase.noun
        if (
            noun is None
            or noun.kind == "kin"
            or noun.mass
            or phrase.determiner in ("every", "generic", "any", "bare", "genitive", "possessive", "all")
        ):
            return phrase
        inner_tense = self.pick(
            {
                "past": ("past", "past", "progressive"),
                "future": ("present",),
                "present": ("present", "past"),
                "habit": ("past",),
                "progressive": ("past",),
            }.get(tense, ("present",))
        )
        animate = noun.kind in ("person", "animal")
        link = self.link()
        if animate and self.chance(0.65):
            word = "who" if noun.kind == "person" else "that"
            pool = _ANIMAL_VERBS if noun.kind == "animal" else _DOERS_OF
            verbs = [
                verb
                for verb in pool
                if (self.allows(verb, inner_tense) or verb.base == "live") and not ambiguous(verb, inner_tense, phrase)
            ]
            inner = self.clause(
                phrase,
                self.pick(verbs),
                inner_tense,
                silent_subject=True,
                frequency=False,
                details=0.6,
                time=False,
                relative=True,
            )
            words: French = [("qui", link, None)]
        else:
            subject = self.pronoun(self.pick(("I", "you", "he", "she", "we"))) if self.chance(0.6) else self.person()
            verbs = [
                verb
                for verb in _VERBS_OF[noun]
                if self.allows(verb, inner_tense) and not ambiguous(verb, inner_tense, subject)
            ]
            if not verbs:
                return phrase
            word = "that"
            words = [("que", link, None)]
            verb = self.pick(verbs)
            self.combinations.append((verb.base, noun.english))
            inner = self.clause(
                subject, verb, inner_tense, gap=phrase, frequency=False, details=0.5, time=False, relative=True
            )
        self.features.add("relative")
        english = [*phrase.english, (word, link), *inner.english]
        tree = f"{phrase.tree[:-1]} (REL {word} {inner.tree}))"
        return NounPhrase(
            english,
            phrase.french + words + inner.french,
            phrase.person,
            phrase.feminine,
            phrase.plural,
            tree,
            noun,
            phrase.determiner,
        )

    # ---- "to be" and its French faces -------------------------------------------------------------------------------------------

    def be(
        self,
        subject: NounPhrase,
        tense: str,
        extra: Extra,
        verb: FrenchVerb = ETRE,
        polarity: str = "",
        inverted: bool = False,
    ) -> Clause:
        """A clause with "to be", which French says with être, avoir (faim) or aller (bien); its past is an imparfait."""
        self.features.add(tense)
        if polarity:
            self.features |= {"negation", polarity}
        be_link, negation_link = self.link(), self.link()
        future = tense == "future"
        auxiliary: English = [("will" if future else be_form(subject.person, tense == "past"), be_link)]
        negation: English = [(polarity, negation_link)] if polarity else []
        main: English = [("be", be_link)] if future else []
        word = self.finite(verb, tense, subject.person, True)
        assert word is not None
        french: French = [(word, be_link, None)]
        if polarity:
            french = [
                ("ne", negation_link, None),
                *french,
                ("pas" if polarity == "not" else "jamais", negation_link, None),
            ]
        tree = f"(VP {text_of([*([] if inverted else auxiliary), *negation, *main])}{extra.tree})"
        if inverted:
            self.features.add("question")
            words: French = [("est-ce", be_link, None), ("que", be_link, None), *subject.french, *french, *extra.french]
            return Clause(
                auxiliary + subject.english + negation + main + extra.english,
                words,
                f"{text_of(auxiliary)} {subject.tree} {tree}",
                subject,
                tense,
            )
        english = subject.english + auxiliary + negation + main + extra.english
        return Clause(english, subject.french + french + extra.french, f"{subject.tree} {tree}", subject, tense)

    def attribute(self, subject: NounPhrase, noun: Noun, degree: bool = True, without: tuple[str, ...] = ()) -> Extra:
        """An adjective after "is", agreeing with the subject."""
        adjective = self.pick([a for a in PREDICATES[noun] if a.english not in without])
        extra, link = Extra(), self.link()
        if (
            degree
            and self.chance(0.25)
            and adjective.comparative
            or adjective.english in COMPARED_WITH_MORE
            and self.chance(0.15)
        ):
            english, french = self.say(self.pick(_DEGREES))
            extra.add(english, french, text_of(english))
        if subject.noun is not None:
            self.combinations.append((adjective.english, subject.noun.english))
        form = 2 * subject.plural + subject.feminine
        extra.add([(adjective.english, link)], [(adjective.french[form], link, None)], f"(AP {adjective.english})")
        return extra

    def idiom(self, choices: tuple[Fragment, ...] = _IDIOMS) -> Extra:
        """hungry, afraid, right: avoir faim, peur, raison."""
        self.features.add("idiom")
        extra = Extra()
        english, french = self.say(self.pick(choices))
        extra.add(english, french, f"(AP {text_of(english)})")
        return extra

    def described(self, definite: bool = True) -> NounPhrase:
        """Something an adjective may be said of."""
        noun = self.pick(_PREDICATED)
        plural = not noun.mass and ("pair" in noun.tags or self.chance(0.3))
        kinds = {"the": 5.0, "this": 1.2, "that": 1.0}
        if (
            noun.kind in ("clothes", "thing", "vehicle", "furniture", "text")
            or "pet" in noun.tags
            or "own" in noun.tags
        ):
            kinds["possessive"] = 3.0
        if noun.kind not in ("place", "person", "sky") and self.chance(0.08):
            return self.genitive(noun)
        return self.noun_phrase(noun, self.weighted(kinds), plural and noun.kind != "place", bare=True)

    def state(
        self, before: Clause | None = None, tense: str = "", inverted: bool = False, polarity: str | None = None
    ) -> Clause:
        """Someone or something is somehow."""
        tense = tense or self.weighted({"present": 6, "past": 2.5, "future": 0.9})
        if polarity is None:
            polarity = self.weighted({"": 8, "not": 1.3, "never": 0.25})
        if not inverted and self.chance(0.45) and before is None:
            subject = self.described()
            noun = subject.noun or NOUN["man"]
            if self.chance(0.1) and noun.kind not in ("person", "animal"):
                subject = self.with_relative(subject, tense, None)
            return self.be(subject, tense, self.attribute(subject, noun), polarity=polarity)
        subject = self.subject(asked=inverted, before=before)
        noun = subject.noun if subject.noun is not None else NOUN["man"]
        if text_of(subject.english) == "it":
            return self.be(subject, tense, self.idiom(_IDIOMS[:3]), AVOIR, polarity, inverted)
        draw = self.random()
        if draw < 0.2:
            return self.be(subject, tense, self.idiom(), AVOIR, polarity, inverted)
        if draw < 0.3 and noun.kind != "animal":
            return self.be(subject, tense, self.whereabouts(), ETRE, polarity, inverted)
        if draw < 0.42 and noun.kind != "animal":
            return self.health(subject, tense, polarity, inverted)
        return self.be(subject, tense, self.attribute(subject, noun), ETRE, polarity, inverted)

    def health(self, subject: NounPhrase, tense: str, polarity: str, inverted: bool) -> Clause:
        """The lectures' "I am good": je vais bien."""
        extra, link = Extra(), self.link()
        if not polarity and self.chance(0.2):
            english, french = self.say(_DEGREES[0])
            extra.add(english, french, "very")
        word = "good" if tense == "present" else "well"
        extra.add([(word, link)], [("bien", link, None)], f"(AP {word})")
        if tense == "present" and not inverted and self.chance(0.25):
            today = self.link()
            extra.add([("today", today)], [("aujourd'hui", today, None)], "(TIME today)")
        self.features.add("health")
        return self.be(subject, tense, extra, ALLER, polarity, inverted)

    def whereabouts(self) -> Extra:
        extra = Extra()
        self.place(extra)
        return extra

    def located(self) -> Clause:
        """The key is on the table."""
        noun = self.pick(tagged("held", "clothes", "fruit", "cat", "mouse"))
        phrase = self.thing(noun, definite=True)
        return self.be(
            phrase, self.weighted({"present": 3, "past": 1.5}), self.support(), ETRE, self.weighted({"": 8, "not": 1.5})
        )

    def support(self) -> Extra:
        extra = Extra()
        holder = self.pick(tagged("furniture", "box", "basket", "bag"))
        word = "in" if holder.english in ("wardrobe", "box", "basket", "bag") else self.pick(("on", "under"))
        self.add_preposition(
            extra, word, self.noun_phrase(holder, self.pick(("the", "the", "possessive")), bare=holder.kind == "thing")
        )
        return extra

    def existential(self) -> Sentence:
        """There are two cats under the table: il y a deux chats sous la table."""
        tense = self.weighted({"present": 3, "past": 1.2, "future": 0.5})
        small = self.chance(0.6)
        noun = self.pick(
            tagged("held", "fruit", "food", "cat", "mouse")
            if small
            else tagged("person", "pet", "vehicle", "tree", "flower")
        )
        plural = not noun.mass and self.chance(0.55)
        none = self.chance(0.15)
        if none:
            plural = plural or not noun.mass
            phrase = self.noun_phrase(noun, "none", plural)
        else:
            phrase = self.noun_phrase(
                noun,
                "some"
                if noun.mass
                else self.weighted({"number": 2, "some": 2, "many": 1, "several": 1})
                if plural
                else "a",
                plural,
            )
        link, be_link = self.link(), self.link()
        will: English = [("will", be_link), ("be", be_link)]
        verb = will if tense == "future" else [(be_form(THEY if plural else HE, tense == "past"), be_link)]
        word = self.finite(AVOIR, tense, HE, True)
        assert word is not None
        french: French = [("il", link, None), ("y", link, None), (word, be_link, None)]
        if none:
            self.features |= {"negation"}
            no = phrase.english[0][1]
            french = [("il", link, None), ("ne", no, None), ("y", link, None), (word, be_link, None), ("pas", no, None)]
        where = self.support() if small else self.whereabouts()
        self.features |= {"existential", tense}
        english: English = [("there", link), *verb, *phrase.english, *where.english]
        return Sentence(
            english,
            french + phrase.french + where.french,
            f"(S there (VP {text_of(verb)} {phrase.tree}{where.tree}))",
            ".",
        )

    def comparison(self) -> Sentence:
        """My brother is taller than Anna: mon frère est plus grand qu'Anna."""
        if self.chance(0.5):
            left, right, noun = self.person(), self.person(), NOUN["man"]
        else:
            noun = self.pick(tagged("vehicle", "clothes", "text", "pet", "furniture"))
            other = self.pick(tuple(n for n in NOUNS if n.kind == noun.kind and n is not noun))
            left, right = (
                self.noun_phrase(noun, self.pick(("this", "the", "possessive")), "pair" in noun.tags, bare=True),
                self.noun_phrase(other, self.pick(("that", "the", "possessive")), "pair" in other.tags, bare=True),
            )
        while text_of(right.english) == text_of(left.english):
            right = self.person()
        choices = [
            a
            for a in PREDICATES[noun]
            if (a.comparative and (a.english != "old" or noun.kind != "person")) or a.english in COMPARED_WITH_MORE
        ]
        adjective = self.pick(choices)
        extra, link, more = Extra(), self.link(), self.link()
        form = adjective.french[2 * left.plural + left.feminine]
        if adjective.comparative:
            extra.add(
                [(adjective.comparative, link)],
                [("plus", link, None), (form, link, None)],
                f"(AP {adjective.comparative})",
            )
        else:
            extra.add(
                [("more", more), (adjective.english, link)],
                [("plus", more, None), (form, link, None)],
                f"(AP more {adjective.english})",
            )
        self.features.add("comparison")
        self.add_preposition(extra, "than", right)
        return self.statement(
            self.be(left, self.weighted({"present": 5, "past": 1}), extra, ETRE, self.weighted({"": 8, "not": 1}))
        )

    def profession(self) -> Sentence:
        """My sister is a doctor: ma sœur est médecin, without article."""
        feminine = self.chance(0.5)
        subject = self.pick((
            lambda: self.name(feminine), lambda: self.pronoun("she" if feminine else "he"),
            lambda: self.noun_phrase(self.pick([n for n in KIN if n.feminine == feminine]), "possessive", bare=True),
        ))()  # fmt: skip
        noun = NOUN[self.pick(_PROFESSIONS[feminine])]
        link, article, extra = self.link(), self.link(), Extra()
        a = "an" if noun.english[0] in "aeiou" else "a"
        extra.add([(a, link), (noun.english, link)], [(noun.french, link, None)], f"(NP {a} {noun.english})")
        del article
        self.features.add("profession")
        return self.statement(
            self.be(
                subject,
                self.weighted({"present": 5, "past": 1.5, "future": 0.5}),
                extra,
                ETRE,
                self.weighted({"": 8, "not": 2}),
            )
        )

    def age(self) -> Sentence:
        """She is twenty-one years old: elle a vingt et un ans."""
        subject = self.subject()
        value = 2 + int(self.random() * 98)
        number, years, extra = self.link(), self.link(), Extra()
        extra.add(
            [(english_number(value), number), ("years", years), ("old", years)],
            [*((w, number, None) for w in number_words(value)), ("ans", years, None)],
            f"(AP {english_number(value)} years old)",
        )
        self.features |= {"number", "age"}
        return self.statement(self.be(subject, "present", extra, AVOIR))

    def price(self) -> Sentence:
        """This lamp costs forty-two euros."""
        noun = self.pick(tuple(n for n in _PRICED if not n.mass and n.kind not in ("place", "vehicle")))
        subject = self.noun_phrase(
            noun,
            self.pick(("the", "this", "that", "possessive") if noun.kind != "fruit" else ("this", "that")),
            "pair" in noun.tags,
        )
        value, verb, number, euros = 2 + int(self.random() * 98), self.link(), self.link(), self.link()
        tense = self.pick(("present", "present", "past"))
        word = "cost" if tense == "past" or subject.plural else "costs"
        if tense == "past" and subject.plural:
            tense = "present"  # "they cost" could be either
        english: English = [*subject.english, (word, verb), (english_number(value), number), ("euros", euros)]
        form = self.finite(COUTER, tense, subject.person, True)
        assert form is not None
        french: French = [
            *subject.french,
            (form, verb, None),
            *((w, number, None) for w in number_words(value)),
            ("euros", euros, None),
        ]
        self.features |= {"number", "price", tense}
        return Sentence(english, french, f"(S {subject.tree} (VP {word} (NP {english_number(value)} euros)))", ".")

    def weather(self, tense: str = "") -> Clause:
        tense = tense or self.weighted({"present": 2, "past": 1.5, "future": 1})
        english, french = self.say(self.pick(_WEATHER[tense]))
        self.features |= {"weather", "present" if tense == "if" else tense}
        subject = NounPhrase(english[:1], french[:1], HE, False, False, "(NP it)")
        return Clause(english, french, f"(NP it) (VP {text_of(english[1:])})", subject, tense)

    # ---- sentences of one clause -----------------------------------------------------------------------------------------------

    def statement(self, clause: Clause, mark: str = ".") -> Sentence:
        return Sentence(clause.english, clause.french, f"(S {clause.tree})", mark)

    def simple(self) -> Sentence:
        if self.chance(0.14):
            return self.fronted()
        return self.statement(self.event())

    def fronted(self) -> Sentence:
        """Yesterday, she sang: a time comes first."""
        tense = self.weighted({"present": 1, "past": 2, "future": 1})
        words = self.time_words(tense)
        assert words is not None
        english, french = words
        comma = self.link()
        verb = self.verb()
        while not self.allows(verb, tense) or verb.stative:
            verb = self.verb()
        clause = (
            self.event(tense=tense, verb=verb, plain=self.chance(0.8), details=0.4, relative=0.05)
            if False
            else self._untimed(tense)
        )
        self.features |= {"time", "fronted"}
        return Sentence(
            [*english, (",", comma), *clause.english],
            [*french, (",", comma, None), *clause.french],
            f"(S (TIME {text_of(english)}) , {clause.tree})",
            ".",
        )

    def _untimed(self, tense: str, before: Clause | None = None) -> Clause:
        verb = self.verb()
        subject = self.subject(before=before)
        polarity = "not" if self.chance(0.08) else ""
        while (
            not self.allows(verb, tense)
            or verb.stative
            or ambiguous(verb, tense, subject, polarity)
            or (text_of(subject.english) == "it" and not verb.animal)
        ):
            verb = self.verb()
        clitic = (
            self.person_clitic(verb, subject, before is not None) if verb in WITH_PEOPLE and self.chance(0.15) else None
        )
        return self.clause(
            subject, verb, tense, polarity=polarity, clitic=clitic, frequency=False, time=False, details=0.6
        )

    def command(self) -> Sentence:
        """Open the door: ouvrez la porte."""
        verb = self.pick(
            [
                v
                for v in VERBS
                if v.frame in ("direct", "give", "put", "to")
                and not v.stative
                and v.base not in ("break", "lose", "meet", "see", "find", "forget", "sell", "play", "drive", "wear")
            ]
        )
        polarity = "not" if self.chance(0.3) else ""
        you = self.pronoun("you")
        clause = self.clause(
            you, verb, "present", polarity="", silent_subject=True, frequency=False, time=False, details=0.2
        )
        english, french = clause.english, clause.french
        self.features.add("imperative")
        mark = self.link()
        tree = f"(S {clause.tree})"
        if polarity:
            clause = self.clause(
                you, verb, "present", polarity="not", silent_subject=True, frequency=False, time=False, details=0.0
            )
            return Sentence(clause.english, clause.french, f"(S {clause.tree})", "!")
        if self.chance(0.35):
            please, _ = mark, None
            polite: French = [
                (",", please, None),
                ("s'", please, None),
                ("il", please, None),
                ("vous", please, None),
                ("plaît", please, None),
            ]
            return Sentence([("please", please), *english], french + polite, f"(S please {clause.tree})", ".")
        return Sentence(english, french, tree, "!")

    # ---- questions ---------------------------------------------------------------------------------------------------------------

    def question(self) -> Sentence:
        kinds: dict[Callable[[], Sentence], float] = {
            self.ask_yes_no: 4, self.ask_where_why_when: 2.5, self.ask_who: 1.5, self.ask_what: 1.2, self.ask_which: 1.5, self.ask_state: 1.5, self.ask_age: 0.2,
        }  # fmt: skip
        self.features.add("question")
        return self.weighted(kinds)()

    def _asked_tense(self, verb: Verb) -> str:
        if verb.stative:
            return "present"
        return self.weighted({"present": 0.3 if "momentary" in verb.options else 2, "past": 2, "future": 1})

    def ask_yes_no(self) -> Sentence:
        verb = self.verb()
        subject = self.subject(verb, asked=True)
        clitic = self.person_clitic(verb, subject, False) if verb in WITH_PEOPLE and self.chance(0.2) else None
        clause = self.clause(subject, verb, self._asked_tense(verb), inverted=True, clitic=clitic, details=0.7)
        return Sentence(clause.english, clause.french, f"(SQ {clause.tree})", "?")

    def ask_state(self) -> Sentence:
        clause = self.state(inverted=True, polarity="")
        return Sentence(clause.english, clause.french, f"(SQ {clause.tree})", "?")

    def _wh(self, word: Fragment, clause: Clause) -> Sentence:
        english, french = self.say(word)
        self.features.add("wh-question")
        return Sentence(
            english + clause.english, french + clause.french, f"(SQ (WH {text_of(english)}) {clause.tree})", "?"
        )

    def ask_where_why_when(self) -> Sentence:
        word = self.pick((_WHERE, _WHY, _WHEN_ASKED))
        verb = self.pick(_PLACED) if word is _WHERE else self.verb()
        while word is _WHEN_ASKED and verb.stative:
            verb = self.verb()
        subject = self.subject(verb, asked=True)
        tense = self._asked_tense(verb)
        if word is _WHEN_ASKED and tense == "present":
            tense = self.pick(("past", "future"))
        polarity = "not" if word is _WHY and self.chance(0.3) else ""
        clause = self.clause(
            subject,
            verb,
            tense,
            inverted=True,
            polarity=polarity,
            time=word is _WHERE,
            frequency=False,
            details=0.3 if word is not _WHERE else 0.5,
            place=word is not _WHERE,
        )
        return self._wh(word, clause)

    def ask_who(self) -> Sentence:
        """Who ate the apple? Qui a mangé la pomme ?"""
        who, link = NounPhrase([], [], HE, False, False, "(WH who)"), self.link()
        who.english, who.french = [("who", link)], [("qui", link, None)]
        verb = self.verb()
        clause = self.clause(who, verb, self._asked_tense(verb), details=0.6)
        self.features.add("wh-question")
        return Sentence(clause.english, clause.french, f"(SQ {clause.tree})", "?")

    def ask_what(self) -> Sentence:
        verb = VERB[
            self.pick(
                (
                    "eat",
                    "drink",
                    "buy",
                    "sell",
                    "see",
                    "look for",
                    "read",
                    "write",
                    "draw",
                    "paint",
                    "prepare",
                    "choose",
                    "want",
                    "find",
                    "learn",
                    "take",
                    "repair",
                )
            )
        ]
        nothing = NounPhrase([], [], HE, False, False, "")
        clause = self.clause(
            self.subject(verb, asked=True),
            verb,
            self._asked_tense(verb),
            inverted=True,
            gap=nothing,
            frequency=False,
            details=0.6,
        )
        return self._wh(_WHAT, clause)

    def ask_which(self) -> Sentence:
        """Which book did you read, how many apples did she eat: quel livre, combien de pommes, and the participle agrees."""
        verb = self.pick([v for v in DIRECT if not v.stative and v.base not in ("protect", "feed")])
        nouns = [noun for noun in verb.objects if noun.kind != "kin" and not noun.mass]
        noun = self.pick(nouns or [n for n in verb.objects])
        subject = self.subject(asked=True)
        tense = self._asked_tense(verb)
        link, noun_link = self.link(), self.link()
        many = self.chance(0.5) and not noun.mass and noun.kind not in ("place", "part")
        plural = many or "pair" in noun.tags
        word = noun.english_plural if plural else noun.english
        french_word = noun.french_plural if plural else noun.french
        if many:
            english: English = [("how", link), ("many", link), (word, noun_link)]
            french: French = [("combien", link, None), ("de", link, None), (french_word, noun_link, None)]
        else:
            which = ("quel" + ("le" if noun.feminine else "")) + ("s" if plural else "")
            english, french = (
                [("which", link), (word, noun_link)],
                [(which, link, None), (french_word, noun_link, None)],
            )
        fronted = NounPhrase(
            english, french, THEY if plural else HE, noun.feminine, plural, f"(WH {text_of(english)})", noun
        )
        self.combinations.append((verb.base, noun.english))
        clause = self.clause(subject, verb, tense, inverted=True, gap=fronted, frequency=False, details=0.5)
        self.features.add("wh-question")
        return Sentence(english + clause.english, french + clause.french, f"(SQ {fronted.tree} {clause.tree})", "?")

    def ask_age(self) -> Sentence:
        subject = self.relative_of() if self.chance(0.6) else self.name()
        be_link, old = self.link(), self.link()
        self.features |= {"wh-question", "age"}
        english: English = [("how", old), ("old", old), (be_form(subject.person, False), be_link), *subject.english]
        french: French = [
            ("quel", old, None),
            ("âge", old, None),
            (AVOIR.present[subject.person], be_link, None),
            *subject.french,
        ]
        return Sentence(english, french, f"(SQ (WH how old) {english[2][0]} {subject.tree})", "?")

    # ---- clauses woven together -----------------------------------------------------------------------------------------------------

    def join(self, left: Clause | Sentence, word: Fragment, right: Clause, label: str, comma: bool = False) -> Clause:
        """left, conjunction, right."""
        english, french = self.say(word)
        link = self.link()
        mark_english: English = [(",", link)] if comma else []
        mark_french: French = [(",", link, None)] if comma else []
        tree = f"{left.tree}{' ,' if comma else ''} ({label} {text_of(english)} {right.tree})"
        return Clause(
            left.english + mark_english + english + right.english,
            left.french + mark_french + french + right.french,
            tree,
            right.subject,
            right.tense,
            right.object,
            right.verb,
        )

    def ahead(self, word: Fragment, first: Clause, main: Clause, label: str) -> Clause:
        """conjunction, first clause, comma, main clause."""
        english, french = self.say(word)
        comma = self.link()
        tree = f"({label} {text_of(english)} {first.tree}) , {main.tree}"
        return Clause(
            english + first.english + [(",", comma)] + main.english,
            french + first.french + [(",", comma, None)] + main.french,
            tree,
            main.subject,
            main.tense,
            main.object,
            main.verb,
        )

    def two_clauses(self) -> Clause:
        kinds: dict[Callable[[], Clause], float] = {
            self.and_clauses: 2.2, self.script: 3.0, self.because: 2.2, self.when: 1.6, self.if_clause: 1.2, self.that_clause: 2.4, self.while_clause: 0.7, self.two_predicates: 1.4,
        }  # fmt: skip
        return self.weighted(kinds)()

    def and_clauses(self, before: Clause | None = None) -> Clause:
        tense = self.weighted({"present": 2, "past": 2, "future": 1})
        first = self.event(tense=tense, details=0.5, relative=0.05, before=before)
        second = self.event(tense=tense, details=0.5, relative=0.05, before=first)
        self.features.add("coordination")
        return self.join(first, self.pick((_AND, _AND, _BUT)), second, "CONJ", comma=False)

    def two_predicates(self, before: Clause | None = None) -> Clause:
        """He sings and dances: one subject, two verbs."""
        tense = self.weighted({"present": 2, "past": 2, "future": 1})
        pool = [
            verb
            for verb in VERBS
            if verb.frame in ("alone", "direct")
            and self.allows(verb, tense)
            and not verb.stative
            and verb.base != verb.past
        ]
        first_verb, second_verb = self.pick(pool), self.pick(pool)
        while second_verb.base == first_verb.base or second_verb.frame == first_verb.frame == "direct":
            second_verb = self.pick(pool)
        subject = self.subject(before=before)
        if text_of(subject.english) == "it":
            subject = self.person()
        first = self.clause(subject, first_verb, tense, frequency=False, time=False, details=0.3)
        second = self.clause(subject, second_verb, tense, frequency=False, details=0.4, silent_subject=True)
        self.features.add("coordination")
        return self.join(first, _AND, second, "CONJ")

    def script(self, before: Clause | None = None) -> Clause:
        """She bought an apple and ate it: the second object is a pronoun that agrees with the first."""
        tense = self.weighted({"present": 1, "past": 3, "future": 1})
        first_verb, second_verb, nouns = self.pick(_SCRIPTS)
        subject = self.subject(before=before)
        if text_of(subject.english) == "it":
            subject = self.person()
        while (
            not nouns
            or ambiguous(second_verb, tense, subject)
            or ambiguous(first_verb, tense, subject)
            or (tense == "present" and first_verb.base in ("break", "lose", "forget"))
        ):
            first_verb, second_verb, nouns = self.pick(_SCRIPTS)
        phrase = self.thing(self.pick(nouns), "", self.owner(subject))
        if phrase.noun is not None:
            self.combinations += [(first_verb.base, phrase.noun.english), (second_verb.base, phrase.noun.english)]
        first = self.clause(subject, first_verb, tense, given=phrase, frequency=False, time=False, details=0.25)
        self.features.add("coordination")
        give = (
            self.chance(0.15)
            and phrase.noun is not None
            and "held" in phrase.noun.tags
            and first_verb.base in ("buy", "find", "take", "choose", "repair", "write")
        )
        if give:
            second_verb = VERB[self.pick(("give give", "show give"))]
        second = self.clause(
            subject,
            second_verb,
            tense,
            clitic=self.pointing_back(phrase),
            frequency=False,
            details=0.35,
            silent_subject=True,
        )
        return self.join(first, _AND, second, "CONJ")

    def reason(self, before: Clause) -> Clause:
        """Why somebody did something: how they, or the thing they did it to, are."""
        tense = _REASON_TENSE.get(before.tense, "present")
        thing = before.object
        plain = (
            before.subject.person != THEY
            and not (before.subject.noun is not None and before.subject.noun.kind == "animal")
            and text_of(before.subject.english) != "it"
        )
        if (
            plain
            and thing is not None
            and thing.noun is not None
            and thing.noun in _THINGS
            and thing.determiner not in ("any", "bare", "generic", "every")
            and self.chance(0.5)
        ):
            self.features.add("anaphora")
            pronoun = self.pronoun("they" if thing.plural else "it", thing.feminine)
            pronoun.noun = None
            suitable = [a.english for a in PREDICATES[thing.noun]]
            if set(suitable) - {"cold", "hot"}:
                return self.be(pronoun, tense, self.attribute(pronoun, thing.noun, without=("cold", "hot")))
        subject = self.same(before.subject)
        if text_of(subject.english) == "it":
            return self.be(subject, tense, self.idiom(_IDIOMS[:3]), AVOIR)
        draw = self.random()
        if draw < 0.4:
            return self.be(subject, tense, self.idiom((*_IDIOMS[:3], _IDIOMS[5])), AVOIR)
        return self.be(subject, tense, self.mood(subject), polarity="not" if self.chance(0.12) else "")

    def mood(self, subject: NounPhrase) -> Extra:
        """tired, happy, sad, ill: what passes."""
        return self.attribute(
            subject,
            NOUN["man"],
            without=(
                "small",
                "old",
                "young",
                "tall",
                "kind",
                "intelligent",
                "famous",
                "rich",
                "strong",
                "brave",
                "polite",
                "new",
            ),
        )

    def because(self, before: Clause | None = None) -> Clause:
        tense = self.weighted({"present": 2, "past": 3, "future": 0.7})
        first = self.event(tense=tense, details=0.5, relative=0.04, before=before)
        self.features.add("subordinate")
        return self.join(first, _BECAUSE, self.reason(first), "SBAR")

    def when(self, before: Clause | None = None) -> Clause:
        """When he arrives, we will eat: French says both in the future."""
        self.features.add("subordinate")
        tense = self.weighted({"present": 1.5, "past": 2, "future": 1.5})
        if tense == "past" and self.chance(0.5):
            first = self._ongoing(before)
            second = self._momentary("past", first)
            return self.join(first, _WHEN, second, "SBAR")
        if self.chance(0.5):
            first = self._momentary(
                "present" if tense == "future" else tense, before, "future" if tense == "future" else ""
            )
            first.tense = tense
            return self.ahead(
                _WHEN, first, self.event(tense=tense, before=first, details=0.4, relative=0.0, plain=True), "SBAR"
            )
        first = self._untimed(tense, before)
        second = self._momentary(
            "present" if tense == "future" else tense, first, "future" if tense == "future" else ""
        )
        return self.join(first, _WHEN, second, "SBAR")

    def _momentary(self, tense: str, before: Clause | None, french_tense: str = "") -> Clause:
        """A clause about something that happens at one moment."""
        verb = VERB[
            self.pick(
                (
                    "arrive alone",
                    "leave alone",
                    "come back alone",
                    "go out alone",
                    "get up alone",
                    "wake up alone",
                    "sit down alone",
                    "fall asleep alone",
                    "call",
                    "see",
                    "open",
                    "close",
                )
            )
        ]
        subject = self.subject(before=before)
        while text_of(subject.english) == "it":
            subject = self.person()
        clitic = self.person_clitic(verb, subject, True) if verb.base in ("call", "see") else None
        return self.clause(
            subject, verb, tense, clitic=clitic, time=False, frequency=False, details=0.3, tense_of_french=french_tense
        )

    def _ongoing(self, before: Clause | None) -> Clause:
        verb = self.verb()
        while not self.allows(verb, "progressive"):
            verb = self.verb()
        subject = self.subject(before=before)
        while text_of(subject.english) == "it":
            subject = self.person()
        return self.clause(subject, verb, "progressive", time=False, frequency=False, details=0.4)

    def while_clause(self, before: Clause | None = None) -> Clause:
        self.features.add("subordinate")
        first = self._ongoing(before)
        return self.join(first, _WHILE, self._ongoing(first), "SBAR")

    def if_clause(self, before: Clause | None = None) -> Clause:
        """If it rains, we will stay at home."""
        self.features |= {"subordinate", "condition"}
        if self.chance(0.4):
            first = self.weather("if")
            main = self.event(tense="future", details=0.5, relative=0.0, plain=True)
            if text_of(main.subject.english) == "they":
                main = self.event(tense="future", details=0.5, relative=0.0, plain=True, before=main)
        else:
            first = (
                self._momentary("present", before)
                if self.chance(0.5)
                else self.state(before, "present", polarity="")
                if before
                else self._momentary("present", None)
            )
            main = self.event(tense="future", before=first, details=0.4, relative=0.0, plain=True)
        if self.chance(0.65) or before is not None:
            return self.ahead(_IF, first, main, "SBAR")
        return self.ahead(_IF, first, main, "SBAR")

    def that_clause(self, before: Clause | None = None) -> Clause:
        """Anna thinks that he will come."""
        verb, english, past = self.pick(
            (
                (PENSER, ("think", "thinks"), ""),
                (DIRE, ("say", "says"), "said"),
                (SAVOIR, ("know", "knows"), ""),
                (ESPERER, ("hope", "hopes"), ""),
                (CROIRE, ("believe", "believes"), ""),
            )
        )
        subject = self.subject(before=before)
        while text_of(subject.english) == "it":
            subject = self.person()
        link = self.link()
        said = past and self.chance(0.5)
        matrix_english: English = [*subject.english, (past if said else english[subject.person == HE], link)]
        if said:
            matrix_french: French = [
                *subject.french,
                (AVOIR.present[subject.person], link, None),
                (verb.participle, link, None),
            ]
        else:
            matrix_french = [*subject.french, (verb.present[subject.person], link, None)]
        matrix = Clause(
            matrix_english,
            matrix_french,
            f"{subject.tree} (VP {matrix_english[-1][0]})",
            subject,
            "past" if said else "present",
        )
        if said:
            inner = self.state(matrix, "past") if self.chance(0.6) else self._ongoing(matrix)
        elif verb is ESPERER:
            inner = self.event(tense="future", before=matrix, details=0.5, relative=0.04)
        elif self.chance(0.35):
            inner = self.state(matrix, self.pick(("present", "present", "future")))
        else:
            inner = self.event(
                tense=self.pick(("present", "past", "future")), before=matrix, details=0.5, relative=0.04
            )
        self.features |= {"subordinate", "complement"}
        return self.join(matrix, _THAT, inner, "SBAR")

    def several(self, words: int) -> Sentence:
        """Clause after clause until the sentence has about so many words."""
        kinds: dict[Callable[[Clause | None], Clause], float] = {
            self.and_clauses: 1, self.script: 2.5, self.because: 2.5, self.when: 2, self.that_clause: 1.8, self.while_clause: 0.5, self.two_predicates: 1.2,
        }  # fmt: skip
        whole = self.weighted(kinds)(None)
        last = None
        while len(whole.english) < words - 3:
            room = words - len(whole.english)
            unit: Clause
            if room < 8:
                unit = self.event(before=whole, details=0.3, relative=0.0)
                word = self.pick((_AND, _BUT))
            else:
                unit = self.weighted(kinds)(whole)
                word = self.pick((_AND, _BUT))
            if word is last:
                word = _BUT if word is _AND else _AND
            last = word
            whole = self.join(whole, word, unit, "CONJ", comma=True)
        self.features.add("coordination")
        return self.statement(whole)
