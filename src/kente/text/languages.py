"""Which language is a text in? Asked of what the user's own corpora taught, so it knows languages that no library knows.

A language is a model of its letters: each is foretold from the few before it (Witten and Bell, 1991). With c the number of times a letter
followed its history h, n the times of h, t the different letters that followed, and h' the history without its first letter,

p(letter | h) = (c + t p(letter | h')) / (n + t)                 p(language | text) ~ product of p(letter | h) over the text
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kente.durable import replace_file
from kente.errors import RunError
from kente.text.kept import blanked, kept_spans

FORMAT = 1
ORDER = 5
"""Letters looked at together: one, and the four before it."""
MOST_LETTERS = 400_000
"""Of a language that are learnt from; more say little new."""
FEWEST = (1, 1, 2, 3, 3)
"""How often a letter must have followed a history of 0, 1, ... letters to be remembered."""
JUDGED = 600
"""Letters of a text that are looked at."""
HELD_OUT = 10
"""Every so manieth line is not learnt from, but shows how well the language foretells itself."""
OTHER_TEXTS = 0.35
"""Bits a letter by which texts of other kinds than the corpus differ from it."""
TOO_FAR = 3.0
"""Times the usual deviation at which a text is as likely of no known language."""
UNSEEN = 1 / 50_000  # probability of a letter nobody has seen: one of all there are
LOWERCASE = 0.002  # share of capitals below which a text has none; a stray one is a slip


class _Letters(dict[int, str]):
    """What of a text tells its language: letters and their marks in small, apostrophes; all else parts words. Filled as met."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        kind = unicodedata.category(letter)
        if kind[0] in "LM":
            kept = letter.lower()
        else:
            kept = "'" if letter in "'’ʼ‘" else "" if kind == "Cf" else " "
        self[code] = kept
        return kept


_LETTERS = _Letters()


def letters_of(text: str) -> str:
    """The words of a text in small letters, one space before each, none behind the last."""
    words = unicodedata.normalize("NFC", text).translate(_LETTERS).split()
    return "".join(f" {word}" for word in words)


@dataclass(frozen=True)
class Language:
    """What is known of one language."""

    grams: Mapping[str, int]
    """How often each run of up to ORDER letters was seen."""
    bits: float
    """Bits that a letter of the language costs, on average, where it was not learnt from ..."""
    spread: float
    """... and how far single lines are from that, times the root of their length."""
    capitals: float | None
    """Share of capitals among letters that have a small and a large form; None where the script has none."""

    @cached_property
    def histories(self) -> dict[str, tuple[int, int]]:
        """(times, different letters that followed) of each history."""
        times, kinds = Counter[str](), Counter[str]()
        for gram, count in self.grams.items():
            times[gram[:-1]] += count
            kinds[gram[:-1]] += 1
        return {history: (count, kinds[history]) for history, count in times.items()}

    def cost(self, letters: str) -> float:
        """-log2 p(letters), from the second on."""
        grams, histories, bits = self.grams, self.histories, 0.0
        for place in range(1, len(letters)):
            probability = UNSEEN
            for start in range(place, max(-1, place - ORDER), -1):
                seen = histories.get(letters[start:place])
                if seen is None:
                    break
                times, kinds = seen
                probability = (grams.get(letters[start : place + 1], 0) + kinds * probability) / (times + kinds)
            bits -= math.log2(probability)
        return bits

    def fit(self, cost: float, length: int) -> float:
        """How usual such a cost is for a text of the language, 0 to 1: what no known language explains is told from what one does."""
        surprise = cost / length - self.bits
        usual = math.hypot(self.spread / math.sqrt(length), OTHER_TEXTS)
        return 1 / (1 + math.exp(min(50.0, 2 * (surprise / usual - TOO_FAR))))

    def merged(self, other: Language) -> Language:
        """One language learnt in two places."""
        mine, theirs = sum(self.grams.values()), sum(other.grams.values())
        share = mine / max(1, mine + theirs)
        capitals = [value for value in (self.capitals, other.capitals) if value is not None]
        return Language(
            dict(Counter(self.grams) + Counter(other.grams)),
            share * self.bits + (1 - share) * other.bits,
            max(self.spread, other.spread),
            max(capitals) if capitals else None,
        )


@dataclass(frozen=True)
class Detector:
    """Knows some languages and tells which of them a text is in."""

    languages: Mapping[str, Language] = field(default_factory=dict)

    def detect(self, text: str) -> list[tuple[str, float]]:
        """(code, confidence from 0 to 100) for each language, the likeliest first; all 0 where there are no letters to go by."""
        text = text[: 4 * JUDGED]
        letters = (letters_of(blanked(text, kept_spans(text))) or letters_of(text))[:JUDGED]
        if len(letters) < 2:
            return [(code, 0.0) for code in self.languages]
        costs = {code: language.cost(letters) for code, language in self.languages.items()}
        least = min(costs.values())
        weights = {code: 2 ** (least - cost) for code, cost in costs.items()}
        total = sum(weights.values())
        found = [
            (code, 100 * weights[code] / total * self.languages[code].fit(costs[code], len(letters) - 1))
            for code in costs
        ]
        return sorted(found, key=lambda one: (-one[1], costs[one[0]]))

    @staticmethod
    def combined(detectors: Iterable[Detector]) -> Detector:
        """Knows what any of them knows; what several know is put together."""
        languages: dict[str, Language] = {}
        for detector in detectors:
            for code, language in detector.languages.items():
                languages[code] = languages[code].merged(language) if code in languages else language
        return Detector(languages)


