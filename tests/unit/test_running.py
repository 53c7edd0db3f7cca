"""Running text as files hold it: very long lines in parts, and where the part begins that is held out."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.config import TokenizerConfig
from kente.data import corpus as corpus_module
from kente.data import running as running_module
from kente.data import texts as texts_module
from kente.data.byte_level import ByteLevel, byte_letters
from kente.data.corpus import MAX_LINE_BYTES, read_lines
from kente.data.running import read_parts
from kente.data.texts import Texts, TextStore
from kente.data.tokenizer import Tokenizers, train_tokenizer
from kente.errors import CorpusError


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


# --- what is held out ---


@pytest.mark.parametrize("lines", [["word " * 1000 + "end"], ["a title", "word " * 1000 + "end"], ["x" * 5000]])
def test_a_tenth_of_a_long_line_is_held_out(tmp_path, lines):
    train, held_out = Texts((write(tmp_path / "a.txt", lines),)).hold_out()
    first, (last,) = list(train), list(held_out)
    blank = " " if "word" in lines[-1] else ""
    assert "\n".join(line.text for line in first) + blank + last.text == "\n".join(lines)
    assert len(last) == pytest.approx(0.1 * len(lines[-1]), abs=12) and last.begins and not first[-1].ends
    assert not last.text.startswith(" ")
    kept = Texts((tmp_path / "a.txt",), "lines").hold_out()[1]
    assert len(lines) > 1 or not list(kept)  # a line that is a document stays whole


def test_where_the_held_out_part_begins_is_found_once_and_holds_nothing(tmp_path, monkeypatch):
    path, read = write(tmp_path / "a.txt", ["a line"] * 30_000), []
    parts = texts_module.read_parts
    monkeypatch.setattr(texts_module, "read_parts", lambda path: read.append(path) or parts(path))
    train, held_out = Texts((path,)).hold_out()
    for _ in range(2):
        assert (len(list(train)), len(list(held_out))) == (27_000, 3000)
    assert len(read) == 2 + 4  # for its length and for the place; then once each time
    monkeypatch.setattr(corpus_module, "_BLOCK", 4096)
    tracemalloc.start()
    train._cut(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 300_000  # ten bytes a line


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=40), documents=st.sampled_from(["files", "paragraphs"])
)
def test_the_cut_is_the_one_nearest_to_a_tenth(tmp_path_factory, lengths, documents):
    path = write(tmp_path_factory.mktemp("cut") / "a.txt", ["x" * length for length in lengths])
    texts = Texts((path,), documents)
    lines = list(texts)
    held = {n: sum(map(len, lines[n:])) for n in range(1, len(lines)) if documents == "files" or lines[n].begins}
    wanted = 0.1 * sum(map(len, lines))
    nearest = min(held, key=lambda n: (abs(held[n] - wanted), -n), default=None)
    assert texts._cut(path) == (None if nearest is None else (nearest, 0))


# --- very long lines ---


@given(text=st.text(alphabet="ab é\n\r日", max_size=80), block=st.integers(1, 9), longest=st.integers(4, 12))
def test_parts_of_lines_are_the_text_and_none_is_longer_than_asked(tmp_path_factory, text, block, longest):
    path = tmp_path_factory.mktemp("parts") / "a.txt"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_BLOCK", block * 4)
        patch.setattr(running_module, "LONGEST_PART", longest)
        parts = list(read_parts(path))
    whole = "".join(part.text + "\n" * part.ends for part in parts)
    assert whole.split("\n")[:-1] == list(read_lines(path))
    assert all(len(part.text.encode()) <= longest for part in parts)


def test_a_byte_that_is_no_text_is_named_by_line_and_place_in_parts_too(tmp_path, monkeypatch):
    monkeypatch.setattr(running_module, "LONGEST_PART", 8)
    (tmp_path / "a.txt").write_bytes(b"one\nabcdef ghijkl\xff\n")
    with pytest.raises(CorpusError, match=r"a\.txt:2: not UTF-8 \(byte 0xff, byte 14 of the line\)"):
        list(read_parts(tmp_path / "a.txt"))


@pytest.mark.parametrize("kind", ["characters", "words", "unigram", "byte-level"])
def test_a_line_read_in_parts_has_the_ids_of_the_whole_line(tmp_path, monkeypatch, kind):
    lines = ["the cat sat on  the mat and the dog ran", "", "  far away ", "the end"]
    if kind == "byte-level":
        letters = {letter: number for number, letter in enumerate(byte_letters().values())}
        side = ByteLevel.from_files(json.dumps({**letters, "th": 256, "Ġc": 257}), "t h\nĠ c\n")
    else:
        side = train_tokenizer(lambda: iter(lines * 20), TokenizerConfig(kind=kind, vocabulary=300)).target
    tokenizers = Tokenizers(side, side, joint=True)
    texts = Texts((write(tmp_path / "a.txt", lines),))
    whole = TextStore.build(tmp_path / "whole", texts, tokenizers)
    monkeypatch.setattr(running_module, "LONGEST_PART", 12)
    monkeypatch.setattr(texts_module, "CHUNK_CHARACTERS", 20)
    parts = TextStore.build(tmp_path / "parts", texts, tokenizers)
    assert len(list(texts)) > len(lines)
    assert parts.ids.tolist() == whole.ids.tolist() and parts.meta == whole.meta


def test_a_line_longer_than_any_sentence_is_running_text_all_the_same(tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("word " * (MAX_LINE_BYTES // 5 + 1))
    train, held_out = Texts((path,)).hold_out()
    kept, held = (sum(map(len, part)) for part in (train, held_out))
    assert held / (kept + held) == pytest.approx(0.1, abs=0.01)
