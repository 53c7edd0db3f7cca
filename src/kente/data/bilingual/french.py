"""French morphology for the embedded corpus: conjugation, agreement, numbers, and how neighbouring words change each other."""

from __future__ import annotations

from dataclasses import dataclass

# Words of the lexicon whose written h (or vowel) blocks elision.
ASPIRATED = frozenset(
    ["hibou", "hiboux", "haricot", "haricots", "hamster", "hamsters", "hache", "haches", "héros", "huit", "onze", "oui"]
)
VOWELS = frozenset("aeiouàâéèêëîïôùûœh")

# What a word becomes before a vowel sound. Adjectives (beau, nouveau, vieux) do so only before their noun and carry their own.
BEFORE_VOWEL = {
    "je": "j'", "me": "m'", "se": "s'", "le": "l'", "la": "l'", "de": "d'", "ne": "n'", "que": "qu'",
    "ce": "cet", "ma": "mon", "sa": "son",
}  # fmt: skip
CONTRACTED = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}


def starts_with_vowel(word: str) -> bool:
    """Whether a word before `word` elides: a vowel or mute h, not an aspirated one."""
    return word == "y" or (word[0].lower() in VOWELS and word.split("-", 1)[0].lower() not in ASPIRATED)


def adjective_forms(
    masculine: str, feminine: str | None = None, plural: str | None = None
) -> tuple[str, str, str, str]:
    """Masculine, feminine, masculine plural, feminine plural."""
    if feminine is None:
        if masculine.endswith("e"):
            feminine = masculine
        elif masculine.endswith("eux"):
            feminine = masculine[:-1] + "se"
        elif masculine.endswith("er"):
            feminine = masculine[:-2] + "ère"
        else:
            feminine = masculine + "e"
    return masculine, feminine, plural or noun_plural(masculine), feminine + "s"


def noun_plural(word: str) -> str:
    """The regular plural of a noun or a masculine adjective."""
    if word[-1] in "sxz":
        return word
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + ("x" if word.endswith(("au", "eu")) and word != "bleu" else "s")


def agree(participle: str, feminine: bool, plural: bool) -> str:
    """A past participle in the gender and number given: prise, vues, levés."""
    if feminine:
        return participle + ("es" if plural else "e")
    return participle + "s" if plural and participle[-1] != "s" else participle


@dataclass(frozen=True, slots=True)
class FrenchVerb:
    """All forms the grammar uses. Persons are je, tu, il, nous, vous, ils in this order."""

    infinitive: str
    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    participle: str
    with_etre: bool = False
    reflexive: bool = False


# infinitive: present (six forms), stem of the future, participle; the imperfect is regular on the stem of nous.
_IRREGULAR = """
avoir: ai as a avons avez ont, aur, eu
aller: vais vas va allons allez vont, ir, allé
apprendre: apprends apprends apprend apprenons apprenez apprennent, apprendr, appris
asseoir: assieds assieds assied asseyons asseyez asseyent, assiér, assis
attendre: attends attends attend attendons attendez attendent, attendr, attendu
boire: bois bois boit buvons buvez boivent, boir, bu
choisir: choisis choisis choisit choisissons choisissez choisissent, choisir, choisi
comprendre: comprends comprends comprend comprenons comprenez comprennent, comprendr, compris
conduire: conduis conduis conduit conduisons conduisez conduisent, conduir, conduit
connaître: connais connais connaît connaissons connaissez connaissent, connaîtr, connu
courir: cours cours court courons courez courent, courr, couru
croire: crois crois croit croyons croyez croient, croir, cru
devoir: dois dois doit devons devez doivent, devr, dû
dire: dis dis dit disons dites disent, dir, dit
dormir: dors dors dort dormons dormez dorment, dormir, dormi
écrire: écris écris écrit écrivons écrivez écrivent, écrir, écrit
endormir: endors endors endort endormons endormez endorment, endormir, endormi
envoyer: envoie envoies envoie envoyons envoyez envoient, enverr, envoyé
être: suis es est sommes êtes sont, ser, été
faire: fais fais fait faisons faites font, fer, fait
finir: finis finis finit finissons finissez finissent, finir, fini
lire: lis lis lit lisons lisez lisent, lir, lu
mettre: mets mets met mettons mettez mettent, mettr, mis
nourrir: nourris nourris nourrit nourrissons nourrissez nourrissent, nourrir, nourri
ouvrir: ouvre ouvres ouvre ouvrons ouvrez ouvrent, ouvrir, ouvert
partir: pars pars part partons partez partent, partir, parti
peindre: peins peins peint peignons peignez peignent, peindr, peint
perdre: perds perds perd perdons perdez perdent, perdr, perdu
pouvoir: peux peux peut pouvons pouvez peuvent, pourr, pu
prendre: prends prends prend prenons prenez prennent, prendr, pris
répondre: réponds réponds répond répondons répondez répondent, répondr, répondu
revenir: reviens reviens revient revenons revenez reviennent, reviendr, revenu
rire: ris ris rit rions riez rient, rir, ri
savoir: sais sais sait savons savez savent, saur, su
sortir: sors sors sort sortons sortez sortent, sortir, sorti
sourire: souris souris sourit sourions souriez sourient, sourir, souri
suivre: suis suis suit suivons suivez suivent, suivr, suivi
vendre: vends vends vend vendons vendez vendent, vendr, vendu
venir: viens viens vient venons venez viennent, viendr, venu
voir: vois vois voit voyons voyez voient, verr, vu
vouloir: veux veux veut voulons voulez veulent, voudr, voulu
"""
_IRREGULAR_ROWS = {line.split(": ")[0]: line.split(": ")[1].split(", ") for line in _IRREGULAR.strip().splitlines()}
# -er verbs whose stem changes where the ending is silent.
_STRONG = {
    "acheter": "achèt",
    "appeler": "appell",
    "espérer": "espèr",
    "lever": "lèv",
    "nettoyer": "nettoi",
    "préférer": "préfèr",
    "promener": "promèn",
    "protéger": "protèg",
}
_WITH_ETRE = frozenset(
    ["aller", "venir", "revenir", "partir", "arriver", "rester", "tomber", "sortir", "rentrer", "entrer", "retourner"]
)


