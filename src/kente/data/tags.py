"""Marks at the beginning of a source sentence: a piece of its own that tells the model what kind of pair it is reading.

Synthetic pairs are marked so that a model can learn from them without taking them for what people write (Caswell et al., 2019).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from kente.data.pieces import Tokenizer

BACK, SELF = "<bt>", "<st>"
"""On pairs whose source was made by translating back, and on pairs whose target was made by the model itself."""
KNOWN = (BACK, SELF)


def tags_in_use(named: str) -> frozenset[str]:
    """Those there always are, and those named in `tokenizer.tags`."""
    return frozenset((*KNOWN, *named.split()))


def split_tag(text: str, tags: Collection[str] = KNOWN) -> tuple[str, str]:
    """("<bt>", "the sentence"), or ("", the text as it is) where it does not begin with one of the tags and a space."""
    first, space, rest = text.partition(" ")
    return (first, rest) if space and first in tags else ("", text)


def untagged(text: str, tags: Collection[str] = KNOWN) -> str:
    """The sentence without its mark."""
    return split_tag(text, tags)[1]


def found_tags(sources: Iterable[str], tags: Collection[str] = KNOWN) -> tuple[str, ...]:
    """Those of the tags that some source begins with, in the order of their names."""
    wanted = set(tags)
    found: set[str] = set()
    for source in sources:
        found.add(split_tag(source, wanted)[0])
        if len(found) > len(wanted):
            break
    return tuple(sorted(found - {""}))


class Tagged(Tokenizer):
    """A tokenizer with marks beside its pieces: their ids stand behind all others, and only the first word of a text can be one."""

    def __init__(self, base: Tokenizer, tags: Sequence[str]) -> None:
        assert tags and not isinstance(base, Tagged)
        super().__init__(base.normalisation)
        self.base, self.tags = base, tuple(tags)
        self.kind, self.suffix, self.spells_lines = base.kind, base.suffix, base.spells_lines
        self.parts_at_blanks = base.parts_at_blanks
        self._ids = {tag: base.size + place for place, tag in enumerate(self.tags)}

    @property
    def sha256(self) -> str:
        return hashlib.sha256(" ".join((self.base.sha256, *self.tags)).encode()).hexdigest()

    @property
    def size(self) -> int:
        return self.base.size + len(self.tags)

    @property
    def spells_everything(self) -> bool:
        return self.base.spells_everything

    @property
    def mask(self) -> int:
        return self.base.mask

    def goes_on(self, piece: str) -> bool:
        return piece not in self._ids and self.base.goes_on(piece)

    def encode(self, text: str) -> list[int]:
        tag, rest = split_tag(text, self._ids)
        return self._marked(tag, self.base.encode(rest))

    def encode_many(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        split = [split_tag(text, self._ids) for text in texts]
        ids = self.base.encode_many([rest for _, rest in split], threads)
        return [self._marked(tag, found) for (tag, _), found in zip(split, ids, strict=True)]

    def encode_sampled(self, text: str, amount: float, rng: np.random.Generator) -> list[int]:
        tag, rest = split_tag(text, self._ids)
        return self._marked(tag, self.base.encode_sampled(rest, amount, rng))

    def _marked(self, tag: str, ids: list[int]) -> list[int]:
        return [self._ids[tag], *ids] if tag and ids else ids

    def decode(self, ids: Iterable[int]) -> str:
        return self.base.decode(self._untagged(ids))

    def decode_many(self, rows: Sequence[Sequence[int]], threads: int = 1) -> list[str]:
        return self.base.decode_many(list(map(self._untagged, rows)), threads)

    def _untagged(self, ids: Iterable[int]) -> list[int]:
        return [number for number in ids if number < self.base.size]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return list(self._pieces(ids))

    def _pieces(self, ids: Iterable[int]) -> Iterator[str]:
        for number in ids:
            place = int(number) - self.base.size
            yield self.tags[place] if place >= 0 else self.base.pieces([number])[0]

    def to_bytes(self) -> bytes:
        return self.base.to_bytes()


def bare(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer without its tags."""
    return tokenizer.base if isinstance(tokenizer, Tagged) else tokenizer
