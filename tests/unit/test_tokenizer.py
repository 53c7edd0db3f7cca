"""Text to ids and back, learned, saved, bound by hash, and cut anew at random."""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kente.config import TokenizerConfig
from kente.data import tokenizer as module
from kente.data.tokenizer import BOS, EOS, PAD, UNK, Subwords, Tokenizers, choose_vocabulary, train_tokenizers
from kente.errors import ConfigError, CorpusError, RunError
from kente.reporting import Reporter

ENGLISH = ["the weaver", "an old man", "the children", "my sister", "nobody", "the tailor", "a young goat"]
VERBS = [
    ("washes", "wäscht"),
    ("carries", "trägt"),
    ("sings about", "besingt"),
    ("forgets", "vergisst"),
    ("mends", "flickt"),
]
GERMAN = [
    "die Weberin",
    "ein alter Mann",
    "die Kinder",
    "meine Schwester",
    "niemand",
    "der Schneider",
    "eine junge Ziege",
]
PAIRS = [
    (f"{ENGLISH[i]} {verb[0]} {ENGLISH[j]} .", f"{GERMAN[i]} {verb[1]} {GERMAN[j]} .")
    for i in range(len(ENGLISH))
    for j in range(len(ENGLISH))
    for verb in VERBS
]

chance = random.Random(3)
SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "el", "or")]
WORDS = ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(9000)]
MANY_CUTS = [(" ".join(chance.choices(WORDS, k=8)), " ".join(chance.choices(WORDS, k=8))) for _ in range(400)]


class Notes(Reporter):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


def learn(pairs=PAIRS, reporter=None, **settings_) -> Tokenizers:
    return train_tokenizers(lambda: iter(pairs), TokenizerConfig(**settings_), reporter or Notes())


SUBWORDS = {kind: learn(PAIRS + MANY_CUTS, kind=kind, vocabulary=600) for kind in ("unigram", "bpe")}
NO_BYTES = {kind: learn(kind=kind, vocabulary=100, byte_fallback=False) for kind in ("unigram", "bpe")}
SYMBOLS = {kind: learn(kind=kind) for kind in ("characters", "words")}
ALL = [*SUBWORDS.values(), *NO_BYTES.values(), *SYMBOLS.values()]
each_subword = pytest.mark.parametrize("kind", ["unigram", "bpe"])

NASTY = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from(" \t\n\r\x00\u2581\uf8f0\u2047\u2585\u0301\u00e9e01<>s/\ufeff\u200d\u00a0\U0001f600\ue000"),
        st.sampled_from("aeinrst ."),
    )
)


@each_subword
@settings(max_examples=300, deadline=None)
@given(text=NASTY)
@example(text="  two  spaces ")
@example(text=" ")
@example(text="\u2581a \u2581\u2581 b\u2581")
@example(text="\uf8f0\uf8f00\uf8f01\u2581")
@example(text="e\u0301 \u1100\u1161\u11a8 \u212b")
def test_byte_fallback_loses_nothing(kind, text):
    tokenizer = SUBWORDS[kind].source
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == tokenizer.normalise(text) == unicodedata.normalize("NFC", text)
    assert all(EOS < i < tokenizer.size for i in ids)
    assert (ids == []) == (text == "")


@each_subword
@settings(max_examples=150, deadline=None)
@given(text=NASTY, seed=st.integers(0, 10**6), amount=st.sampled_from([0.0, 0.1, 0.5, 0.95]))
def test_another_cut_is_the_same_text_and_follows_from_the_generator(kind, text, seed, amount):
    tokenizer = SUBWORDS[kind].source
    ids = tokenizer.encode_sampled(text, amount, np.random.default_rng(seed))
    assert tokenizer.decode(ids) == tokenizer.normalise(text)
    fresh = Subwords(kind, tokenizer.to_bytes(), "nfc")  # nothing remembered from earlier draws
    assert fresh.encode_sampled(text, amount, np.random.default_rng(seed)) == ids
    if amount == 0:
        assert ids == tokenizer.encode(text)