def _imperfect(stem: str) -> tuple[str, ...]:
    soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
    return tuple([soft + ending for ending in ("ais", "ais", "ait")] + [stem + "ions", stem + "iez", soft + "aient"])


def conjugate(infinitive: str) -> FrenchVerb:
    """The forms of a verb; "se lever" and "s'habiller" are reflexive and take être."""
    reflexive = infinitive.startswith(("se ", "s'"))
    bare = infinitive.removeprefix("se ").removeprefix("s'")
    if bare in _IRREGULAR_ROWS:
        forms, future, participle = _IRREGULAR_ROWS[bare]
        present = tuple(forms.split())
        imperfect = _imperfect("ét" if bare == "être" else present[3].removesuffix("ons"))
    else:
        assert bare.endswith("er"), f"{bare} needs a row of its own"
        stem = bare[:-2]
        strong = _STRONG.get(bare, stem)
        soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
        present = (strong + "e", strong + "es", strong + "e", soft + "ons", stem + "ez", strong + "ent")
        imperfect = _imperfect(stem)
        future = bare if "é" in stem and "è" in strong else strong + "er"  # espérerai, but lèverai
        participle = stem + "é"
    futures = tuple(future + ending for ending in ("ai", "as", "a", "ons", "ez", "ont"))
    return FrenchVerb(bare, present, imperfect, futures, participle, reflexive or bare in _WITH_ETRE, reflexive)


_UNITS = [
    "zéro",
    "un",
    "deux",
    "trois",
    "quatre",
    "cinq",
    "six",
    "sept",
    "huit",
    "neuf",
    "dix",
    "onze",
    "douze",
    "treize",
    "quatorze",
    "quinze",
    "seize",
    "dix-sept",
    "dix-huit",
    "dix-neuf",
]
_TENS = {2: "vingt", 3: "trente", 4: "quarante", 5: "cinquante", 6: "soixante", 8: "quatre-vingt"}


def number_words(number: int, feminine: bool = False) -> tuple[str, ...]:
    """The words of 1 to 99: vingt et une, soixante et onze, quatre-vingts, quatre-vingt-dix-neuf."""
    assert 1 <= number <= 99, number
    one = "une" if feminine else "un"
    if number < 20:
        return (one if number == 1 else _UNITS[number],)
    tens = number // 10 - (number // 10 in (7, 9))  # 70 and 90 count on from 60 and 80
    rest = number - 10 * tens
    if rest == 0:
        return ("quatre-vingts" if tens == 8 else _TENS[tens],)
    unit = one if rest == 1 else _UNITS[rest]
    if rest in (1, 11) and tens != 8:
        return (_TENS[tens], "et", unit)
    return (f"{_TENS[tens]}-{unit}",)
