"""Pieces put together to words as people see them.

A word begins after a space; a punctuation mark is one of its own, except inside a word (don't, well-known). Where a script has no spaces
every piece stays by itself, but the bytes of one character stay together.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from kente.data.sampling import SPACE
from kente.data.scripts import UNSPACED, script_of
from kente.data.tokenizer import SPECIALS, Tokenizer
from kente.measure.explored import Side, Word

JOINERS = frozenset("'’-‐‑·׳״")
"""Marks that stand inside words."""
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def side_of(tokenizer: Tokenizer, ids: Sequence[int]) -> Side:
    """Ids as pieces and as words."""
    pieces = tokenizer.pieces(ids)
    starts = [n for n, piece in enumerate(pieces) if n == 0 or begins(tokenizer.kind, pieces[n - 1], piece)]
    spans = zip(starts, [*starts[1:], len(pieces)], strict=True)
    return Side(tuple(pieces), tuple(Word(_text(tokenizer, ids[a:b], pieces[a:b]), a, b) for a, b in spans))


def _text(tokenizer: Tokenizer, ids: Sequence[int], pieces: Sequence[str]) -> str:
    if pieces[0] in SPECIALS:
        return pieces[0]
    return tokenizer.decode(ids).strip() or "".join(pieces)


def begins(kind: str, before: str, piece: str) -> bool:
    """Whether a word begins between two pieces that a tokenizer of this kind made."""
    if kind == "words" or piece in SPECIALS or before in SPECIALS:
        return True
    blank = " " if kind == "characters" else SPACE
    if not before.strip(blank):
        return False  # the space before this word
    if piece.startswith(blank):
        return True
    byte = _BYTE.fullmatch(piece)
    if byte:
        return int(byte[1], 16) & 0xC0 != 0x80 and _unspaced(before[-1])
    return _is_mark(piece) or _is_mark(before.strip(blank)) or _unspaced(piece[0]) or _unspaced(before[-1])


def _is_mark(piece: str) -> bool:
    return not _BYTE.fullmatch(piece) and all(unicodedata.category(c)[0] in "PS" and c not in JOINERS for c in piece)


def _unspaced(letter: str) -> bool:
    return script_of(letter) in UNSPACED
