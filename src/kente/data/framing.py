"""How a text is put to an encoder: (BOS) ids EOS, cut where the encoder can read no further."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kente.data.tokenizer import BOS, EOS, Tokenizer


@dataclass(frozen=True)
class Framing:
    """A tokenizer, and the marks around what it gives."""

    tokenizer: Tokenizer
    begins: bool
    """Whether texts open with BOS: where the model was trained on documents rather than on sentences to translate."""
    longest: int
    """Tokens read at most, marks included; what is longer is cut."""
    marks: tuple[int, ...] = field(default=(), kw_only=True)
    """What stands before every text: its language, for translators of many."""

    def frame(self, text: str) -> list[int]:
        """Ids of a text as the model is used to them: (BOS) ids EOS."""
        return self._framed(self.tokenizer.encode(text))

    def frame_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Like frame, for a list."""
        return [self._framed(ids) for ids in self.tokenizer.encode_many(texts, threads)]

    def _framed(self, ids: list[int]) -> list[int]:
        opening = [BOS] if self.begins else [*self.marks]
        return [*opening, *ids[: self.longest - len(opening) - 1], EOS]
