"""Vocabularies that grow: pieces of a new text added behind those a model knows, whose ids stay what they were.

A vocabulary of the new text alone is learned; the best of its pieces that the old one lacks are added. A sentencepiece model is a list
of pieces with scores, so the grown one is again a sentencepiece model.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from kente.config import TokenizerConfig
from kente.data.pieces import SPECIALS, Subwords, Symbols, Tokenizer
from kente.data.sampling import SPACE
from kente.data.tags import Tagged, bare
from kente.data.tokenizer import Texts, Tokenizers, train_tokenizer
from kente.errors import ConfigError
from kente.reporting import SILENT, Reporter

BYTES = 256

Lines = Callable[[], Iterator[str]]


def grown(tokenizers: Tokenizers, texts: Texts, count: int, reporter: Reporter = SILENT) -> Tokenizers:
    """The tokenizers with up to `count` pieces more for each vocabulary, taken from the text given."""
    if tokenizers.joint:
        both = grow(tokenizers.source, lambda: (line for pair in texts() for line in pair), count, reporter)
        return replace(tokenizers, source=both, target=both)
    source = grow(tokenizers.source, _side(texts, 0), count, reporter)
    target = grow(tokenizers.target, _side(texts, 1), count, reporter)
    return replace(tokenizers, source=source, target=target)


def _side(texts: Texts, place: int) -> Lines:
    return lambda: (pair[place] for pair in texts())


def grow(tokenizer: Tokenizer, lines: Lines, count: int, reporter: Reporter = SILENT) -> Tokenizer:
    """One vocabulary with up to `count` pieces more."""
    match tokenizer:
        case Tagged(base=base, tags=tags):
            return Tagged(grow(base, lines, count, reporter), tags)
        case Symbols():
            larger: Tokenizer = _with_symbols(tokenizer, lines, count)
        case Subwords():
            larger = _with_pieces(tokenizer, lines, count)
        case _:
            raise ConfigError(_cannot_grow(tokenizer))
    added = larger.size - tokenizer.size
    fewer = "" if added == count else f", all that the new text offers; {count:,} were asked for"
    reporter.say(f"vocabulary: {added:,} pieces added to {tokenizer.size:,}{fewer}")
    return larger


def require_growable(tokenizers: Tokenizers) -> None:
    """Only vocabularies that are learned here can grow."""
    for side in (bare(tokenizers.source), bare(tokenizers.target)):
        if not isinstance(side, Symbols | Subwords):
            raise ConfigError(_cannot_grow(side))


def _cannot_grow(tokenizer: Tokenizer) -> str:
    return f"a {tokenizer.kind} vocabulary cannot grow; leave out --grow-vocabulary"


def _with_symbols(tokenizer: Symbols, lines: Lines, count: int) -> Symbols:
    counts = Counter(symbol for line in lines() for symbol in tokenizer.split(tokenizer.normalise(line)))
    for known in tokenizer.symbols:
        del counts[known]
    added = [symbol for symbol, _ in counts.most_common(count)]
    return tokenizer.with_symbols(added)


def _with_pieces(tokenizer: Subwords, lines: Lines, count: int) -> Subwords:
    characters = len({letter for line in lines() for letter in tokenizer.normalise(line)})
    known = tokenizer.learned()
    wanted = 2 * count  # about half of them will be known already; where the texts are near each other, more
    new: dict[str, float] = {}
    while len(new) < count:
        size = len(SPECIALS) + BYTES + characters + wanted
        fresh = _learned(tokenizer, lines, size)
        new = {piece: score for piece, score in fresh.learned().items() if piece not in known}
        if fresh.size < size:  # there are no more in the text
            break
        wanted *= 2
    # characters first: without them whatever holds one would be spelled in bytes
    best = sorted(new, key=lambda piece: (len(piece.strip(SPACE)) > 1, -new[piece]))[:count]
    if tokenizer.kind == "bpe":  # a score is the place in the order of merges: new merges come after all old ones
        last = min(known.values(), default=0.0)
        new = {piece: last - place for place, piece in enumerate(best, 1)}
    return tokenizer.with_model(tokenizer.to_bytes() + b"".join(_entry(piece, new[piece]) for piece in best))


def _learned(like: Subwords, lines: Lines, size: int) -> Subwords:
    """A vocabulary of this text alone, of at most so many pieces."""
    same = {"kind": like.kind, "normalisation": like.normalisation}
    config = TokenizerConfig(vocabulary=size, byte_fallback=like.spells_everything, **same)  # type: ignore[arg-type]
    fresh = train_tokenizer(lines, config).source
    assert isinstance(fresh, Subwords)
    return fresh


def _entry(piece: str, score: float) -> bytes:
    """One more item of the list of pieces in a sentencepiece model (field 1: text, score); written behind a protobuf message, it adds to it."""
    text = piece.encode()
    inside = b"\x0a" + _length(text) + text + b"\x15" + struct.pack("<f", score)
    return b"\x0a" + _length(inside) + inside


def _length(data: bytes) -> bytes:
    """A length as protobuf writes it: seven bits a byte, the lowest first, the high bit set where more follow."""
    left, written = len(data), bytearray()
    while left > 127:
        written.append(left & 127 | 128)
        left >>= 7
    written.append(left)
    return bytes(written)
