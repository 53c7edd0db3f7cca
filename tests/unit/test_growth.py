"""Vocabularies that grow, and vectors for the words they gain."""

from __future__ import annotations

import random

import pytest
import torch

from kente.config import TokenizerConfig
from kente.data.growth import grow, grown
from kente.data.pieces import SPECIALS, Subwords
from kente.data.tags import BACK, Tagged
from kente.data.tokenizer import Tokenizers, train_tokenizer, train_tokenizers
from kente.reporting import Reporter
from kente.train.transfer import carried, spelled, written


class Listener(Reporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


OLD_WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "house",
    "water",
    "sees",
    "drinks",
    "walks",
    "runs",
    "near",
    "old",
    "small",
    "big",
    "river",
]
NEW_WORDS = [
    "ɓera",
    "ƙasa",
    "ruwa",
    "gida",
    "mutum",
    "yana",
    "shan",
    "cikin",
    "daga",
    "tsoho",
    "ƙarami",
    "babba",
    "kogi",
    "zuwa",
]


def sentences(words: list[str], count: int = 200, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(words, k=chance.randint(3, 9))) for _ in range(count)]


OLD, NEW = sentences(OLD_WORDS), sentences(NEW_WORDS, seed=2)


def old_tokenizer(kind: str, size: int = 330) -> Tokenizers:
    vocabulary = size if kind in ("unigram", "bpe") else 0
    return train_tokenizer(lambda: iter(OLD), TokenizerConfig(kind=kind, vocabulary=vocabulary))


@pytest.mark.parametrize("kind", ["unigram", "bpe", "words", "characters"])
def test_old_ids_stay_and_the_new_text_becomes_shorter(kind):
    old = old_tokenizer(kind).source
    new = grow(old, lambda: iter(NEW), 40)
    assert old.size < new.size <= old.size + 40 and new.kind == kind
    assert new.pieces(range(old.size)) == old.pieces(range(old.size))
    assert all(new.decode(new.encode(line)) == line for line in NEW)
    if kind in ("unigram", "bpe"):
        before, after = (sum(len(t.encode(line)) for line in NEW) for t in (old, new))
        assert after < 0.6 * before  # spelled in bytes and letters before


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_text_the_vocabulary_was_learned_from_is_cut_as_before(kind):
    old = old_tokenizer(kind).source
    new = grow(old, lambda: iter(NEW), 40)
    assert [new.encode(line) for line in OLD] == [old.encode(line) for line in OLD]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_grown_tokenizer_survives_its_file(kind, tmp_path):
    side = grow(old_tokenizer(kind).source, lambda: iter(NEW), 25)
    tokenizers = Tokenizers(side, side, joint=True)
    tokenizers.save(tmp_path)
    again = Tokenizers.load(tmp_path, tokenizers.sha256)
    assert again.source.size == side.size
    assert [again.source.encode(line) for line in NEW] == [side.encode(line) for line in NEW]


def test_new_characters_come_before_longer_pieces():
    side = grow(old_tokenizer("unigram").source, lambda: iter(NEW), 6)
    added = side.pieces(range(side.size - 6, side.size))
    assert {"ɓ", "ƙ"} <= set(added)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_text_that_is_near_the_old_gives_as_many_pieces_as_were_asked_for(kind):
    chance = random.Random(5)
    old = ["".join(chance.choices("abcdefghijklm", k=chance.randint(4, 9))) for _ in range(400)]
    new = ["".join(chance.choices("abcdefghijklm", k=chance.randint(4, 9))) for _ in range(100)]
    known = sentences(old, 1500)
    side = train_tokenizer(lambda: iter(known), TokenizerConfig(kind=kind, vocabulary=800)).source
    near, heard = [*known, *sentences(new, 60, seed=3)], Listener()
    assert grow(side, lambda: iter(near), 40, heard).size == side.size + 40
    assert heard.said[-1] == f"vocabulary: 40 pieces added to {side.size:,}"
    assert side.size + 40 < grow(side, lambda: iter(near), 5000, heard).size < side.size + 5000
    assert heard.said[-1].endswith("all that the new text offers; 5,000 were asked for")


def test_tags_stay_behind_a_vocabulary_that_grows():
    side = old_tokenizer("unigram").with_tags([BACK]).source
    larger = grow(side, lambda: iter(NEW), 20)
    assert isinstance(larger, Tagged) and larger.tags == (BACK,)
    assert larger.encode(f"{BACK} the cat")[0] == larger.size - 1


def test_separate_vocabularies_grow_by_their_own_side():
    pairs = list(zip(OLD, OLD, strict=True))
    apart = train_tokenizers(lambda: iter(pairs), TokenizerConfig(kind="words", joint=False))
    larger = grown(apart, lambda: iter([("the lion sees", "zaki yana")]), 10)
    assert (larger.source.size - apart.source.size, larger.target.size - apart.target.size) == (1, 2)
    assert larger.source.pieces([larger.source.size - 1]) == ["lion"]


@pytest.mark.parametrize("length", [0, 1, 127, 128, 300, 20_000])
def test_a_length_is_written_as_protobuf_writes_it(length):
    from kente.data.growth import _length

    value = shift = 0
    for byte in _length(b"x" * length):
        value |= (byte & 127) << shift
        shift += 7
    assert value == length


# --- vectors of words ---


@pytest.mark.parametrize("kind", ["unigram", "bpe", "characters", "words"])
def test_the_same_vocabulary_keeps_every_vector(kind):
    tokenizer = old_tokenizer(kind).source
    table = torch.randn(tokenizer.size, 6)
    assert torch.equal(carried(table, tokenizer, tokenizer), table)


def test_a_new_word_begins_as_the_mean_of_the_pieces_that_spell_it():
    old = old_tokenizer("unigram").source
    new = grow(old, lambda: iter(NEW), 40)
    assert isinstance(new, Subwords)
    table = torch.randn(old.size, 6)
    vectors = carried(table, old, new)
    ids = {text: number for number, text in enumerate(written(old))}
    longest = max(map(len, ids))
    assert torch.equal(vectors[: old.size], table)
    for number in range(old.size, new.size):
        parts = spelled(written(new)[number], ids, longest)
        assert parts and torch.allclose(vectors[number], table[parts].mean(0))
    letter = new.pieces(range(new.size)).index("ɓ")
    assert spelled("ɓ", ids, longest) == [ids["<0xC9>"], ids["<0x93>"]] and letter >= old.size


def test_the_longest_pieces_spell_a_word():
    ids = {"▁": 0, "▁un": 1, "der": 2, "d": 3, "e": 4, "r": 5, "stand": 6}
    assert spelled("▁understand", ids, 5) == [1, 2, 6] and spelled("▁red", ids, 5) == [0, 5, 4, 3]
    assert spelled("zz", ids, 5) == []


def test_words_are_known_by_their_text_between_kinds_of_tokenizers():
    subwords, words = old_tokenizer("unigram").source, old_tokenizer("words").source
    table = torch.randn(subwords.size, 4)
    vectors = carried(table, subwords, words)
    ids = {text: number for number, text in enumerate(written(subwords))}
    assert torch.equal(vectors[: len(SPECIALS)], table[: len(SPECIALS)])
    known = [word for word in OLD_WORDS if f"▁{word}" in ids]
    assert known
    for word in known:
        assert torch.equal(vectors[words.encode(word)[0]], table[ids[f"▁{word}"]])
