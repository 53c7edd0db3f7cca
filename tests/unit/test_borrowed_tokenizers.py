"""Tokenizers of other programs: BERT's word pieces, numbered sentencepieces, and GPT-2's bytes with marks among them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import sentencepiece

from kente.config import TokenizerConfig
from kente.data.byte_level import ByteLevel, byte_letters
from kente.data.sentencepieces import SentencePieces
from kente.data.tokenizer import BOS, EOS, UNK, Tokenizers, train_tokenizer
from kente.data.wordpiece import LONGEST_WORD, WordPiece
from kente.errors import ConfigError

PIECES = ["[MASK]", "the", "un", "##aff", "##able", "a", "##a", "!", ",", "[", "]", "mask", "cafe", "日", "本", "ά"]


def pieces_of(text: str, **how: bool) -> list[str]:
    tokenizer = WordPiece(PIECES, **how)
    return tokenizer.pieces(tokenizer.encode(text))


# --- WordPiece ---


def test_a_word_is_spelled_by_the_longest_pieces_that_fit_from_its_start():
    assert pieces_of("unaffable") == ["un", "##aff", "##able"]  # the example of the paper's code
    assert pieces_of("The unaffable!") == ["the", "un", "##aff", "##able", "!"]


def test_a_word_that_cannot_be_spelled_to_its_end_is_unknown_as_a_whole():
    assert pieces_of("unaffablex the") == ["<unk>", "the"]


def test_a_word_too_long_to_be_one_is_unknown():
    assert pieces_of("a" * LONGEST_WORD) == ["a"] + ["##a"] * (LONGEST_WORD - 1)
    assert pieces_of("a" * (LONGEST_WORD + 1)) == ["<unk>"]


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\r", "\u00a0", "\u3000", "\u2028"])
def test_every_kind_of_blank_parts_words(blank):
    assert pieces_of(f"the{blank}a") == ["the", "a"]


@pytest.mark.parametrize("unseen", ["\x00", "\u200b", "\ufeff", "\ufffd", "\x1f", "\u00ad"])
def test_what_cannot_be_seen_is_not_there(unseen):
    assert pieces_of(f"un{unseen}affable") == ["un", "##aff", "##able"]


def test_accents_go_where_capitals_go_unless_told_otherwise():
    assert pieces_of("CAFÉ") == ["cafe"]
    assert pieces_of("café", lowercase=False) == ["<unk>"]
    assert pieces_of("café", lowercase=False, strip_accents=True) == ["cafe"]
    assert pieces_of("ά", strip_accents=False) == ["ά"]


def test_chinese_characters_are_words_of_their_own():
    assert pieces_of("日本a") == ["日", "本", "a"]
    assert pieces_of("日本", split_ideographs=False) == ["<unk>"]


def test_text_that_reads_like_a_mark_is_text():
    tokenizer = WordPiece(PIECES)
    assert tokenizer.pieces(tokenizer.encode("[MASK]")) == ["[", "mask", "]"]
    assert tokenizer.mask == 4 and WordPiece(["a"]).mask == UNK


def test_words_come_back_with_their_pieces_together():
    tokenizer = WordPiece(PIECES)
    assert tokenizer.decode([BOS, *tokenizer.encode("The unaffable , a"), EOS]) == "the unaffable , a"
    assert tokenizer.decode([tokenizer.mask, UNK]) == "⁇"
    assert tokenizer.continuing().tolist() == [False] * 7 + [True, True, False, True] + [False] * 9


# --- sentencepiece with a list beside it ---


@pytest.fixture(scope="module")
def model() -> bytes:
    lines = [
        f"{a} {b} {c}" for a in ("the", "an", "old") for b in ("weaver", "goat", "man") for c in ("sings", "sleeps")
    ]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 4), model_writer=written, vocab_size=60, hard_vocab_limit=False, minloglevel=2
    )
    return written.getvalue()


@pytest.fixture(scope="module")
def vocabulary(model: bytes) -> list[str]:
    """Not sentencepiece's order, two languages in the middle, and without the last piece."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.id_to_piece(number) for number in range(3, processor.vocab_size())][::-1]
    return [*pieces[1:9], "__en__", "__fr__", *pieces[9:]]


def test_pieces_are_sentencepieces_and_ids_are_the_lists(model, vocabulary):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    tokenizer = SentencePieces(model, vocabulary, ["__en__", "__fr__"])
    cut = processor.encode("the old weaver sings", out_type=str)
    assert tokenizer.encode("the old weaver sings") == [
        4 + vocabulary.index(p) if p in vocabulary else UNK for p in cut
    ]
    assert tokenizer.encode_many(["goat", ""]) == [tokenizer.encode("goat"), []]
    assert tokenizer.decode(tokenizer.encode("the old goat")) == "the old goat"


