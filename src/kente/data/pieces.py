"""One side's tokenizer: text to ids and back, with nothing lost on the way.

Ids 0 to 3 mean the same in every tokenizer. Text never becomes one of them, except UNK for what a vocabulary does not know.
Normalisation is a step of ours, seen in `tokenizer.json`; sentencepiece is told to change nothing.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
import sentencepiece
from numpy.typing import NDArray

from kente.data.sampling import SPACE, Ids, MergeDropout, SubwordSampling, WordSampler

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
UNKNOWN = "⁇"  # how an unknown piece reads

Normalisation = Literal["nfc", "none"]


def normalise(text: str, form: Normalisation) -> str:
    """The text a tokenizer promises to give back. Halves of surrogate pairs, which no file can hold, become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return unicodedata.normalize("NFC", text) if form == "nfc" else text


class Tokenizer(ABC):
    """Text to ids and back: decode(encode(text)) == normalise(text) wherever every piece is known."""

    kind: str
    suffix: str
    """Ending of the file that `to_bytes` fills."""
    spells_lines = False
    """Whether the end of a line is spelled like any other text. Where it is not, EOS stands for it in running text."""

    parts_at_blanks = False
    """Whether texts encoded one behind the other read as if a blank stood between them."""

    def __init__(self, normalisation: Normalisation) -> None:
        self.normalisation: Normalisation = normalisation

    def normalise(self, text: str) -> str:
        return normalise(text, self.normalisation)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(f"{self.kind} {self.normalisation} ".encode() + self.to_bytes()).hexdigest()

    def encode_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Like encode, for a list."""
        return [self.encode(text) for text in texts]

    def encode_sampled(self, text: str, amount: float, rng: np.random.Generator) -> list[int]:
        """Ids of the same text, perhaps cut elsewhere: a function of text, amount and the state of rng alone."""
        return self.encode(text)

    @property
    def spells_everything(self) -> bool:
        """Whether no text becomes UNK, so that a model never learns to write it."""
        return False

    @property
    def mask(self) -> int:
        """The id that hides a word which is to be guessed: to a reader, a hidden word is an unknown one."""
        return UNK

    @abstractmethod
    def goes_on(self, piece: str) -> bool:
        """Whether a piece carries on the word before it."""

    def continuing(self) -> NDArray[np.bool_]:
        """(size,) which ids carry on the word before them; special ones never do."""
        special = len(SPECIALS)
        own = [self.goes_on(piece) for piece in self.pieces(range(special, self.size))]
        return np.array([False] * special + own)

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of ids, special ones included."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Ids without BOS and EOS; empty for empty text."""

    @abstractmethod
    def decode(self, ids: Iterable[int]) -> str:
        """The text; PAD, BOS and EOS are passed over, UNK reads as a double question mark."""

    def decode_many(self, rows: Sequence[Sequence[int]], threads: int = 1) -> list[str]:
        """Like decode, for a list."""
        return [self.decode(ids) for ids in rows]

    def spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """(begin, end) of what each id writes in decode(ids); of several ids that spell one letter, the last writes it."""
        whole, spans, begin = self.decode(ids), [], 0
        for count in range(1, len(ids) + 1):
            written = self.decode(ids[:count])
            while not whole.startswith(written):  # it ends within a letter
                written = written[:-1]
            spans.append((begin, max(begin, len(written))))
            begin = spans[-1][1]
        return spans

    @abstractmethod
    def pieces(self, ids: Iterable[int]) -> list[str]:
        """What each id stands for, special ones by name."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """All there is to know, for a file."""


def _readable(ids: Iterable[int]) -> list[int]:
    return [int(i) for i in ids if i == UNK or i > EOS]


class Symbols(Tokenizer):
    """A plain list of characters or words. Words are what stands between single spaces, so two spaces hold an empty word."""

    suffix = ".json"
    kind: Literal["characters", "words"]

    def __init__(
        self, kind: Literal["characters", "words"], symbols: Sequence[str], normalisation: Normalisation
    ) -> None:
        super().__init__(normalisation)
        self.kind = kind
        self.parts_at_blanks = kind == "words"
        self.symbols = list(symbols)
        self._glue = " " if kind == "words" else ""
        self._ids = {symbol: number for number, symbol in enumerate(self.symbols, start=len(SPECIALS))}

    def with_symbols(self, more: Sequence[str]) -> Symbols:
        """The same with more symbols behind those there are."""
        return Symbols(self.kind, [*self.symbols, *more], self.normalisation)

    @property
    def size(self) -> int:
        return len(SPECIALS) + len(self.symbols)

    def split(self, text: str) -> list[str]:
        """Normalised text into symbols."""
        if not text:
            return []
        return text.split(" ") if self.kind == "words" else list(text)

    def encode(self, text: str) -> list[int]:
        find = self._ids.get
        return [find(symbol, UNK) for symbol in self.split(self.normalise(text))]

    def decode(self, ids: Iterable[int]) -> str:
        return self._glue.join(UNKNOWN if i == UNK else self.symbols[i - len(SPECIALS)] for i in _readable(ids))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [SPECIALS[i] if i <= EOS else self.symbols[int(i) - len(SPECIALS)] for i in ids]

    def goes_on(self, piece: str) -> bool:
        return self.kind == "characters" and not piece.isspace()

    def to_bytes(self) -> bytes:
        return (json.dumps(self.symbols, ensure_ascii=False, indent=0) + "\n").encode()

    @classmethod
    def from_bytes(cls, kind: Literal["characters", "words"], data: bytes, normalisation: Normalisation) -> Symbols:
        return cls(kind, json.loads(data), normalisation)


_ESCAPE = "\uf8f0"  # a U+2581 in the text itself would come back as a space, hence two escapes
ESCAPES = {_ESCAPE: _ESCAPE + "0", SPACE: _ESCAPE + "1"}
_TABLE = str.maketrans(ESCAPES)


def escape(text: str) -> str:
    """Text without U+2581, from which `unescape` can tell what was there."""
    return text if text.isascii() else text.translate(_TABLE)


def unescape(text: str) -> str:
    if _ESCAPE not in text:
        return text
    first, *rest = text.split(_ESCAPE)
    return first + "".join({"0": _ESCAPE, "1": SPACE}.get(part[:1], _ESCAPE + part[:1]) + part[1:] for part in rest)


class Subwords(Tokenizer):
    """A sentencepiece model, unigram or bpe."""

    suffix = ".model"
    kind: Literal["unigram", "bpe"]
    parts_at_blanks = True
    candidates = 32  # cuts of a word considered in sampling
    longest_sampled = 64  # characters; what is longer is no word and would take long

    def __init__(self, kind: Literal["unigram", "bpe"], model: bytes, normalisation: Normalisation) -> None:
        super().__init__(normalisation)
        self.kind = kind
        self._model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        blanks = self._processor.encode("  ")
        self._blank: Ids = tuple(blanks[: len(blanks) // 3])  # one for each space, one for the start
        zero = self._processor.piece_to_id("<0x00>")
        self._bytes: int = zero if self._processor.is_byte(zero) else 0  # the 256 bytes follow each other
        self._pieces: dict[str, int] = {}
        self._sampler: WordSampler | None = None

    @property
    def size(self) -> int:
        return int(self._processor.vocab_size())

    @property
    def spells_everything(self) -> bool:
        return bool(self._bytes)

    def prepare(self, text: str) -> str:
        """What sentencepiece is given."""
        return escape(self.normalise(text))

    def encode(self, text: str) -> list[int]:
        return list(self._processor.encode(self.prepare(text)))

    def encode_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        return list(self._processor.encode([self.prepare(text) for text in texts], num_threads=threads))

    def decode(self, ids: Iterable[int]) -> str:
        return unescape(self._processor.decode(_readable(ids)))

    def decode_many(self, rows: Sequence[Sequence[int]], threads: int = 1) -> list[str]:
        return [unescape(text) for text in self._processor.decode(list(map(_readable, rows)), num_threads=threads)]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._processor.id_to_piece(int(i)) for i in ids]

    def goes_on(self, piece: str) -> bool:
        return not piece.startswith(SPACE)

    def with_model(self, model: bytes) -> Subwords:
        """The same kind of tokenizer by another model."""
        return Subwords(self.kind, model, self.normalisation)

    def learned(self) -> dict[str, float]:
        """The pieces that were learned, special ones and bytes aside, with their scores: the higher, the sooner one is used."""
        processor = self._processor
        own = (i for i in range(len(SPECIALS), self.size) if not processor.is_byte(i))
        return {processor.id_to_piece(i): processor.get_score(i) for i in own}

    def to_bytes(self) -> bytes:
        return self._model

    def encode_sampled(self, text: str, amount: float, rng: np.random.Generator) -> list[int]:
        prepared = self.prepare(text)
        if not prepared:
            return []
        if self._sampler is None:
            self._sampler = self._make_sampler()
        draw = self._sampler.draw
        ids: list[int] = []
        words = prepared.split(" ")
        chances = rng.random(2 * len(words)).tolist()
        for word, first, second in zip(words, chances[::2], chances[1::2], strict=True):
            if not word:
                ids.extend(self._blank)
            elif len(word) <= self.longest_sampled:
                ids.extend(draw(word, amount, first, second))
            else:
                ids.extend(self._processor.encode(word))
        return ids

    def _make_sampler(self) -> WordSampler:
        if self.kind == "unigram":
            return SubwordSampling(self._best_cuts)
        processor = self._processor
        self._pieces = {
            processor.id_to_piece(i): i for i in range(len(SPECIALS), self.size) if not processor.is_byte(i)
        }
        ranks = {piece: -processor.get_score(i) for piece, i in self._pieces.items()}
        return MergeDropout(ranks.get, self._spell)

    def _best_cuts(self, word: str) -> list[tuple[Ids, float]]:
        score = self._processor.get_score
        others = self._processor.nbest_encode(word, nbest_size=self.candidates)
        return [(tuple(cut), sum(map(score, cut))) for cut in (self._processor.encode(word), *others)]

    def _spell(self, pieces: list[str]) -> Ids:
        """Ids of pieces, characters without one spelled as bytes; where there are no bytes a run of them is one UNK."""
        ids: list[int] = []
        for piece in pieces:
            known = self._pieces.get(piece)
            if known is not None:
                ids.append(known)
            elif self._bytes:
                ids.extend(self._bytes + byte for byte in piece.encode())
            elif not ids or ids[-1] != UNK:
                ids.append(UNK)
        return tuple(ids)
