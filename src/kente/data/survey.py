"""One reading of a corpus that gathers every number the doctor judges by. Memory grows by some 60 bytes a pair, and the words of a sample."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray

from kente.config import CleaningConfig
from kente.data.cleaning import Cleaner, CleaningReport, Profile, batches
from kente.data.corpus import Corpus, Pair, shorten
from kente.data.keys import Keys, same_sentence, text_keys
from kente.data.scripts import UNSPACED, count_scripts
from kente.data.shift import FEATURES, Features, line_features
from kente.reporting import SILENT, Reporter

WORD_SAMPLE = 200_000  # pairs whose words are counted at most
TAIL = 0.1  # last share of the pairs, whose words are looked for among those before
_SCRIPT_EVERY = 16  # every so many-th line is looked at for its scripts
_LONGEST = 5_000  # characters; longer lines are not normalised (quadratic for stacked marks)
_EXAMPLES = 3

ODD_CHARACTERS = {
    "characters of no width": "[\u00ad\u034f\u180e\u200b\u2060\ufeff]",
    "direction marks": "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]",
    "replacement characters": "\ufffd",
    "wrongly decoded letters": "[ÃÂÅÄ][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹Œ‘’“”•–—˜™š›œ]|â€|áº[\u0080-\u00bf]",
}
_ODD = re.compile("|".join(f"({pattern})" for pattern in ODD_CHARACTERS.values()))
_MAYBE_ODD = re.compile("[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffdÃÂÅÄâá]")


@dataclass
class Tally:
    """A count, and the first lines counted."""

    number: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        self.number += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append((line, shorten(text)))


@dataclass
class Side:
    """What one side of the corpus is like."""

    scripts: Counter[str] = field(default_factory=Counter)
    odd: dict[str, Tally] = field(default_factory=lambda: {kind: Tally() for kind in ODD_CHARACTERS})
    decomposed: Tally = field(default_factory=Tally)  # lines not in NFC
    composed: int = 0  # lines that NFD would change
    words: Counter[str] = field(default_factory=Counter)
    tail_words: Counter[str] = field(default_factory=Counter)
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # words in each line
    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))
    features: Features = field(default_factory=lambda: np.zeros((0, FEATURES), np.float16))
    by_character: bool = False  # `words` are characters: the script has no spaces

    def look(self, line: int, text: str) -> None:
        """At the characters of one line."""
        if _MAYBE_ODD.search(text):
            for kind in {match.lastindex for match in _ODD.finditer(text) if match.lastindex}:
                self.odd[list(ODD_CHARACTERS)[kind - 1]].add(line, text)
        if len(text) <= _LONGEST:
            if not unicodedata.is_normalized("NFC", text):
                self.decomposed.add(line, text)
            elif not unicodedata.is_normalized("NFD", text):
                self.composed += 1


@dataclass
class Survey:
    """Both sides of a corpus and its cleaning."""

    pairs: int
    source: Side
    target: Side
    cleaning: CleaningReport
    profile: Profile
    lines: NDArray[np.int64]  # the number of each pair's line
    every: int  # words were counted in every so many-th pair
    tail_pairs: int  # pairs at the end whose words were counted apart

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        total: int,
        config: CleaningConfig,
        reporter: Reporter = SILENT,
        label: str = "looking at pairs",
    ) -> Survey:
        """Read the corpus once (and its beginning before, to learn what is usual in it); `total` is how many pairs it has."""
        cleaner = Cleaner(config, Profile.of(corpus))
        profile = cleaner.profile or Profile()
        every, tail = max(1, ceil(total / WORD_SAMPLE)), total - int(total * TAIL)
        source, target = _Looker(profile.source_script, every, tail), _Looker(profile.target_script, every, tail)
        lines: list[NDArray[np.int64]] = []
        done = 0
        for batch in batches(iter(corpus)):
            cleaner.count(batch)
            source.look(batch, [pair.source for pair in batch], done)
            target.look(batch, [pair.target for pair in batch], done)
            lines.append(np.fromiter((pair.line for pair in batch), np.int64, len(batch)))
            done += len(batch)
            reporter.progress(label, done, total)
        reporter.finish()
        return cls(
            done,
            source.side(),
            target.side(),
            cleaner.report,
            profile,
            np.concatenate([np.zeros(0, np.int64), *lines]),
            every,
            max(0, done - tail),
        )


class _Looker:
    """Looks at one side, batch by batch."""

    def __init__(self, script: str | None, every: int, tail: int) -> None:
        self.script, self.every, self.tail = script, every, tail
        self.by_character: bool | None = None
        self.seen = Side()
        self.lengths: list[NDArray[np.int64]] = []
        self.keys: list[Keys] = []
        self.features: list[Features] = []

    def look(self, batch: list[Pair], texts: list[str], done: int) -> None:
        folded = [same_sentence(text) for text in texts]
        self.keys.append(text_keys(folded))
        self.lengths.append(np.fromiter((text.count(" ") + 1 if text else 0 for text in folded), np.int64, len(folded)))
        self.features.append(line_features(texts))
        self.seen.scripts.update(count_scripts(texts[::_SCRIPT_EVERY]))
        for pair, text in zip(batch, texts, strict=True):
            if not text.isascii():
                self.seen.look(pair.line, text)
        self._count_words(folded, done)

    def _count_words(self, folded: list[str], done: int) -> None:
        if (
            self.by_character is None
        ):  # decided by the first batch: a script without spaces that nobody has put spaces into
            characters = sum(map(len, folded))
            self.by_character = self.script in UNSPACED and characters > 6 * self.lengths[0].sum()
        for place in range(-done % self.every, len(folded), self.every):
            words = self.seen.words if done + place < self.tail else self.seen.tail_words
            words.update(folded[place].replace(" ", "") if self.by_character else folded[place].split(" "))

    def side(self) -> Side:
        side = self.seen
        side.by_character = bool(self.by_character)
        side.words, side.tail_words = bare_words(side.words), bare_words(side.tail_words)
        if self.keys:
            side.keys, side.lengths = np.concatenate(self.keys), np.concatenate(self.lengths)
            side.features = np.concatenate(self.features)
        return side


def bare_words(words: Counter[str]) -> Counter[str]:
    """The words without the punctuation around them; what is nothing but punctuation is left out."""
    bare: Counter[str] = Counter()
    for word, number in words.items():
        bare[word if word.isalpha() else _strip_marks(word)] += number
    del bare[""]
    return bare


def _strip_marks(word: str) -> str:
    first, last = 0, len(word)
    while first < last and unicodedata.category(word[first])[0] in "PSZC":
        first += 1
    while first < last and unicodedata.category(word[last - 1])[0] in "PSZC":
        last -= 1
    return word[first:last]
