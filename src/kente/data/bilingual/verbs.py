"""Verb groups of the embedded corpus: every tense, negated or asked, in English and in French."""

from __future__ import annotations

from dataclasses import dataclass

from kente.data.bilingual.french import FrenchVerb, agree, conjugate
from kente.data.bilingual.lexicon import Verb
from kente.data.bilingual.phrases import HE, ME, English, French, NounPhrase

AVOIR, ETRE, ALLER = conjugate("avoir"), conjugate("être"), conjugate("aller")
_MODALS = {"can": conjugate("pouvoir"), "must": conjugate("devoir"), "want": conjugate("vouloir")}
_REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
_WITH_AUXILIARY = frozenset(("future", "can", "must", "want", "progressive", "habit"))
Link = tuple[int, ...]


@dataclass(slots=True)
class Clitic:
    """An object pronoun: after the verb in English, before it in French."""

    english: English
    french: French
    preceding: tuple[bool, bool] | None  # gender and number a participle takes from it; None for an indirect object


@dataclass(slots=True)
class Links:
    """The links of a verb group; auxiliary and verb share one where English has a single word."""

    auxiliary: Link
    verb: Link
    negation: Link


def needs_auxiliary(tense: str, polarity: str, inverted: bool) -> bool:
    return inverted or polarity == "not" or tense in _WITH_AUXILIARY


def ambiguous(verb: Verb, tense: str, subject: NounPhrase, polarity: str = "") -> bool:
    """Whether English spells this past like the present ("they read"), so that the French could not be told."""
    return tense == "past" and verb.base == verb.past and polarity != "not" and subject.person != HE


def be_form(person: int, past: bool) -> str:
    if past:
        return "was" if person in (ME, HE) else "were"
    return "am" if person == ME else "is" if person == HE else "are"


def finite(verb: FrenchVerb, tense: str, person: int, stative: bool = True) -> str | None:
    """The single French word of a tense; None where it takes an auxiliary. The past of states is an imparfait."""
    if tense == "present":
        return verb.present[person]
    if tense == "future":
        return verb.future[person]
    if stative or tense in ("habit", "progressive"):
        return verb.imperfect[person]
    return None


def being(verb: FrenchVerb, tense: str, person: int) -> str:
    """A form of être, avoir or aller that translates "to be"."""
    word = finite(verb, tense, person)
    assert word is not None
    return word


def french_group(
    subject: NounPhrase, verb: Verb, tense: str, links: Links, polarity: str, adverb: French, clitic: Clitic | None,
    preceding: tuple[bool, bool] | None,
) -> French:  # fmt: skip
    """ne + pronouns + finite verb + pas + adverb + participle or infinitive.

    A participle agrees with the subject after être, and with a direct object that stands before it after avoir.
    """
    forms, person = verb.french, subject.person
    pronouns: French = [(_REFLEXIVE[person], links.verb, None)] if forms.reflexive else []
    if clitic:
        pronouns += clitic.french
    before: French = [("ne", links.negation, None)] if polarity else []
    after: French = [("jamais" if polarity == "never" else "pas", links.negation, None)] if polarity else []
    modal = _MODALS.get(tense)
    if modal:
        infinitive = (forms.infinitive, links.verb, None)
        return [*before, (modal.present[person], links.auxiliary, None), *after, *adverb, *pronouns, infinitive]
    word = finite(forms, tense, person, verb.stative)
    if word is not None:
        link = links.verb if links.auxiliary == links.verb else links.auxiliary + links.verb
        return [*before, *pronouns, (word, link, None), *after, *adverb]
    participle = forms.participle
    if forms.with_etre:
        participle = agree(participle, subject.feminine, subject.plural)
    elif preceding:
        participle = agree(participle, *preceding)
    auxiliary = (ETRE if forms.with_etre else AVOIR).present[person]
    return [*before, *pronouns, (auxiliary, links.auxiliary, None), *after, *adverb, (participle, links.verb, None)]


def english_group(
    subject: NounPhrase, verb: Verb, tense: str, links: Links, polarity: str, inverted: bool
) -> tuple[English, English, English]:
    """Auxiliary (it changes place with the subject in questions), negation, verb."""
    third = subject.person == HE
    negation: English = [(polarity, links.negation)] if polarity else []
    particle: English = [(word, links.verb) for word in verb.particle.split()] if verb.particle else []
    base: English = [(verb.base, links.verb), *particle]
    support = inverted or polarity == "not"
    match tense:
        case "future":
            return [("will", links.auxiliary)], negation, base
        case "can" if polarity:
            return [("cannot", links.auxiliary + links.negation)], [], base
        case "can" | "must":
            return [(tense, links.auxiliary)], negation, base
        case "progressive":
            return (
                [(be_form(subject.person, True), links.auxiliary)],
                negation,
                [(verb.progressive, links.verb), *particle],
            )
        case "habit":
            return [], negation, [("used", links.auxiliary), ("to", links.auxiliary), *base]
        case "want":
            infinitive = [("to", links.verb), *base]
            if support:
                return (
                    [("does" if third else "do", links.auxiliary)],
                    negation,
                    [("want", links.auxiliary), *infinitive],
                )
            return [], negation, [("wants" if third else "want", links.auxiliary), *infinitive]
    if support:
        return [("did" if tense == "past" else "does" if third else "do", links.auxiliary)], negation, base
    word = verb.past if tense == "past" else verb.third if third else verb.base
    return [], negation, [(word, links.verb), *particle]
