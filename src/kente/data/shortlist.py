"""The words a sentence may well be answered with, learnt from the training pairs: a decoder then weighs hundreds of words, not all.

IBM model 1 (Brown et al., 1993): every target word t of a pair comes from one source word s of it, or from none (here: the end mark).

expect     c(t | s) = sum over pairs and places of   p(t | s) / sum_s' p(t | s')
maximise   p(t | s) = c(t | s) / sum_t' c(t' | s)
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from kente.data.store import Store
from kente.data.tokenizer import EOS, SPECIALS
from kente.durable import replace_file
from kente.errors import RunError

FORMAT = "1"
DEPTH = 100
"""Candidates kept for each source word; fewer may be used."""
FREQUENT = 100
"""The most frequent target words, which every sentence may use; an engine for which more of them cost little may ask for more."""
ROUNDS = 4
"""Of expectation and maximisation; many more let rare source words claim whatever stands beside them."""
PLACES = 8_000_000
"""Pairs of a source and a target word looked at; a corpus with more is sampled."""
SEEN = 20
"""In a sample each source word stands this often at least, if it does in the corpus."""
SAMPLED = 150_000
"""Sentence pairs that a sample is drawn from."""

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Shortlist:
    """For each source word the target words it may become, likeliest first."""

    always: Ids  # target ids that every sentence may use
    table: NDArray[np.int32]  # (source vocabulary, candidates), filled up with EOS
    vocabulary: int  # target ids there are
    seen: Ids = field(
        default_factory=lambda: np.zeros(0, np.int64)
    )  # target ids of the corpus, the most frequent first

    def first(self, count: int, frequent: int = 0) -> Shortlist:
        """Only the `count` likeliest of each source word, and for every sentence the `frequent` most frequent ones too."""
        always = np.union1d(self.always, self.seen[:frequent])
        return replace(self, table=self.table[:, :count], always=always)

    def candidates(self, source_id: int) -> Ids:
        """What one source word may become, likeliest first."""
        row = self.table[source_id]
        return row[row != EOS].astype(np.int64)

    def for_batch(self, source_ids: Iterable[int] | NDArray[Any]) -> Ids:
        """Sorted ids that sentences of these source words may use."""
        return np.flatnonzero(self.allowed([np.fromiter(source_ids, np.int64)])[0])

    def allowed(self, sentences: Sequence[Sequence[int] | NDArray[Any]]) -> NDArray[np.bool_]:
        """(sentences, vocabulary) whether a sentence may use a word: always, or because of one of its source words."""
        allowed = np.zeros((len(sentences), self.vocabulary), dtype=np.bool_)
        allowed[:, self.always] = True
        allowed[:, EOS] = True
        for row, sentence in zip(allowed, sentences, strict=True):
            row[self.table[np.asarray(sentence, np.int64)]] = True
        return allowed

    # --- on disk ---

    @functools.cached_property
    def sha256(self) -> str:
        """Stands for all that is in it."""
        return _sha256(self._arrays, {})

    @property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"always": self.always, "table": np.ascontiguousarray(self.table), "seen": self.seen}

    def save(self, path: Path, tokenizer_sha256: str) -> None:
        """Write the list, bound to the tokenizer whose ids it speaks of."""
        arrays = self._arrays
        about = {"format": FORMAT, "tokenizer_sha256": tokenizer_sha256, "vocabulary": str(self.vocabulary)}
        about["sha256"] = _sha256(arrays, about)
        replace_file(path, save(arrays, about))

    @classmethod
    def load(cls, path: Path, tokenizer_sha256: str) -> Shortlist:
        """Read a list; refused when it is damaged or speaks of another tokenizer's ids. It can always be learnt again."""
        try:
            with safe_open(path, framework="numpy") as file:
                about, arrays = file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise RunError(f"cannot read {path}: {error}") from error
        if about.pop("sha256", "") != _sha256(arrays, about) or about["format"] != FORMAT:
            raise RunError(f"{path} is damaged, or from another version of kente")
        if about["tokenizer_sha256"] != tokenizer_sha256:
            raise RunError(f"{path} speaks of another tokenizer's ids than those in use")
        seen = arrays.get("seen", np.zeros(0, np.int64))  # older lists do not tell
        return cls(arrays["always"], arrays["table"], int(about["vocabulary"]), seen)


def _sha256(arrays: dict[str, NDArray[Any]], about: dict[str, str]) -> str:
    shapes = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
    heading = json.dumps([shapes, about], sort_keys=True).encode()
    return hashlib.sha256(heading + b"".join(arrays[name].tobytes() for name in sorted(arrays))).hexdigest()


