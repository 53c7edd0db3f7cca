"""Sentences of several clauses of the embedded corpus, woven with conjunctions, relative tenses and pronouns."""

from __future__ import annotations

from collections.abc import Callable

from kente.data.bilingual.clauses import Clause, is_animal
from kente.data.bilingual.facts import Sentence
from kente.data.bilingual.french import conjugate
from kente.data.bilingual.lexicon import MOODS, PREDICATES, SCRIPTS, VERB, VERBS, Adjective
from kente.data.bilingual.phrases import HE, THEY, WE, YOU, English, Fragment, French, fragments, text_of
from kente.data.bilingual.questions import PLACED, WHERE, WHY, Questions
from kente.data.bilingual.statements import IDIOMS, allows, is_it
from kente.data.bilingual.verbs import AVOIR, ETRE, ambiguous

_AND, _BUT, _BECAUSE, _WHEN, _IF, _THAT, _WHILE, _THEN = fragments("""
and = et
but = mais
because = parce que
when = quand
if = si
that = que
while = pendant que
and/a then/b = et/a ensuite/b""")
_SCRIPTS = tuple(
    (first, second, tuple(noun for noun in first.objects if noun in second.objects))
    for first, second in ((VERB[a.replace("_", " ")], VERB[b.replace("_", " ")]) for a, b in map(str.split, SCRIPTS))
)
_GIFTS = (VERB["give give"], VERB["show give"])
_MOMENTS = tuple(
    VERB[name]
    for name in (
        "arrive alone", "leave alone", "come back alone", "go out alone", "get up alone", "wake up alone", "sit down alone",
        "fall asleep alone", "call", "see", "open", "close",
    )
)  # fmt: skip
_OPENING = tuple(verb for verb in VERBS if verb.frame == "alone" and "placed" not in verb.options)
_FOLLOWING = tuple(
    verb
    for verb in VERBS
    if verb.frame in ("alone", "direct") and not verb.stative and verb.base != verb.past
    and not {"placed", "clock", "arrival"} & verb.options and verb.base not in ("come", "go", "fall", "leave", "cry")
)  # fmt: skip
_THINKING = tuple(
    (conjugate(french), english)
    for french, english in (
        ("penser", "think"),
        ("dire", "say"),
        ("savoir", "know"),
        ("espérer", "hope"),
        ("croire", "believe"),
    )
)
_SAVOIR, _DIRE, _ESPERER = _THINKING[2][0], _THINKING[1][0], _THINKING[3][0]
_REASON_TENSES = {"past": "past", "habit": "past", "progressive": "past"}
_NEEDS = {  # why people do things: an index of IDIOMS
    "eat": 0, "prepare": 0, "drink": 1, "sleep": 2, "go to bed": 2, "rest": 2, "fall asleep": 2, "cry": 3, "shout": 3, "run": 3,
    "hide": 3, "leave": 3,
}  # fmt: skip
_WEARY = frozenset(
    ("rest", "sleep", "go to bed", "fall asleep", "sit down", "stay", "cry", "come back", "leave", "hate")
)
_UNEXPLAINED = frozenset(("see", "find", "have", "know", "understand", "lose", "forget", "meet"))
_UNDER_THE_SKY = frozenset(["stay", "leave", "come", "go", "return", "walk", "run", "hurry", "rest", "sleep", "wear"])
_ATTRACTIVE = frozenset(
    [
        "beautiful",
        "good",
        "interesting",
        "funny",
        "important",
        "delicious",
        "pretty",
        "easy",
        "famous",
        "fresh",
        "ripe",
        "new",
        "modern",
        "quiet",
        "fast",
    ]
)
_REPELLENT = frozenset(
    ["bad", "boring", "expensive", "dirty", "difficult", "heavy", "old", "dangerous", "slow", "empty"]
)
_REMEDIED = {
    "wash": ("dirty",),
    "clean": ("dirty",),
    "repair": ("old",),
    "sell": ("old", "expensive"),
    "paint": ("old", "dirty"),
}
_WANTING = frozenset(
    [
        "buy",
        "read",
        "eat",
        "drink",
        "choose",
        "take",
        "want",
        "visit",
        "watch",
        "listen",
        "draw",
        "learn",
        "sing",
        "wear",
        "like",
        "show",
        "give",
        "send",
        "lend",
    ]
)


