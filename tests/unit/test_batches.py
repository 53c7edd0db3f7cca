"""Batches: the budget, the padding, every row once, and the same batch for the same step."""

from __future__ import annotations

import random
import threading
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kente.config import BatchConfig, TokenizerConfig
from kente.data.batches import Batch, Batches, Plan, collate, prefetch, validation_batches
from kente.data.store import Side, Store
from kente.data.tokenizer import BOS, EOS, PAD, train_tokenizers
from kente.data.toys import toy
from kente.errors import CorpusError


def store_of(sentences: list[tuple[list[int], list[int]]]) -> Store:
    """A store in memory."""
    sides = []
    for side in (0, 1):
        lists = [pair[side] for pair in sentences]
        offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
        sides.append(Side(np.array([i for ids in lists for i in ids], np.uint16), offsets))
    return Store(Path("memory"), (sides[0], sides[1]), {"dropped": {}})


def random_store(lengths: list[tuple[int, int]], seed: int = 0) -> Store:
    rng = np.random.default_rng(seed)
    return store_of(
        [(rng.integers(4, 99, source).tolist(), rng.integers(4, 99, target).tolist()) for source, target in lengths]
    )


def like_captions(count: int = 1500) -> Store:
    rng = np.random.default_rng(1)
    target = np.clip(rng.lognormal(2.7, 0.35, count), 3, 45).astype(int)
    source = np.clip(target * rng.normal(1, 0.15, count), 2, 45).astype(int)
    return random_store(list(zip(source.tolist(), target.tolist(), strict=True)))


def simple_collate(sources: list[list[int]], targets: list[list[int]]) -> dict[str, list[list[int]]]:
    """The oracle: one row at a time."""
    width, height = max(map(len, sources)) + 1, max(map(len, targets)) + 1
    return {
        "source": [[*ids, EOS] + [PAD] * (width - len(ids) - 1) for ids in sources],
        "source_mask": [[True] * (len(ids) + 1) + [False] * (width - len(ids) - 1) for ids in sources],
        "target_input": [[BOS, *ids] + [PAD] * (height - len(ids) - 1) for ids in targets],
        "target_output": [[*ids, EOS] + [PAD] * (height - len(ids) - 1) for ids in targets],
        "target_mask": [[True] * (len(ids) + 1) + [False] * (height - len(ids) - 1) for ids in targets],
    }


def as_lists(batch: Batch) -> dict[str, list[list[int]]]:
    return {
        name: getattr(batch, name).tolist()
        for name in ("source", "source_mask", "target_input", "target_output", "target_mask")
    }


def same(first: Batch, second: Batch) -> bool:
    return as_lists(first) == as_lists(second) and first.rows.tolist() == second.rows.tolist()


sentence = st.lists(st.integers(EOS + 1, 500), max_size=12)


@given(pairs=st.lists(st.tuples(sentence, sentence), min_size=1, max_size=12))
def test_collate_equals_a_loop(pairs):
    sources, targets = [s for s, _ in pairs], [t for _, t in pairs]
    batch = collate(sources, targets)
    assert as_lists(batch) == simple_collate(sources, targets)
    assert batch.source.dtype == batch.target_output.dtype == torch.int64 and batch.source_mask.dtype == torch.bool
    assert (batch.source_tokens, batch.target_tokens) == (int(batch.source_mask.sum()), int(batch.target_mask.sum()))
    alone = collate(sources)
    assert torch.equal(alone.source, batch.source) and alone.target_output.shape == (len(pairs), 0)
    assert len(alone) == len(pairs) and alone.target_tokens == 0


def test_a_batch_moves_whole():
    moved = collate([[5, 6]], [[7]]).to("meta")
    assert {
        getattr(moved, name).device.type
        for name in ("source", "source_mask", "target_input", "target_output", "target_mask")
    } == {"meta"}
    assert moved.target_tokens == 2


lengths = st.lists(st.tuples(st.integers(1, 19), st.integers(1, 19)), min_size=1, max_size=200)


@settings(max_examples=60)
@given(lengths=lengths, tokens=st.integers(20, 150), seed=st.integers(-5, 10**12), epoch=st.integers(0, 3))
def test_every_row_once_per_epoch_within_budget_and_by_seed_alone(lengths, tokens, seed, epoch):
    store = random_store(lengths)
    config = BatchConfig(tokens=tokens, max_length=20)
    batches, again = Batches(store, config, seed), Batches(store, config, seed)
    steps = range(epoch * len(batches), (epoch + 1) * len(batches))
    rows = []
    for step in steps:
        batch = batches.batch(step)
        assert len(batch) > 0
        assert batch.source.numel() <= tokens and batch.target_output.numel() <= tokens
        pairs = [(store.source(row).tolist(), store.target(row).tolist()) for row in batch.rows.tolist()]
        assert as_lists(batch) == simple_collate([s for s, _ in pairs], [t for _, t in pairs])
        assert batches.position(step)[0] == epoch
        rows += batch.rows.tolist()
    assert sorted(rows) == list(range(len(store)))
    for step in np.random.default_rng(0).permutation(steps)[:5].tolist():  # in any order, from a fresh start
        assert same(again.batch(step), batches.batch(step))