@pytest.mark.parametrize("tokenizers", NO_BYTES.values(), ids=NO_BYTES)
@settings(max_examples=100, deadline=None)
@given(text=st.text("aeinrst .ß\u2581日本"))
def test_without_bytes_the_sampled_cut_at_zero_is_the_usual_one(tokenizers, text):
    """Unknown characters in a row are one UNK in sentencepiece, so in our merges too."""
    tokenizer = tokenizers.source
    assert tokenizer.encode_sampled(text, 0.0, np.random.default_rng(0)) == tokenizer.encode(text)


@pytest.mark.parametrize("kind", ["characters", "words"])
@given(data=st.data())
def test_known_symbols_come_back_exactly(kind, data):
    tokenizer = SYMBOLS[kind].target
    parts = data.draw(st.lists(st.sampled_from([*tokenizer.symbols, " ", "  "])))
    text = "".join(parts) if kind == "characters" else " ".join(part for part in parts if part.strip() or not part)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert UNK not in tokenizer.encode(text)


@pytest.mark.parametrize("tokenizers", ALL)
@settings(max_examples=60, deadline=None)
@given(text=NASTY)
@example(text="ɛyɛ 日本 \U0001f600 x")
def test_pieces_write_their_text_from_left_to_right_and_leave_nothing_out(tokenizers, text):
    tokenizer = tokenizers.source
    ids = tokenizer.encode(text)
    spans, whole = tokenizer.spans(ids), tokenizer.decode(ids)
    assert len(spans) == len(ids)
    assert "".join(whole[begin:end] for begin, end in spans) == whole


def test_a_piece_stands_where_its_letters_are():
    tokenizer = SUBWORDS["bpe"].source
    ids = tokenizer.encode("the cat")
    whole = tokenizer.decode(ids)
    shown = [whole[begin:end] for begin, end in tokenizer.spans(ids)]
    assert [part.strip() for part in shown] == [piece.replace("\u2581", "") for piece in tokenizer.pieces(ids)]


def test_what_is_unknown_reads_as_a_double_question_mark():
    assert SYMBOLS["words"].source.decode(SYMBOLS["words"].source.encode("the zebra yawns")) == "the ⁇ ⁇"
    assert SYMBOLS["characters"].source.decode(SYMBOLS["characters"].source.encode("a日b")) == "a⁇b"
    for tokenizers in NO_BYTES.values():
        assert tokenizers.source.decode(tokenizers.source.encode("the 日本 man")) == "the ⁇ man"


@pytest.mark.parametrize("tokenizers", ALL)
def test_text_that_looks_like_a_special_piece_is_text(tokenizers):
    ids = tokenizers.source.encode("<s> </s> <pad> <unk> <0x41> a")
    assert not {PAD, BOS, EOS} & set(ids)
    framed = [BOS, *tokenizers.source.encode("the old man"), EOS, PAD, PAD]
    assert tokenizers.source.decode(framed) == "the old man"
    assert tokenizers.source.decode(np.array(framed)) == "the old man"
    assert tokenizers.source.pieces(framed)[0] == "<s>"
    assert tokenizers.source.pieces(framed)[-2:] == ["</s>" if framed[-2] == EOS else "<pad>", "<pad>"]
    assert "".join(tokenizers.source.pieces(framed)[1:-3]).replace("\u2581", "").replace(" ", "") == "theoldman"


@each_subword
def test_a_corpus_full_of_special_strings_and_odd_marks_can_be_learned(kind):
    odd = [("<s> </s> <unk> <0x41> <pad> " + a, "\u2581 \u2585 \t \u2047 \x00 " + b) for a, b in PAIRS]
    tokenizer = learn(odd, kind=kind, vocabulary=500).source
    for text in ("<s> </s> <unk> <0x41> <pad>", "\u2581 \u2585 \t \u2047 \x00", "a\tb"):
        ids = tokenizer.encode(text)
        assert min(ids) > EOS
        assert tokenizer.decode(ids) == text


