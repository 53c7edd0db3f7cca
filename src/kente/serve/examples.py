"""Sentences to try: a few short ones of each run's validation set, which its model has not learnt by heart."""

from __future__ import annotations

from itertools import islice

from kente.data.corpus import read_lines
from kente.errors import CorpusError
from kente.serve.translators import Pair

EACH = 3
WORDS, CHARACTERS = range(4, 10), range(15, 80)
LOOKED_AT = 1000
"""Lines of a validation set among which they are chosen."""


def examples_of(pair: Pair) -> list[dict[str, str]]:
    """Up to EACH sentences, from all over the set; none where the run has lost it."""
    try:
        lines = list(islice(read_lines(pair.run / "data" / "validation.source"), LOOKED_AT))
    except CorpusError:
        return []
    fitting = [line for line in lines if len(line) in CHARACTERS and (len(line.split()) in WORDS or " " not in line)]
    chosen = fitting[:: max(1, len(fitting) // EACH)][:EACH]
    return [{"source": pair.source, "target": pair.target, "q": line} for line in chosen]
