"""A run's subwords as one sentencepiece model that cuts the source and reads the target, for programs that know only such a file.

Protocol buffers have a kind property: a message followed by more fields is the message with these added, so nothing needs to be parsed.
Target pieces that the source lacks are added as unused ones, which text is never cut into; Unicode's composed form, which Kente brings text
to itself, is added as rules of sentencepiece's own normaliser for every letter of the vocabulary.
"""

from __future__ import annotations

import io
import itertools
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import sentencepiece

from kente.data.tokenizer import SPECIALS, Tokenizer, Tokenizers
from kente.export.onnx_graph import encoded_field
from kente.export.parts import pieces_of

PIECES, NORMALISER = 1, 3
"""Fields of sentencepiece's ModelProto ..."""
PIECE, SCORE, TYPE = 1, 2, 3
"""... of a piece ..."""
CHARACTER_MAP = 2
"""... and of the normaliser."""
UNUSED = 5
"""The type of a piece that is there, but not used."""
MOST_MARKS = 3
"""Marks of a letter whose order is put right."""
LAST = -1e6
"""A score below all others: BPE joins nothing to an unused piece before everything else is joined."""


def for_both_sides(tokenizers: Tokenizers) -> bytes:
    """The file: encode() cuts source text as the run does, decode() reads what the run writes."""
    source, target = tokenizers.source, tokenizers.target
    known = set(pieces_of(source))
    added = [piece for piece in pieces_of(target)[len(SPECIALS) :] if piece not in known]
    model = source.to_bytes() + b"".join(encoded_field(PIECES, _unused(piece)) for piece in added)
    rules = dict(compositions(signs(source))) if source.normalisation == "nfc" else {}
    return model + (encoded_field(NORMALISER, encoded_field(CHARACTER_MAP, compiled(rules))) if rules else b"")


def _unused(piece: str) -> bytes:
    return encoded_field(PIECE, piece) + encoded_field(SCORE, LAST) + encoded_field(TYPE, UNUSED)


def letters(side: Tokenizer) -> set[str]:
    """Every character that pieces are made of."""
    return set("".join(pieces_of(side)[len(SPECIALS) :]))


def signs(side: Tokenizer) -> set[str]:
    """Every character, and every one together with the marks that follow it in a piece."""
    found = letters(side)
    for piece in pieces_of(side)[len(SPECIALS) :]:
        begin = 0
        for place, letter in enumerate(piece):
            if unicodedata.combining(letter):
                found.add(piece[begin : place + 1])
            else:
                begin = place
    return found


def compositions(signs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(how it may be written, the sign) for each way to write one of the signs that is not its composed form."""
    for sign in sorted(signs):
        base, *marks = list(unicodedata.normalize("NFD", sign))
        if not 0 < len(marks) <= MOST_MARKS or unicodedata.normalize("NFC", sign) != sign:
            continue
        for order in itertools.permutations(marks):
            for composed in range(len(marks)):
                begin = unicodedata.normalize("NFC", base + "".join(order[:composed]))
                written = begin + "".join(order[composed:])
                if written != sign and unicodedata.normalize("NFC", written) == sign:
                    yield written, sign


def compiled(rules: dict[str, str]) -> bytes:
    """The rules as sentencepiece keeps them: it compiles them only while it trains, so a model of nothing much is trained with them."""
    lines = "".join(f"{_codes(written)}\t{_codes(meant)}\n" for written, meant in rules.items())
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.tsv"
        path.write_text(lines, encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b"]),
            model_writer=model,
            model_type="char",
            vocab_size=6,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(path),
            minloglevel=2,
        )
    normaliser = dict(fields(model.getvalue()))[NORMALISER]
    return dict(fields(normaliser))[CHARACTER_MAP]


def _codes(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, content) of each field of a message that has a length: texts, bytes and messages."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        match key & 7:
            case 0:
                _, place = _varint(message, place)
            case 1:
                place += 8
            case 5:
                place += 4
            case _:
                length, place = _varint(message, place)
                yield key >> 3, message[place : place + length]
                place += length


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """(the number, where it ends)."""
    value = shift = 0
    while True:
        byte = message[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value, place
