"""A run's tokenizers as a tokenizer.json, the file of Hugging Face's tokenizers library: the same ids for the same text.

Such a file knows one vocabulary. A run with one table of words for both sides has one too, and its ids stay what they are. Otherwise the
target's words come first, with the ids they have in the run, and the source's follow them (`Joined`): text is cut into the latter, and
what the model writes are the former. To be told apart there, target pieces begin with a character of private use, dropped on reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import sentencepiece

from kente.data.pieces import ESCAPES, Subwords
from kente.data.sampling import SPACE
from kente.data.tags import bare
from kente.data.tokenizer import EOS, SPECIALS, UNK, Tokenizer, Tokenizers
from kente.export.parts import pieces_of

MARK = "\uf8f1"
"""Before the target pieces of a joined vocabulary."""
SOURCE_SPECIALS = ("<source-pad>", "<source-unk>", "<source-s>", "</source>")
NEVER = -1e6
"""Score of pieces that text is not cut into, however it reads: marks, bytes, and words of the other side."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Joined:
    """One vocabulary for source and target: the same one, or the target's followed by the source's."""

    source: Tokenizer
    target: Tokenizer
    same: bool

    @classmethod
    def of(cls, tokenizers: Tokenizers, tie: str) -> Joined:
        return cls(tokenizers.source, tokenizers.target, same=tie == "all")

    @property
    def begin(self) -> int:
        """The id of the source's first word."""
        return 0 if self.same else self.target.size

    @property
    def size(self) -> int:
        return self.begin + self.source.size

    def pieces(self) -> list[str]:
        """What each id reads in the file."""
        source = pieces_of(self.source)
        if self.same:
            return source
        target = pieces_of(self.target)[len(SPECIALS) :]
        return [*SPECIALS, *(MARK + piece for piece in target), *SOURCE_SPECIALS, *source[len(SPECIALS) :]]

    @property
    def specials(self) -> dict[str, int]:
        """Every mark, and its id."""
        marks = {piece: number for number, piece in enumerate(SPECIALS)}
        return marks if self.same else marks | {piece: self.begin + n for n, piece in enumerate(SOURCE_SPECIALS)}

    @property
    def source_marks(self) -> tuple[str, ...]:
        """The marks of the source side, in the order of SPECIALS."""
        return SPECIALS if self.same else SOURCE_SPECIALS


def tokenizer_json(joined: Joined) -> Json:
    """The file's content."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(piece, number) for piece, number in joined.specials.items()],
        "normalizer": _sequence("normalizers", _normalizers(joined)),
        "pre_tokenizer": _pre_tokenizer(joined),
        "post_processor": _end_mark(joined),
        "decoder": _sequence("decoders", decoders) if (decoders := _decoders(joined)) else None,
        "model": _model(joined),
    }


def tokenizer_config(longest: int) -> Json:
    """tokenizer_config.json: what Hugging Face's transformers must know besides."""
    pad, unk, bos, eos = SPECIALS
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "</s>" in a text is text
        "pad_token": pad,
        "unk_token": unk,
        "bos_token": bos,
        "eos_token": eos,
    }


# ---------------------------------------------------------------- around the model


def _sequence(name: str, parts: list[Json]) -> Json:
    return {"type": "Sequence", name: parts}


def _replace(pattern: str, content: str, kind: str = "String") -> Json:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def _added(piece: str, number: int) -> Json:
    plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": piece, **plain, "special": True}


def _normalizers(joined: Joined) -> list[Json]:
    """What the translator does to a sentence, what the tokenizer does to it, and what sentencepiece does."""
    side = bare(joined.source)
    steps = [{"type": "Strip", "strip_left": True, "strip_right": True}, _replace(r"[ \t]{2,}|\t", " ", "Regex")]
    if side.normalisation == "nfc":
        steps.append({"type": "NFC"})
    if isinstance(side, Subwords):
        steps += [_replace(character, escaped) for character, escaped in ESCAPES.items()]
        steps += [{"type": "Prepend", "prepend": SPACE}, _replace(" ", SPACE)]
    if side.kind == "words":  # a word that reads like a mark is none: it is made one that nobody knows
        steps += [_replace(f"(?<![^ ]){re.escape(mark)}(?![^ ])", 2 * MARK, "Regex") for mark in joined.specials]
    return steps


