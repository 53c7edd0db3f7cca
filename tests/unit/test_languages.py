"""Languages told apart by what corpora taught, kept whole on disk, and carried by every run."""

from __future__ import annotations

import errno
import json
import os
import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.api.corpora import Data
from kente.api.texts import detector
from kente.config import BatchConfig, Config, TokenizerConfig
from kente.data.corpus import Corpus
from kente.data.grammar import generate
from kente.errors import RunError
from kente.reporting import SILENT, Reporter
from kente.runs import LANGUAGES, SHORTLIST, Run
from kente.text.languages import (
    ORDER,
    UNNAMED,
    UNSEEN,
    Detector,
    Language,
    LanguagePair,
    guess_codes,
    is_code,
    learn,
    learn_pair,
    letters_of,
)
from kente.train.prepare import CLEANED, prepare, share_prepared

PAIRS = [(pair.source, pair.target) for pair in generate(seed=1, count=1500)]
HELD_OUT = [(pair.source, pair.target) for pair in generate(seed=2, count=100)]


@pytest.fixture(scope="module")
def english_french() -> LanguagePair:
    return learn_pair(("en", "fr"), PAIRS)


def plain_probability(language: Language, history: str, letter: str) -> float:
    """The equation of the module's first page, by recursion over the history."""
    following = {gram[-1]: times for gram, times in language.grams.items() if gram[:-1] == history}
    shorter = plain_probability(language, history[1:], letter) if history else UNSEEN
    if not following:
        return shorter
    return (following.get(letter, 0) + len(following) * shorter) / (sum(following.values()) + len(following))


# ---------------------------------------------------------------- telling


def test_sentences_of_two_languages_are_told_apart(english_french: LanguagePair) -> None:
    wrong = [
        text
        for pair in HELD_OUT
        for code, text in zip(("en", "fr"), pair, strict=True)
        if english_french.detector.detect(text)[0][0] != code
    ]
    assert len(wrong) <= 2, wrong


def test_confidence_is_a_share_of_a_hundred_and_grows_with_the_text(english_french: LanguagePair) -> None:
    for text in ("th", "the dog", "The dog sleeps in the garden."):
        found = english_french.detector.detect(text)
        assert {code for code, _ in found} == {"en", "fr"}
        assert 100 >= found[0][1] >= found[1][1] >= 0 and sum(sure for _, sure in found) <= 100.001
    short, long = (english_french.detector.detect(text)[0][1] for text in ("a", "The dog sleeps in the garden."))
    assert long > 80 and long > short


def test_a_language_nobody_learnt_is_doubted(english_french: LanguagePair) -> None:
    strange = ["Ɔkraman no da afikyiri no mu anɔpa yi", "Kare yana barci a cikin lambun yau", "犬は庭で眠っています"]
    known = english_french.detector.detect("The dog sleeps in the garden.")[0][1]
    for text in strange:
        assert english_french.detector.detect(text)[0][1] < known / 2, text


@pytest.mark.parametrize("text", ["", " ", "123 !?", "😀"])
def test_what_has_no_letters_to_go_by_is_no_language(text: str, english_french: LanguagePair) -> None:
    assert english_french.detector.detect(text) == [("en", 0.0), ("fr", 0.0)]


def test_addresses_do_not_speak_for_a_text(english_french: LanguagePair) -> None:
    text = "Le chien dort. https://example.org/the-dog-sleeps-in-the-garden-with-the-children"
    assert english_french.detector.detect(text)[0][0] == "fr"


def test_letters_are_small_and_words_stand_apart() -> None:
    assert letters_of("Don’t PANIC,  e\u0301te\u0301—42!") == " don't panic été"
    assert letters_of("हिन्दी १२") == " हिन्दी" and letters_of("123") == ""


@given(st.text(alphabet="ab '", min_size=1, max_size=12))
def test_what_a_letter_costs_follows_the_equation(text: str) -> None:
    language = learn({"x": ["abab baba", "aab a'b", "bb aa ab"] * 5}).languages["x"]
    letters = " " + text
    expected = 1.0
    for place in range(1, len(letters)):
        expected *= plain_probability(language, letters[max(0, place - ORDER + 1) : place], letters[place])
    assert 2 ** -language.cost(letters) == pytest.approx(expected)


