"""Single statements of the embedded corpus: who does what, with relative clauses, and the many faces of "to be"."""

from __future__ import annotations

from kente.data.bilingual.adverbials import Extra
from kente.data.bilingual.clauses import DIRECT, WITH_PEOPLE, Clause, Clauses, is_animal
from kente.data.bilingual.french import FrenchVerb
from kente.data.bilingual.lexicon import MOODS, NOUN, NOUNS, PASSING, PREDICATES, VERB, VERBS, Adjective, Noun, Verb
from kente.data.bilingual.phrases import (
    ANIMALS,
    HE,
    ME,
    THEY,
    WE,
    YOU,
    English,
    Fragment,
    French,
    NounPhrase,
    fragments,
    text_of,
)
from kente.data.bilingual.verbs import ALLER, AVOIR, ETRE, ambiguous, be_form, being

ALONE = tuple(verb for verb in VERBS if verb.frame == "alone")
OTHERS = tuple(verb for verb in VERBS if verb.frame not in ("alone", "direct"))
_ANIMAL_VERBS = tuple(verb for verb in VERBS if verb.animal)
_DOERS = tuple(verb for verb in VERBS if verb.frame in ("alone", "direct", "instrument", "language", "reside"))
_HERE_DONE = tuple(
    VERB[name] for name in ("work alone", "sleep alone", "dance alone", "rest alone", "read", "sing alone")
)
_VERBS_OF = {
    noun: tuple(verb for verb in DIRECT if noun in verb.objects and verb.base not in ("have", "hate", "love", "wear"))
    for noun in NOUNS
}
_MISHAPS = frozenset(("break", "lose", "forget", "fall", "meet", "cry"))
_LASTING = frozenset(("know", "like", "hate", "want", "love"))
_PREDICATED = tuple(noun for noun in NOUNS if PREDICATES[noun])
_ANYBODY = NOUN["man"]
IDIOMS = fragments("hungry = faim\nthirsty = soif\nsleepy = sommeil\nafraid = peur\nright = raison\nwrong = tort")
_DEGREES = fragments("very = très\nreally = vraiment\ntoo = trop")
_EXCESSIVE = frozenset(["small", "big", "old", "young", "long", "expensive", "heavy", "dirty", "difficult", "slow"])
_GRADED = _EXCESSIVE | frozenset(
    [
        "beautiful",
        "tall",
        "happy",
        "sad",
        "tired",
        "kind",
        "intelligent",
        "famous",
        "rich",
        "strong",
        "brave",
        "polite",
        "interesting",
        "funny",
        "boring",
        "easy",
        "important",
        "modern",
        "quiet",
        "dangerous",
        "fast",
    ]
)
_TODAY = fragments("today = aujourd'hui")[0]
_RELATIVE_TENSES = {
    "past": ("past", "past", "progressive"), "future": ("present", "past"), "present": ("present", "past"), "habit": ("past",),
    "progressive": ("past",),
}  # fmt: skip
_TENSES = {
    "present": 4.0, "past": 3.2, "future": 1.6, "progressive": 0.6, "habit": 0.4, "can": 0.3, "must": 0.35, "want": 0.35,
}  # fmt: skip
_SUBJECT_WORDS = {ME: "I", WE: "we", YOU: "you", THEY: "they"}
_POINTED_AT = frozenset(("the", "a", "number", "several", "few"))


def is_it(phrase: NounPhrase) -> bool:
    return phrase.english[-1][0] == "it"


def allows(verb: Verb, tense: str) -> bool:
    """Whether the verb sounds natural in a tense that was chosen before it."""
    match tense:
        case "progressive":
            return not verb.stative and "momentary" not in verb.options
        case "future":
            return verb.base not in _LASTING and verb.base not in _MISHAPS and verb.base not in ("find", "understand")
        case "present":
            return verb.base not in _MISHAPS
        case "past":
            return not verb.stative
    return True