# --- learning ---


def learn(
    store: Store, *, joint: bool, depth: int = DEPTH, frequent: int = FREQUENT, places: int = PLACES
) -> Shortlist:
    """The list of a corpus. In a `joint` vocabulary a source word may always stay as it is: names, numbers, signs."""
    sizes = (int(store.meta["source"]["vocabulary"]), int(store.meta["target"]["vocabulary"]))
    source, target, probability = translations(store, sample(store, places))
    order = np.lexsort((-probability, source))
    source, target = source[order], target[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    kept = rank < depth
    table = np.full((sizes[0], depth), EOS, dtype=np.int32)
    table[source[kept], rank[kept]] = target[kept]
    if joint:
        _first_itself(table)
    counts = np.bincount(store.sides[1].ids[:: max(1, len(store.sides[1].ids) // 10_000_000)], minlength=sizes[1])
    seen = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    return Shortlist(np.union1d(seen[:frequent], np.arange(len(SPECIALS))), table, sizes[1], seen)


def _first_itself(table: NDArray[np.int32]) -> None:
    """Each id stands first on its own list, in place."""
    own = np.arange(len(table), dtype=np.int32)
    rows, there = np.nonzero(table == own[:, None])
    last = np.full(len(table), table.shape[1] - 1)
    last[rows] = there  # what stands before it moves down by one
    for column in range(table.shape[1] - 1, 0, -1):
        table[:, column] = np.where(column <= last, table[:, column - 1], table[:, column])
    table[:, 0] = own


def sample(store: Store, places: int) -> Ids:
    """Rows of the store with about so many pairs of words: all, or such that no source word is missed that need not be, and at random."""
    sizes = (store.source_lengths.astype(np.int64) + 1) * store.target_lengths
    if sizes.sum() <= places:
        return np.arange(len(store))
    stride = max(1, len(store) // SAMPLED)
    rows = np.random.default_rng(0).permutation(np.arange(0, len(store), stride))
    lengths = store.source_lengths[rows].astype(np.int64)
    words = store.sides[0].ids[spans(store.sides[0].offsets[rows], lengths)]
    order = np.argsort(words, kind="stable")
    nth = np.empty(len(words), np.int64)  # the how manieth of its kind a word is
    nth[order] = np.arange(len(words)) - np.searchsorted(words[order], words[order])
    needed = np.zeros(len(rows), dtype=np.bool_)
    needed[np.repeat(np.arange(len(rows)), lengths)[nth < SEEN]] = True
    rows = np.concatenate([rows[needed], rows[~needed]])
    enough = int(np.searchsorted(np.cumsum(sizes[rows]), places)) + 1
    return np.sort(rows[:enough])


def translations(store: Store, rows: Ids, rounds: int = ROUNDS) -> tuple[Ids, Ids, NDArray[np.float64]]:
    """(s, t, p(t | s)) for every source and target word that stand in one pair of `rows`, sorted by s; by IBM model 1."""
    size = int(store.meta["target"]["vocabulary"])
    lengths = [side[rows].astype(np.int64) for side in (store.source_lengths, store.target_lengths)]
    target = store.sides[1].ids[spans(store.sides[1].offsets[rows], lengths[1])].astype(np.int64)
    ends = np.cumsum(lengths[0] + 1)
    source = np.full(int(ends[-1]), EOS, dtype=np.int64)  # each sentence with its end mark, which stands for no word
    source[spans(ends - lengths[0] - 1, lengths[0])] = store.sides[0].ids[
        spans(store.sides[0].offsets[rows], lengths[0])
    ]
    # every target word beside all source words of its sentence, one group after the other
    group = np.repeat(lengths[0] + 1, lengths[1])
    begins = np.cumsum(group) - group
    beside = source[spans(np.repeat(ends - lengths[0] - 1, lengths[1]), group)]
    kinds, kind = np.unique(beside * size + np.repeat(target, group), return_inverse=True)
    s, t = np.divmod(kinds, size)
    probability = np.ones(len(kinds))
    for _ in range(rounds):
        share = probability[kind]
        share /= np.repeat(np.add.reduceat(share, begins), group)
        expected = np.bincount(kind, share, minlength=len(kinds))
        probability = expected / np.bincount(s, expected)[s]
    return s, t, probability


def spans(starts: Ids, lengths: Ids) -> Ids:
    """start, start + 1, ..., start + length - 1 for each, one after the other."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