def test_epochs_and_seeds_differ_in_order_and_in_company():
    store = like_captions()
    batches = Batches(store, BatchConfig(tokens=512, max_length=64), seed=1)
    epochs = [[frozenset(batches.rows(e * len(batches) + i).tolist()) for i in range(len(batches))] for e in range(3)]
    other = [
        frozenset(Batches(store, BatchConfig(tokens=512, max_length=64), seed=2).rows(i).tolist())
        for i in range(len(batches))
    ]
    for one in (epochs[1], epochs[2], other):
        assert len(set(one) & set(epochs[0])) < 0.25 * len(one), "batches keep their company"
    lengths = [batches.batch(i).target_output.shape[1] for i in range(len(batches))]
    assert abs(np.corrcoef(np.arange(len(lengths)), lengths)[0, 1]) < 0.4, "short and long batches are mixed"


def padding(batches: Batches) -> float:
    whole = real = 0
    for step in range(len(batches)):
        batch = batches.batch(step)
        whole += batch.source.numel() + batch.target_output.numel()
        real += batch.source_tokens + batch.target_tokens
    return 1 - real / whole


def test_padding_stays_below_six_percent_on_multi30k(data: Path, tmp_path: Path):
    folder = data / "multi30k" / "tok"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")

    def texts():
        with (
            open(folder / "train.en", encoding="utf-8") as source,
            open(folder / "train.de", encoding="utf-8") as target,
        ):
            yield from ((s.rstrip("\n"), t.rstrip("\n")) for s, t in zip(source, target, strict=True))

    tokenizers = train_tokenizers(texts, TokenizerConfig(kind="bpe", vocabulary=4000))
    store = Store.build(tmp_path / "s", texts(), tokenizers, max_length=256)
    for tokens in (1024, 1536, 4096):
        batches = Batches(store, BatchConfig(tokens=tokens), seed=1)
        assert padding(batches) < 0.06
        full = sum(batches.batch(step).target_tokens for step in range(len(batches))) / (tokens * len(batches))
        assert full > 0.87, "the budget is used"


def test_a_million_rows_fit_their_budget():
    rng = np.random.default_rng(0)
    target = np.clip(rng.lognormal(3.4, 0.5, 1_000_000), 2, 255).astype(np.int32)
    source = np.clip(target * rng.normal(1, 0.2, len(target)), 2, 255).astype(np.int32)
    plan = Plan.of(source, target, 4096)
    order, batch_order = plan.shuffled(rng)
    assert np.array_equal(np.sort(order), np.arange(len(target))) and len(batch_order) == len(plan)
    rows = np.diff(plan.cuts)
    for lengths in (source, target):
        assert (np.maximum.reduceat(lengths[order], plan.cuts[:-1]) * rows <= 4096).all()


def test_a_store_without_pairs_is_refused():
    with pytest.raises(CorpusError, match="memory holds no pairs"):
        Batches(store_of([]), BatchConfig(), seed=1)


def test_validation_covers_each_row_once_in_a_fixed_order():
    store = like_captions(700)
    first, second = (list(validation_batches(store, 300)) for _ in range(2))
    assert all(same(a, b) for a, b in zip(first, second, strict=True))
    assert sorted(row for batch in first for row in batch.rows.tolist()) == list(range(700))
    assert all(batch.target_output.numel() <= 300 and batch.source.numel() <= 300 for batch in first)


# --- cutting words anew ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    pairs = [(s.replace(" ", ""), t.replace(" ", "")) for s, t in toy("reverse", 400, seed=1, max_length=12)]
    tokenizers = train_tokenizers(lambda: iter(pairs), TokenizerConfig(kind="bpe", vocabulary=500))
    folder = tmp_path_factory.mktemp("sampled")
    return pairs, tokenizers, Store.build(folder / "s", pairs, tokenizers, max_length=30, text=True)