class Statements(Clauses):
    """Says one thing about somebody or something."""

    # ---- who, and when ------------------------------------------------------------------------------------------------

    def subject(
        self, verb: Verb | None = None, *, asked: bool = False, before: Clause | None = None, other: bool = False
    ) -> NounPhrase:
        """Somebody for the verb. `before`: the clause said last, whose subject a pronoun may mean (unless `other`)."""
        if before is not None and not other and before.subject.acts and self.chance(0.45):
            return self.same(before.subject)
        if verb is not None and verb.animal and self.chance(0.3):
            kinds = (
                ("the", False),
                ("the", False),
                ("the", True),
                ("a", False),
                ("possessive", False),
                ("number", True),
            )
            animal = self.pick(ANIMALS)
            kind, plural = self.pick(kinds)
            return self.noun_phrase(animal, kind if kind != "possessive" or "pet" in animal.tags else "this", plural)
        if not self.chance(0.42):
            return self.person()
        if asked:
            weights = {"you": 5.0, "he": 2.0, "she": 2.0, "we": 0.7, "they": 1.5}
        else:
            weights = {"I": 3.0, "you": 1.2, "he": 2.0, "she": 2.0, "we": 1.7, "they": 1.5}
        if before is not None:
            del weights["they"]  # it would point back to someone
            if other and before.subject.person == HE:
                del weights["she" if before.subject.feminine else "he"]
            elif other and before.subject.person in (ME, WE):
                weights |= {"I": 0.0, "we": 0.0}
            elif other and before.subject.person == YOU:
                weights["you"] = 0.0
        return self.pronoun(self.weighted(weights))

    def human(self, before: Clause | None = None, other: bool = False) -> NounPhrase:
        """A subject that is not an animal."""
        subject = self.subject(before=before, other=other)
        return self.person() if is_it(subject) else subject

    def same(self, phrase: NounPhrase) -> NounPhrase:
        """The pronoun for someone just mentioned."""
        self.features.add("anaphora")
        if phrase.person != HE:
            word = _SUBJECT_WORDS[phrase.person]
            return self.pronoun(word, phrase.feminine and word == "they")
        if is_it(phrase) or (phrase.noun is not None and phrase.noun.kind not in ("person", "kin")):
            return self.pronoun("it", phrase.feminine)
        return self.pronoun("she" if phrase.feminine else "he")

    def verb(self) -> Verb:
        draw = self.random()
        return self.pick(DIRECT if draw < 0.56 else ALONE if draw < 0.8 else OTHERS)

    def verb_in(
        self,
        tense: str,
        subject: NounPhrase,
        polarity: str = "",
        state: bool = True,
        without: frozenset[str] = frozenset(),
    ) -> Verb:
        """A verb that fits a tense and a subject already chosen."""
        animal = is_it(subject) or is_animal(subject)
        while True:
            verb = self.pick(_ANIMAL_VERBS) if animal else self.verb()
            if (polarity and verb.base == "hate") or verb.base in without:
                continue
            if allows(verb, tense) and (state or not verb.stative) and not ambiguous(verb, tense, subject, polarity):
                return verb

    def tense(self, verb: Verb, subject: NounPhrase, polarity: str = "") -> str:
        if verb.stative:
            weights = {"present": 4.0, "past": 1.5, "future": 0.0 if verb.base in _LASTING else 0.8}
        else:
            weights = _TENSES.copy()
            if "momentary" in verb.options:
                weights |= {"present": 1.5, "progressive": 0.0, "habit": 0.1}
            if verb.base in _MISHAPS:
                weights |= {"present": 0.0, "can": 0.0, "must": 0.0, "want": 0.0, "future": 0.3}
            if polarity == "never":
                weights |= {"present": 3.0, "progressive": 0.0, "can": 0.0, "want": 0.0}
            if polarity:
                weights["habit"] = 0.0
        if ambiguous(verb, "past", subject, polarity):
            weights["past"] = 0.0
        return self.weighted(weights)

    def polarity(self) -> str:
        draw = self.random()
        return "not" if draw < 0.11 else "never" if draw < 0.15 else ""

    # ---- somebody does something ----------------------------------------------------------------------------------------

    def event(
        self, *, before: Clause | None = None, tense: str = "", polarity: str | None = None, details: float = 1.0,
        relative: float = 0.18, time: bool = True, state: bool = True, same: bool = False, other: bool = False,
        without: frozenset[str] = frozenset(),
    ) -> Clause:  # fmt: skip
        """A statement about an action, of a random kind unless told otherwise."""
        polarity = self.polarity() if polarity is None else polarity
        if tense:
            if before is not None and same and before.subject.acts:
                subject = self.same(before.subject)
            else:
                subject = self.subject(before=before, other=other)
            verb = self.verb_in(tense, subject, polarity, state, without)
        else:
            verb = self.verb()
            if verb.base == "hate":
                polarity = ""
            subject = self.subject(verb, before=before)
            if is_it(subject) and not verb.animal:
                subject = self.person()
            tense = self.tense(verb, subject, polarity)
        clitic = given = None
        if (verb in WITH_PEOPLE and not is_animal(subject) and self.chance(0.22)) or (
            verb.frame == "give" and self.chance(0.3)
        ):
            clitic = self.person_clitic(verb, subject, before is not None)
        elif verb.frame == "direct" and not is_animal(subject) and not is_it(subject):
            if self.chance(relative):
                given = self.with_relative(self.object_of(verb, subject, "definite"), tense)
            elif not polarity and self.chance(0.07):
                given = self.two_things(verb, subject)
        if given is None and self.chance(relative):
            subject = self.with_relative(subject, tense)
        return self.clause(
            subject, verb, tense, polarity=polarity, clitic=clitic, given=given, time=time, frequency=details == 1.0,
            details=0.0 if given else details,
        )  # fmt: skip

    def two_things(self, verb: Verb, subject: NounPhrase, word: str = "and") -> NounPhrase:
        """A pear and some cheese."""
        nouns = self.pick(verb.objects), self.pick(verb.objects)
        if nouns[0] is nouns[1] or nouns[0].kind != nouns[1].kind or nouns[0].kind in ("person", "kin", "place"):
            return self.object_of(verb, subject, "definite")
        self.features.add("coordination")
        self.combinations += [(verb.base, noun.english) for noun in nouns]
        definite = word == "and" and self.chance(0.5)
        first, second = (
            self.noun_phrase(noun, "the" if definite else "some" if plural or noun.mass else "a", plural)
            for noun, plural in ((noun, "pair" in noun.tags or (self.chance(0.2) and not noun.mass)) for noun in nouns)
        )
        link = self.link()
        french: French = [*first.french, ("et" if word == "and" else "ou", link, None), *second.french]
        feminine = first.feminine and second.feminine
        english: English = [*first.english, (word, link), *second.english]
        return NounPhrase(english, french, THEY, feminine, True, f"(NP {first.tree} {word} {second.tree})")

    def with_relative(self, phrase: NounPhrase, tense: str) -> NounPhrase:
        """The phrase and a relative clause that tells which one: who works here, that I bought, where he sleeps."""
        noun = phrase.noun
        if (
            noun is None
            or noun.kind == "kin"
            or noun.mass
            or phrase.determiner not in _POINTED_AT
            or "own" in noun.tags
        ):
            return phrase
        inner_tense = self.pick(_RELATIVE_TENSES.get(tense, ("present",)))
        link = self.link()
        if noun.kind in ("person", "animal") and self.chance(0.65):
            word, french_word = "who" if noun.kind == "person" else "that", "qui"
            while True:
                verb = self.pick(_ANIMAL_VERBS if noun.kind == "animal" else _DOERS)
                fits = allows(verb, inner_tense) or verb.base == "live"
                if fits and not ambiguous(verb, inner_tense, phrase):
                    break
            inner = self.clause(phrase, verb, inner_tense, silent=True, frequency=False, time=False, details=0.6)
        else:
            subject = self.pronoun(self.pick(("I", "you", "he", "she", "we"))) if self.chance(0.6) else self.person()
            if noun.kind == "place" and self.chance(0.4):
                word, french_word, gap, verbs = "where", "où", None, _HERE_DONE
            else:
                word, french_word, gap, verbs = "that", "que", phrase, _VERBS_OF[noun]
            choices = [
                verb for verb in verbs if allows(verb, inner_tense) and not ambiguous(verb, inner_tense, subject)
            ]
            if not choices:
                return phrase
            verb = self.pick(choices)
            if gap is not None:
                self.combinations.append((verb.base, noun.english))
            inner = self.clause(
                subject, verb, inner_tense, gap=gap, frequency=False, time=False, place=gap is not None, details=0.4
            )
        self.features.add("relative")
        english = [*phrase.english, (word, link), *inner.english]
        french: French = [*phrase.french, (french_word, link, None), *inner.french]
        tree = f"{phrase.tree[:-1]} (REL {word} {inner.tree}))"
        return NounPhrase(english, french, phrase.person, phrase.feminine, phrase.plural, tree, noun, phrase.determiner)

    # ---- "to be" and its French faces -------------------------------------------------------------------------------------

    def be(
        self, subject: NounPhrase, tense: str, extra: Extra, verb: FrenchVerb = ETRE, polarity: str = "", inverted: bool = False
    ) -> Clause:  # fmt: skip
        """A clause with "to be", which French says with être, avoir (faim) or aller (bien); its past is an imparfait."""
        self.features.add(tense)
        if polarity:
            self.features |= {"negation", polarity}
        link, negation_link = self.link(), self.link()
        future = tense == "future"
        auxiliary: English = [("will" if future else be_form(subject.person, tense == "past"), link)]
        rest: English = [(polarity, negation_link)] if polarity else []
        rest += [("be", link)] if future else []
        french: French = [(being(verb, tense, subject.person), link, None)]
        if polarity:
            no = "pas" if polarity == "not" else "jamais"
            french = [("ne", negation_link, None), *french, (no, negation_link, None)]
        french += extra.french
        tree = f"(VP {text_of(rest if inverted else auxiliary + rest)}{extra.tree})".replace("(VP  ", "(VP ")
        rest += extra.english
        if inverted:
            self.features.add("question")
            ask: French = [("est-ce", link, None), ("que", link, None)]
            tree = f"{auxiliary[0][0]} {subject.tree} {tree}"
            return Clause(auxiliary + subject.english + rest, ask + subject.french + french, tree, subject, tense)
        english = subject.english + auxiliary + rest
        return Clause(english, subject.french + french, f"{subject.tree} {tree}", subject, tense)

    def attribute(self, subject: NounPhrase, choices: tuple[Adjective, ...], degree: float = 0.2) -> Extra:
        """An adjective after "is", agreeing with the subject."""
        adjective, extra, link = self.pick(choices), Extra(), self.link()
        if adjective.english in _GRADED and self.chance(degree):
            self.add(extra, self.pick(_DEGREES if adjective.english in _EXCESSIVE else _DEGREES[:2]))
        if subject.noun is not None:
            self.combinations.append((adjective.english, subject.noun.english))
        form = adjective.french[2 * subject.plural + subject.feminine]
        extra.add([(adjective.english, link)], [(form, link, None)], f"(AP {adjective.english})")
        return extra

    def idiom(self, choices: tuple[Fragment, ...] = IDIOMS) -> Extra:
        """hungry, afraid, right: avoir faim, peur, raison."""
        self.features.add("idiom")
        extra = Extra()
        self.add(extra, self.pick(choices), "AP")
        return extra

    def health(self, subject: NounPhrase, tense: str, polarity: str = "", inverted: bool = False) -> Clause:
        """The lectures' "I am good": je vais bien."""
        self.features.add("health")
        extra, link = Extra(), self.link()
        if not polarity and self.chance(0.2):
            self.add(extra, _DEGREES[0])
        word = "good" if tense == "present" else "well"
        extra.add([(word, link)], [("bien", link, None)], f"(AP {word})")
        if tense == "present" and not inverted and self.chance(0.25):
            self.add(extra, _TODAY, "TIME")
        return self.be(subject, tense, extra, ALLER, polarity, inverted)

    def described(self) -> NounPhrase:
        """Something an adjective may be said of."""
        noun = self.pick(_PREDICATED)
        own = (
            noun.kind in ("clothes", "thing", "vehicle", "furniture", "text")
            or "pet" in noun.tags
            or "own" in noun.tags
        )
        if own and self.chance(0.08):
            return self.genitive(noun)
        countable = not noun.mass and noun.kind != "place" and "one" not in noun.tags
        plural = countable and ("pair" in noun.tags or self.chance(0.3))
        if "own" in noun.tags:
            return self.noun_phrase(noun, "possessive", plural, bare=True)
        if noun.kind in ("food", "drink", "place") or "one" in noun.tags:
            return self.noun_phrase(
                noun, self.pick(("the", "the", "this")) if "one" not in noun.tags else "the", bare=True
            )
        kinds = {"the": 5.0, "this": 1.2, "that": 1.0, "possessive": 3.0 if own else 0.0}
        return self.noun_phrase(noun, self.weighted(kinds), plural, bare=True)

    def predicates(self, noun: Noun | None, tense: str) -> tuple[Adjective, ...]:
        """Adjectives for the noun after "is", "was" or "will be"."""
        choices = PREDICATES[_ANYBODY if noun is None or noun.kind == "kin" else noun]
        return tuple(a for a in choices if a.english in PASSING) if tense == "future" else choices

    def state(
        self, before: Clause | None = None, tense: str = "", inverted: bool = False, polarity: str | None = None,
        other: bool = False,
    ) -> Clause:  # fmt: skip
        """Someone or something is somehow."""
        tense = tense or self.weighted({"present": 6.0, "past": 2.5, "future": 0.9})
        if polarity is None:
            polarity = self.weighted({"": 8.0, "not": 1.3, "never": 0.2})
        if not inverted and before is None and self.chance(0.45):
            subject = self.described()
            choices = self.predicates(subject.noun, tense)
            if choices:
                if subject.noun is not None and subject.noun.kind not in ("person", "animal") and self.chance(0.1):
                    subject = self.with_relative(subject, tense)
                return self.be(subject, tense, self.attribute(subject, choices), polarity="not" if polarity else "")
        subject = self.subject(asked=inverted, before=before, other=other)
        if is_it(subject) or is_animal(subject):
            return self.be(subject, tense, self.idiom(IDIOMS[:4]), AVOIR, polarity, inverted)
        draw = self.random()
        if draw < 0.2:
            return self.be(subject, tense, self.idiom(), AVOIR, polarity, inverted)
        if draw < 0.3:
            extra = Extra()
            self.place(extra)
            return self.be(subject, tense, extra, ETRE, polarity, inverted)
        if draw < 0.42:
            return self.health(subject, tense, polarity, inverted)
        choices = MOODS if polarity == "never" else self.predicates(subject.noun, tense)
        return self.be(subject, tense, self.attribute(subject, choices), ETRE, polarity, inverted)