# ---------------------------------------------------------------- learning


def learn(samples: Mapping[str, Iterable[str]]) -> Detector:
    """A detector for languages of which some lines are given, by code; of each so many as MOST_LETTERS need."""
    return Detector({code: _learn_one(lines) for code, lines in samples.items()})


def _learn_one(lines: Iterable[str]) -> Language:
    read: list[str] = []
    held_out: list[str] = []
    large = cased = count = 0
    for number, line in enumerate(lines):
        letters = letters_of(line)
        (held_out if number % HELD_OUT == HELD_OUT - 1 else read).append(letters)
        large += sum(map(str.isupper, line))
        cased += sum(letter.isupper() or letter.islower() for letter in line)
        count += len(letters)
        if count >= MOST_LETTERS:
            break
    text = "".join(read)
    grams = {gram: times for size in range(1, ORDER + 1) for gram, times in _frequent(text, size)}
    language = Language(grams, 0.0, 0.0, large / cased if cased else None)
    lengths = [len(letters) - 1 for letters in held_out or read if len(letters) > 1]
    costs = [language.cost(letters) for letters in held_out or read if len(letters) > 1]
    bits = sum(costs) / max(1, sum(lengths))
    squares = [(cost / length - bits) ** 2 * length for cost, length in zip(costs, lengths, strict=True)]
    spread = math.sqrt(sum(squares) / max(1, len(squares)))
    return Language(grams, bits, spread, language.capitals)


def _frequent(text: str, size: int) -> Iterable[tuple[str, int]]:
    counts = Counter(text[place : place + size] for place in range(len(text) - size + 1))
    return ((gram, times) for gram, times in counts.items() if times >= FEWEST[size - 1])


# ---------------------------------------------------------------- the languages of a run


@dataclass(frozen=True)
class LanguagePair:
    """From which language a run translates into which, and a detector that knows both."""

    source: str
    target: str
    detector: Detector

    @property
    def lowercase(self) -> bool:
        """The model has read, and writes, small letters only."""
        capitals = self.detector.languages[self.source].capitals
        return capitals is not None and capitals < LOWERCASE

    def save(self, path: Path) -> None:
        """Write a file that `load` reads; whole or not at all."""
        languages = {
            code: {"bits": one.bits, "spread": one.spread, "capitals": one.capitals, "grams": dict(one.grams)}
            for code, one in self.detector.languages.items()
        }
        about = {"format": FORMAT, "source": self.source, "target": self.target, "languages": languages}
        replace_file(path, _json({**about, "sha256": hashlib.sha256(_json(about)).hexdigest()}) + b"\n")

    @classmethod
    def load(cls, path: Path) -> LanguagePair:
        """Read such a file; refused when it is damaged."""
        try:
            about: dict[str, Any] = json.loads(path.read_bytes())
            if about.pop("sha256") != hashlib.sha256(_json(about)).hexdigest() or about["format"] != FORMAT:
                raise ValueError("it is damaged, or from another version of kente")
            languages = {code: Language(**one) for code, one in about["languages"].items()}
            return cls(about["source"], about["target"], Detector(languages))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"cannot read {path}: {error}") from error


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def learn_pair(codes: tuple[str, str], pairs: Iterable[tuple[str, str]]) -> LanguagePair:
    """What sentences and their translations teach about their two languages."""
    sides = list(zip(*pairs, strict=True)) or [(), ()]
    samples = {codes[0]: sides[0], codes[1]: sides[1]} if codes[0] != codes[1] else {codes[0]: sides[0] + sides[1]}
    return LanguagePair(*codes, learn(samples))


# ---------------------------------------------------------------- names of languages

UNNAMED = ("x-source", "x-target")
"""Codes for private use (BCP 47), where nothing says what the languages are called."""

_CODE = re.compile(r"(?:[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*|x(?:-[a-z0-9]{1,8})+)")
_TWO_CODES = re.compile(r"(?<![A-Za-z])([a-z]{2,3})[-_]([a-z]{2,3})(?![A-Za-z])")
_NO_CODES = frozenset(("txt", "raw", "tok", "bpe", "src", "tgt", "trg", "ref", "hyp", "out", "low", "lc", "gz", "tsv"))


def is_code(text: str) -> bool:
    """Whether a text may be the code of a language, such as en, twi, pt-BR or x-mine."""
    return bool(_CODE.fullmatch(text))


def guess_codes(
    source: str | None, target: str | None, pairs: str | None, fields: Sequence[str] = ()
) -> tuple[str, str]:
    """The languages of a corpus by its names: train.en and train.tw, fields en and tw, corpus.en-tw.tsv; UNNAMED where none say."""
    guesses = []
    if source and target:
        guesses.append((_ending(source), _ending(target)))
        guesses += _TWO_CODES.findall(Path(source).name)[:1]
    if len(fields) == 2:
        guesses.append((fields[0].rpartition(".")[2], fields[1].rpartition(".")[2]))
    if pairs:
        guesses += _TWO_CODES.findall(Path(pairs).name)[:1]
    for first, second in guesses:
        if first != second and all(is_code(code) and code not in _NO_CODES for code in (first, second)):
            return first.replace("_", "-"), second.replace("_", "-")
    return UNNAMED


def _ending(name: str) -> str:
    """en of train.en, train.en.gz and train.en.txt; an ending that names no language is passed over once."""
    endings = [ending for ending in Path(name).name.split(".")[1:] if ending not in _NO_CODES]
    return endings[-1] if endings else ""
