"""Tasks small enough to be learned in seconds and to be judged without doubt: copy, reverse and sort strings of letters."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from kente.errors import UsageError

Toy = Literal["copy", "reverse", "sort"]
LETTERS = "abcdefghijklmnop"

_ANSWERS: dict[Toy, Callable[[list[str]], list[str]]] = {
    "copy": list,
    "reverse": lambda symbols: symbols[::-1],
    "sort": sorted,
}


def toy(
    name: Toy, count: int, seed: int, min_length: int = 3, max_length: int = 10, symbols: str = LETTERS
) -> list[tuple[str, str]]:
    """`count` distinct pairs such as ("c a b", "a b c"), the same for the same arguments."""
    if name not in _ANSWERS:
        raise UsageError(f"no toy task called {name!r}; there are {', '.join(_ANSWERS)}")
    if not 1 <= min_length <= max_length:
        raise UsageError(f"toy lengths must be 1 <= min_length <= max_length, not {min_length} and {max_length}")
    possible = sum(len(set(symbols)) ** length for length in range(min_length, max_length + 1))
    if 2 * count > possible:  # drawing distinct ones at random needs some air
        raise UsageError(
            f"{count:,} distinct strings are too many: lengths {min_length} to {max_length} over {len(set(symbols))} symbols "
            f"give {possible:,}; ask for half of that at most"
        )
    chance = random.Random(f"{name} {seed}")
    sources: dict[str, None] = {}
    while len(sources) < count:
        sources[" ".join(chance.choices(symbols, k=chance.randint(min_length, max_length)))] = None
    return [(source, " ".join(_ANSWERS[name](source.split(" ")))) for source in sources]


def toy_split(
    name: Toy, train: int, test: int, seed: int, min_length: int = 3, max_length: int = 10, symbols: str = LETTERS
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs to train on and pairs to test on, with no source in both."""
    pairs = toy(name, train + test, seed, min_length, max_length, symbols)
    return pairs[:train], pairs[train:]
