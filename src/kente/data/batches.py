"""Batches by token budget: pairs of like length together, the whole sequence of them a function of a seed.

An epoch is cut the same way every time: pairs are sorted into cells of like lengths, the cells are laid in a row, and the row is cut where the
budget ends. What changes from epoch to epoch is which pair stands where inside its cell, and the order of the batches. So every epoch has the
same number of batches, `batch(step)` needs nothing but the step, and resuming is a seek.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kente.config import BatchConfig
from kente.data.store import Side, Store
from kente.data.tokenizer import BOS, EOS, PAD, Tokenizer, Tokenizers
from kente.errors import CorpusError

Rows = NDArray[np.int64]


class Reading(Protocol):
    """What the trainer asks of a batch, whatever is in it; what is in it is between the objective and the model."""

    @property
    def rows(self) -> Rows:
        """Which parts of the corpus it holds: noted where an update goes wrong."""
        ...

    @property
    def target_tokens(self) -> int:
        """What the loss is a mean over: predictions asked for."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens read, for tokens a second."""
        ...

    @property
    def work(self) -> int:
        """Tokens that pass through most of the network: whether it is worth cutting into shares."""
        ...

    def shares(self, count: int) -> Sequence[Self]:
        """Cut into at most so many, whose losses add up to that of the whole."""
        ...

    def to(self, device: torch.device | str) -> Self: ...


class Feed(Protocol):
    """What the trainer reads: an endless sequence, every batch a function of its number. `Batches`, `Blocks`."""

    def __len__(self) -> int:
        """Batches in an epoch."""
        ...

    def batch(self, step: int) -> Any:
        """A `Reading`, such as `Batch`."""
        ...


@dataclass
class Batch:
    """Pairs side by side, padded with PAD. Masks are True where a token stands, EOS included.

    Of one text alone: where it goes on, the source has no columns; where its gaps are filled, `target_input` has none,
    `target_output` is the text as it was and `target_mask` says where to guess.
    """

    source: Tensor  # (B, S) ids + EOS
    source_mask: Tensor  # (B, S)
    target_input: Tensor  # (B, T) BOS + ids
    target_output: Tensor  # (B, T) ids + EOS
    target_mask: Tensor  # (B, T)
    rows: Rows  # which pairs of the store these are
    source_tokens: int
    target_tokens: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tokens(self) -> int:
        return self.source_tokens + self.target_tokens if self.target_input.shape[1] else self.source_tokens

    @property
    def work(self) -> int:
        return self.target_tokens if self.target_input.shape[1] else self.source_tokens

    def shares(self, count: int) -> list[Batch]:
        """The batch cut into at most so many of about the same work, padding included, no wider than their own pairs need."""
        if count == 1 or len(self) == 1:
            return [self]
        first = count // 2
        before, after = self._work_around_cuts()
        cut = 1 + int(torch.maximum(before / first, after / (count - first)).argmin())
        return [*self._part(0, cut).shares(first), *self._part(cut, len(self)).shares(count - first)]

    def _work_around_cuts(self) -> tuple[Tensor, Tensor]:
        """(B - 1,) each: the work before and after a cut behind the first pair, the second, ..."""
        source, target = _widths(self.source_mask), _widths(self.target_mask)
        before = source.cummax(0).values + TARGET_WORK * target.cummax(0).values
        after = source.flip(0).cummax(0).values + TARGET_WORK * target.flip(0).cummax(0).values
        pairs = torch.arange(1, len(self))
        return before[:-1] * pairs, (after[:-1] * pairs).flip(0)

    def _part(self, start: int, end: int) -> Batch:
        source_mask, target_mask = self.source_mask[start:end], self.target_mask[start:end]
        source_width, target_width = int(_widths(source_mask).max()), int(_widths(target_mask).max())
        return Batch(
            self.source[start:end, :source_width],
            source_mask[:, :source_width],
            self.target_input[start:end, :target_width],
            self.target_output[start:end, :target_width],
            target_mask[:, :target_width],
            self.rows[start:end],
            int(source_mask.sum()),
            int(target_mask.sum()),
        )

    def to(self, device: torch.device | str) -> Batch:
        moved = {name: getattr(self, name).to(device, non_blocking=True) for name in _TENSORS}
        return replace(self, **moved)


def _widths(mask: Tensor) -> Tensor:
    """Columns (B,) up to the last that a row needs."""
    return (mask * torch.arange(1, mask.shape[1] + 1)).amax(1) if mask.shape[1] else mask.sum(1)


TARGET_WORK = 2
"""Times the work of a source token that a target token is: a decoder's layers have more to do, and every word is weighed for it."""
_TENSORS = ("source", "source_mask", "target_input", "target_output", "target_mask")


