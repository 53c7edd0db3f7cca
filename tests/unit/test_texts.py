"""Running text: which part is trained on, how lines and documents become ids and come back, how blocks are cut from them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.config import BatchConfig, TextConfig, TokenizerConfig
from kente.data.blocks import LONGEST_WORD, Blocks, Masking, validation_blocks
from kente.data.byte_level import ByteLevel, byte_letters
from kente.data.texts import Texts, TextStore, decode_text, encode_text
from kente.data.tokenizer import BOS, EOS, PAD, UNK, Symbols, Tokenizers, train_tokenizer
from kente.errors import CorpusError, RunError

LINES = ["the cat sat", "on the mat", "", "a dog ran", "far away", "", "the end"]


def characters(text: str = "abcdefghijklmnopqrstuvwxyz .,") -> Tokenizers:
    side = Symbols("characters", sorted(set(text)), "nfc")
    return Tokenizers(side, side, joint=True)


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def store_of(tmp_path: Path, lines: list[str], documents="files", tokenizers: Tokenizers | None = None) -> TextStore:
    texts = Texts((write(tmp_path / "text.txt", lines),), documents)
    return TextStore.build(tmp_path / "store", texts, tokenizers or characters())


# --- documents ---


@pytest.mark.parametrize(
    ("documents", "begins"),
    [
        ("files", [True, False, False, False, False, False, False]),
        ("paragraphs", [True, False, True, False, True]),
        ("lines", [True] * 5),
    ],
)
def test_a_document_is_a_file_a_paragraph_or_a_line(tmp_path, documents, begins):
    texts = Texts((write(tmp_path / "a.txt", LINES),), documents)
    assert [line.begins for line in texts] == begins
    kept = LINES if documents == "files" else [line for line in LINES if line]
    assert [line.text for line in texts] == kept


@given(lengths=st.lists(st.integers(1, 30), min_size=2, max_size=40))
def test_the_last_tenth_of_each_file_is_held_out_and_nothing_is_lost(tmp_path_factory, lengths):
    folder = tmp_path_factory.mktemp("held")
    lines = ["x" * length for length in lengths]
    texts = Texts((write(folder / "a.txt", lines), write(folder / "b.txt", lines[::-1])))
    train, held_out = texts.hold_out()
    for part in (lines, lines[::-1]):
        one = Texts((write(folder / "one.txt", part),))
        first, last = ([line.text for line in side] for side in one.hold_out())
        assert first + last == part and first and last
        tenth = 0.1 * sum(len(line) + 1 for line in part)
        assert sum(len(line) + 1 for line in last[1:]) < tenth  # no more than what is needed
    assert len(list(train)) + len(list(held_out)) == len(list(texts))


def test_what_is_held_out_begins_with_a_document(tmp_path):
    lines = ["one", "two", "", *["three"] * 20, "", "four", "five"]
    train, held_out = Texts((write(tmp_path / "a.txt", lines),), "paragraphs").hold_out()
    assert [line.text for line in held_out] == ["four", "five"]
    assert next(iter(held_out)).begins and len(list(train)) + len(list(held_out)) == 24


def test_a_short_single_line_is_never_held_out(tmp_path):
    train, held_out = Texts((write(tmp_path / "a.txt", ["all in one line"]),)).hold_out()
    assert [line.text for line in train] == ["all in one line"] and not list(held_out)


# --- ids ---


def test_ids_are_lines_ended_by_eos_in_documents_begun_by_bos(tmp_path):
    tokenizers = characters()
    store = store_of(tmp_path, ["ab", "", "c"], "paragraphs", tokenizers)
    a, b, c = tokenizers.target.encode("abc")
    assert store.ids.tolist() == [BOS, a, b, EOS, BOS, c, EOS, BOS]
    assert store.offsets.tolist() == [0, 4, 7] and store.documents == 2 and store.characters == 5


def test_a_store_knows_its_tokenizer_and_whether_it_is_whole(tmp_path):
    store = store_of(tmp_path, LINES)
    assert TextStore.open(store.folder).ids.tolist() == store.ids.tolist()
    with pytest.raises(RunError, match="were made with tokenizer"):
        TextStore.open(store.folder, "0" * 64)
    (store.folder / "text.ids").write_bytes(b"")
    with pytest.raises(RunError, match="bytes instead of"):
        TextStore.open(store.folder)
    with pytest.raises(CorpusError, match="the text is empty"):
        store_of(tmp_path, [])


@given(text=st.text(alphabet="abc .,\n", max_size=60))
def test_running_text_comes_back_from_its_ids(text):
    tokenizer = characters().target
    assert decode_text(tokenizer, encode_text(tokenizer, text)) == text


def test_subwords_come_back_line_by_line(tmp_path):
    lines = ["der alte Mann sah das Meer", "das Meer sah den Mann", "und so fort"] * 40
    tokenizers = train_tokenizer(lambda: iter(lines), TokenizerConfig(vocabulary=320))
    text = "\n".join([*lines[:3], "", "das Meer"])
    assert tokenizers.joint and tokenizers.source is tokenizers.target
    assert decode_text(tokenizers.target, encode_text(tokenizers.target, text)) == text
    store = store_of(tmp_path, lines, tokenizers=tokenizers)
    assert decode_text(tokenizers.target, store.ids[1:-1].tolist()) == "\n".join([*lines, ""])


# --- GPT-2's bytes ---


def byte_level(merges: list[str]) -> ByteLevel:
    vocabulary = {letter: number for number, letter in enumerate(byte_letters().values())}
    for pair in merges:
        vocabulary.setdefault(pair.replace(" ", ""), len(vocabulary))
    return ByteLevel.from_files(json.dumps(vocabulary), "#version: 0.2\n" + "\n".join(merges) + "\n")


MERGES = ["t h", "th e", "Ġ the", "i n", "Ġ c", "Ġc at", "a t", "Ċ Ċ", "Ġ Ġ", "1 2"]


def textbook(tokenizer: ByteLevel, word: str) -> list[str]:
    """Byte pair encoding as its paper writes it: one merge after the other, each wherever it fits, again from the first."""
    pieces = [byte_letters()[byte] for byte in word.encode()]
    changed = True
    while changed:
        changed = False
        for one, other in tokenizer.merges:
            places = [n for n in range(len(pieces) - 1) if (pieces[n], pieces[n + 1]) == (one, other)]
            if places:
                joined, place = [], 0
                while place < len(pieces):
                    fits = place + 1 < len(pieces) and (pieces[place], pieces[place + 1]) == (one, other)
                    joined.append(one + other if fits else pieces[place])
                    place += 2 if fits else 1
                pieces, changed = joined, True
                break
    return pieces


@given(word=st.text(alphabet="thecain ", min_size=1, max_size=12))
def test_pieces_grow_together_as_in_the_textbook(word):
    tokenizer = byte_level(MERGES)
    words = [word for word in word.replace(" ", "\0 ").split("\0") if word.strip()]
    for one in words:
        assert tokenizer.pieces(tokenizer.encode(one)) == textbook(tokenizer, one)


@given(text=st.text(max_size=40))
def test_bytes_spell_every_text(text):
    tokenizer = byte_level(MERGES)
    whole = tokenizer.normalise(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == whole and min(ids, default=4) >= 4 and UNK not in ids


def test_words_are_cut_as_gpt2_cuts_them():
    """' re' is two words, 're one; digits, letters and marks part; of several blanks the last goes with the word behind them."""
    tokenizer = byte_level([])
    cuts = {
        "Hello world": ["Hello", " world"],
        "we're here": ["we", "'re", " here"],
        "a1b2": ["a", "1", "b", "2"],
        "wait...what?": ["wait", "...", "what", "?"],
        "a   b": ["a", "  ", " b"],
        "a\n\nb": ["a", "\n", "\n", "b"],
        "a  ": ["a", "  "],
        "ça va, ½ ²": ["ça", " va", ",", " ½", " ²"],
    }
    seen: list[str] = []
    tokenizer._ids_of_word = lambda word: seen.append(word) or ()
    for text, words in cuts.items():
        seen.clear()
        tokenizer.encode(text)
        assert seen == words