def test_halves_of_surrogate_pairs_become_replacement_characters():
    tokenizer = SUBWORDS["bpe"].source
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a\ufffdb"
    assert tokenizer.normalise("\ud83d\ude00") == "\U0001f600"


def test_normalisation_can_be_left_out():
    tokenizer = learn(kind="bpe", vocabulary=400, normalisation="none").source
    assert tokenizer.decode(tokenizer.encode("e\u0301")) == "e\u0301"
    assert SUBWORDS["bpe"].source.decode(SUBWORDS["bpe"].source.encode("e\u0301")) == "\u00e9"


def test_many_are_encoded_like_one():
    texts = [*(source for source, _ in PAIRS[:50]), "", " ", "日本 \u2581"]
    for tokenizers in ALL:
        assert tokenizers.source.encode_many(texts, threads=2) == [tokenizers.source.encode(text) for text in texts]


def test_many_are_decoded_like_one():
    for tokenizers in ALL:
        side = tokenizers.source
        rows = [side.encode(text) for text in (*(source for source, _ in PAIRS[:50]), "", " ", "日本 \u2581")]
        rows += [[PAD, BOS, UNK, EOS], [BOS, *rows[0], EOS], []]
        assert side.decode_many(rows, threads=2) == [side.decode(ids) for ids in rows]
        assert side.decode_many([]) == [] and side.decode_many([[]]) == [""]


@each_subword
def test_merges_and_cuts_by_word_equal_sentencepiece_on_real_sentences(kind):
    """Our word-by-word cutting at amount 0 against sentencepiece's reading of the whole line."""
    tokenizer = SUBWORDS[kind].source
    oracle = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.to_bytes())
    for source, target in PAIRS + MANY_CUTS:
        for text in (source, target.upper()):
            assert tokenizer.encode_sampled(text, 0.0, np.random.default_rng(0)) == oracle.encode(text)


def test_the_chance_of_another_cut_is_the_amount():
    tokenizer = learn(MANY_CUTS, kind="unigram", vocabulary=450).source
    word, rng = max(WORDS, key=len), np.random.default_rng(5)
    best = tuple(tokenizer.encode(word))
    draws = Counter(tuple(tokenizer.encode_sampled(word, 0.3, rng)) for _ in range(3000))
    assert draws[best] / 3000 == pytest.approx(0.7, abs=0.03)
    assert len(draws) > 5
    score = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.to_bytes()).get_score
    likelihood = {cut: sum(map(score, cut)) for cut in draws if cut != best}
    by_likelihood = sorted(likelihood, key=lambda cut: -likelihood[cut])
    assert draws[by_likelihood[0]] > draws[by_likelihood[-1]], "likelier cuts are drawn more often"


def test_merge_dropout_drops_more_as_the_amount_grows():
    tokenizer = SUBWORDS["bpe"].source
    lengths = []
    for amount in (0.0, 0.1, 0.5, 0.999):
        rng = np.random.default_rng(1)
        lengths.append(sum(len(tokenizer.encode_sampled(source, amount, rng)) for source, _ in PAIRS))
    assert lengths[0] < lengths[1] < lengths[2] < lengths[3]
    characters = sum(len(source) + 1 for source, _ in PAIRS)
    assert lengths[3] == pytest.approx(characters, rel=0.02), (
        "nothing is merged at the end: every character and the mark before it"
    )


def test_very_long_words_and_lines_neither_fail_nor_stall():
    for kind in ("unigram", "bpe"):
        tokenizer = learn([*PAIRS, ("x" * 100_000, "ab " * 50_000)], kind=kind, vocabulary=400).source
        for text in ("q" * 100_000, "a " * 50_000):
            assert tokenizer.decode(tokenizer.encode(text)) == text
            assert tokenizer.decode(tokenizer.encode_sampled(text, 0.5, np.random.default_rng(0))) == text


def test_long_lines_are_cut_without_loss():
    lines = ["a" * 2500, "word " * 700, "short", ""]
    parts = list(module._pack(lines))
    assert max(map(len, parts)) <= module.LONGEST_LINE
    assert len(parts) == len(set(parts)) and "short" in parts
    numbers = " ".join(map(str, range(2000)))
    assert " ".join(module._pack([numbers, numbers])) == numbers


