"""Cleaning drops what it says it drops and counts all of it; holding out lets no sentence through the fence."""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.config import CleaningConfig
from kente.data.cleaning import Cleaner, CleaningReport, Profile, has_control, is_blank, share
from kente.data.corpus import Corpus, Pair
from kente.data.keys import Seen, contains, join_keys, same_sentence, sentence_keys, text_key, text_keys
from kente.data.scripts import count_scripts, dominant_script, mostly_in, script_of
from kente.data.splitting import default_validation_size, held_out_keys, hold_out
from kente.errors import CorpusError

CONFIG = CleaningConfig()
_GOOD = [(f"this is sentence number {n}", f"voici la phrase numéro {n}") for n in range(40)]


def _reasons(pairs: list[tuple[str, str]], config: CleaningConfig = CONFIG) -> dict[str, int]:
    cleaner = Cleaner(config)
    kept = list(cleaner.clean(Corpus.of_memory(_GOOD + pairs, "m")))
    assert len(kept) == cleaner.report.kept
    assert cleaner.report.total == len(_GOOD) + len(pairs)
    return cleaner.report.dropped


@pytest.mark.parametrize(
    ("pair", "reason", "setting"),
    [
        (("", "quelque chose"), "empty", {}),
        (("zero\x00byte", "octet zéro"), "control characters", {}),
        (("word " * 30, "mot " * 30), "too long", {"max_words": 29}),
        (("a sentence of usual length", "a" * 180), "length ratio", {}),
        (("no change", "no change "), "identical", {}),
        (("a sentence in Latin", "предложение кириллицей"), "wrong script", {}),
        (_GOOD[0], "duplicate", {}),
    ],
)
def test_each_reason_drops_its_pair(pair: tuple[str, str], reason: str, setting: dict[str, int]) -> None:
    assert _reasons([pair], dataclasses.replace(CONFIG, **setting)) == {reason: 1}


@pytest.mark.parametrize(
    ("pair", "setting"),
    [
        (("a sentence of usual length", "a" * 180), {"max_ratio": 0.0}),
        (("no change", "no change "), {"identical": "keep"}),
        (("a sentence in Latin", "предложение кириллицей"), {"wrong_script": "keep"}),
        (_GOOD[0], {"duplicates": "keep"}),
        (("word " * 30, "mot " * 30), {"max_words": 30}),
        (("Yes.", "Oui, bien sûr."), {}),  # short lines may differ in length
        (("1984 :-)", "1984 ;-)"), {}),  # no letters, so of no script
    ],
)
def test_settings_keep_what_they_say(pair: tuple[str, str], setting: dict[str, object]) -> None:
    assert _reasons([pair], dataclasses.replace(CONFIG, **setting)) == {}


def test_the_same_letters_in_two_unicode_forms_are_duplicates() -> None:
    composed = ("a summer of this kind", "un été comme ça")
    assert _reasons([composed, (composed[0], unicodedata.normalize("NFD", composed[1]))]) == {"duplicate": 1}


def test_the_usual_length_ratio_is_learned() -> None:
    """A script that says much in few characters is not held against the corpus."""
    pairs = [
        (f"a rather long english sentence number {n} about nothing much at all, told at length", f"关于{n}的句子")
        for n in range(50)
    ]
    cleaner = Cleaner(CONFIG)
    assert len(list(cleaner.clean(Corpus.of_memory(pairs, "zh")))) == 50
    assert cleaner.profile is not None and cleaner.profile.target_script == "Han or Kana"
    strict = Cleaner(CONFIG, Profile("Latin", "Han or Kana", 1.0))
    assert list(strict.clean(Corpus.of_memory(pairs, "zh"))) == []
    assert strict.report.dropped == {"length ratio": 50}


def test_unspaced_text_is_too_long_by_characters() -> None:
    profile = Profile("Latin", "Han or Kana", 0.3)
    config = dataclasses.replace(CONFIG, max_words=10, max_ratio=0.0)
    assert Cleaner(config, profile).fault(Pair("a b c", "字" * 41, 1)) == "too long"
    assert Cleaner(config, profile).fault(Pair("a b c", "字" * 40, 1)) is None


