"""A run's tokenizers as a tokenizer.json: every id in its place; the same ids for the same text where the tokenizers library is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kente.config import TokenizerConfig, TransformerConfig
from kente.data.tokenizer import Symbols, Tokenizers
from kente.export.parts import duplicate
from kente.export.tokenizer_json import MARK, NEVER, Joined, tokenizer_json

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ["<pad>", "<unk>", "<s>", "</s>"]
TINY = TransformerConfig(encoder_layers=1, decoder_layers=1, width=8, feedforward=8, heads=2)
KINDS = {
    "unigram": TokenizerConfig(vocabulary=380),
    "bpe": TokenizerConfig(kind="bpe", vocabulary=380),
    "unigram without bytes": TokenizerConfig(vocabulary=120, byte_fallback=False),
    "bpe without bytes": TokenizerConfig(kind="bpe", vocabulary=120, byte_fallback=False),
    "no normalisation": TokenizerConfig(vocabulary=380, normalisation="none"),
    "characters": TokenizerConfig(kind="characters"),
    "words": TokenizerConfig(kind="words"),
}


def joined_of(make: Callable[..., Any], name: str, apart: bool) -> tuple[Tokenizers, Joined]:
    tie = "target" if apart else "all"
    made = make(replace(TINY, tie=tie), replace(KINDS[name], joint=not apart))
    return made.tokenizers, Joined.of(made.tokenizers, tie)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_every_id_reads_what_it_reads_in_the_run(name: str, apart: bool, make: Callable[..., Any]) -> None:
    tokenizers, joined = joined_of(make, name, apart)
    vocabulary = tokenizer_json(joined)["model"]["vocab"]
    ids = dict(vocabulary) if isinstance(vocabulary, dict) else {piece: i for i, (piece, _) in enumerate(vocabulary)}
    assert sorted(ids.values()) == list(range(joined.size))
    source = tokenizers.source.pieces(range(tokenizers.source.size))
    target = tokenizers.target.pieces(range(tokenizers.target.size))
    assert [ids[piece] for piece in source[EOS + 1 :]] == [joined.begin + i for i in range(EOS + 1, len(source))]
    assert [ids[piece] for piece in SPECIALS] == [PAD, UNK, BOS, EOS]
    if apart:
        assert joined.begin == len(target)
        assert [ids[MARK + piece] for piece in target[EOS + 1 :]] == list(range(EOS + 1, len(target)))
        assert ids["</source>"] == joined.begin + EOS


@pytest.mark.parametrize("name", KINDS)
def test_tags_have_their_ids_behind_all_others_and_text_is_never_cut_into_them(
    name: str, make: Callable[..., Any]
) -> None:
    tokenizers, joined = joined_of(make, name, False)
    content, tagged = tokenizer_json(joined), tokenizer_json(Joined.of(tokenizers.with_tags(["<bt>"]), "all"))
    before, after = content.pop("model"), tagged.pop("model")
    if isinstance(before["vocab"], dict):
        assert after.pop("vocab") == before.pop("vocab") | {"<bt>": joined.size}
    else:
        assert after.pop("vocab") == [*before.pop("vocab"), ["<bt>", NEVER]]
    assert before == after and content.keys() == tagged.keys()
    assert content["normalizer"] == tagged["normalizer"] and content["decoder"] == tagged["decoder"]


def test_text_is_never_cut_into_marks_bytes_or_words_of_the_other_side(make: Callable[..., Any]) -> None:
    tokenizers, joined = joined_of(make, "unigram", True)
    vocabulary = tokenizer_json(joined)["model"]["vocab"]
    never = {piece for piece, score in vocabulary if score == NEVER}
    bytes_ = {f"<0x{number:02X}>" for number in range(256)}
    assert {*SPECIALS, "</source>", *bytes_} <= never
    assert len(never) == tokenizers.target.size + 4 + 256
    assert min(score for _, score in vocabulary if score != NEVER) > -100


def test_the_content_is_json_and_ends_sentences_with_the_end_mark(make: Callable[..., Any]) -> None:
    _, joined = joined_of(make, "bpe", True)
    content = json.loads(json.dumps(tokenizer_json(joined)))
    assert content["post_processor"]["special_tokens"]["</source>"]["ids"] == [joined.begin + EOS]
    assert [token["id"] for token in content["added_tokens"]] == [0, 1, 2, 3, *range(joined.begin, joined.begin + 4)]
    assert content["model"]["unk_token"] == "<source-unk>"


def test_words_that_read_like_marks_cannot_be_told_from_them() -> None:
    side = Symbols("words", ["the", "<unk>"], "nfc")
    joined = Joined.of(Tokenizers(side, side, joint=True), "all")
    assert duplicate(joined.pieces()) == (
        "two of its tokens read '<unk>', and there tokens are told apart by how they read"
    )


# ---------------------------------------------------------------- with the tokenizers library


@pytest.fixture(scope="module")
def library() -> Any:
    return pytest.importorskip(
        "tokenizers", reason="the tokenizers library is not installed (benchmarks/peers/huggingface.txt)"
    )


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_the_library_cuts_and_joins_text_as_the_run_does(
    name: str, apart: bool, make: Callable[..., Any], library: Any, lines: list[str]
) -> None:
    tokenizers, joined = joined_of(make, name, apart)
    tokenizer = library.Tokenizer.from_str(json.dumps(tokenizer_json(joined)))
    tokenizer.encode_special_tokens = True  # "</s>" in a text is text, as tokenizer_config.json says
    for line in lines:
        if name in ("unigram without bytes", "bpe without bytes") and "<s>" in line:
            continue  # letters that no piece has cannot spell a mark there
        text = " ".join(line.split())
        wanted = [*tokenizers.source.encode(text), EOS]
        assert tokenizer.encode(line).ids == [joined.begin + i for i in wanted], line
    for _, target in [("", "L'éàü voit « 日本語。 » et le café."), ("", "le le le"), ("", "")]:
        ids = [i for i in tokenizers.target.encode(target) if i != UNK]
        assert tokenizer.decode([BOS, *ids, EOS], skip_special_tokens=True) == tokenizers.target.decode(ids)
