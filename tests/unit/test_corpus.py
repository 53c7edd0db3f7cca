"""Reading parallel text: what is written is what is read, and nothing but a newline ends a line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.data import corpus as corpus_module
from kente.data.corpus import Corpus, Pair, count_lines, read_lines, shorten
from kente.errors import CorpusError

_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=40)


@given(st.lists(_TEXT, max_size=20), st.booleans(), st.booleans(), st.booleans())
def test_reading_gives_the_lines_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], zipped: bool, bom: bool, windows: bool
) -> None:
    lines = [line.removesuffix("\r") for line in lines]
    if lines:
        lines[0] = lines[0].lstrip("\ufeff")
    end = "\r\n" if windows else "\n"
    data = ("\ufeff" if bom else "").encode() + "".join(line + end for line in lines).encode()
    if _looks_foreign(data):
        return
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes(gzip.compress(data) if zipped else data)
    assert list(read_lines(path)) == lines
    assert count_lines(path) == len(lines)


def _looks_foreign(data: bytes) -> bool:
    """Half zeros (UTF-16) or another format's first bytes: refused on purpose, see the faults."""
    return data.count(0) >= 3 or data.startswith((b"BZh", b"PK\x03\x04", b"%PDF-"))


@given(st.lists(_TEXT, min_size=1, max_size=60), st.integers(1, 7))
def test_blocks_of_any_size_give_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block: int
) -> None:
    data = "\n".join(lines).encode()
    if _looks_foreign(data) or lines[0].startswith("\ufeff"):
        return
    path = tmp_path_factory.mktemp("blocks") / "text"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_module, "_BLOCK", block * 16)
        expected = [line.removesuffix("\r") for line in lines]
        assert list(read_lines(path)) == (expected if lines[-1] else expected[:-1])


def _files(folder: Path, source: str, target: str) -> tuple[Path, Path]:
    (folder / "a.en").write_text(source, encoding="utf-8", newline="")
    (folder / "a.tw").write_text(target, encoding="utf-8", newline="")
    return folder / "a.en", folder / "a.tw"


def test_two_files_are_read_again_and_again(tmp_path: Path) -> None:
    corpus = Corpus.of_files(*_files(tmp_path, "one\ntwo\n", "baako\nmmienu"))
    expected = [Pair("one", "baako", 1), Pair("two", "mmienu", 2)]
    assert list(corpus) == expected == list(corpus)
    assert corpus.count() == 2
    assert corpus.files == (tmp_path / "a.en", tmp_path / "a.tw")


def test_an_empty_corpus_has_no_pairs(tmp_path: Path) -> None:
    assert list(Corpus.of_files(*_files(tmp_path, "", ""))) == []


def test_sides_of_different_length_are_refused_before_the_first_pair(tmp_path: Path) -> None:
    source, target = _files(tmp_path, "one\ntwo\nthree\n", "baako\nmmienu\n")
    with pytest.raises(CorpusError, match=r"a\.en has 3 lines but .*a\.tw has 2; the texts are too short"):
        next(iter(Corpus.of_files(source, target)))


def test_a_file_that_changes_is_counted_again(tmp_path: Path) -> None:
    source, target = _files(tmp_path, "one\n", "baako\n")
    corpus = Corpus.of_files(source, target)
    assert len(list(corpus)) == 1
    source.write_text("one\ntwo\n")
    with pytest.raises(CorpusError, match="has 2 lines but"):
        list(corpus)


def test_a_file_cut_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    lines = "".join(f"line {n}\n" for n in range(200_000))
    source, target = _files(tmp_path, lines, lines)
    pairs = iter(Corpus.of_files(source, target))
    next(pairs)
    source.write_text("gone\n")
    with pytest.raises(CorpusError, match="changed while being read"):
        list(pairs)


def test_tsv_takes_the_first_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("one\tbaako\tCC BY\n\ntwo\tmmienu\n")
    assert list(Corpus.of_pairs(path)) == [Pair("one", "baako", 1), Pair("", "", 2), Pair("two", "mmienu", 3)]


def test_tsv_columns_by_number_and_by_name(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress(b"id\ten\ttw\n7\tone\tbaako\n"))
    assert list(Corpus.of_pairs(path, ("3", "2")))[1] == Pair("baako", "one", 2)
    assert list(Corpus.of_pairs(path, ("en", "tw"))) == [Pair("one", "baako", 2)]


def test_jsonl_keys_also_inside_objects(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"source": "one", "target": "baako"}\n')
    assert list(Corpus.of_pairs(path)) == [Pair("one", "baako", 1)]
    path.write_text('{"translation": {"en": "one", "tw": "baako"}}\n')
    assert list(Corpus.of_pairs(path, ("translation.en", "translation.tw"))) == [Pair("one", "baako", 1)]


def test_a_file_whose_name_does_not_tell_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text('\n{"source": "one", "target": "baako"}\n')
    assert list(Corpus.of_pairs(path)) == [Pair("", "", 1), Pair("one", "baako", 2)]
    path.write_text("one\tbaako\n")
    assert list(Corpus.of_pairs(path)) == [Pair("one", "baako", 1)]


_CELL = st.text(st.characters(codec="utf-8", exclude_characters="\n\t\r\ufeff\0"), min_size=1, max_size=30).filter(
    str.strip
)


@given(st.lists(st.tuples(_CELL, _CELL), min_size=1, max_size=10))
def test_tsv_and_jsonl_round_trip(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "a.tsv").write_text("".join(f"{one}\t{two}\n" for one, two in pairs), encoding="utf-8", newline="")
    rows = [json.dumps({"source": one, "target": two}, ensure_ascii=len(one) % 2 == 0) for one, two in pairs]
    (folder / "a.jsonl").write_text("\n".join(rows), encoding="utf-8", newline="")
    if not any(one.startswith(("BZh", "%PDF-")) for one, _ in pairs):
        assert [(pair.source, pair.target) for pair in Corpus.of_pairs(folder / "a.tsv")] == pairs
    assert [(pair.source, pair.target) for pair in Corpus.of_pairs(folder / "a.jsonl")] == pairs


def test_a_corpus_in_memory_passes_through_stages() -> None:
    corpus = Corpus.of_memory([("one", "baako"), ("two", "mmienu")], "numbers")
    assert corpus.count() == 2
    second = corpus.through(lambda pairs: (pair for pair in pairs if pair.line == 2), "the second")
    assert list(second) == list(second) == [Pair("two", "mmienu", 2)]
    assert (second.name, second.count()) == ("the second", 1)
    assert "numbers" in repr(corpus)


def test_shortened_text_is_safe_to_print() -> None:
    assert shorten("a\x1b[31m\x00", 60) == "a\\u001b[31m\\u0000"
    assert shorten("x" * 100, 10) == "x" * 9 + "…"