def test_a_text_cut_into_pieces_has_the_ids_of_the_whole(tmp_path):
    tokenizer = byte_level(MERGES)
    lines = ["the cat", "", "", "  in the cat", "in", "\tthe", "the "]
    store = store_of(tmp_path, lines, tokenizers=Tokenizers(tokenizer, tokenizer, joint=True))
    assert store.ids[1:-1].tolist() == tokenizer.encode("\n".join(lines))


def test_files_that_are_not_gpt2s_are_refused():
    with pytest.raises(RunError, match="has no piece"):
        ByteLevel({"a": 0}, [])
    with pytest.raises(RunError, match="does not number its pieces"):
        ByteLevel({letter: number + 1 for number, letter in enumerate(byte_letters().values())}, [])


# --- blocks ---


def blocks_of(store: TextStore, length=8, tokens=32, seed=1, masking=None, **text) -> Blocks:
    return Blocks(store, BatchConfig(tokens=tokens, max_length=length), TextConfig(**text), seed, masking)


def many_lines(count=60) -> list[str]:
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("abc "), rng.integers(1, 12))) for _ in range(count)]


@pytest.mark.parametrize("packed", [True, False])
def test_every_answer_is_what_follows_in_the_text(tmp_path, packed):
    store = store_of(tmp_path, many_lines(), "lines")
    blocks = blocks_of(store, packed=packed)
    for step in range(2 * len(blocks)):
        batch = blocks.batch(step)
        assert batch.source.shape[1] == 0 and batch.tokens == batch.target_tokens == int(batch.target_mask.sum())
        for row, start in enumerate(batch.rows):
            length = int(batch.target_mask[row].sum())
            assert batch.target_input[row, :length].tolist() == store.ids[start : start + length].tolist()
            assert batch.target_output[row, :length].tolist() == store.ids[start + 1 : start + length + 1].tolist()
            assert set(batch.target_input[row, length:].tolist()) <= {PAD}


