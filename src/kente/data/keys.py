"""64-bit fingerprints of texts: the same in every process, 8 bytes a text, so that millions can be compared in little memory."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
_LONGEST_NORMALISED = 5_000  # normalising thousands of stacked marks takes quadratic time


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8"), digest_size=8).digest()


def text_key(text: str, seed: int = 0) -> int:
    """A fingerprint of the text as it stands; another `seed` gives unrelated ones."""
    if not seed:
        return int.from_bytes(_digest(text), "little")
    key = seed.to_bytes(16, "little", signed=True)
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8, key=key).digest(), "little")


def text_keys(texts: Iterable[str]) -> Keys:
    """The fingerprints of many texts."""
    return np.frombuffer(b"".join(map(_digest, texts)), np.dtype("<u8")).astype(np.uint64, copy=False)


def same_sentence(text: str) -> str:
    """The text without what does not make it another sentence: Unicode form, case and spacing."""
    if text.isascii():
        text = text.lower()
    else:
        text = (unicodedata.normalize("NFC", text) if len(text) <= _LONGEST_NORMALISED else text).casefold()
    if "  " not in text and text.isprintable():  # no white space but single spaces
        return text.strip(" ")
    return " ".join(text.split())


def sentence_keys(texts: Iterable[str]) -> Keys:
    """Fingerprints that are equal where `same_sentence` is equal."""
    return text_keys(map(same_sentence, texts))


def composed(text: str) -> str:
    """The text in NFC, without the space around it."""
    if text.isascii() or len(text) > _LONGEST_NORMALISED:
        return text.strip()
    return unicodedata.normalize("NFC", text).strip()


def join_keys(sources: Keys, targets: Keys) -> Keys:
    """One fingerprint for both sides, unlike that of the two sides swapped."""
    return (sources * np.uint64(0x9E3779B97F4A7C15)) ^ (targets + (sources >> np.uint64(29)))


def contains(ordered: Keys, keys: Keys) -> NDArray[np.bool_]:
    """Which of the keys stand in the sorted array?"""
    if not len(ordered):
        return np.zeros(len(keys), bool)
    places = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    found: NDArray[np.bool_] = ordered[places] == keys
    return found


class Seen:
    """A growing set of keys that answers batches: 8 bytes a key, where a Python set takes ninety.

    Sorted arrays whose sizes double, as in a log-structured merge tree: each key is merged about log2(n / batch) times.
    """

    def __init__(self) -> None:
        self._levels: list[Keys] = []

    def add(self, keys: Keys) -> NDArray[np.bool_]:
        """Which of the keys are new, counting the first of equal ones in the batch; all are then in the set."""
        distinct, first = np.unique(keys, return_index=True)
        known = np.zeros(len(distinct), bool)
        for level in self._levels:
            known |= contains(level, distinct)
        new = np.zeros(len(keys), bool)
        new[first[~known]] = True
        fresh = distinct[~known]
        while self._levels and len(self._levels[-1]) < 2 * len(fresh):
            fresh = np.concatenate([self._levels.pop(), fresh])
            fresh.sort(kind="stable")  # timsort merges the two runs
        if len(fresh):
            self._levels.append(fresh)
        return new