def test_sampled_batches_hold_the_same_text_cut_otherwise_by_step(sampled):
    pairs, tokenizers, store = sampled
    config = BatchConfig(tokens=100, max_length=30)
    batches, again = (Batches(store, config, 1, 0.3, tokenizers) for _ in range(2))
    seen, changed = [], 0
    for step in reversed(range(len(batches))):
        batch = batches.batch(step)
        assert same(batch, again.batch(step))
        assert batch.source.numel() <= 100 and batch.target_output.numel() <= 100
        both = zip(batch.rows.tolist(), batch.source.tolist(), batch.target_output.tolist(), strict=True)
        for row, source, target in both:
            assert (tokenizers.source.decode(source), tokenizers.target.decode(target)) == pairs[row]
            changed += source[: source.index(EOS)] != store.source(row).tolist()
        seen += batch.rows.tolist()
    assert sorted(seen) == list(range(len(store)))
    assert changed > 0.3 * len(store), "the tokenizer alone cuts 0.42 of these anew"
    wide = BatchConfig(tokens=10_000, max_length=30)  # one batch is an epoch
    epochs = [Batches(store, wide, 1, 0.3, tokenizers).batch(step) for step in (0, 1)]
    cuts = [dict(zip(batch.rows.tolist(), batch.source.tolist(), strict=True)) for batch in epochs]
    assert sum([i for i in cuts[0][row] if i] != [i for i in cuts[1][row] if i] for row in cuts[0]) > 100


@pytest.mark.parametrize(("kind", "amount"), [("unigram", 0.1), ("bpe", 0.3)])
def test_batches_have_room_for_the_cuts_asked_for(tmp_path: Path, kind, amount):
    """As many sentences are cut anew as the tokenizer alone would, though the budget is kept."""
    chance = random.Random(3)
    syllables = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "an", "el", "or")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(20_000)]
    pairs = [(" ".join(chance.choices(words, k=chance.randint(2, 12))),) * 2 for _ in range(1500)]
    tokenizers = train_tokenizers(lambda: iter(pairs), TokenizerConfig(kind=kind, vocabulary=600))
    store = Store.build(tmp_path / "s", pairs, tokenizers, max_length=200, text=True)
    batches = Batches(store, BatchConfig(tokens=800, max_length=200), 1, amount, tokenizers)
    epochs, rng = 8, np.random.default_rng(0)
    texts = [text for text, _ in pairs] * epochs
    asked = sum(tokenizers.source.encode_sampled(text, amount, rng) != tokenizers.source.encode(text) for text in texts)
    cut = 0
    for step in range(epochs * len(batches)):
        batch = batches.batch(step)
        assert batch.source.numel() <= 800 and batch.target_output.numel() <= 800
        for row, source in zip(batch.rows.tolist(), batch.source.tolist(), strict=True):
            cut += source[: source.index(EOS)] != store.source(row).tolist()
    assert asked > 0.3 * len(texts)
    assert cut / asked == pytest.approx(1, abs=0.04)


def test_cut_anew_a_sentence_is_never_longer_than_the_longest_allowed(sampled):
    _, tokenizers, store = sampled
    longest = int(max(store.source_lengths.max(), store.target_lengths.max())) + 1
    batches = Batches(store, BatchConfig(tokens=4096, max_length=longest), 1, 0.9, tokenizers)
    shapes = [batches.batch(step) for step in range(len(batches))]
    assert max(max(batch.source.shape[1], batch.target_output.shape[1]) for batch in shapes) <= longest


# --- prefetching -------------------------------------------------------------------------------------------------------------


def prefetching() -> bool:
    return any(thread.name == "kente-prefetch" for thread in threading.enumerate())


def test_prefetch_gives_the_same_batches_and_ends_cleanly():
    batches = Batches(like_captions(300), BatchConfig(tokens=256, max_length=64), seed=4)
    start = len(batches) - 3  # over the end of the epoch
    stream = prefetch(batches, start)
    for step, batch in enumerate(islice(stream, 12), start=start):
        assert same(batch, Batches(batches.store, BatchConfig(tokens=256, max_length=64), seed=4).batch(step))
    assert prefetching()
    stream.close()
    assert not prefetching()


def test_prefetch_passes_errors_on():
    class Breaking(Batches):
        def batch(self, step: int) -> Batch:
            if step == 7:
                raise CorpusError("the disk is gone")
            return super().batch(step)

    stream = prefetch(Breaking(like_captions(300), BatchConfig(tokens=256, max_length=64), seed=4), 5)
    assert len(list(islice(stream, 2))) == 2
    with pytest.raises(CorpusError, match="the disk is gone"):
        next(stream)
    assert not prefetching()


def test_prefetch_stays_a_few_batches_ahead():
    made = []

    class Counting(Batches):
        def batch(self, step: int) -> Batch:
            made.append(step)
            return super().batch(step)

    stream = prefetch(Counting(like_captions(300), BatchConfig(tokens=256, max_length=64), seed=4), 0, ahead=3)
    next(stream)
    time.sleep(0.3)
    assert len(made) <= 5
    stream.close()