class Sentences(Questions):
    """Says sentences of any length."""

    # ---- joining --------------------------------------------------------------------------------------------------------

    def join(self, left: Clause, word: Fragment, right: Clause, label: str, comma: bool = False) -> Clause:
        """left (,) conjunction right"""
        english, french = self.say(word)
        tree = f"{left.tree}{' ,' if comma else ''} ({label} {text_of(english)} {right.tree})"
        if comma:
            link = self.link()
            english, french = [(",", link), *english], [(",", link, None), *french]
        words = left.english + english + right.english, left.french + french + right.french
        return Clause(*words, tree, right.subject, right.tense, right.object, right.verb, right.polarity)

    def ahead(self, word: Fragment, first: Clause, main: Clause) -> Clause:
        """conjunction first clause, main clause"""
        english, french = self.say(word)
        comma = self.link()
        tree = f"(SBAR {text_of(english)} {first.tree}) , {main.tree}"
        words = (
            english + first.english + [(",", comma)] + main.english,
            french + first.french + [(",", comma, None)] + main.french,
        )
        return Clause(*words, tree, main.subject, main.tense, main.object)

    def one_clause(self) -> Sentence:
        """A statement about an action; now and then its time comes first."""
        if not self.chance(0.14):
            return self.statement(self.event())
        tense = self.weighted({"present": 1.0, "past": 2.0, "future": 1.0})
        words = self.time_words(tense)
        assert words is not None
        polarity = "not" if self.chance(0.08) and tense != "present" else ""
        comma, clause = self.link(), self.event(tense=tense, polarity=polarity, time=False, state=False, details=0.6)
        self.features |= {"time", "fronted"}
        english = [*words[0], (",", comma), *clause.english]
        french: French = [*words[1], (",", comma, None), *clause.french]
        return Sentence(english, french, f"(S (TIME {text_of(words[0])}) , {clause.tree})", ".")

    # ---- pairs of clauses -------------------------------------------------------------------------------------------------

    def two_clauses(self) -> Sentence:
        kinds: dict[Callable[[Clause | None, str], Clause], float] = {
            self.and_clauses: 2.0, self.script: 3.0, self.because: 2.2, self.when: 1.8, self.if_clause: 1.2,
            self.that_clause: 2.2, self.indirect_question: 0.8, self.while_clause: 0.7, self.two_predicates: 1.3,
        }  # fmt: skip
        return self.statement(self.weighted(kinds)(None, ""))

    def _some_tense(self, past: float = 2.0, future: float = 1.0) -> str:
        return self.weighted({"present": 2.0, "past": past, "future": future})

    def and_clauses(self, before: Clause | None = None, tense: str = "") -> Clause:
        """He sings and she dances; he sings but she does not dance."""
        tense = tense or self._some_tense()
        self.features.add("coordination")
        contrast = self.chance(0.35)
        second_polarity = "not" if contrast and self.chance(0.6) else ""
        first_polarity = "not" if contrast and not second_polarity else ""
        first = self.event(
            tense=tense, polarity=first_polarity, details=0.4, relative=0.05, before=before, state=not contrast
        )
        second = self.event(
            tense=tense,
            polarity=second_polarity,
            details=0.5,
            relative=0.05,
            before=first,
            state=not contrast,
            same=contrast,
        )
        return self.join(first, _BUT if contrast else _AND, second, "CONJ")

    def two_predicates(self, before: Clause | None = None, tense: str = "") -> Clause:
        """He sings and opens the door: one subject, two verbs."""
        tense = tense or self._some_tense()
        self.features.add("coordination")
        subject = self.human(before)
        first_verb, second_verb = self.pick(_OPENING), self.pick(_FOLLOWING)
        while not allows(first_verb, tense):
            first_verb = self.pick(_OPENING)
        # "vous nagez et vous reposez" would be heard as one verb with two objects
        once = subject.person in (WE, YOU)
        while (
            not allows(second_verb, tense)
            or second_verb.base == first_verb.base
            or (once and second_verb.french.reflexive)
        ):
            second_verb = self.pick(_FOLLOWING)
        first = self.clause(subject, first_verb, tense, frequency=False, time=False, details=0.3)
        second = self.clause(subject, second_verb, tense, frequency=False, details=0.4, silent=True)
        return self.join(first, _AND, second, "CONJ")

    def script(self, before: Clause | None = None, tense: str = "") -> Clause:
        """She bought an apple and ate it: the second object is a pronoun that agrees with the first."""
        tense = tense or self._some_tense(past=5.0, future=1.5)
        self.features.add("coordination")
        subject = self.human(before)
        first_verb, second_verb, nouns = self.pick(_SCRIPTS)
        while (
            not allows(first_verb, tense)
            or ambiguous(first_verb, tense, subject)
            or ambiguous(second_verb, tense, subject)
        ):
            first_verb, second_verb, nouns = self.pick(_SCRIPTS)
        noun = self.pick(nouns)
        thing = self.thing(noun, "", self.owner(subject))
        if "held" in noun.tags and first_verb.base in ("buy", "find", "take", "choose", "repair") and self.chance(0.3):
            second_verb = self.pick(_GIFTS)
        self.combinations += [(first_verb.base, noun.english), (second_verb.base, noun.english)]
        first = self.clause(subject, first_verb, tense, given=thing, frequency=False, time=False, details=0.25)
        pronoun = self.pointing_back(thing)
        second = self.clause(subject, second_verb, tense, clitic=pronoun, frequency=False, details=0.3, silent=True)
        return self.join(first, _AND, second, "CONJ")

    def because(self, before: Clause | None = None, tense: str = "") -> Clause:
        tense = tense or self._some_tense(past=3.0, future=0.7)
        self.features.add("subordinate")
        first = self.event(tense=tense, details=0.5, relative=0.04, before=before, without=_UNEXPLAINED)
        return self.join(first, _BECAUSE, self.reason(first), "SBAR")

    def reason(self, before: Clause) -> Clause:
        """Why somebody did something: how they are, or the thing they did it to is."""
        tense = _REASON_TENSES.get(before.tense, "present")
        thing = before.object
        choices = self.reasons_in(before)
        if thing is not None and thing.noun is not None and choices and self.chance(0.6):
            self.features.add("anaphora")
            pronoun = self.pronoun("they" if thing.plural else "it", thing.feminine)
            pronoun.noun, pronoun.acts = thing.noun, False
            return self.be(pronoun, tense, self.attribute(pronoun, choices))
        if before.verb is not None and before.verb.base in _UNDER_THE_SKY and self.chance(0.4):
            return self.weather(tense)
        pronoun = self.same(before.subject)
        name = before.verb.name if before.verb is not None else ""
        need = None if before.polarity else _NEEDS.get(name)
        if is_it(pronoun) or (need is not None and self.chance(0.7)):
            return self.be(pronoun, tense, self.idiom(IDIOMS[:4] if need is None else IDIOMS[need : need + 1]), AVOIR)
        glad = not before.polarity and name not in _WEARY
        mood = self.attribute(pronoun, MOODS[:1] if glad else MOODS[1:])
        return self.be(pronoun, tense, mood, ETRE, "not" if glad and self.chance(0.15) else "")

    def reasons_in(self, before: Clause) -> tuple[Adjective, ...]:
        """What may be said of the object of a clause to explain it, if a pronoun can mean that object.

        "it" and "they" mean the subject of the clause before if they can, so they mean its object only if they cannot.
        """
        thing, subject, verb = before.object, before.subject, before.verb
        if subject.person == THEY or is_animal(subject) or is_it(subject) or thing is None or verb is None:
            return ()
        if (
            thing.noun is None
            or thing.noun.kind in ("person", "kin", "animal")
            or thing.determiner in ("any", "bare", "every")
        ):
            return ()
        wanted = _ATTRACTIVE if verb.base in _WANTING else frozenset(_REMEDIED.get(verb.base, ()))
        if before.polarity:
            wanted = _REPELLENT if verb.base in _WANTING else frozenset()
        return tuple(adjective for adjective in PREDICATES[thing.noun] if adjective.english in wanted)

    def when(self, before: Clause | None = None, tense: str = "") -> Clause:
        """When he arrives, we will eat: French says both in the future. She was reading when he came in: imparfait."""
        tense = tense or self._some_tense(future=1.5)
        self.features.add("subordinate")
        if tense == "past" and self.chance(0.5):
            first = self.ongoing(before)
            return self.join(first, _WHEN, self.moment("past", first, other=True), "SBAR")
        if self.chance(0.5):
            first = self.moment(tense, before)
            return self.ahead(
                _WHEN, first, self.event(tense=tense, before=first, polarity="", relative=0.0, details=0.4, time=False)
            )
        first = self.event(tense=tense, before=before, polarity="", relative=0.0, details=0.4, time=False, state=False)
        return self.join(first, _WHEN, self.moment(tense, first), "SBAR")

    def moment(self, tense: str, before: Clause | None, condition: bool = False, other: bool = False) -> Clause:
        """A clause after "when" or "if", about one moment. English says its future in the present, French only after "if"."""
        subject, verb = self.human(before, other), self.pick(_MOMENTS)
        english_tense = "present" if tense == "future" else tense
        clitic = self.person_clitic(verb, subject, True) if verb.base in ("call", "see") else None
        return self.clause(
            subject, verb, english_tense, clitic=clitic, time=False, frequency=False, details=0.3,
            french_tense="present" if condition else tense,
        )  # fmt: skip

    def ongoing(self, before: Clause | None, other: bool = False) -> Clause:
        """What somebody was doing."""
        subject = self.human(before, other)
        verb = self.verb_in("progressive", subject)
        return self.clause(subject, verb, "progressive", time=False, frequency=False, details=0.4)

    def while_clause(self, before: Clause | None = None, tense: str = "") -> Clause:
        self.features.add("subordinate")
        first = self.ongoing(before)
        return self.join(first, _WHILE, self.ongoing(first, other=True), "SBAR")

    def if_clause(self, before: Clause | None = None, tense: str = "") -> Clause:
        """If it rains, we will stay at home."""
        self.features |= {"subordinate", "condition"}
        draw = self.random()
        if draw < 0.4:
            first, last = self.weather("if"), None
        elif draw < 0.75:
            first = last = self.moment("future", before, condition=True)
        else:
            subject = self.human(before)
            first = last = self.be(
                subject, "present", self.attribute(subject, MOODS), ETRE, "not" if self.chance(0.15) else ""
            )
        main = self.event(
            tense="future",
            before=last,
            polarity=self.weighted({"": 8.0, "not": 1.5}),
            relative=0.0,
            details=0.5,
            time=False,
        )
        return self.ahead(_IF, first, main)

    def that_clause(self, before: Clause | None = None, tense: str = "") -> Clause:
        """Anna thinks that he will come; she said that she was tired."""
        self.features |= {"subordinate", "complement"}
        verb, english = self.pick(_THINKING)
        subject, link = self.human(before), self.link()
        said = tense == "past" or (verb is _DIRE and self.chance(0.5))
        if said:
            verb = _DIRE
            word = "said"
            french: French = [(AVOIR.present[subject.person], link, None), (verb.participle, link, None)]
        else:
            word = english + "s" * (subject.person == HE)
            french = [(verb.present[subject.person], link, None)]
        tree = f"{subject.tree} (VP {word})"
        matrix = Clause(
            [*subject.english, (word, link)], subject.french + french, tree, subject, "past" if said else "present"
        )
        other = not said and (verb is not _DIRE or subject.person not in (HE, THEY))
        if said:
            inner = (
                self.state(matrix, "past", polarity="" if self.chance(0.8) else "not")
                if self.chance(0.6)
                else self.ongoing(matrix)
            )
        elif verb is _ESPERER:
            polarity = "" if self.chance(0.85) else "not"
            inner = self.event(
                tense="future", before=matrix, details=0.5, relative=0.04, polarity=polarity, other=other
            )
        elif self.chance(0.35):
            inner = self.state(matrix, "present", polarity="" if self.chance(0.8) else "not", other=other)
        else:
            inner_tense = self.pick(("present", "past", "future"))
            inner = self.event(tense=inner_tense, before=matrix, details=0.5, relative=0.04, other=other)
        return self.join(matrix, _THAT, inner, "SBAR")

    def indirect_question(self, before: Clause | None = None, tense: str = "") -> Clause:
        """I do not know where she works: je ne sais pas où elle travaille."""
        self.features |= {"subordinate", "indirect-question"}
        subject, link, no = self.human(before), self.link(), self.link()
        third = subject.person == HE
        french: French = [(_SAVOIR.present[subject.person], link, None)]
        if self.chance(0.65):
            self.features |= {"negation", "not"}
            english: English = [("does" if third else "do", link), ("not", no), ("know", link)]
            french = [("ne", no, None), *french, ("pas", no, None)]
        else:
            english = [("knows" if third else "know", link)]
        words = subject.english + english, subject.french + french
        matrix = Clause(*words, f"{subject.tree} (VP {text_of(english)})", subject, "present")
        where = self.chance(0.5)
        asked = self.human(matrix, other=True)
        verb = self.pick(PLACED) if where else self.verb()
        inner_tense = "past" if "momentary" in verb.options or (self.chance(0.5) and not verb.stative) else "present"
        while ambiguous(verb, inner_tense, asked) or verb.base in ("stay",):
            verb = self.pick(PLACED)
            inner_tense = "past" if "momentary" in verb.options else inner_tense
        inner = self.clause(asked, verb, inner_tense, frequency=False, time=False, place=not where, details=0.3)
        return self.join(matrix, WHERE if where else WHY, inner, "SBAR")

    # ---- long sentences ------------------------------------------------------------------------------------------------------

    def several(self, words: int) -> Sentence:
        """Clause after clause, all about one time, until the sentence has about so many words."""
        self.features.add("coordination")
        tense = self._some_tense()
        kinds: dict[Callable[[Clause | None, str], Clause], float] = {
            self.script: 2.5, self.because: 2.5, self.when: 2.0, self.two_predicates: 1.2, self.and_clauses: 0.6,
            self.that_clause: 0.0 if tense == "future" else 1.5, self.while_clause: 0.6 if tense == "past" else 0.0,
            self.indirect_question: 0.5 if tense == "present" else 0.0,
        }  # fmt: skip
        whole = self.weighted(kinds)(None, tense)
        word = _AND
        while len(whole.english) < words - 3:
            draw = self.random()
            if draw < 0.25 and word is _AND:
                word, unit = _BUT, self.event(tense=tense, before=whole, polarity="not", details=0.4, relative=0.05)
            elif words - len(whole.english) < 9:
                word, unit = _AND, self.event(tense=tense, before=whole, polarity="", details=0.3, relative=0.0)
            elif draw < 0.4 and tense != "present":
                word, unit = (
                    _THEN,
                    self.event(tense=tense, before=whole, polarity="", details=0.4, relative=0.05, state=False),
                )
            else:
                word, unit = _AND, self.weighted(kinds)(whole, tense)
            whole = self.join(whole, word, unit, "CONJ", comma=True)
        return self.statement(whole)
