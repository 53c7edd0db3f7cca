"""The corpus as ids, and ordinary batches of it: for peers that are fed by a loop of ours (numpy and torch)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.shapes import BOS, EOS, PAD

Pair = tuple[list[int], list[int]]


def read_pairs(folder: str | Path) -> list[Pair]:
    """Pairs of ids without special ones, as `benchmarks.corpus` wrote them."""
    arrays = np.load(Path(folder) / "train.npz")
    sides = []
    for side in ("source", "target"):
        ids, offsets = arrays[side].tolist(), arrays[f"{side}_offsets"].tolist()
        sides.append([ids[a:b] for a, b in pairwise(offsets)])
    return list(zip(*sides, strict=True))


def token_batches(pairs: list[Pair], tokens: int, seed: int) -> Iterator[list[Pair]]:
    """Batches by tokens, for ever: shuffled, sorted by length within pools of some hundred batches, cut where rows x longest row reaches
    `tokens` on either side, and the batches of a pool shuffled again. That is what tutorials and toolkits call bucketing."""
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(len(pairs)).tolist()
        pool = 100 * max(1, tokens // 16)
        for start in range(0, len(order), pool):
            rows = sorted(
                (pairs[i] for i in order[start : start + pool]), key=lambda pair: (len(pair[1]), len(pair[0]))
            )
            batches = list(_cut(rows, tokens))
            rng.shuffle(batches)
            yield from batches


def _cut(rows: list[Pair], tokens: int) -> Iterator[list[Pair]]:
    batch: list[Pair] = []
    longest = 0
    for source, target in rows:
        longest_with = max(longest, len(source) + 1, len(target) + 1)
        if batch and longest_with * (len(batch) + 1) > tokens:
            yield batch
            batch, longest_with = [], max(len(source), len(target)) + 1
        batch.append((source, target))
        longest = longest_with
    if batch:
        yield batch


def padded(rows: list[list[int]]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)


def tensors(batch: list[Pair]) -> tuple[Tensor, Tensor, Tensor]:
    """(source, target input, target output): ids + EOS, BOS + ids, ids + EOS."""
    return (
        padded([[*source, EOS] for source, _ in batch]),
        padded([[BOS, *target] for _, target in batch]),
        padded([[*target, EOS] for _, target in batch]),
    )


def counts(batch: list[Pair]) -> tuple[int, int, int]:
    """(source tokens, target tokens, places in both tensors), end marks included."""
    sources, targets = [len(s) + 1 for s, _ in batch], [len(t) + 1 for _, t in batch]
    return sum(sources), sum(targets), len(batch) * (max(sources) + max(targets))
