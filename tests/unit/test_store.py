"""Ids on disk: what goes in comes out, whole or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.config import TokenizerConfig
from kente.data import store as module
from kente.data.pieces import Symbols
from kente.data.store import Store, together
from kente.data.tokenizer import Tokenizers, train_tokenizers
from kente.data.toys import toy
from kente.errors import CorpusError, RunError
from kente.reporting import Reporter

PAIRS = toy("reverse", 500, seed=1, min_length=1, max_length=9)
CHARACTERS = train_tokenizers(lambda: iter(PAIRS), TokenizerConfig(kind="characters"))
WORDS = train_tokenizers(lambda: iter(PAIRS), TokenizerConfig(kind="words", joint=False))


def content(store: Store) -> list[tuple[list[int], list[int]]]:
    return [(store.source(row).tolist(), store.target(row).tolist()) for row in range(len(store))]


@pytest.mark.parametrize("tokenizers", [CHARACTERS, WORDS])
def test_ids_come_back_in_order(tmp_path: Path, tokenizers: Tokenizers, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 64)
    store = Store.build(tmp_path / "train", iter(PAIRS), tokenizers, max_length=100)
    wanted = [(tokenizers.encode_source(source), tokenizers.encode_target(target)) for source, target in PAIRS]
    assert content(store) == wanted == content(Store.open(tmp_path / "train", tokenizers.sha256))
    assert store.source_lengths.tolist() == [len(source) for source, _ in wanted]
    assert store.target_lengths.tolist() == [len(target) for _, target in wanted]
    assert not store.has_text
    with pytest.raises(RunError, match="this store holds no text"):
        store.sides[0].sentence(0)


def test_several_stores_are_read_as_one(tmp_path: Path):
    parts = [PAIRS[:100], PAIRS[100:130], PAIRS[130:300]]
    stores = [Store.build(tmp_path / str(n), iter(part), CHARACTERS, max_length=100) for n, part in enumerate(parts)]
    assert content(together(stores)) == [pair for store in stores for pair in content(store)]
    assert together(stores[:1]) is stores[0]


@given(texts=st.lists(st.tuples(st.text("ab é日\n"), st.text("ab é日\n")), min_size=1, max_size=30))
def test_text_is_kept_normalised_for_the_rows_kept(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("store")
    pairs = [*texts, ("a b", "b a")]
    store = Store.build(folder / "s", iter(pairs), CHARACTERS, max_length=12, text=True)
    kept = [(s, t) for s, t in pairs if s and t and len(s) < 12 and len(t) < 12]
    assert [(store.sides[0].sentence(row), store.sides[1].sentence(row)) for row in range(len(store))] == kept
    assert sum(store.dropped.values()) + len(store) == len(pairs)


def test_what_is_left_out_is_counted_by_reason(tmp_path: Path):
    pairs = [("a b", "b a"), ("", "a"), ("a", ""), ("a " * 5, "a"), ("a", "a " * 5), ("a b c d", "a")]
    store = Store.build(tmp_path / "s", pairs, WORDS, max_length=5)
    assert store.dropped == {"too long": 2, "empty": 2}
    assert len(store) == 2, "four words and the end of the sentence are five"
    assert json.loads((tmp_path / "s" / "meta.json").read_text())["dropped"] == store.dropped


@pytest.mark.parametrize(
    ("pairs", "message"),
    [([], "0 read, there were none"), ([("", "a"), ("a " * 9, "b")], "2 read, 1 too long, 1 empty")],
)
def test_a_store_of_nothing_is_refused_and_leaves_nothing(tmp_path: Path, pairs, message):
    with pytest.raises(CorpusError, match=rf"no pairs to train on: {message} \(batches.max_length is 5\)"):
        Store.build(tmp_path / "s", pairs, WORDS, max_length=5)
    assert list(tmp_path.iterdir()) == []


def test_large_vocabularies_take_wider_numbers(tmp_path: Path):
    for count, kind in ((65_532, np.uint16), (65_533, np.uint32)):
        side = Symbols("words", [str(i) for i in range(count)], "none")
        store = Store.build(tmp_path / "s", [("0", str(count - 1))], Tokenizers(side, side, True), max_length=9)
        assert store.sides[0].ids.dtype == kind
        assert store.target(0).tolist() == [count + 3]


def test_ids_of_another_tokenizer_are_refused(tmp_path: Path):
    Store.build(tmp_path / "s", PAIRS, CHARACTERS, max_length=100)
    with pytest.raises(RunError, match=f"made with tokenizer {CHARACTERS.sha256[:12]}, not with {WORDS.sha256[:12]}"):
        Store.open(tmp_path / "s", WORDS.sha256)


def test_the_config_it_was_made_with_is_remembered(tmp_path: Path):
    assert Store.build(tmp_path / "s", PAIRS, WORDS, max_length=100, config_sha256="abc").meta["config_sha256"] == "abc"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "meta.json").unlink(), "holds no prepared corpus"),
        (lambda folder: (folder / "meta.json").write_text("{}"), "cannot be read: KeyError"),
        (lambda folder: (folder / "target.ids").unlink(), "cannot read .*target.ids: No such file"),
        (lambda folder: os.truncate(folder / "source.ids", 10), r"source.ids has 10 bytes instead of \d"),
        (lambda folder: os.truncate(folder / "source.offsets", 16), "source.offsets has 16 bytes instead of 4,008"),
        (
            lambda folder: (folder / "meta.json").write_text(
                json.dumps({"format": 9, "tokenizer_sha256": "", "pairs": 1})
            ),
            "has format 9",
        ),
    ],
)
def test_a_damaged_store_is_refused(tmp_path: Path, change, message):
    Store.build(tmp_path / "s", PAIRS, CHARACTERS, max_length=100)
    change(tmp_path / "s")
    with pytest.raises(RunError, match=message):
        Store.open(tmp_path / "s")


def test_an_error_half_way_leaves_the_old_store(tmp_path: Path):
    old = content(Store.build(tmp_path / "s", PAIRS[:10], WORDS, max_length=100))

    def breaks():
        yield from PAIRS[:5]
        raise CorpusError("line 6 is not UTF-8")

    with pytest.raises(CorpusError, match="line 6"):
        Store.build(tmp_path / "s", breaks(), WORDS, max_length=100)
    assert content(Store.open(tmp_path / "s")) == old
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_killed_half_way_there_is_no_store_and_the_next_build_cleans_up(tmp_path: Path):
    program = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from kente.data import store
        from kente.data.pieces import Symbols
        from kente.data.tokenizer import Tokenizers
        store.CHUNK = 2
        side = Symbols("words", ["a", "b"], "none")
        def pairs():
            for _ in range(9): yield "a b", "b"
            print("half way", flush=True)
            time.sleep(60)
        store.Store.build(Path(sys.argv[1]), pairs(), Tokenizers(side, side, True), max_length=9)
    """)
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "s")], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"half way\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert [path.name for path in tmp_path.iterdir()] == ["s.unfinished"]
    with pytest.raises(RunError, match="holds no prepared corpus"):
        Store.open(tmp_path / "s")
    Store.build(tmp_path / "s", PAIRS, WORDS, max_length=100)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path):
    side = Symbols("words", list("abcdefgh"), "none")
    peaks = []
    for count in (10_000, 40_000):
        pairs = (("a b c d e f g h", "h g f e d c b a") for _ in range(count))
        tracemalloc.start()
        Store.build(tmp_path / "s", pairs, Tokenizers(side, side, True), max_length=20)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0] + 500_000, "only the lengths, 8 bytes a pair, may grow"


def test_progress_is_reported(tmp_path: Path):
    seen = []

    class Watcher(Reporter):
        def progress(self, label, done, total=None, detail=""):
            seen.append((label, done))

    Store.build(tmp_path / "s", PAIRS, WORDS, max_length=100, reporter=Watcher())
    assert seen[-1] == ("encoding", len(PAIRS))
