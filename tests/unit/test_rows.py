"""Labelled texts, pairs and running text as what is trained on: read, stored, and drawn the same way every time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from kente.config import BatchConfig, SkipGramConfig, TokenizerConfig
from kente.data.framing import Framing
from kente.data.labelled import classes_of, groups_of, labelled, numbered, scored_pairs, usable
from kente.data.rows import RowBatches, RowStore, validation_rows
from kente.data.skip_grams import SkipGrams, keep_chances
from kente.data.texts import Line, TextStore
from kente.data.tokenizer import BOS, EOS, PAD, SPECIALS, train_tokenizer
from kente.errors import CorpusError, RunError
from kente.reporting import Reporter
from kente.train.prepare_rows import _held_out, read_labelled

TEXTS = ["a b", "b", "c a b c", "a", "c c c", "b a", "c", "a a a a a"]


@pytest.fixture(scope="module")
def tokenizers():
    return train_tokenizer(lambda: iter(TEXTS), TokenizerConfig(kind="words"))


@pytest.fixture
def framing(tokenizers):
    return Framing(tokenizers.source, begins=True, longest=6)


def store(folder: Path, framing: Framing, sides: int = 1) -> RowStore:
    rows = [((text, *[text[::-1]] * (sides - 1)), number % 3) for number, text in enumerate(TEXTS)]
    return RowStore.build(folder, rows, framing.frame_many, "abc", sides=sides)


# ---- reading ----------------------------------------------------------------------------------------------------------------


def test_labelled_texts_are_read_by_column_or_key_and_what_lacks_a_part_is_counted(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("LOC\tcity\tWhere is Accra ?\n\tx\tno label\nHUM\tx\t \n\nNUM\tdist\tHow far ?\n")
    texts = usable(labelled(path, ("1", "3")), "texts.tsv")
    assert texts.texts == ("Where is Accra ?", "How far ?") and texts.labels == ("LOC", "NUM")
    assert texts.dropped == {"no text": 2, "no label": 1}
    path = tmp_path / "texts.jsonl"
    path.write_text('{"label": "1", "text": "good"}\n{"text": "bad", "label": "0"}\n')
    assert usable(labelled(path), "x").labels == ("1", "0")
    path.write_text('{"label": 1, "text": "good"}\n{"text": "bad", "label": -0.5}\n')
    assert usable(labelled(path), "x").labels == ("1", "-0.5")
    path.write_text('{"label": "1", "text": 7}\n')
    with pytest.raises(CorpusError, match="'text' is a JSON number; text is wanted"):
        usable(labelled(path), "x")
    path.write_text('{"label": "", "text": ""}\n')
    with pytest.raises(CorpusError, match="x holds no text with a label"):
        usable(labelled(path), "x")


def test_a_first_row_that_names_the_columns_is_no_text(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("Label\ttext\na\tone\nb\ttwo\n")
    found = usable(labelled(path), "x")
    assert found.labels == ("a", "b") and found.dropped == {"names of columns": 1}
    path.write_text("class\ta lesson\nobject\ta thing\nclass\tanother lesson\n")
    assert usable(labelled(path), "x").labels == ("class", "object", "class")


def test_every_file_may_begin_with_the_names_of_its_columns(tmp_path):
    files = []
    for number, heading in enumerate(("label", "Category", "label")):
        files.append(tmp_path / f"{number}.tsv")
        files[-1].write_text(f"{heading}\ttext\n" + "".join(f"{n % 2}\tfile {number} row {n}\n" for n in range(20)))
    warned = []

    class Ears(Reporter):
        def warn(self, text: str) -> None:
            warned.append(text)

    found = usable((pair for path in files for pair in labelled(path)), "x")
    assert set(found.labels) == {"0", "1"} and len(found) == 60 and found.dropped == {"names of columns": 3}
    found.say_dropped("x", Ears())
    assert warned == ["x: 3 rows left out: names of columns"]
    train, validation = read_labelled(files[:2], files[2:], None, 1, Ears())
    assert classes_of((*train.labels, *validation.labels), "x") == ["0", "1"]
    train, validation = read_labelled(files, [], None, 1, Ears())
    assert classes_of((*train.labels, *validation.labels), "x") == ["0", "1"]


def test_too_few_texts_to_hold_some_out_are_told_so(tmp_path):
    path = tmp_path / "few.tsv"
    path.write_text("a\tone\nb\ttwo\nb\tthree\n")
    with pytest.raises(
        CorpusError, match=r"few.tsv has 3 rows, too few to hold some out .* name a file with --validation"
    ):
        read_labelled([path], [], None, 1, Reporter())


@pytest.mark.parametrize(
    ("groups", "most"),
    [
        (list(range(1000)), 50),
        ([number // 10 for number in range(1000)], 50),
        ([0] * 9000 + list(range(1, 1001)), 500),
        ([0] * 60 + [1] * 40, 40),
    ],
)
def test_a_twentieth_of_the_rows_is_held_out_whatever_the_sizes_of_groups(groups, most):
    held_out = _held_out(groups)
    rows = sum(group in held_out for group in groups)
    assert 0 < rows <= most and rows >= most * 0.8


def test_texts_longer_than_the_encoder_reads_are_counted(tmp_path, tokenizers):
    class Ears(Reporter):
        warned: ClassVar[list[str]] = []

        def warn(self, text: str) -> None:
            self.warned.append(text)

    framing = Framing(tokenizers.source, begins=True, longest=5)
    framed = framing.frame_many(["a b c", "a b c a", "a a a a a a"])
    assert [len(ids) for ids in framed] == [5, 5, 5]
    framing.say_cut(3, Ears(), "do something")
    framing.say_cut(3, Ears(), "do something")  # said once
    (said,) = Ears.warned
    assert said.startswith("2 of 3 texts are longer than the 5 tokens") and said.endswith("do something")


def test_classes_come_in_the_order_people_expect():
    assert classes_of(["10", "9", "-1"], "x") == ["-1", "9", "10"]
    assert classes_of(["b", "a", "10"], "x") == ["10", "a", "b"]
    assert classes_of(["2", "--1", "10"], "x") == ["--1", "10", "2"]  # not all of them are numbers
    assert classes_of(["1", "0", "01", "001"], "x") == ["0", "001", "01", "1"]  # the same each time
    with pytest.raises(CorpusError, match="x has a single class, 'a'"):
        classes_of(["a", "a"], "x")


def test_a_class_that_training_does_not_know_is_named(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text("a\tone\nz\ttwo\n")
    with pytest.raises(CorpusError, match=r"test.tsv has a class 'z' that training does not know; it knows a, b"):
        list(numbered(usable(labelled(path), "x"), ["a", "b"], "test.tsv"))


def test_scored_pairs_are_three_columns(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("4.5\tone\tother\n0\tx\ty\n")
    assert scored_pairs(path) == [(4.5, "one", "other"), (0.0, "x", "y")]
    assert scored_pairs(path, ("1", "3", "2"))[0] == (4.5, "other", "one")
    path.write_text("3\ta\tb\n3\tx\ty\n")
    with pytest.raises(CorpusError, match="gives every pair the same score, 3: there is no order to agree with"):
        scored_pairs(path)
    json_lines = tmp_path / "pairs.ndjson"
    json_lines.write_text('{"score": 4.5, "one": "a", "other": "b"}\n{"score": "1", "one": "x", "other": "y"}\n')
    assert scored_pairs(json_lines) == [(4.5, "a", "b"), (1.0, "x", "y")]
    path.write_text("1\ta\tb\nmuch\tx\ty\n")
    with pytest.raises(CorpusError, match=r"pairs.tsv:2: 'much' is not a score"):
        scored_pairs(path)
    for endless in ("nan", "NaN", "inf", "-Infinity", "1e999"):
        path.write_text(f"1\ta\tb\n{endless}\tx\ty\n")
        with pytest.raises(CorpusError, match=rf"pairs.tsv:2: '{endless}' is not a score"):
            scored_pairs(path)


def test_pairs_that_share_a_text_are_of_one_group_even_through_others():
    pairs = [("a", "b"), ("c", "d"), ("e", "b"), ("f", "e"), ("g", "h"), ("d", "i")]
    assert groups_of(pairs) == [0, 1, 0, 0, 2, 1]
    assert groups_of([("a",), ("b",), ("a",)]) == [0, 1, 0]


# ---- rows -------------------------------------------------------------------------------------------------------------------


def test_a_text_is_framed_as_its_encoder_wants_it_and_cut_where_it_must(framing, tokenizers):
    a, b = tokenizers.source.encode("a b")
    assert framing.frame("a b") == [BOS, a, b, EOS]
    assert framing.frame_many(["a b", "a a a a a a"]) == [[BOS, a, b, EOS], [BOS, a, a, a, a, EOS]]
    assert Framing(tokenizers.source, begins=False, longest=3).frame("a b a") == [a, b, EOS]


def test_what_is_stored_comes_back_and_another_tokenizer_is_refused(tmp_path, framing):
    made = store(tmp_path / "rows", framing, sides=2)
    assert len(made) == len(TEXTS) and made.labels.tolist() == [n % 3 for n in range(len(TEXTS))]
    for place, text in enumerate(TEXTS):
        assert made.sides[0][place].tolist() == framing.frame(text)
        assert made.sides[1][place].tolist() == framing.frame(text[::-1])
    with pytest.raises(RunError, match="not with other"):
        RowStore.open(tmp_path / "rows", "other")
    with pytest.raises(CorpusError, match="no text to train on"):
        RowStore.build(tmp_path / "none", [], framing.frame_many, "abc")
    assert not (tmp_path / "none").exists()


def test_an_epoch_reads_every_row_once_and_the_step_alone_says_which(tmp_path, framing):
    made = store(tmp_path / "rows", framing)
    batches = RowBatches(made, BatchConfig(tokens=12, max_length=6), seed=5)
    epoch = [batches.batch(step) for step in range(len(batches))]
    assert sorted(row for batch in epoch for row in batch.rows) == list(range(len(TEXTS)))
    for batch in epoch:
        ids, mask = batch.sides[0]
        assert ids.numel() <= 12 and (ids[~mask] == PAD).all()
        assert [row[: int(m.sum())].tolist() for row, m in zip(ids, mask, strict=True)] == [
            framing.frame(TEXTS[row]) for row in batch.rows
        ]
        assert batch.labels.tolist() == [row % 3 for row in batch.rows]
    again = RowBatches(made, BatchConfig(tokens=12, max_length=6), seed=5)
    later = len(batches) + 1
    assert again.batch(later).rows.tolist() == batches.batch(later).rows.tolist()
    other = RowBatches(made, BatchConfig(tokens=12, max_length=6), seed=6)
    assert [other.batch(n).rows.tolist() for n in range(9)] != [batches.batch(n).rows.tolist() for n in range(9)]


def test_validation_reads_every_row_once_in_one_order(tmp_path, framing):
    made = store(tmp_path / "rows", framing, sides=2)
    first = [batch.rows.tolist() for batch in validation_rows(made, 20)]
    assert sorted(row for rows in first for row in rows) == list(range(len(TEXTS)))
    assert [batch.rows.tolist() for batch in validation_rows(made, 20)] == first


# ---- words and their neighbours ---------------------------------------------------------------------------------------------


@pytest.fixture
def text(tmp_path, tokenizers):
    rng = np.random.default_rng(1)
    lines = [" ".join(rng.choice(["a", "b", "c"], 9, p=[0.6, 0.3, 0.1])) for _ in range(200)]
    return TextStore.build(tmp_path / "text", [Line(line, not n) for n, line in enumerate(lines)], tokenizers)


def skip_grams(text: TextStore, tokenizers, **settings) -> SkipGrams:
    config = SkipGramConfig(**{"width": 4, "window": 2, "negatives": 3, "subsample": 0.0} | settings)
    return SkipGrams(text, tokenizers.target.size, config, BatchConfig(tokens=400, max_length=8), seed=1)


def test_neighbours_stand_within_the_window_and_are_words(text, tokenizers):
    pairs = skip_grams(text, tokenizers)
    batch = pairs.batch(0)
    ids = text.ids
    for word, near, place in zip(batch.words.tolist(), batch.others[:, 0].tolist(), batch.rows.tolist(), strict=True):
        around = [*ids[max(0, place - 2) : place], *ids[place + 1 : place + 3]]
        assert ids[place] == word and near in around
    assert batch.words.min() >= len(SPECIALS) and batch.others.min() >= len(SPECIALS)
    assert pairs.batch(0).others.tolist() == batch.others.tolist() != pairs.batch(1).others.tolist()


def test_a_window_ends_where_the_document_does(tmp_path, tokenizers):
    lines = [Line(line, True) for line in ("a a", "b b b", "c c") * 20]
    pairs = skip_grams(TextStore.build(tmp_path / "lines", lines, tokenizers), tokenizers, window=9)
    for batch in (pairs.batch(0), pairs.batch(1)):
        assert (batch.words == batch.others[:, 0]).all() and len(batch.words) > 50


def test_the_nearest_neighbours_are_drawn_most_often(text, tokenizers):
    """With a window of 2, those at distance 1 are always in it and those at distance 2 every other time."""
    pairs = skip_grams(text, tokenizers)
    places, reaches = np.arange(len(text)), np.random.default_rng(1).integers(1, 3, len(text))
    words, near = pairs._near(places, (pairs.kept > 0).astype(float), reaches, np.random.default_rng(2))
    distances = Counter(np.abs(words - near).tolist())
    assert set(distances) == {1, 2} and distances[2] / distances[1] == pytest.approx(0.5, abs=0.1)


def test_negatives_are_drawn_by_frequency_to_the_power_of_three_quarters(text, tokenizers):
    pairs = skip_grams(text, tokenizers, negatives=30)
    drawn = np.concatenate([pairs.batch(step).others[:, 1:].flatten().numpy() for step in range(4)])
    counts = np.bincount(text.ids, minlength=tokenizers.target.size).astype(float)
    counts[: len(SPECIALS)] = 0
    wanted = counts**0.75 / (counts**0.75).sum()
    assert np.abs(np.bincount(drawn, minlength=len(wanted)) / len(drawn) - wanted).max() < 0.01


def test_frequent_words_are_passed_over_by_word2vecs_formula(text, tokenizers):
    chances = keep_chances(np.array([0, 900, 90, 10]), 0.01)
    assert chances[0] == 0 and chances[3] == 1
    assert chances[1] == pytest.approx((0.01 / 0.9) ** 0.5 + 0.01 / 0.9)
    assert keep_chances(np.array([0, 5]), 0.0).tolist() == [0, 1]
    a = tokenizers.target.encode("a")[0]
    shares = []
    for threshold in (0.0, 0.02):
        pairs = skip_grams(text, tokenizers, subsample=threshold)
        words = np.concatenate([pairs.batch(step).words.numpy() for step in range(20)])
        shares.append((words == a).mean())
    often, seldom = shares
    assert seldom < often - 0.1


def test_a_batch_is_never_empty_and_a_text_without_neighbours_says_so(tmp_path, text, tokenizers):
    assert len(skip_grams(text, tokenizers, subsample=1e-12).batch(0).words) > 0
    lonely = TextStore.build(tmp_path / "lonely", [Line(word, True) for word in "abcabc"], tokenizers)
    with pytest.raises(CorpusError, match=r"model.window = 1 of each other"):
        skip_grams(lonely, tokenizers, window=1).batch(0)
    one = TextStore.build(tmp_path / "one", [Line("a a a", True)], tokenizers)
    with pytest.raises(CorpusError, match="fewer than two different words"):
        skip_grams(one, tokenizers)