def test_marks_of_languages_are_neither_made_of_text_nor_shown(model, vocabulary):
    tokenizer = SentencePieces(model, vocabulary, ["__en__", "__fr__"])
    mark = tokenizer.languages("before")["fr"]
    assert tokenizer.pieces([mark]) == ["__fr__"] and tokenizer.languages("within") == {}
    assert mark not in tokenizer.encode("__fr__ goat")
    assert tokenizer.decode([mark, *tokenizer.encode("goat")]) == "goat"


def test_languages_stand_before_source_and_target(model, vocabulary):
    side = SentencePieces(model, vocabulary, ["__en__", "__fr__"])
    both = Tokenizers(side, side, joint=True)
    marks = side.languages("before")
    spoken = both.speaking("en", "fr")
    assert both.languages == ["en", "fr"]
    assert spoken.encode_source("goat") == [marks["en"], *side.encode("goat")]
    assert spoken.encode_target("goat") == [marks["fr"], *side.encode("goat")]
    assert spoken.sha256 == both.sha256
    with pytest.raises(ConfigError, match="target_language = de: the model has no such language; it has en, fr"):
        both.speaking("en", "de")


def test_a_language_stands_before_a_tag_and_both_sides_of_one_vocabulary_have_it(tmp_path: Path, model, vocabulary):
    source, target = (SentencePieces(model, vocabulary, ["__en__", "__fr__"]) for _ in range(2))
    tagged = Tokenizers(source, target, joint=True).speaking("en", "fr").with_tags(["<bt>"])
    marks, tag = source.languages("before"), source.size
    assert tagged.encode_source("<bt> goat") == [marks["en"], tag, *source.encode("goat")]
    assert tagged.encode_target("goat") == [marks["fr"], *target.encode("goat")]
    assert tagged.source.size == tagged.target.size == source.size + 1 and tagged.languages == ["en", "fr"]
    tagged.save(tmp_path / "tagged")
    loaded = Tokenizers.load(tmp_path / "tagged", tagged.sha256).speaking("en", "fr")
    assert loaded.encode_source("<bt> goat") == tagged.encode_source("<bt> goat") and loaded.marks == tagged.marks


def test_a_mark_within_the_source_names_the_target(model, vocabulary):
    marked = [">>de<<" if piece == "__en__" else ">>fr<<" if piece == "__fr__" else piece for piece in vocabulary]
    source, target = (
        SentencePieces(model, marked, [">>de<<", ">>fr<<"]),
        SentencePieces(model, marked, [">>de<<", ">>fr<<"]),
    )
    spoken = Tokenizers(source, target, joint=True).speaking("", "fr")
    assert spoken.marks == ((source.languages("within")["fr"],), ())


def test_a_model_of_one_pair_cannot_be_asked_for_a_language():
    tokenizers = train_tokenizer(lambda: iter(["abc"]), TokenizerConfig(kind="characters"))
    assert tokenizers.speaking("", "") is tokenizers and tokenizers.languages == []
    with pytest.raises(ConfigError, match=r"source_language = en: .* knows one pair"):
        tokenizers.speaking("en", "")


# --- all of them on disk ---


def test_what_is_saved_is_what_is_loaded(tmp_path: Path, model, vocabulary):
    sentences = SentencePieces(model, vocabulary, ["__en__", "__fr__"])
    reversed_sentences = SentencePieces(model, vocabulary, ["__fr__", "__en__"])
    words = WordPiece(PIECES, lowercase=True, strip_accents=False)
    letters = {letter: number for number, letter in enumerate(byte_letters().values())}
    spelled = ByteLevel({**letters, "<|pad|>": 256}, [], marks=["<|pad|>"])
    for number, tokenizers in enumerate(
        (
            Tokenizers(words, words, joint=True),
            Tokenizers(spelled, spelled, joint=True),
            Tokenizers(sentences, reversed_sentences, joint=True),
            Tokenizers(sentences, reversed_sentences, joint=False),
        )
    ):
        tokenizers.save(tmp_path / str(number))
        loaded = Tokenizers.load(tmp_path / str(number), tokenizers.sha256)
        assert (loaded.sha256, loaded.joint) == (tokenizers.sha256, tokenizers.joint)
        assert (loaded.source is loaded.target) or number >= 2
        for text in ("the old ά café, 日本", "unaffable!"):
            assert loaded.encode_source(text) == tokenizers.encode_source(text)


def test_a_mark_among_bytes_is_not_text():
    letters = {letter: number for number, letter in enumerate(byte_letters().values())}
    tokenizer = ByteLevel({**letters, "<|pad|>": 256}, [], marks=["<|pad|>"])
    assert tokenizer.decode([260, *tokenizer.encode("ab\n")]) == "ab\n"
    assert 260 not in tokenizer.encode("<|pad|>")


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece", "byte-level"])
def test_borrowed_kinds_are_not_learned(kind):
    with pytest.raises(ConfigError, match=f"tokenizer.kind = {kind} is not learned here"):
        train_tokenizer(lambda: iter(["abc"]), TokenizerConfig(kind=kind))
