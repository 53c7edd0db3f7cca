"""BERT's tokenizer (Devlin et al., 2019): words cut at blanks and punctuation, each spelled by the longest pieces that fit, from its start.

Unlike our own it loses something: blanks, and case and accents where the model was made without them. Its marks have our ids:
[PAD], [UNK], [CLS] and [SEP] are PAD, UNK, BOS and EOS; the pieces follow in the order of its file.
"""

from __future__ import annotations

import functools
import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from kente.data.pieces import EOS, SPECIALS, UNK, UNKNOWN, Normalisation, Tokenizer

MASK = "[MASK]"
CARRIES_ON = "##"
LONGEST_WORD = 100
"""Characters; what is longer is no word but UNK."""
CACHED_WORDS = 100_000
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""Where Unicode keeps Chinese characters, each a word of its own."""


class WordPiece(Tokenizer):
    """Pieces of words; those that carry a word on begin with ##."""

    kind = "wordpiece"
    suffix = ".json"
    parts_at_blanks = True

    def __init__(
        self,
        pieces: Sequence[str],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_ideographs: bool = True,
        normalisation: Normalisation = "none",
    ) -> None:
        """`pieces` are those behind the four marks. Without a word about accents they go where capitals go."""
        super().__init__(normalisation)
        self._pieces = list(pieces)
        self.lowercase, self.split_ideographs = lowercase, split_ideographs
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self._ids = {piece: number for number, piece in enumerate(self._pieces, start=len(SPECIALS))}
        self._mask = self._ids.pop(MASK, UNK)  # text that reads like it is text
        self._ids_of_word = functools.lru_cache(maxsize=CACHED_WORDS)(self._cut)

    @property
    def size(self) -> int:
        return len(SPECIALS) + len(self._pieces)

    @property
    def mask(self) -> int:
        return self._mask

    # --- text to words ---

    def words(self, text: str) -> list[str]:
        """What stands between blanks and marks of punctuation, and the latter one by one."""
        letters = "".join(_kept(letter) for letter in self.normalise(text))
        if self.split_ideographs:
            letters = "".join(f" {letter} " if _is_ideograph(letter) else letter for letter in letters)
        if self.strip_accents:
            decomposed = unicodedata.normalize("NFD", letters)
            letters = "".join(letter for letter in decomposed if unicodedata.category(letter) != "Mn")
        if self.lowercase:
            letters = "".join(letter.lower() for letter in letters)
        return "".join(f" {letter} " if _is_punctuation(letter) else letter for letter in letters).split()

    # --- words to ids ---

    def encode(self, text: str) -> list[int]:
        return [number for word in self.words(text) for number in self._ids_of_word(word)]

    def _cut(self, word: str) -> tuple[int, ...]:
        """The longest piece that the rest of the word begins with, again and again; UNK where there is none."""
        if len(word) > LONGEST_WORD:
            return (UNK,)
        ids: list[int] = []
        start = 0
        while start < len(word):
            carried = CARRIES_ON if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if carried + word[start:end] in self._ids), None)
            if end is None:
                return (UNK,)
            ids.append(self._ids[carried + word[start:end]])
            start = end
        return tuple(ids)

    # --- and back ---

    def decode(self, ids: Iterable[int]) -> str:
        shown = [UNKNOWN if i == UNK else self._pieces[int(i) - len(SPECIALS)] for i in ids if i == UNK or i > EOS]
        return " ".join(piece for piece in shown if piece != MASK).replace(f" {CARRIES_ON}", "")

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [SPECIALS[i] if i <= EOS else self._pieces[int(i) - len(SPECIALS)] for i in ids]

    def goes_on(self, piece: str) -> bool:
        return piece.startswith(CARRIES_ON)

    def to_bytes(self) -> bytes:
        about: dict[str, Any] = {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_ideographs": self.split_ideographs,
            "pieces": self._pieces,
        }
        return (json.dumps(about, ensure_ascii=False, indent=0) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, normalisation: Normalisation) -> WordPiece:
        content = json.loads(data)
        return cls(content.pop("pieces"), **content, normalisation=normalisation)


@functools.cache
def _kept(letter: str) -> str:
    """A letter as it is, a blank for any kind of blank, nothing for what cannot be seen."""
    if letter in "\t\n\r":
        return " "
    category = unicodedata.category(letter)
    if letter == "\ufffd" or category in ("Cc", "Cf", "Co"):
        return ""
    return " " if letter.isspace() else letter


@functools.cache
def _is_ideograph(letter: str) -> bool:
    return any(first <= ord(letter) <= last for first, last in IDEOGRAPHS)


@functools.cache
def _is_punctuation(letter: str) -> bool:
    """Unicode's punctuation, and what else of ASCII is neither letter, digit nor blank."""
    if letter.isascii():
        return letter.isprintable() and not letter.isalnum() and letter != " "
    return unicodedata.category(letter)[0] == "P"