def test_a_mixed_corpus_is_not_judged_by_script() -> None:
    pairs = [(f"text {n}", f"текст {n}" if n % 2 else f"texte {n}") for n in range(40)]
    assert Profile.of(Corpus.of_memory(pairs, "m")).target_script is None


def test_the_report_reads_well_and_is_json() -> None:
    cleaner = Cleaner(CONFIG)
    list(cleaner.clean(Corpus.of_memory([*_GOOD, ("", "vide"), *[("\x00" * n, "nul") for n in range(1, 6)]], "m")))
    lines = cleaner.report.lines()
    assert lines[0] == "kept 40 of 46 pairs"
    assert lines[1] == "dropped 5 (11 %) control characters; line 42: '\\\\u0000' | 'nul'"
    assert lines[2] == "dropped 1 (2.2 %) empty; line 41: '' | 'vide'"
    report = json.loads(json.dumps(cleaner.report.as_dict()))
    assert report["dropped"] == {"empty": 1, "control characters": 5}
    assert [example["line"] for example in report["examples"]["control characters"]] == [42, 43, 44]
    assert CleaningReport().lines() == ["no pairs"]


def test_training_pairs_of_validation_sources_are_dropped() -> None:
    validation = Corpus.of_memory([("This  is SENTENCE number 7", "autre")], "validation")
    cleaner = Cleaner(CONFIG, exclude=held_out_keys(validation))
    kept = list(cleaner.clean(Corpus.of_memory(_GOOD, "m")))
    assert cleaner.report.dropped == {"in validation": 1}
    assert cleaner.report.examples["in validation"][0].line == 8
    assert len(kept) == 39


@pytest.mark.parametrize(
    ("text", "blank", "control"),
    [
        ("", True, False),
        ("\u00a0\u2003\u200b\ufeff", True, False),
        ("a", False, False),
        ("é", False, False),
        ("\t", True, False),
        ("\r", True, True),
        ("a\x85b", False, True),
        ("a\u2028b", False, True),
        ("a\u200db", False, False),
    ],
)
def test_blank_and_control(text: str, blank: bool, control: bool) -> None:
    assert (is_blank(text), has_control(text)) == (blank, control)


@given(st.text(max_size=20))
def test_what_strips_to_nothing_is_blank(text: str) -> None:
    assert is_blank(text) >= (not text.strip())


@given(st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=12))
def test_seen_agrees_with_a_set(batches: list[list[int]]) -> None:
    seen, oracle = Seen(), set[int]()
    for batch in batches:
        expected = []
        for key in batch:
            expected.append(key not in oracle)
            oracle.add(key)
        assert seen.add(np.array(batch, np.uint64)).tolist() == expected


@given(st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)))
def test_contains_agrees_with_a_set(ordered: list[int], keys: list[int]) -> None:
    found = contains(np.unique(np.array(ordered, np.uint64)), np.array(keys, np.uint64))
    assert found.tolist() == [key in set(ordered) for key in keys]


def test_keys_are_the_same_on_every_machine() -> None:
    assert text_key("kente").to_bytes(8, "little").hex() == "89281b4854c00f19"  # printf kente | b2sum -l 64
    assert len({text_key("kente", seed) for seed in (0, 1, -1, 2**40)}) == 4
    assert text_keys(["kente", ""]).tolist() == [text_key("kente"), text_key("")]
    one, two = text_keys(["a", "b"]), text_keys(["b", "a"])
    assert join_keys(one, two)[0] != join_keys(two, one)[0]


@given(st.text(max_size=30))
def test_case_spacing_and_form_do_not_make_another_sentence(text: str) -> None:
    assert same_sentence(f"  {text}\u00a0") == same_sentence(text)
    assert same_sentence(unicodedata.normalize("NFD", text)) == same_sentence(text)
    assert same_sentence("  Two\tWORDS ") == "two words"