def test_packed_blocks_are_full_and_begin_elsewhere_in_each_epoch(tmp_path):
    store = store_of(tmp_path, many_lines())
    blocks = blocks_of(store)
    epochs = [[blocks.batch(e * len(blocks) + n) for n in range(len(blocks))] for e in range(4)]
    phases = set()
    for epoch in epochs:
        assert all(bool(batch.target_mask.all()) and batch.target_input.shape == (4, 8) for batch in epoch)
        starts = sorted(start for batch in epoch for start in batch.rows.tolist())
        assert all((b - a) % 8 == 0 and b > a for a, b in itertools.pairwise(starts))  # none twice
        assert len(starts) * 8 > len(store) - 8 * (4 + 2)  # and hardly any left out
        phases.add(starts[0] % 8)
    assert len(phases) > 1


def test_documents_kept_apart_never_share_a_block_and_each_is_read_once(tmp_path):
    store = store_of(tmp_path, many_lines(), "lines")
    blocks = blocks_of(store, length=6, packed=False)
    read = []
    for step in range(len(blocks)):
        batch = blocks.batch(step)
        for row in range(len(batch)):
            ids = batch.target_input[row][batch.target_mask[row]].tolist()
            assert BOS not in ids[1:]
            read += ids
    assert sorted(read) == sorted(store.ids[:-1].tolist())


def test_a_batch_is_a_function_of_seed_and_step(tmp_path):
    store = store_of(tmp_path, many_lines())
    masking = Masking.of(TextConfig(), characters().target)
    one, other = (blocks_of(store, masking=masking) for _ in range(2))
    third = blocks_of(store, masking=masking, seed=2)
    forwards = [one.batch(step) for step in range(12)]
    backwards = [other.batch(step) for step in reversed(range(12))][::-1]
    for a, b in zip(forwards, backwards, strict=True):
        assert a.source.equal(b.source) and a.target_mask.equal(b.target_mask) and a.rows.tolist() == b.rows.tolist()
    assert any(not third.batch(step).source.equal(forwards[step].source) for step in range(3))


def test_a_text_shorter_than_a_block_is_one_block(tmp_path):
    store = store_of(tmp_path, ["abc"])
    blocks = blocks_of(store, length=100, tokens=100)
    assert len(blocks) == 1 and blocks.batch(5).target_input.tolist() == [store.ids[:-1].tolist()]
    with pytest.raises(CorpusError, match="a text to learn from has more"):
        blocks_of(replace_ids(store, [BOS, BOS]))


def replace_ids(store: TextStore, ids: list[int]) -> TextStore:
    return TextStore(store.folder, np.array(ids, np.uint16), store.offsets, store.meta)


@pytest.mark.parametrize("packed", [True, False])
def test_validation_reads_every_token_once(tmp_path, packed):
    store = store_of(tmp_path, many_lines(), "lines")
    batches = list(validation_blocks(store, BatchConfig(tokens=32, max_length=8), TextConfig(packed=packed)))
    read = [i for batch in batches for i in batch.target_input[batch.target_mask].tolist()]
    assert sorted(read) == sorted(store.ids[:-1].tolist())
    some = list(validation_blocks(store, BatchConfig(tokens=32, max_length=8), TextConfig(packed=packed), most=100))
    assert 50 < sum(batch.target_tokens for batch in some) <= 108


