"""How a text is put to an encoder: (BOS) ids EOS, cut where the encoder can read no further."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kente.data.tokenizer import BOS, EOS, Tokenizer
from kente.reporting import Reporter


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
    _cut: Counter[str] = field(default_factory=Counter, kw_only=True, compare=False, repr=False)
    """How many texts were cut since it was last said."""

    def frame(self, text: str) -> list[int]:
        """Ids of a text as the model is used to them: (BOS) ids EOS."""
        return self._framed(self.tokenizer.encode(text))

    def frame_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Like frame, for a list."""
        return [self._framed(ids) for ids in self.tokenizer.encode_many(texts, threads)]

    def _framed(self, ids: list[int]) -> list[int]:
        opening = [BOS] if self.begins else [*self.marks]
        room = self.longest - len(opening) - 1
        self._cut["texts"] += len(ids) > room
        return [*opening, *ids[:room], EOS]

    def say_cut(self, texts: int, reporter: Reporter, remedy: str) -> None:
        """Warn if some of the texts framed since the last time were longer than the encoder reads."""
        if cut := self._cut.pop("texts", 0):
            reporter.warn(
                f"{cut:,} of {texts:,} texts are longer than the {self.longest:,} tokens that are read of each; the rest of them is "
                f"left out; {remedy}"
            )