# --- learning ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["unigram", "bpe", "characters", "words"])
@pytest.mark.parametrize("joint", [True, False])
def test_the_same_corpus_gives_the_same_bytes(kind, joint):
    first, second = (learn(kind=kind, joint=joint) for _ in range(2))
    assert first._files == second._files
    assert (first.source is first.target) == joint
    assert first.sha256 == second.sha256 != learn(PAIRS[:-50], kind=kind, joint=joint).sha256


def test_separate_vocabularies_know_their_own_side():
    tokenizers = learn(kind="words", joint=False)
    assert UNK not in tokenizers.encode_source("my sister sings about nobody .")
    assert UNK in tokenizers.encode_target("my sister sings about nobody .")
    assert tokenizers.source.sha256 != tokenizers.target.sha256


@pytest.mark.parametrize(
    ("pairs", "words", "distinct", "wanted"),
    [
        (29_000, 725_000, 30_000, 4000),
        (5_000, 125_000, 15_000, 2000),
        (1_010_245, 45_300_000, 900_000, 16_000),
        (10**8, 10**10, 10**7, 32_000),
    ],
)
def test_vocabulary_grows_with_the_cube_root_of_the_text(pairs, words, distinct, wanted):
    assert choose_vocabulary(pairs, words, distinct, characters=100) == wanted
    assert choose_vocabulary(pairs, words, distinct, 100, joint=True) == pytest.approx(min(2 * wanted, 32_000), abs=500)


def test_chosen_vocabularies_hold_the_characters_and_no_more_than_the_words():
    assert choose_vocabulary(100, 1000, 50, characters=3000) > 3260
    assert choose_vocabulary(29_000, 725_000, 100, characters=30) <= 600
    assert learn([("日本語の文字" + chr(0x4E00 + i), "a b c " + chr(0x5E00 + i)) for i in range(600)]).source.size > 256


@each_subword
def test_a_vocabulary_the_text_cannot_fill_is_smaller_and_says_so(kind):
    notes = Notes()
    tokenizer = learn(PAIRS[:20], notes, kind=kind, vocabulary=9000).source
    assert 260 < tokenizer.size < 9000
    assert any(f"supports {tokenizer.size:,} pieces, not 9,000" in line for line in notes.said)


def test_a_vocabulary_too_small_for_the_characters_leaves_the_rarest_to_bytes():
    many = [(source + " " + chr(0x4E00 + i % 100), target) for i, (source, target) in enumerate(PAIRS)]
    notes = Notes()
    tokenizer = learn(many, notes, kind="bpe", vocabulary=330).source
    assert tokenizer.size == 330
    assert "330 pieces cannot hold every character" in notes.warned[0]
    assert tokenizer.decode(tokenizer.encode(many[57][0])) == many[57][0]


@pytest.mark.parametrize("settings_", [{"vocabulary": 20, "byte_fallback": False}, {"vocabulary": 262}])
def test_a_vocabulary_too_small_for_anything_is_refused_with_the_remedy(settings_):
    with pytest.raises(
        ConfigError,
        match=rf"tokenizer.vocabulary \({settings_['vocabulary']}\) is too small .* need \d+ pieces; set it to \d+",
    ):
        learn(kind="bpe", **settings_)
    with pytest.raises(ConfigError, match=r"tokenizer.vocabulary \(5\) leaves no room for words"):
        learn(kind="words", vocabulary=5)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "words", "characters"])
@pytest.mark.parametrize("pairs", [[], [("", "")]])
def test_no_text_is_refused(kind, pairs):
    with pytest.raises(CorpusError, match=f"the corpus holds {len(pairs)} pairs and not one character"):
        learn(pairs, kind=kind)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "words", "characters"])
@pytest.mark.parametrize("pairs", [[("a", "b")], [("a a a", "a")], [("\t", " ")], [("日", "x y")]])
def test_the_smallest_corpora_can_be_learned(kind, pairs):
    tokenizer = learn(pairs, kind=kind).source
    assert tokenizer.decode(tokenizer.encode(pairs[0][0])) == pairs[0][0]


