"""GPT-2's tokenizer (Radford et al., 2019): byte pair encoding of UTF-8 bytes, each byte written as a character that can be seen.

Its files are taken as they are: what every piece is called (vocab.json, or encoder.json) and which pieces grow together, best first
(merges.txt, or vocab.bpe). Ids stand behind our four special ones; every text can be spelled, line ends included.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise

from kente.data.pieces import EOS, SPECIALS, UNKNOWN, Normalisation, Tokenizer
from kente.errors import RunError

SHIFT = len(SPECIALS)
END_OF_TEXT = "<|endoftext|>"
CACHED_WORDS = 100_000


@functools.cache
def byte_letters() -> dict[int, str]:
    """A visible character for each byte: itself where it is one in Latin-1, the next free one from U+0100 on where not."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in set(visible)]
    return {byte: chr(byte) for byte in visible} | {byte: chr(256 + place) for place, byte in enumerate(hidden)}


@functools.cache
def _letter_bytes() -> dict[str, int]:
    return {letter: byte for byte, letter in byte_letters().items()}


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    """GPT-2's cut into words: 's 't 're 've 'm 'll 'd, letters, digits, other marks, each with a space before it; other blanks."""
    letters, digits = _ranges("L"), _ranges("N")
    marks = rf"[^{_BLANKS}{letters}{digits}]"
    return re.compile(
        rf"'(?:[stmd]|re|ve|ll)| ?[{letters}]+| ?[{digits}]+| ?{marks}+|[{_BLANKS}]+(?![^{_BLANKS}])|[{_BLANKS}]+"
    )


_BLANKS = (
    r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # Unicode's White_Space; Python's \s has more
)


def _ranges(category: str) -> str:
    """All characters of a Unicode category, as the inside of a class of a regular expression."""
    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] == category:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


class ByteLevel(Tokenizer):
    """Pieces of bytes that grow together pair by pair, the most frequent first."""

    kind = "byte-level"
    suffix = ".json"
    spells_lines = True

    def __init__(
        self,
        vocabulary: dict[str, int],
        merges: Sequence[tuple[str, str]],
        normalisation: Normalisation = "none",
        marks: Iterable[str] = (),
    ) -> None:
        """`marks` are pieces of the vocabulary that are not text, beside the end of a text."""
        super().__init__(normalisation)
        self.vocabulary, self.merges = vocabulary, [tuple(pair) for pair in merges]
        self.marks = frozenset(marks)
        self._unread = {END_OF_TEXT, *self.marks}
        self._pieces = {number: piece for piece, number in vocabulary.items()}
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        missing = [letter for letter in byte_letters().values() if letter not in vocabulary]
        missing += [one + two for one, two in self.merges if one + two not in vocabulary]
        if missing or sorted(self._pieces) != list(range(len(vocabulary))):
            what = f"has no piece {missing[0]!r}" if missing else "does not number its pieces from 0 on"
            raise RunError(f"these are not the files of a byte-level tokenizer: the vocabulary {what}")
        self._ids_of_word = functools.lru_cache(maxsize=CACHED_WORDS)(self._cut)

    @property
    def size(self) -> int:
        return SHIFT + len(self.vocabulary)

    @property
    def spells_everything(self) -> bool:
        return True

    def encode(self, text: str) -> list[int]:
        return [number for word in _word_pattern().findall(self.normalise(text)) for number in self._ids_of_word(word)]

    def _cut(self, word: str) -> tuple[int, ...]:
        """The word's bytes, of whose neighbours the pair that comes first in `merges` grows together, again and again."""
        pieces = [byte_letters()[byte] for byte in word.encode()]
        while len(pieces) > 1:
            best = min(pairwise(pieces), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            joined: list[str] = []
            for piece in pieces:
                if joined and (joined[-1], piece) == best:
                    joined[-1] += piece
                else:
                    joined.append(piece)
            pieces = joined
        return tuple(SHIFT + self.vocabulary[piece] for piece in pieces)

    def decode(self, ids: Iterable[int]) -> str:
        letters = _letter_bytes()
        whole = bytearray()
        for number in ids:
            if number == 1:
                whole += UNKNOWN.encode()
            elif number > EOS and (piece := self._pieces[int(number) - SHIFT]) not in self._unread:
                whole += bytes(letters[letter] for letter in piece)
        return whole.decode(errors="replace")

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [SPECIALS[number] if number <= EOS else self._pieces[int(number) - SHIFT] for number in ids]

    def byte(self, letter: str) -> int:
        """The byte that a letter of a piece stands for."""
        return _letter_bytes()[letter]

    def goes_on(self, piece: str) -> bool:
        return bool(piece) and piece[0] not in "ĠĊĉč" and unicodedata.category(piece[0])[0] in "LN"

    def to_bytes(self) -> bytes:
        merges = [" ".join(pair) for pair in self.merges]
        about = {"vocabulary": self.vocabulary, "merges": merges}
        if self.marks:
            about["marks"] = sorted(self.marks)
        return (json.dumps(about, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, normalisation: Normalisation) -> ByteLevel:
        content = json.loads(data)
        merges = [_pair(line) for line in content["merges"]]
        return cls(content["vocabulary"], merges, normalisation, content.get("marks", ()))

    @classmethod
    def from_files(cls, vocabulary: str, merges: str) -> ByteLevel:
        """From the text of vocab.json and merges.txt."""
        lines = [line for line in merges.split("\n") if line.strip() and not line.startswith("#version")]
        return cls(json.loads(vocabulary), [_pair(line) for line in lines])


def _pair(line: str) -> tuple[str, str]:
    one, _, other = line.partition(" ")
    return one, other