def _pre_tokenizer(joined: Joined) -> Json | None:
    """Where text is cut before the model sees it."""
    match joined.source.kind:
        case "characters":
            return _split(r"[\s\S]")
        case "words":
            return {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": False}
        case "unigram" if joined.source.spells_everything and (strange := _strange(joined)):
            return _split(f"[{re.escape(strange)}]")  # or text that reads like a mark would be one after all
        case _:
            return None


def _split(pattern: str) -> Json:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _strange(joined: Joined) -> str:
    """Characters of marks and bytes' names that no piece of text holds: spelled in bytes, they are preferred to by nothing else."""
    pieces, usable = joined.pieces(), _scores(joined)
    known = set("".join(pieces[number] for number in usable))
    others = set("".join(piece for number, piece in enumerate(pieces) if number not in usable)) - {MARK}
    return "".join(sorted(others - known))


def _end_mark(joined: Joined) -> Json:
    """Each sentence is followed by the end mark."""
    mark = joined.source_marks[EOS]
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    end = {"SpecialToken": {"id": mark, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, end],
        "pair": [first, second, end],
        "special_tokens": {mark: {"id": mark, "ids": [joined.begin + EOS], "tokens": [mark]}},
    }


def _decoders(joined: Joined) -> list[Json]:
    """From pieces to text. None at all puts a space between them, which is what words want."""
    subwords, words = isinstance(bare(joined.target), Subwords), joined.target.kind == "words"
    steps = [] if joined.same else [_replace(MARK, " " if words else "")]
    if words:
        return [*steps, {"type": "Fuse"}, _first_space()] if steps else []
    if subwords and joined.target.spells_everything:
        steps.append({"type": "ByteFallback"})
    steps.append({"type": "Fuse"})
    if subwords:
        steps += [_replace(SPACE, " "), _first_space()]
        steps += [_replace(escaped, character) for character, escaped in reversed(ESCAPES.items())]
    return steps


def _first_space() -> Json:
    return {"type": "Strip", "content": " ", "start": 1, "stop": 0}


# ---------------------------------------------------------------- the model


def _model(joined: Joined) -> Json:
    pieces = joined.pieces()
    ids = {piece: number for number, piece in enumerate(pieces)}
    unknown = joined.source_marks[UNK]
    match joined.source.kind:
        case "unigram":
            scores = _scores(joined)
            vocabulary = [[piece, scores.get(number, NEVER)] for number, piece in enumerate(pieces)]
            fallback = joined.source.spells_everything
            return {"type": "Unigram", "unk_id": ids[unknown], "vocab": vocabulary, "byte_fallback": fallback}
        case "bpe":
            return {
                "type": "BPE",
                "dropout": None,
                "unk_token": unknown,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": True,
                "byte_fallback": joined.source.spells_everything,
                "ignore_merges": False,
                "vocab": ids,
                "merges": _merges(joined),
            }
        case _:
            return {"type": "WordLevel", "vocab": ids, "unk_token": unknown}


def _scores(joined: Joined) -> dict[int, float]:
    """The scores of the pieces that text is cut into, by id."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=joined.source.to_bytes())
    usable = (i for i in range(len(SPECIALS), bare(joined.source).size) if not processor.is_byte(i))
    return {joined.begin + i: float(processor.get_score(i)) for i in usable}


def _merges(joined: Joined) -> list[str]:
    """Every way two pieces make a third, the best third first: sentencepiece joins whatever makes a piece it knows."""
    scores, pieces = _scores(joined), joined.pieces()
    known = {pieces[number] for number in scores}
    merges = []
    for number in sorted(scores, key=lambda number: -scores[number]):
        whole = pieces[number]
        halves = ((whole[:place], whole[place:]) for place in range(1, len(whole)))
        merges += [f"{left} {right}" for left, right in halves if left in known and right in known]
    return merges
