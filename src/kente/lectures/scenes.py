"""Short sentences from two scenes, by a river and in a counting house, in which `bank` means one thing or the other.

Half of a sentence with `bank` says nothing about which it is; the words that decide stand further off. Other words stand in the same place,
some by the river alone and some in the counting house alone: to guess one that is hidden, an encoder must know where it is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

WORD = "bank"
RIVER, MONEY = "river", "money"

WHO = ("my sister", "a stranger", "the teacher", "our neighbour", "two friends", "his mother", "the girl", "her uncle")
DID = ("waited at the", "walked to the", "stood near the", "stayed at the", "worked at the", "sat by the")
"""All of one length, so that the bank always has the same place in the sentence, and its vector does not tell of that."""
ELSEWHERE = {RIVER: ("shore", "bridge", "meadow"), MONEY: ("office", "counter", "market")}
"""Places like the bank, in one scene only."""
TAILS = {
    RIVER: (
        "where the river turns", "and threw a line into the water", "to watch the boats drift", "because the water was cold",
        "while the fish swam past the reeds", "and tied the boat to a willow", "until the flood carried the reeds away",
        "where the stream is deep",
    ),
    MONEY: (
        "to open an account", "and asked for a loan", "because the interest was low", "to change some money",
        "where the clerk counts the coins", "and paid the debt in cash", "until the clerk signed the cheque",
        "to keep the savings safe",
    ),
}  # fmt: skip
OTHERS = {
    RIVER: (
        "the river carried the boat past the willow", "the fish hid from the boats in the reeds", "the stream was deep and the water cold",
        "the flood filled the river with cold water", "a boat drifted down the stream to the reeds", "the fish swam in the deep water",
    ),
    MONEY: (
        "the clerk counted the coins and the cash", "the loan was paid with interest", "the account held the savings and the money",
        "the cheque paid the debt and the interest", "the clerk signed a loan to change the debt", "the savings bring interest in cash",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Sentence:
    """A sentence with `bank` in it, and which one is meant."""

    text: str
    meaning: str


def sentences(seed: int, held_out: int) -> tuple[list[Sentence], list[Sentence]]:
    """(to learn from, to look at): all that can be put together, so many of each meaning set apart."""
    rng = random.Random(seed)
    learnt, apart = [], []
    for meaning, tails in TAILS.items():
        every = [Sentence(f"{who} {did} {WORD} {tail}", meaning) for who in WHO for did in DID for tail in tails]
        rng.shuffle(every)
        apart += every[:held_out]
        learnt += every[held_out:]
    rng.shuffle(learnt)
    return learnt, apart


def text(seed: int, held_out: int) -> list[str]:
    """What is read: the sentences to learn from, as many of other places, and as many from the two scenes without any."""
    rng = random.Random(seed + 1)
    learnt, _ = sentences(seed, held_out)
    others = [line for lines in OTHERS.values() for line in lines]
    lines = [sentence.text for sentence in learnt]
    lines += [one.text.replace(WORD, rng.choice(ELSEWHERE[one.meaning])) for one in learnt]
    lines += [rng.choice(others) for _ in learnt]
    rng.shuffle(lines)
    return lines
