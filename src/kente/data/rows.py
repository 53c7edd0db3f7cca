"""Texts to be told apart or compared, as ids on disk: each row has one text or two, and a label.

A text stands there framed as its encoder wants it (`framing`). Batches are cut as in `batches`: rows of like length together, by token budget,
the whole sequence a function of the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kente.config import BatchConfig
from kente.data.batches import Plan, Rows
from kente.data.store import FORMAT, Side, map_array, read_meta, settle, whole_folder, write_meta
from kente.data.tokenizer import PAD
from kente.errors import CorpusError

CHUNK = 4096  # rows encoded at once

Row = tuple[tuple[str, ...], int]
"""(the texts of a row, its label)"""
Frame = Callable[[Sequence[str]], list[list[int]]]


class RowStore:
    """Rows of framed texts, memory-mapped: `sides[0]` are the first texts of all rows, `sides[1]` the second ones if there are any."""

    def __init__(self, folder: Path, sides: tuple[Side, ...], labels: NDArray[np.int64], meta: dict[str, Any]) -> None:
        self.folder, self.sides, self.labels, self.meta = folder, sides, labels, meta
        self.lengths: list[NDArray[np.int32]] = [np.diff(side.offsets).astype(np.int32) for side in sides]

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def build(
        cls, folder: Path, rows: Iterable[Row], frame: Frame, tokenizer_sha256: str, *, sides: int = 1
    ) -> RowStore:
        """Frame all texts into `folder`, replacing a store already there."""
        labels: list[int] = []
        offsets: list[list[int]] = [[0] for _ in range(sides)]
        with whole_folder(folder) as unfinished:
            files = [open(unfinished / f"{side}.ids", "wb") for side in range(sides)]  # noqa: SIM115 (closed below)
            try:
                stream = iter(rows)
                while chunk := list(islice(stream, CHUNK)):
                    labels += [label for _, label in chunk]
                    for side, file in enumerate(files):
                        for ids in frame([texts[side] for texts, _ in chunk]):
                            file.write(np.array(ids, np.uint32).tobytes())
                            offsets[side].append(offsets[side][-1] + len(ids))
                for file in files:
                    settle(file)
            finally:
                for file in files:
                    file.close()
            if not labels:
                raise CorpusError("there is no text to train on: every row was empty")
            _put(unfinished / "labels", labels)
            for side in range(sides):
                _put(unfinished / f"{side}.offsets", offsets[side])
            tokens = [places[-1] for places in offsets]
            about = {"rows": len(labels), "tokens": tokens, "tokenizer_sha256": tokenizer_sha256}
            write_meta(unfinished, {"format": FORMAT, **about})
        return cls.open(folder, tokenizer_sha256)

    @classmethod
    def open(cls, folder: Path, tokenizer_sha256: str | None = None) -> RowStore:
        """Map a store; refused when it is not whole, or when its ids come from another tokenizer than the one named."""
        meta = read_meta(folder, "rows", tokenizer_sha256)
        sides = tuple(
            Side(
                map_array(folder / f"{side}.ids", "uint32", tokens),
                map_array(folder / f"{side}.offsets", "int64", meta["rows"] + 1),
            )
            for side, tokens in enumerate(meta["tokens"])
        )
        return cls(folder, sides, map_array(folder / "labels", "int64", meta["rows"]), meta)

    def batch(self, rows: Rows, together: bool = False) -> RowBatch:
        """These rows side by side."""
        sides = tuple(_padded([side[row] for row in rows.tolist()]) for side in self.sides)
        return RowBatch(sides, torch.from_numpy(np.array(self.labels[rows])), rows, together)


def _put(path: Path, numbers: list[int]) -> None:
    with open(path, "wb") as file:
        file.write(np.array(numbers, np.int64).tobytes())
        settle(file)


def _padded(texts: list[NDArray[Any]]) -> tuple[Tensor, Tensor]:
    lengths = np.array([len(text) for text in texts])
    real = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(real.shape, PAD, np.int64)
    ids[real] = np.concatenate(texts)
    return torch.from_numpy(ids), torch.from_numpy(real)


@dataclass
class RowBatch:
    """Rows side by side: for each side ids (B, S) padded with PAD, and a mask (B, S) that is True where a token stands."""

    sides: tuple[tuple[Tensor, Tensor], ...]
    labels: Tensor  # (B,)
    rows: Rows
    together: bool = False
    """Rows are compared with each other, so the batch must not be cut."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def target_tokens(self) -> int:
        """One answer for each row."""
        return len(self.rows)

    @property
    def tokens(self) -> int:
        return sum(int(mask.sum()) for _, mask in self.sides)

    @property
    def work(self) -> int:
        return self.tokens

    def shares(self, count: int) -> list[RowBatch]:
        """The batch cut into so many of like size, no wider than their own rows need; whole where rows belong together."""
        if count == 1 or self.together:
            return [self]
        cuts = [len(self) * place // count for place in range(count + 1)]
        return [self._part(start, end) for start, end in pairwise(cuts) if start < end]

    def _part(self, start: int, end: int) -> RowBatch:
        sides = []
        for ids, mask in self.sides:
            width = int(mask[start:end].sum(dim=1).max())
            sides.append((ids[start:end, :width], mask[start:end, :width]))
        return RowBatch(tuple(sides), self.labels[start:end], self.rows[start:end])

    def to(self, device: torch.device | str) -> RowBatch:
        sides = tuple((ids.to(device), mask.to(device)) for ids, mask in self.sides)
        return replace(self, sides=sides, labels=self.labels.to(device))


class RowBatches:
    """The endless sequence of training batches: `batch(step)` is a function of the store, the settings, the seed and the step."""

    def __init__(self, store: RowStore, config: BatchConfig, seed: int, *, together: bool = False) -> None:
        self.store, self.seed, self.together = store, seed % 2**64, together
        self._plan = _plan(store, config.tokens)
        self._epoch: tuple[int, Rows, NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._plan)

    def batch(self, step: int) -> RowBatch:
        epoch, place = divmod(step, len(self))
        known = self._epoch
        if known is None or known[0] != epoch:
            known = self._epoch = (epoch, *self._plan.shuffled(np.random.default_rng([self.seed, epoch])))
        number = known[2][place]
        return self.store.batch(known[1][self._plan.cuts[number] : self._plan.cuts[number + 1]], self.together)


def _plan(store: RowStore, tokens: int) -> Plan:
    longest = max(int(lengths.max()) for lengths in store.lengths)
    return Plan.of(store.lengths[-1], store.lengths[0], max(tokens, longest))


def validation_rows(store: RowStore, tokens: int, together: bool = False) -> Iterator[RowBatch]:
    """Every row once, in an order that never changes."""
    plan = _plan(store, tokens)
    for start, end in pairwise(plan.cuts.tolist()):
        yield store.batch(plan.order[start:end], together)