def _frame(flat: NDArray[Any], lengths: Rows) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Sentences that lie one after the other in `flat` become rows (B, longest + 1): ids, EOS, PAD. Also the mask of what is not PAD."""
    columns = np.arange(int(lengths.max()) + 1)
    framed = np.full((len(lengths), len(columns)), PAD, np.int64)
    framed[columns < lengths[:, None]] = flat
    framed[np.arange(len(lengths)), lengths] = EOS
    return framed, columns <= lengths[:, None]


def _assemble(source: tuple[NDArray[Any], Rows], target: tuple[NDArray[Any], Rows] | None, rows: Rows) -> Batch:
    ids, mask = _frame(*source)
    if target is None:
        output, output_mask = np.zeros((len(rows), 0), np.int64), np.zeros((len(rows), 0), np.bool_)
        before = output
    else:
        output, output_mask = _frame(*target)
        before = np.empty_like(output)
        before[:, 0] = BOS
        before[:, 1:] = output[:, :-1]
        before[before == EOS] = PAD  # the end is for the output alone
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(mask),
        torch.from_numpy(before),
        torch.from_numpy(output),
        torch.from_numpy(output_mask),
        rows,
        int(mask.sum()),
        int(output_mask.sum()),
    )


def _flatten(sentences: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], Rows]:
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    return np.fromiter(chain.from_iterable(sentences), np.int64, int(lengths.sum())), lengths


def collate(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]] | None = None) -> Batch:
    """A batch of the id lists given, in their order; without targets the target tensors have no columns."""
    assert sources, "a batch needs at least one sentence"
    return _assemble(_flatten(sources), None if targets is None else _flatten(targets), np.arange(len(sources)))


def _gather(side: Side, rows: Rows) -> tuple[NDArray[Any], Rows]:
    """Ids of the rows, one after the other, and their lengths."""
    starts = side.offsets[rows]
    lengths = side.offsets[rows + 1] - starts
    ends = np.cumsum(lengths)
    places = np.arange(int(ends[-1])) + np.repeat(starts - (ends - lengths), lengths)
    return side.ids[places], lengths


def _gather_sampled(
    side: Side,
    rows: Rows,
    tokenizer: Tokenizer,
    marks: tuple[int, ...],
    amount: float,
    limit: int,
    rng: np.random.Generator,
) -> tuple[NDArray[Any], Rows]:
    """Like _gather, with words cut anew; the few sentences that would then be longer than `limit`, EOS included, stay as they are stored."""
    sentences = []
    for row in rows.tolist():
        ids = [*marks, *tokenizer.encode_sampled(side.sentence(row), amount, rng)]
        sentences.append(ids if len(ids) < limit else side[row].tolist())
    return _flatten(sentences)


def _room_for_cuts(side: Side, tokenizer: Tokenizer, amount: float, seed: int, most: int) -> NDArray[np.int32]:
    """Lengths, EOS included, that 99 % of sentences stay within when their words are cut anew.

    Cutting mostly lengthens. Batches planned for the stored lengths would have no room for it, and what does not fit would have to stay
    uncut: half of all cuts or more. The growth of n tokens has a mean and a variance in proportion to n; both are measured on 1,000 rows.
    """
    stored = np.diff(side.offsets)
    rng = np.random.default_rng([seed, 0, 2])
    rows = np.unique(np.linspace(0, len(stored) - 1, 1000).astype(np.int64))
    growth = (
        np.array([len(tokenizer.encode_sampled(side.sentence(row), amount, rng)) for row in rows.tolist()])
        - stored[rows]
    )
    mean = growth.sum() / stored[rows].sum()
    spread = np.sqrt(np.mean((growth - mean * stored[rows]) ** 2 / stored[rows]))
    roomy = np.ceil(stored * (1 + mean) + 2.5 * spread * np.sqrt(stored)).astype(np.int32) + 1
    return np.clip(roomy, stored + 1, np.maximum(most, stored + 1)).astype(np.int32)


# --- which pairs go together ---------------------------------------------------------------------------------------------------


def _steps(longest: int, width: float) -> NDArray[np.int64]:
    """Upper ends of length classes that widen with the length: 1, 2, 3 ... and from 1/width on, ever `width` more."""
    ends, end = [], 0
    while end < longest:
        end = max(end + 1, int(end * (1 + width)))
        ends.append(end)
    return np.array(ends)


@dataclass
class Plan:
    """How the pairs of a store are cut into batches: `order` is sorted by `cell`, batch k is order[cuts[k]:cuts[k+1]]."""

    order: Rows
    cell: NDArray[np.int32]
    cuts: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        source: NDArray[np.int32],
        target: NDArray[np.int32],
        tokens: int,
        target_width: float = 0.15,
        source_width: float = 0.1,
    ) -> Plan:
        """Cut so that rows x longest row is at most `tokens` on both sides; lengths count EOS."""
        target_ends, source_ends = _steps(int(target.max()), target_width), _steps(int(source.max()), source_width)
        target_class = np.searchsorted(target_ends, target)
        source_class = np.searchsorted(source_ends, source)
        # every other target class runs through the source classes backwards: no jump from long to short sources between them
        along = np.where(target_class % 2 == 0, source_class, len(source_ends) - 1 - source_class)
        key = target_class * len(source_ends) + along
        order = np.argsort(key, kind="stable")
        _, first, cell, counts = np.unique(key[order], return_index=True, return_inverse=True, return_counts=True)
        shapes = np.maximum.reduceat(target[order], first), np.maximum.reduceat(source[order], first)
        cuts = _cut(shapes[0].tolist(), shapes[1].tolist(), counts.tolist(), tokens)
        return cls(order.astype(np.int64), cell.astype(np.int32), np.array(cuts))

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def shuffled(self, rng: np.random.Generator) -> tuple[Rows, NDArray[np.int64]]:
        """The order with each cell shuffled, and the order of the batches."""
        order = self.order[np.argsort(self.cell + rng.random(len(self.cell)))]
        return order, rng.permutation(len(self))


def _cut(targets: list[int], sources: list[int], counts: list[int], tokens: int) -> list[int]:
    """Where batches begin, and the end: cells (target length, source length, count) are taken in order until the budget is full."""
    cuts, place, rows, longest = [0], 0, 0, 0
    for target, source, count in zip(targets, sources, counts, strict=True):
        widest = max(target, source)
        while count:
            room = tokens // max(longest, widest) - rows
            if room <= 0:
                assert rows, "a sentence longer than the budget"
                cuts.append(place)
                rows = longest = 0
                continue
            taken = min(room, count)
            place, rows, count, longest = place + taken, rows + taken, count - taken, max(longest, widest)
    return [*cuts, place]


class Batches:
    """The endless sequence of training batches. `batch(step)` is a function of the store, the settings, the seed and the step."""

    def __init__(
        self, store: Store, config: BatchConfig, seed: int, sampling: float = 0.0, tokenizers: Tokenizers | None = None
    ) -> None:
        if not len(store):
            raise CorpusError(f"{store.folder} holds no pairs; check the corpus with `kente check`")
        assert sampling == 0 or tokenizers is not None, "sampling needs tokenizers"
        self.store = store
        self.tokens = config.tokens
        self.max_length = config.max_length
        self.seed = seed % 2**64
        self.sampling = sampling
        self._tokenizers = tokenizers
        lengths = [store.source_lengths + 1, store.target_lengths + 1]
        if tokenizers is not None and sampling > 0:
            both = zip(store.sides, (tokenizers.source, tokenizers.target), strict=True)
            lengths = [
                _room_for_cuts(side, tokenizer, sampling, self.seed, config.max_length) for side, tokenizer in both
            ]
        self._plan = Plan.of(lengths[0], lengths[1], config.tokens)
        self._epoch: tuple[int, Rows, NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._plan)

    def position(self, step: int) -> tuple[int, int]:
        """(epoch, batch in it), both from 0."""
        return divmod(step, len(self))

    def rows(self, step: int) -> Rows:
        """Which pairs batch(step) holds."""
        epoch, index = self.position(step)
        known = self._epoch
        if known is None or known[0] != epoch:
            known = self._epoch = (epoch, *self._plan.shuffled(np.random.default_rng([self.seed, epoch])))
        batch = known[2][index]
        return known[1][self._plan.cuts[batch] : self._plan.cuts[batch + 1]]

    def batch(self, step: int) -> Batch:
        rows = self.rows(step)
        if self.sampling == 0 or self._tokenizers is None:
            return _assemble(_gather(self.store.sides[0], rows), _gather(self.store.sides[1], rows), rows)
        rng = np.random.default_rng([self.seed, step, 1])
        limit = min(self.tokens // len(rows), self.max_length)
        tokenizers = (self._tokenizers.source, self._tokenizers.target)
        source, target = (
            _gather_sampled(side, rows, tokenizer, marks, self.sampling, limit, rng)
            for side, tokenizer, marks in zip(self.store.sides, tokenizers, self._tokenizers.marks, strict=True)
        )
        return _assemble(source, target, rows)


def validation_batches(store: Store, tokens: int) -> Iterator[Batch]:
    """Every pair once, in an order that never changes."""
    plan = Plan.of(store.source_lengths + 1, store.target_lengths + 1, tokens)
    for start, end in zip(plan.cuts[:-1], plan.cuts[1:], strict=True):
        rows = plan.order[start:end]
        yield _assemble(_gather(store.sides[0], rows), _gather(store.sides[1], rows), rows)


def prefetch(batches: Feed, start: int, ahead: int = 4) -> Generator[Any]:
    """batch(start), batch(start + 1), ... made in a thread while earlier ones are used. Close the iterator to end the thread."""
    ready: queue.Queue[Any] = queue.Queue(maxsize=ahead)
    stop = threading.Event()

    def offer(item: Any) -> None:
        while not stop.is_set():
            try:
                return ready.put(item, timeout=0.1)
            except queue.Full:
                continue

    def work() -> None:
        step = start
        try:
            while not stop.is_set():
                offer(batches.batch(step))
                step += 1
        except BaseException as error:
            offer(error)

    worker = threading.Thread(target=work, name="kente-prefetch", daemon=True)
    worker.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        worker.join()
