"""Tokenizers of Marian and M2M100: a sentencepiece model cuts text, and a list of their own says which id a piece has.

Marks of theirs that are not among our four, such as those that name a language, stand among the pieces; text never becomes one of them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Sequence

import sentencepiece

from kente.data.pieces import EOS, SPECIALS, UNK, UNKNOWN, Normalisation, Tokenizer
from kente.data.sampling import SPACE

LANGUAGE = re.compile(r"__(?P<before>\w+)__|>>(?P<within>[\w-]+)<<")
"""Marks that name a language: M2M100's, of the text they stand before; Marian's, of the translation that a source asks for."""


class SentencePieces(Tokenizer):
    """A sentencepiece model whose pieces are numbered by a list beside it."""

    kind = "sentencepiece"
    suffix = ".json"
    parts_at_blanks = True

    def __init__(
        self, model: bytes, pieces: Sequence[str], marks: Iterable[str] = (), normalisation: Normalisation = "none"
    ) -> None:
        """`pieces` are those behind our four marks, `marks` the ones among them that text is never cut into."""
        super().__init__(normalisation)
        self._model, self._pieces, self.marks = model, list(pieces), frozenset(marks)
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        numbered = enumerate(self._pieces, start=len(SPECIALS))
        self._ids = {piece: number for number, piece in numbered if piece not in self.marks}

    @property
    def size(self) -> int:
        return len(SPECIALS) + len(self._pieces)

    def encode(self, text: str) -> list[int]:
        return self._numbers(self._processor.encode(self.normalise(text), out_type=str))

    def encode_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        prepared = [self.normalise(text) for text in texts]
        return [self._numbers(cut) for cut in self._processor.encode(prepared, out_type=str, num_threads=threads)]

    def _numbers(self, pieces: list[str]) -> list[int]:
        return [self._ids.get(piece, UNK) for piece in pieces]

    def decode(self, ids: Iterable[int]) -> str:
        shown = [UNKNOWN if i == UNK else self._pieces[int(i) - len(SPECIALS)] for i in ids if i == UNK or i > EOS]
        text: str = self._processor.decode([piece for piece in shown if piece not in self.marks])
        return text.replace(SPACE, " ")  # a piece of the other side's is unknown to this model, and left as it is

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [SPECIALS[i] if i <= EOS else self._pieces[int(i) - len(SPECIALS)] for i in ids]

    def goes_on(self, piece: str) -> bool:
        return not piece.startswith(SPACE) and piece not in self.marks

    def languages(self, kind: str) -> dict[str, int]:
        """{"en": id} of the marks of a kind: "before" the text they name the language of, or "within" a source, of its translation."""
        numbered = enumerate(self._pieces, start=len(SPECIALS))
        found = ((LANGUAGE.fullmatch(piece), number) for number, piece in numbered if piece in self.marks)
        return {match[kind]: number for match, number in found if match and match[kind]}

    def to_bytes(self) -> bytes:
        model = base64.b64encode(self._model).decode()
        about = {"marks": sorted(self.marks), "pieces": self._pieces, "model": model}
        return (json.dumps(about, ensure_ascii=False, indent=0) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes, normalisation: Normalisation) -> SentencePieces:
        content = json.loads(data)
        return cls(base64.b64decode(content["model"]), content["pieces"], content["marks"], normalisation)