def test_probabilities_of_all_letters_there_are_sum_to_one() -> None:
    language = learn({"x": ["the cat sat on the mat", "a bat and a rat"] * 10}).languages["x"]
    seen = [gram for gram in language.grams if len(gram) == 1]
    for history in ("", "t", "th", " the", "zzz"):
        known = sum(plain_probability(language, history, letter) for letter in seen)
        unknown = (1 / UNSEEN - len(seen)) * plain_probability(language, history, "ж")
        assert known + unknown == pytest.approx(1.0)


def test_detectors_are_combined(english_french: LanguagePair) -> None:
    twi = learn({"tw": ["Ɔkraman no da.", "Me ne wo bɛkɔ sukuu anɔpa yi."] * 20})
    half = learn({"en": [source for source, _ in PAIRS[:200]]})
    together = Detector.combined([english_french.detector, twi, half])
    assert sorted(together.languages) == ["en", "fr", "tw"]
    assert together.detect("Ɔkraman no da afikyiri")[0][0] == "tw"
    grams = together.languages["en"].grams["the "]
    assert grams == english_french.detector.languages["en"].grams["the "] + half.languages["en"].grams["the "]
    assert together.languages["fr"] == english_french.detector.languages["fr"]


def test_a_corpus_without_capitals_is_noticed(english_french: LanguagePair) -> None:
    assert not english_french.lowercase
    assert learn_pair(("en", "fr"), [(a.lower(), b.lower()) for a, b in PAIRS[:200]]).lowercase
    assert not learn_pair(("ja", "fr"), [("犬は庭で眠っています", "le chien dort")] * 20).lowercase


def test_real_corpora_are_told_apart_by_twenty_letters(data: Path) -> None:
    names = {"ha": "en-hau/train.hau", "ig": "en-ibo/train.ibo", "tw": "en-twi/train.twi", "yo": "en-yor/train.yor"}
    lines = {code: (data / "mafand" / name).read_text(encoding="utf-8").splitlines() for code, name in names.items()}
    known = learn({code: some[:1000] for code, some in lines.items()})
    asked = [(code, line[:20]) for code, some in lines.items() for line in some[1000:1100] if len(line) >= 20]
    right = sum(known.detect(text)[0][0] == code for code, text in asked)
    assert right / len(asked) > 0.95


# ---------------------------------------------------------------- on disk


def test_languages_are_read_as_they_were_written(tmp_path: Path, english_french: LanguagePair) -> None:
    english_french.save(tmp_path / "languages.json")
    assert LanguagePair.load(tmp_path / "languages.json") == english_french


def test_damage_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "languages.json"
    learn_pair(("en", "fr"), PAIRS[:30]).save(path)
    whole = path.read_bytes()
    draw = random.Random(1)
    for _ in range(60):
        place = draw.randrange(len(whole) - 1)
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(7)
        path.write_bytes(damaged)
        with pytest.raises(RunError, match=r"cannot read .*languages.json"):
            LanguagePair.load(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunError):
        LanguagePair.load(path)


# ---------------------------------------------------------------- runs

CONFIG = Config(tokenizer=TokenizerConfig(kind="characters"), batches=BatchConfig(max_length=128))


def prepared(folder: Path, **how: tuple[str, str]) -> Run:
    run = Run.create(folder, CONFIG)
    corpus = Corpus.of_memory(PAIRS[:300], "pairs")
    report = prepare(run, corpus, None, CONFIG, 1, SILENT, **how)
    run.write_json(CLEANED, report.as_dict())
    return run


def test_a_prepared_run_knows_its_languages_and_shares_them(tmp_path: Path) -> None:
    run = prepared(tmp_path / "run", languages=("en", "fr"))
    assert (run.languages().source, run.languages().target) == ("en", "fr")
    assert detector([run.path]).detect("The dog sleeps in the garden.")[0][0] == "en"
    other = Run.create(tmp_path / "other", CONFIG)
    share_prepared(run, other)
    assert other.languages() == run.languages()


