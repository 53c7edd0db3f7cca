"""The "bad corpora" row of the fault matrix: accepted with counts per reason, or refused with file:line; never a traceback, never a misaligned pair."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kente.config import CleaningConfig
from kente.data.cleaning import Cleaner
from kente.data.corpus import MAX_LINE_BYTES, Corpus, read_lines
from kente.data.doctor import examine
from kente.errors import CorpusError

pytestmark = pytest.mark.timeout(60)
_GOOD = b"".join(f"good line number {n}\n".encode() for n in range(1, 10))
_GOOD_TARGET = b"".join(f"la ligne {n} est bonne\n".encode() for n in range(1, 10))
_STACKED = "e" + "\u0301\u0323" * 500
_OTHER = b"une autre ligne que voici"

# the second line of ten, what the other side says there, and what becomes of the pair: kept (None) or the reason
ACCEPTED = {
    "a BOM in the middle": ("\ufeffa line after a mark".encode(), _OTHER, None),
    "CRLF": (b"a line from Windows\r", _OTHER + b"\r", None),
    "lone CR": (b"a line with a\rreturn inside", _OTHER, "control characters"),
    "U+2028": ("a line\u2028in two".encode(), _OTHER, "control characters"),
    "U+2029": ("a line\u2029in two".encode(), _OTHER, "control characters"),
    "U+0085": ("a line\u0085in two".encode(), _OTHER, "control characters"),
    "VT": (b"a line\x0bin two", _OTHER, "control characters"),
    "FF": (b"a line\x0cin two", _OTHER, "control characters"),
    "FS": (b"a line\x1cin two", _OTHER, "control characters"),
    "NUL": (b"a line\x00with a zero", _OTHER, "control characters"),
    "tab": (b"a line\twith a tab", _OTHER, None),
    "zero-width characters": ("a li\u200bne with joi\u200dners".encode(), _OTHER, None),
    "direction marks": ("\u202ba line turned around\u202c".encode(), _OTHER, None),
    "only zero-width characters": ("\u200b\u200d \ufeff\u2060".encode(), _OTHER, "empty"),
    "NFD": (unicodedata.normalize("NFD", "un été à l'école").encode(), _OTHER, None),
    "a thousand stacked marks": (_STACKED.encode(), _OTHER, "length ratio"),
    "NBSP only": ("\u00a0\u00a0\u3000".encode(), _OTHER, "empty"),
    "empty source": (b"", _OTHER, "empty"),
    "empty target": (_OTHER, b"", "empty"),
    "spaces": (b" \t ", _OTHER, "empty"),
    "a million characters": (b"x" * 1_000_000, _OTHER, "too long"),
    "a million stacked marks": (("e" + "\u0301\u0323" * 500_000).encode(), _OTHER, "too long"),
    "a million words": (b"x " * 500_000, _OTHER, "too long"),
    "identical sides": (_OTHER, _OTHER, "identical"),
    "another script": ("совсем другая строка здесь".encode(), _OTHER, "wrong script"),
    "a duplicate": (b"good line number 1", b"la ligne 1 est bonne", "duplicate"),
}


def _corpus(folder: Path, source: bytes, target: bytes) -> Corpus:
    lines = [side.split(b"\n")[:-1] for side in (_GOOD, _GOOD_TARGET)]
    for side, line in zip(lines, (source, target), strict=True):
        side.insert(1, line)
    (folder / "bad.en").write_bytes(b"\n".join(lines[0]) + b"\n")
    (folder / "bad.fr").write_bytes(b"\n".join(lines[1]) + b"\n")
    return Corpus.of_files(folder / "bad.en", folder / "bad.fr")


@pytest.mark.parametrize("fault", ACCEPTED)
def test_faults_of_content_are_counted_and_move_no_other_line(tmp_path: Path, fault: str) -> None:
    source, target, reason = ACCEPTED[fault]
    corpus = _corpus(tmp_path, source, target)
    cleaner = Cleaner(CleaningConfig())
    kept = list(cleaner.clean(corpus))
    numbers = [(pair.source.split()[-1], pair.target.split()[2]) for pair in kept if pair.source.startswith("good")]
    assert numbers == [(n, n) for n in "123456789"]
    if reason is None:
        assert (cleaner.report.kept, cleaner.report.dropped) == (10, {})
        assert kept[1].source.encode() == source.removesuffix(b"\r")
    else:
        assert cleaner.report.dropped == {reason: 1}
        example = cleaner.report.examples[reason][0]
        assert example.line == 2
        assert len(example.source) <= 400 and example.source.isprintable()
    report = examine(corpus)  # the doctor says something about each of them
    assert report.pairs == 10
    assert all(line.isprintable() for line in report.lines())


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("zero-width characters", "characters of no width"),
        ("direction marks", "direction marks"),
        ("a BOM in the middle", "characters of no width"),
        ("NFD", "not in NFC"),
    ],
)
def test_the_doctor_names_odd_characters(tmp_path: Path, kind: str, seen: str) -> None:
    source, target, _ = ACCEPTED[kind]
    lines = "\n".join(examine(_corpus(tmp_path, source, target)).lines())
    assert seen in lines and "line 2" in lines


_UTF16 = "good line\nof text\n"
REFUSED = {
    "UTF-16 with a mark": (
        _UTF16.encode("utf-16"),
        r"bad\.en:1: UTF-16 or UTF-32 text, not UTF-8; convert it: iconv -f UTF-16",
    ),
    "UTF-16, little end": (_UTF16.encode("utf-16-le"), r"bad\.en:1: UTF-16"),
    "UTF-16, big end": (_UTF16.encode("utf-16-be"), r"bad\.en:1: UTF-16"),
    "UTF-32": (_UTF16.encode("utf-32"), r"bad\.en:1: UTF-16 or UTF-32"),
    "Latin-1": (b"one\nt\xe9l\xe9\n", r"bad\.en:2: not UTF-8 \(byte 0xe9, byte 2 of the line\).*iconv -f WINDOWS-1252"),
    "a surrogate": (b"one\ntwo\nx\xed\xa0\x80\n", r"bad\.en:3: not UTF-8 \(byte 0xed, byte 2"),
    "an overlong form": (b"\xc0\xaf\n", r"bad\.en:1: not UTF-8 \(byte 0xc0, byte 1"),
    "a cut character": (b"one\n\xe2\x82", r"bad\.en:2: not UTF-8"),
    "beyond Unicode": (b"\xf5\x80\x80\x80", r"bad\.en:1: not UTF-8"),
    "truncated gzip": (
        gzip.compress(os.urandom(5_000).hex().encode() + b"\n")[:-2_000],
        r"bad\.en:1: the gzip data is cut short",
    ),
    "gzip header only": (gzip.compress(b"x")[:10], r"bad\.en:1: the gzip data is cut short"),
    "damaged gzip": (gzip.compress(b"x\n" * 99)[:-8] + bytes(8), r"bad\.en:\d+: the gzip data is damaged"),
    "gzip then rubbish": (gzip.compress(b"x\n") + b"rubbish", r"bad\.en:\d+: the gzip data is damaged"),
    "a zip archive": (b"PK\x03\x04" + bytes(30), r"bad\.en is a zip archive \(or an office document\)"),
    "xz": (b"\xfd7zXZ\x00", r"bad\.en is compressed with xz"),
    "a line without end": (b"one\n" + b"x" * (MAX_LINE_BYTES + 1), r"bad\.en:2: a line of more than 10,000,000 bytes"),
    "one line short": (_GOOD[: _GOOD.rindex(b"good")], r"bad\.en has 8 lines but .*bad\.fr has 9"),
    "one line more": (_GOOD + b"more\n", r"bad\.en has 10 lines but .*bad\.fr has 9"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_faults_of_structure_are_refused_with_file_and_line(tmp_path: Path, fault: str) -> None:
    content, message = REFUSED[fault]
    (tmp_path / "bad.en").write_bytes(content)
    (tmp_path / "bad.fr").write_bytes(_GOOD_TARGET)
    with pytest.raises(CorpusError, match=message) as caught:
        list(Corpus.of_files(tmp_path / "bad.en", tmp_path / "bad.fr"))
    assert caught.value.__cause__ is None and caught.value.exit_code == 2


PAIRS_REFUSED = {
    "missing tab": (
        "a.tsv",
        b"one\tun\ntwo deux\n",
        None,
        r"a\.tsv:2: 1 column, but column 2 is wanted; columns are separated by tabs",
    ),
    "missing column": ("a.tsv", b"one\tun\n", ("1", "3"), r"a\.tsv:1: 2 columns, but column 3 is wanted"),
    "column zero": ("a.tsv", b"one\tun\n", ("0", "1"), r"columns are counted from 1"),
    "no such header": (
        "a.tsv",
        b"id\ten\tfr\n",
        ("en", "tw"),
        r"a\.tsv:1: no column called 'tw' in the header row.*3 columns: id, en, fr",
    ),
    "not JSON": ("a.jsonl", b'{"source": "a", "target": "b"}\n{"source"\n', None, r"a\.jsonl:2: not JSON"),
    "JSON too deep": ("a.jsonl", b"[" * 200_000, None, r"a\.jsonl:1: not JSON"),
    "a huge number": ("a.jsonl", b'{"source": ' + b"9" * 5_000 + b"}", None, r"a\.jsonl:1: not JSON"),
    "a list": ("a.jsonl", b'["a", "b"]\n', None, r"a\.jsonl:1: a JSON list; one object per line is wanted"),
    "missing key": (
        "a.jsonl",
        b'{"en": "a", "fr": {"x": "b"}}\n',
        None,
        r"a\.jsonl:1: no key 'source'; the keys here are en, fr\.x",
    ),
    "no keys": ("a.jsonl", b"{}\n", None, r"a\.jsonl:1: no key 'source'; the keys here are none"),
    "null": (
        "a.jsonl",
        b'{"source": null, "target": "b"}\n',
        None,
        r"a\.jsonl:1: 'source' is a JSON null; text is wanted",
    ),
    "a number": (
        "a.jsonl",
        b'{"source": "a", "target": 3}\n',
        None,
        r"a\.jsonl:1: 'target' is a JSON number; text is wanted",
    ),
    "half a character": (
        "a.jsonl",
        b'{"source": "\\ud83d", "target": "b"}\n',
        None,
        r"a\.jsonl:1: holds half of a character \(U\+D83D",
    ),
    "CSV": ("a.csv", b"one,un\n", None, r"a\.csv: CSV is not read"),
    "invalid UTF-8": ("a.tsv", b"one\tun\nt\xe9l\xe9\n", None, r"a\.tsv:2: not UTF-8"),
}


@pytest.mark.parametrize("fault", PAIRS_REFUSED)
def test_bad_rows_are_refused_with_file_and_line(tmp_path: Path, fault: str) -> None:
    name, content, fields, message = PAIRS_REFUSED[fault]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        list(Corpus.of_pairs(tmp_path / name, fields))


def test_newlines_inside_json_text_are_dropped_as_control_characters(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"source": "one\\ntwo", "target": "un deux"}\n')
    cleaner = Cleaner(CleaningConfig())
    assert list(cleaner.clean(Corpus.of_pairs(tmp_path / "a.jsonl"))) == []
    assert cleaner.report.dropped == {"control characters": 1}


def test_half_characters_in_memory_are_refused() -> None:
    with pytest.raises(CorpusError, match=r"mine:1: holds half of a character \(U\+DC80 alone\)"):
        list(Corpus.of_memory([("a", "\udc80")], "mine"))


def test_what_is_not_a_plain_file_is_refused_and_nothing_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "train.en").write_text("x\n")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path, message in [
        (tmp_path / "pipe", "is not a plain file .*read several times, so save it to a file first"),
        (Path("/dev/null"), "is not a plain file"),
        (Path("-"), "standard input cannot be a corpus"),
        (tmp_path, "is a folder; name a text file in it"),
        (tmp_path / "trian.en", r"there is no file .*trian\.en; did you mean .*train\.en\?"),
        (tmp_path / "nowhere" / "x.en", r"there is no file .*x\.en$"),
        (tmp_path / "loop", "cannot be opened"),
        (Path("a\0b"), "cannot be opened"),
        (tmp_path / ("x" * 300), "cannot be opened"),
    ]:
        with pytest.raises(CorpusError, match=message):
            list(read_lines(path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x\n")
    (tmp_path / "secret").chmod(0)
    with pytest.raises(CorpusError, match="secret cannot be opened"):
        list(read_lines(tmp_path / "secret"))


def test_a_gzip_bomb_stays_small_in_memory(tmp_path: Path) -> None:
    """A gigabyte without a newline, and 64 million empty lines, read in a process that may not take more than 400 MB."""
    (tmp_path / "line.gz").write_bytes(gzip.compress(b"x" * (16 << 20)) * 64)
    (tmp_path / "lines.gz").write_bytes(gzip.compress(b"\n" * (16 << 20)) * 4)
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
        "from kente.data.corpus import count_lines, read_lines\nfrom kente.errors import CorpusError\n"
        "print(count_lines(sys.argv[2]))\n"
        "try: list(read_lines(sys.argv[1]))\nexcept CorpusError as error: print(error)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "line.gz"), str(tmp_path / "lines.gz")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    counted, message, peak = done.stdout.splitlines()
    assert int(counted) == 64 << 20
    assert "line.gz:1: a line of more than 10,000,000 bytes" in message
    assert int(peak) < 150_000  # kilobytes


def test_pairs_inside_other_texts_are_reported(tmp_path: Path) -> None:
    train = _corpus(tmp_path, b"a sentence to be judged by", b"une phrase pour juger")
    test = Corpus.of_memory([("A  sentence to be JUDGED by", "autre chose"), ("something new", "du neuf")], "test")
    leak = next(finding for finding in examine(train, test=test).findings if finding.check == "leakage")
    assert leak.severity == "error" and leak.numbers["pairs"] == 1
    assert leak.examples == ("test line 1 is training line 2",)


@settings(max_examples=150)
@given(st.binary(max_size=300), st.sampled_from(["", ".gz", ".tsv", ".jsonl"]))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str) -> None:
    path = tmp_path_factory.mktemp("any") / f"bytes{suffix}"
    path.write_bytes(content)
    try:
        corpus = Corpus.of_files(path, path) if suffix in ("", ".gz") else Corpus.of_pairs(path)
        pairs = list(corpus)
        report = examine(corpus)
    except CorpusError as error:
        assert str(path.name) in str(error)
    else:
        assert report.pairs == len(pairs)
        cleaner = Cleaner(CleaningConfig())
        assert len(list(cleaner.clean(pairs))) + sum(cleaner.report.dropped.values()) == len(pairs)
