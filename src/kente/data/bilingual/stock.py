"""Everyday phrases of the embedded corpus, among them the lectures' "I am good"."""

from __future__ import annotations

from kente.data.bilingual.phrases import Fragment

# Words with the same letter translate each other; words without one belong together as a whole.
_TEXT = """
I/a am/b good/c = je/a vais/b bien/c |
I/a am/b good/c = je/a vais/b bien/c | .
I/a am/b good/c ,/d thank/e you/e = je/a vais/b bien/c ,/d merci/e | .
I/a am/b very/c good/d ,/e thank/f you/f = je/a vais/b très/c bien/d ,/e merci/f | .
I/a am/b good/c ,/d and/e you/f = je/a vais/b bien/c ,/d et/e vous/f | ?
how are you = comment allez-vous | ?
how/a is/b your/c mother/d = comment/a va/b votre/c mère/d | ?
hello = bonjour | !
hello/a ,/b how/c are/c you/c = bonjour/a ,/b comment/c allez-vous/c | ?
good/a morning/a ,/b Anna/c = bonjour/a ,/b Anna/c | !
good evening = bonsoir | !
good/a night/b = bonne/a nuit/b | !
good luck = bonne chance | !
goodbye = au revoir | !
goodbye/a ,/b Paul/c = au/a revoir/a ,/b Paul/c | !
see/a you/a tomorrow/b = à/a demain/b | !
see/a you/a soon/b = à/a bientôt/b | !
thank you = merci | .
thank/a you/a very/b much/b = merci/a beaucoup/b | .
you are welcome = de rien | .
yes = oui | .
no = non | .
yes/a ,/b please/c = oui/a ,/b s'/c il/c vous/c plaît/c | .
no/a ,/b thank/c you/c = non/a ,/b merci/c | .
excuse me = excusez-moi | .
I am sorry = je suis désolé | .
I/a do/b not/c understand/b = je/a ne/c comprends/b pas/c | .
I/a do/b not/c know/b = je/a ne/c sais/b pas/c | .
I/a know/b = je/a sais/b | .
of course = bien sûr | .
what/a is/b your/c name/d = comment/a vous/c appelez-vous/bd | ?
my/a name/b is/b Thomas/c = je/a me/b appelle/b Thomas/c | .
my/a name/b is/b Claire/c = je/a me/b appelle/b Claire/c | .
what/a time/b is/c it/d = quelle/a heure/b est-il/cd | ?
it/a is/b noon/c = il/a est/b midi/c | .
it/a is/b late/c = il/a est/b tard/c | .
where/a are/b the/c toilets/d = où/a sont/b les/c toilettes/d | ?
where/a is/b the/c station/d = où/a est/b la/c gare/d | ?
how/a much/a is/b it/c = combien/a est-ce/bc que/bc ça/c coûte/b | ?
I/a come/b from/c Ghana/d = je/a viens/b du/cd Ghana/d | .
I/a come/b from/c France/d = je/a viens/b de/c France/d | .
have/a a/b nice/b day/c = bonne/ab journée/c | !
enjoy your meal = bon appétit | !
happy/a birthday/b = bon/a anniversaire/b | !
congratulations = félicitations | !
welcome = bienvenue | !
cheers = santé | !
help = au secours | !
be careful = faites attention | !
come/a in/a = entrez/a | .
it does not matter = ce n' est pas grave | .
that/a is/b all/c = c'/a est/b tout/c | .
that/a is/b true/c = c'/a est/b vrai/c | .
that/a is/b not/c true/d = ce/a n'/c est/b pas/c vrai/d | .
I/a love/b you/c = je/a vous/c aime/b | .
me too = moi aussi | .
me neither = moi non plus | .
with pleasure = avec plaisir | .
not/a yet/b = pas/a encore/b | .
everything/a is/b fine/c = tout/a va/b bien/c | .
let/a us/a go/a = allons-y/a | !
today/a is/b Monday/c = aujourd'hui/a ,/b c'/b est/b lundi/c | .
the/a train/b is/c late/d = le/a train/b est/c en/d retard/d | .
have/a a/b good/b trip/c = bon/ab voyage/c | !
see/a you/a on/b Monday/b = à/a lundi/b | !
"""


def _read(line: str) -> tuple[Fragment, str]:
    text, _, mark = line.rpartition("|")
    return Fragment.of(text.strip()), mark.strip()


STOCK = tuple(_read(line) for line in _TEXT.strip().splitlines())