def test_shares_of_a_batch_with_gaps_add_up_to_it(tmp_path):
    store = store_of(tmp_path, many_lines(), "lines")
    masking = Masking(0.3, characters().target.continuing(), UNK)
    batch = blocks_of(store, tokens=64, masking=masking, packed=False).batch(0)
    parts = batch.shares(3)
    assert sum(part.target_tokens for part in parts) == batch.target_tokens
    assert sum(part.source_tokens for part in parts) == batch.source_tokens == batch.tokens == batch.work
    answers = [i for part in parts for i in part.target_output[part.target_mask].tolist()]
    assert answers == batch.target_output[batch.target_mask].tolist()


# --- gaps ---


def masked(share=0.15, whole=True, rows=400, length=64, vocabulary=50):
    rng = np.random.default_rng(3)
    ids = rng.integers(4, vocabulary, (rows, length))
    ids[:, 0], ids[:, -1] = BOS, EOS
    continuing = np.arange(vocabulary) % 2 == 1 if whole else np.zeros(vocabulary, bool)
    continuing[:4] = False
    masking = Masking(share, continuing, UNK)
    real = np.ones_like(ids, bool)
    real[:, 60:] = False
    return masking, ids, real, *masking(ids, real, np.random.default_rng(5))


def test_gaps_are_fifteen_in_a_hundred_eighty_hidden_ten_replaced_ten_left():
    masking, ids, real, read, asked = masked()
    possible = real & (ids >= 4)
    assert not (asked & ~possible).any() and (read == ids)[~asked].all()
    assert asked.sum() / possible.sum() == pytest.approx(0.15, abs=0.01)
    hidden, left = (read == UNK)[asked].mean(), (read == ids)[asked].mean()
    assert hidden == pytest.approx(0.8, abs=0.02)
    assert left == pytest.approx(0.1 + 0.1 / 46, abs=0.02)  # another piece may happen to be the same
    assert read.min() >= 1 and read.max() < len(masking.continuing)


def test_the_pieces_of_a_word_are_asked_for_together_and_words_are_not_too_long():
    masking, ids, _, _, asked = masked()
    words = masking.words(ids)
    for row in range(len(ids)):
        for place in range(1, 59):
            together = words[row, place] == words[row, place - 1]
            assert together == bool(masking.continuing[ids[row, place]]) or place >= LONGEST_WORD
            if together:
                assert asked[row, place] == asked[row, place - 1] or ids[row, place - 1] < 4
    line = np.full((1, 100), 5)  # a script without spaces: one word, cut
    counts = np.bincount(masking.words(line)[0])
    assert counts.max() <= LONGEST_WORD and len(counts) == 7


def test_without_whole_words_every_piece_has_its_own_chance():
    *_, asked = masked(whole=False)
    inside = asked[:, 1:59]
    assert (inside[:, 1:] & inside[:, :-1]).mean() == pytest.approx(0.15**2, abs=0.01)


def test_there_is_always_something_to_guess():
    masking = Masking(1e-9, np.zeros(10, bool), UNK)
    ids = np.array([[BOS, 5, EOS], [BOS, 6, EOS]])
    _, asked = masking(ids, np.ones_like(ids, bool), np.random.default_rng(0))
    assert asked.sum() == 1 and ids[asked][0] >= 4
    _, asked = masking(ids[:, :1], np.ones((2, 1), bool), np.random.default_rng(0))
    assert asked.sum() == 1


@pytest.mark.parametrize(
    ("tokenizer", "text", "starts"),
    [
        (Symbols("characters", list("abc "), "nfc"), "ab c", [False, False, True, False]),
        (Symbols("words", ["", "ab", "c"], "nfc"), "ab c", [True, True]),
        (byte_level(MERGES), "the cat!", None),
    ],
)
def test_tokenizers_know_where_words_begin(tokenizer, text, starts):
    ids = tokenizer.encode(text)
    table = tokenizer.continuing()
    assert len(table) == tokenizer.size and not table[:4].any()
    if starts is None:
        pieces = tokenizer.pieces(ids)
        starts = [piece[0] in "Ġ!" for piece in pieces]
    assert [not table[i] for i in ids] == starts
