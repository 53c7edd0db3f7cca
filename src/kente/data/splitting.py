"""Holding out validation and test pairs by source sentence, so that no sentence is on both sides of the fence.

A sentence's fingerprint, keyed with the seed, decides where it goes: the same corpus and seed give the same split in any order of reading,
and a corpus that grows keeps most of its held-out sentences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kente.data.corpus import Corpus, Pair
from kente.data.keys import Keys, same_sentence, sentence_keys, text_key
from kente.data.tags import KNOWN, untagged
from kente.errors import CorpusError


@dataclass(frozen=True)
class Split:
    """Three corpora that share no source sentence; validation or test is empty where none was asked for."""

    train: Corpus
    validation: Corpus
    test: Corpus


def hold_out(corpus: Corpus, validation: int = 0, test: int = 0, seed: int = 1) -> Split:
    """Hold out as many pairs as asked for; fewer only where sentences with many translations would overshoot."""
    keys = np.fromiter((text_key(same_sentence(pair.source), seed) for pair in corpus), np.uint64)
    if min(validation, test) < 0 or validation + test >= max(1, len(keys)):
        raise CorpusError(
            f"{corpus.name} has {len(keys):,} pairs: too few to hold out {validation:,} for validation and {test:,} for test; "
            "give separate files, or hold out fewer"
        )
    distinct, counts = np.unique(keys, return_counts=True)
    for_test = _take(distinct, counts, test, frozenset())
    for_validation = _take(distinct, counts, validation, for_test)
    if (test and not for_test) or (validation and not for_validation):
        raise CorpusError(
            f"{corpus.name} has only {len(distinct):,} different source sentences, each with too many translations to hold out "
            f"{validation:,} pairs for validation and {test:,} for test; give separate files"
        )
    held = for_test | for_validation
    return Split(
        Corpus(f"{corpus.name} (training part)", _Part(corpus, held, seed, inside=False)),
        Corpus(f"{corpus.name} (validation part)", _Part(corpus, for_validation, seed, inside=True)),
        Corpus(f"{corpus.name} (test part)", _Part(corpus, for_test, seed, inside=True)),
    )


def _take(distinct: Keys, counts: NDArray[np.int64], wanted: int, taken: frozenset[int]) -> frozenset[int]:
    """The first free sentences in the order of their keys, up to `wanted` pairs; one with too many translations is passed over."""
    chosen: set[int] = set()
    for key, number in zip(distinct, counts, strict=True):
        if wanted <= 0:
            break
        if number <= wanted and int(key) not in taken:
            chosen.add(int(key))
            wanted -= int(number)
    return frozenset(chosen)


@dataclass(frozen=True)
class _Part:
    """The pairs whose source sentence is inside, or outside, a set."""

    corpus: Corpus
    keys: frozenset[int]
    seed: int
    inside: bool

    def __call__(self) -> Iterator[Pair]:
        if self.inside and not self.keys:
            return
        for pair in self.corpus:
            if (text_key(same_sentence(pair.source), self.seed) in self.keys) == self.inside:
                yield pair


def default_validation_size(pairs: int) -> int:
    """Pairs to hold out when no validation files are given: a twentieth, from 20 to 1,000, never more than a fifth."""
    return min(1000, max(20, pairs // 20), pairs // 5)


def held_out_keys(*corpora: Corpus | Iterable[Pair], tags: Collection[str] = KNOWN) -> Keys:
    """Sorted keys of the corpora's sources without their marks, for `Cleaner(exclude=...)`."""
    return np.unique(
        np.concatenate([sentence_keys(untagged(pair.source, tags) for pair in corpus) for corpus in corpora])
    )