def test_a_large_corpus_is_sampled_evenly_and_says_so(monkeypatch):
    monkeypatch.setattr(module, "SAMPLED_LINES", 100)
    numbered = [(f"w{i}", f"v{i}") for i in range(1000)]
    notes = Notes()
    symbols = learn(numbered, notes, kind="words", vocabulary=500).source.symbols
    places = sorted(int(symbol[1:]) for symbol in symbols if symbol.startswith("w"))
    assert len(places) == 50 and set(np.diff(places)) == {20}
    assert "learned from 100 lines, evenly taken from 2,000," in notes.said[0]


def test_words_beyond_a_thousand_must_be_met_twice():
    pairs = [(f"once{i}", f"twice{i % 700}") for i in range(1400)]
    symbols = learn(pairs, kind="words").source.symbols
    assert sum(word.startswith("twice") for word in symbols) == 700
    assert sum(word.startswith("once") for word in symbols) == 300
    assert learn(pairs, kind="words", vocabulary=15).source.size == 15


# --- on disk ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", ["unigram", "bpe", "characters", "words"])
def test_saved_and_loaded_it_is_the_same(tmp_path: Path, kind, joint):
    tokenizers = learn(kind=kind, joint=joint)
    tokenizers.save(tmp_path / "tokenizer")
    again = Tokenizers.load(tmp_path / "tokenizer", expected=tokenizers.sha256)
    assert again.sha256 == tokenizers.sha256
    assert (again.joint, again.source.kind, again.source.size, again.target.size) == (
        joint,
        kind,
        tokenizers.source.size,
        tokenizers.target.size,
    )
    for source, target in PAIRS[:20]:
        assert again.encode_source(source) == tokenizers.encode_source(source)
        assert again.encode_target(target) == tokenizers.encode_target(target)
    assert json.loads((tmp_path / "tokenizer" / "tokenizer.json").read_text())["normalisation"] == "nfc"


def test_another_tokenizer_than_expected_is_refused_with_both_hashes(tmp_path: Path):
    mine, other = SUBWORDS["bpe"], SUBWORDS["unigram"]
    mine.save(tmp_path)
    with pytest.raises(RunError, match=rf"{mine.sha256[:12]}.*{other.sha256[:12]}"):
        Tokenizers.load(tmp_path, expected=other.sha256)


def test_every_changed_byte_is_noticed(tmp_path: Path):
    tokenizers = SYMBOLS["words"]
    tokenizers.save(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("joint.json", "tokenizer.json"):
        good = (tmp_path / name).read_bytes()
        for place in rng.integers(0, len(good), 40):
            (tmp_path / name).write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            with pytest.raises(RunError):
                Tokenizers.load(tmp_path, expected=tokenizers.sha256)
        (tmp_path / name).write_bytes(good)
    Tokenizers.load(tmp_path, expected=tokenizers.sha256)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "cannot read .*tokenizer.json: No such file"),
        (lambda folder: (folder / "joint.model").unlink(), "cannot read .*joint.model: No such file"),
        (lambda folder: (folder / "joint.model").write_bytes(b"x"), "joint.model has changed since it was written"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "is not a tokenizer description"),
        (lambda folder: (folder / "tokenizer.json").write_text("[]"), "is not a tokenizer description"),
        (lambda folder: edit(folder, format=2), "has format 2, this version of kente reads format 1"),
        (lambda folder: edit(folder, kind="syllables"), "kind 'syllables'"),
        (lambda folder: edit(folder, kind="wordpiece"), "joint.model is not a file of a wordpiece tokenizer"),
        (lambda folder: edit(folder, files={"../joint.model": ""}), r"\.\./joint.model"),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path: Path, change, message):
    SUBWORDS["bpe"].save(tmp_path)
    change(tmp_path)
    with pytest.raises(RunError, match=message):
        Tokenizers.load(tmp_path)


def edit(folder: Path, **changes) -> None:
    about = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(about | changes))