def test_a_run_without_the_file_learns_its_languages_from_its_validation_pairs(tmp_path: Path) -> None:
    run = prepared(tmp_path / "run")
    run.write_json("request.json", {"data": Data(Path("train.en"), Path("train.fr")).as_dict()})
    (run.path / LANGUAGES).unlink()
    assert (run.languages().source, run.languages().target) == ("en", "fr")
    assert (run.path / LANGUAGES).exists()


def test_a_damaged_file_is_said_and_learnt_again(tmp_path: Path) -> None:
    class Ears(Reporter):
        heard = ""

        def warn(self, text: str) -> None:
            self.heard += text

    run, ears = prepared(tmp_path / "run"), Ears()
    (run.path / LANGUAGES).write_text("{}")
    assert (run.languages(ears).source, run.languages().target) == UNNAMED
    assert "languages.json" in ears.heard and "learning it again now" in ears.heard


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_on_a_disk_that_cannot_be_written_to_languages_and_shortlist_are_learnt_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    class Ears(Reporter):
        heard: tuple[str, ...] = ()

        def warn(self, text: str) -> None:
            self.heard += (text,)

    def refuses(path: Path, data: bytes) -> None:
        raise OSError(number, os.strerror(number), str(path))

    run, ears = prepared(tmp_path / "run"), Ears()
    tokenizers = run.tokenizers()
    for name in (LANGUAGES, SHORTLIST):
        (run.path / name).unlink(missing_ok=True)
    monkeypatch.setattr("kente.text.languages.replace_file", refuses)
    monkeypatch.setattr("kente.data.shortlist.replace_file", refuses)
    assert run.languages(ears).source and len(run.shortlist(tokenizers, ears).table)
    why = os.strerror(number)
    assert ears.heard == (
        f"{run.path / LANGUAGES} cannot be written ({why}): the languages will be learnt each time",
        f"{run.path / SHORTLIST} cannot be written ({why}): the shortlist will be learnt each time",
    )


def test_a_run_with_nothing_to_learn_from_says_so(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", CONFIG)
    with pytest.raises(RunError, match=r"has no languages.json, and no validation pairs"):
        run.languages()


@pytest.mark.parametrize(
    ("source", "target", "pairs", "fields", "codes"),
    [
        ("a/train.en", "a/train.tw", None, (), ("en", "tw")),
        ("train.en.gz", "train.pt-BR.gz", None, (), ("en", "pt-BR")),
        ("train.eng.txt", "train.twi.txt", None, (), ("eng", "twi")),
        ("news.en-ha.src", "news.en-ha.tgt", None, (), ("en", "ha")),
        ("a.txt", "b.txt", None, (), UNNAMED),
        ("train.src", "train.tgt", None, (), UNNAMED),
        ("x.en", "y.en", None, (), UNNAMED),
        (None, None, "c.jsonl", ("translation.en", "translation.yo"), ("en", "yo")),
        (None, None, "c.tsv", ("1", "2"), UNNAMED),
        (None, None, "data/corpus.en-tw.tsv", (), ("en", "tw")),
        (None, None, "pairs.tsv", (), UNNAMED),
    ],
)
def test_codes_are_read_off_the_names(
    source: str | None, target: str | None, pairs: str | None, fields: tuple[str, ...], codes: tuple[str, str]
) -> None:
    assert guess_codes(source, target, pairs, fields) == codes


def test_codes_that_were_given_go_before_names(tmp_path: Path) -> None:
    data = Data(Path("train.en"), Path("train.fr"), codes=("en-GB", "fr"))
    assert data.languages() == ("en-GB", "fr") and Data.from_dict(json.loads(json.dumps(data.as_dict()))).codes == (
        "en-GB",
        "fr",
    )
    run = Run.create(tmp_path / "run", CONFIG)
    run.write_json("request.json", {"data": data.as_dict()})
    assert run._codes() == ("en-GB", "fr")


def test_codes_have_a_shape() -> None:
    assert all(map(is_code, ("en", "twi", "pt-BR", "zh-Hant-TW", "x-mine")))
    assert not any(map(is_code, ("", "e", "English", "en tw", "12", *string.punctuation)))
