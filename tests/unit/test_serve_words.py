"""Words in every script, and what a model's pieces say about them."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.data.tokenizer import Symbols, Tokenizers
from kente.decode.details import Detail
from kente.decode.engine import ReadBack
from kente.decode.translator import Translation
from kente.serve.words import links_of, looked, matched, words_in


def texts(text: str) -> list[str]:
    return [text[begin:end] for begin, end in words_in(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Good morning.", ["Good", "morning", "."]),
        ("don't well-known l’homme", ["don't", "well-known", "l’homme"]),
        ("- a -b c-", ["-", "a", "-", "b", "c", "-"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("ɛyɛ a\u0301", ["ɛyɛ", "a\u0301"]),
        ("你好。", ["你", "好", "。"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("مرحبا، عالم", ["مرحبا", "،", "عالم"]),
        ("1,5 %", ["1", ",", "5", "%"]),
        (" \u200b\n", []),
        ("", []),
    ],
)
def test_words_of(text: str, words: list[str]) -> None:
    assert texts(text) == words


@given(st.text(max_size=60))
def test_words_stand_in_order_do_not_overlap_and_leave_out_nothing_that_can_be_seen(text: str) -> None:
    spans = words_in(text)
    assert all(a < b for a, b in spans) and all(b <= c for (_, b), (c, _) in itertools.pairwise(spans))
    inside = {place for begin, end in spans for place in range(begin, end)}
    assert not any(letter.isalnum() for place, letter in enumerate(text) if place not in inside)


def test_words_of_a_part_are_counted_in_the_whole() -> None:
    assert words_in("one two three", 4, 7) == [(4, 7)]


def detail(source: str, target: str, numbers: list[float], weights: list[list[float]]) -> Detail:
    """A sentence as a model of letters saw it."""
    letters = sorted(set(source + target))
    side = Symbols("characters", letters, "nfc")
    tokenizers = Tokenizers(side, side, joint=True)
    read = ReadBack([*numbers, 0.0], weights)
    return Detail.of(side.encode(source), side.encode(target), read, tokenizers)


def test_a_word_is_as_sure_as_its_pieces_together_and_looks_where_they_look_on_average() -> None:
    half = math.log(0.5)
    rows = [[0.5, 0.3, 0.0, 0.1], [0.1, 0.1, 0.0, 0.8], [0, 0, 1.0, 0], [0.0, 0.0, 0.0, 0.9]]
    seen = looked([detail("ab c", "xy z", [half, half, 0.0, half], rows)])
    assert (seen.source, seen.target) == (["ab", "c"], ["xy", "z"])
    assert seen.confidence == pytest.approx([0.25, 0.5])
    assert seen.weights == [pytest.approx([0.5, 0.45]), pytest.approx([0.0, 0.9])]


def test_parts_of_a_sentence_are_put_side_by_side() -> None:
    parts = [detail("a", "x", [0.0], [[1.0]]), detail("b", "y", [0.0], [[0.5]])]
    seen = looked(parts)
    assert (seen.source, seen.target, seen.weights) == (["a", "b"], ["x", "y"], [[1.0, 0.0], [0.0, 0.5]])


def test_a_model_that_does_not_attend_has_confidence_and_no_weights() -> None:
    seen = looked([detail("a", "x", [math.log(0.5)], [])])
    assert seen.confidence == pytest.approx([0.5]) and seen.weights == []


@pytest.mark.parametrize(
    ("words", "others", "found"),
    [
        ("The Cat sees", "the cat sees", [0, 1, 2]),
        ("a new b", "a b", [0, None, 1]),
        ("a b", "a lost b", [0, 2]),
        ("a changed b", "a other b", [0, 1, 2]),
        ("cafe\u0301", "café", [0]),
        ("", "a", []),
    ],
)
def test_like_words_are_found(words: str, others: str, found: list[int | None]) -> None:
    assert matched(words.split(), others.split()) == found


def test_links_say_which_letters_a_word_came_from() -> None:
    rows = [[0.1, 0, 0.9], [0, 1.0, 0], [0.8, 0, 0.1]]
    translation = Translation("a b", "x y", details=(detail("a b", "x y", [0.0] * 3, rows),))
    assert links_of("a b", translation) == [(2, 3, 0, 1), (0, 1, 2, 3)]
    assert links_of("a b", Translation("a b", "x y")) == []
