"""Sentences in which `it` stands for something, and how much of its attention that gets (lecture 001).

The classic pair differs in its last word alone: what did not cross the street was too tired, what was not crossed was too wide.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import kente
from kente.data.grammar import generate
from kente.data.tokenizer import UNK
from kente.lectures.translator import Head, Subject


@dataclass(frozen=True)
class Riddle:
    """A sentence with a pronoun, what it stands for, and what it might be taken for."""

    sentence: str
    pronoun: str
    referent: str
    other: str


OWN = (
    Riddle("The dog didn't pass the gate because it was too tired.", "it", "dog", "gate"),
    Riddle("The dog didn't pass the gate because it was too narrow.", "it", "gate", "dog"),
)


def riddles() -> tuple[Riddle, Riddle]:
    """The first two of coref/classic_pairs.tsv in $KENTE_DATA (default: shared/data beside the project), else a pair of our own."""
    folder = Path(os.environ.get("KENTE_DATA", Path(kente.__file__).parents[3] / "shared" / "data"))
    path = folder / "coref" / "classic_pairs.tsv"
    if not path.is_file():
        return OWN
    with open(path, encoding="utf-8", newline="") as file:
        one, two = list(csv.DictReader(file, delimiter="\t"))[:2]
    return (
        Riddle(one["sentence"], one["pronoun"], one["referent"], two["referent"]),
        Riddle(two["sentence"], two["pronoun"], two["referent"], one["referent"]),
    )


def pieces_of(reader: Subject, sentence: str, word: str) -> list[int]:
    """The places of a word's pieces among the sentence's."""
    words = sentence.rstrip(".").split(" ")
    place = words.index(word)
    return list(range(*(len(reader.source(" ".join(words[:end]))) for end in (place, place + 1))))


def pull(reader: Subject, sentence: str, pronoun: str, word: str) -> dict[Head, float]:
    """How much of the pronoun's attention goes to a word, in every head of the encoder."""
    rows, columns = pieces_of(reader, sentence, pronoun), pieces_of(reader, sentence, word)
    maps = reader.encoder_maps(reader.source(sentence))
    return {head: float(weights[rows][:, columns].sum(dim=-1).mean()) for head, weights in maps.items()}


def lean(reader: Subject, riddle: Riddle, word: str, rival: str) -> dict[Head, float]:
    """How much more the pronoun looks at `word` than at `rival`, in every head of the encoder."""
    towards, away = (pull(reader, riddle.sentence, riddle.pronoun, noun) for noun in (word, rival))
    return {head: towards[head] - away[head] for head in towards}


def strange_words(reader: Subject, riddle: Riddle) -> list[str]:
    """Words of a riddle that the model has no piece for, or must put together from three or more."""
    pieces = {word: reader.source(word) for word in riddle.sentence.rstrip(".").split(" ")}
    return [word for word, ids in pieces.items() if UNK in ids or len(ids) > 2]


def clear_cases(reader: Subject, wanted: int) -> list[tuple[str, str]]:
    """(sentence, noun): grammar sentences of known words in which `it` can only stand for the noun right before `because`."""
    chosen: list[tuple[str, str]] = []
    for pair in generate(7, 12_000, max_words=10):
        if "because it" not in pair.source or "anaphora" not in pair.features:
            continue
        noun = pair.source_words[pair.source_words.index("because") - 1]
        if any(noun == other for _, other in pair.combinations) and UNK not in reader.source(pair.source):
            chosen.append((pair.source, noun))
        if len(chosen) == wanted:
            break
    return chosen