@pytest.mark.parametrize(
    ("character", "script"),
    [("a", "Latin"), ("ɛ", "Latin"), ("ẹ", "Latin"), ("ａ", "Latin"), ("я", "Cyrillic"), ("字", "Han or Kana"), ("カ", "Han or Kana"),
     ("한", "Hangul"), ("ሀ", "Ethiopic"), ("ا", "Arabic"), ("क", "Devanagari"), ("1", None), ("ʼ", None), (" ", None)],
)  # fmt: skip
def test_scripts_of_letters(character: str, script: str | None) -> None:
    assert script_of(character) == script


def test_scripts_of_texts() -> None:
    assert dominant_script(count_scripts(["ሰላም ነው", "abc"]), 0.6) == "Ethiopic"
    assert dominant_script(count_scripts(["123"])) is None
    assert (
        mostly_in("Ɛyɛ me dɛ", "Latin") and mostly_in("привет ok", "Cyrillic") and not mostly_in("привет ok", "Latin")
    )


@given(
    st.lists(st.tuples(st.integers(0, 25), st.text(max_size=3)), min_size=12, max_size=60),
    st.integers(0, 5),
    st.integers(0, 4),
    st.integers(),
)
def test_no_source_is_on_two_sides_of_the_fence(
    pairs: list[tuple[int, str]], validation: int, test: int, seed: int
) -> None:
    corpus = Corpus.of_memory(
        [(("Source " if n % 3 else "source  ") + str(number), text) for n, (number, text) in enumerate(pairs)], "m"
    )
    seed %= 2**63
    try:
        split = hold_out(corpus, validation, test, seed)
    except CorpusError:
        counts = Counter(number for number, _ in pairs)
        single = sum(number == 1 for number in counts.values())
        assert single < validation + test or len(pairs) <= validation + test  # only where sentences repeat so much
        return
    parts = [list(split.train), list(split.validation), list(split.test)]
    assert Counter(pair for part in parts for pair in part) == Counter(corpus)
    sources = [{same_sentence(pair.source) for pair in part} for part in parts]
    assert sources[0] and not (sources[0] & sources[1] or sources[0] & sources[2] or sources[1] & sources[2])
    assert len(parts[1]) <= validation and len(parts[2]) <= test


def test_the_split_is_as_large_as_asked_and_follows_the_seed_not_the_order() -> None:
    pairs = [(f"source {n}", f"cible {n}") for n in range(1000)]
    splits = [
        hold_out(Corpus.of_memory(order, "m"), 50, 20, seed)
        for order, seed in ((pairs, 1), (pairs[::-1], 1), (pairs, 2))
    ]
    held = [{pair.source for pair in split.validation} for split in splits]
    assert [len(part) for part in held] == [50, 50, 50] and len(list(splits[0].test)) == 20
    assert held[0] == held[1] != held[2]
    grown = hold_out(Corpus.of_memory(pairs + [(f"more {n}", "x") for n in range(100)], "m"), 50, 20, 1)
    assert len(held[0] & {pair.source for pair in grown.validation}) > 35


@pytest.mark.parametrize(("pairs", "held"), [(0, 0), (10, 2), (100, 20), (1000, 50), (29_000, 1000), (10**7, 1000)])
def test_default_validation_size(pairs: int, held: int) -> None:
    assert default_validation_size(pairs) == held


def test_holding_out_too_much_is_refused() -> None:
    corpus = Corpus.of_memory([("one", "un"), ("two", "deux")], "tiny")
    with pytest.raises(CorpusError, match="tiny has 2 pairs: too few to hold out 2 for validation and 0 for test"):
        hold_out(corpus, 2)
    with pytest.raises(
        CorpusError, match="tiny has only 1 different source sentences, each with too many translations"
    ):
        hold_out(Corpus.of_memory([("one", "un"), ("one", "une")], "tiny"), 1)


def test_shares_do_not_round_a_few_to_none() -> None:
    assert [share(*parts) for parts in ((0, 9), (1, 10**6), (1, 100), (1, 3), (0, 0))] == [
        "0.0 %",
        "below 0.1 %",
        "1.0 %",
        "33 %",
        "0.0 %",
    ]


def test_sentence_keys_of_equal_sentences_are_equal() -> None:
    keys = sentence_keys(["One two", "one  TWO", "one"])
    assert keys[0] == keys[1] != keys[2]
