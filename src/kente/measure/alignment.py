"""Does attention look where a translator would? Attention weights against gold word alignments.

    alignment error rate = 1 - 2 |A and G| / (|A| + |G|)      (Och and Ney, 2003, where every gold link is sure)

A holds, for each target word, the one source word it looks at most while it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from kente.data.batches import collate
from kente.data.tokenizer import Tokenizers
from kente.measure.comparison import Alignment
from kente.models.interface import Generator

Links = set[tuple[int, int]]
BATCH = 32


@dataclass(frozen=True)
class GoldPair:
    """Two sentences as words, and which words translate each other: (index in source, index in target)."""

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: frozenset[tuple[int, int]]


def words_of_pieces(pieces: Sequence[str], words: Sequence[str]) -> list[list[int]] | None:
    """For each piece the words it is a part of; None where the pieces do not spell the words (something was unknown)."""
    owner = [index for index, word in enumerate(words) for _ in word.encode()]
    found, place = [], 0
    for piece in pieces:
        length = len(_spelling(piece))
        found.append(sorted(set(owner[place : place + length])))
        place += length
    spelled = b"".join(map(_spelling, pieces))
    return found if spelled == "".join(words).encode() else None


def _spelling(piece: str) -> bytes:
    """The bytes a piece stands for, blanks aside."""
    byte = re.fullmatch(r"<0x([0-9A-F]{2})>", piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace("▁", "").replace(" ", "").encode()


@torch.inference_mode()
def cross_attention(
    model: Generator, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], device: torch.device | str
) -> list[NDArray[np.float32]]:
    """For each pair (layers, T + 1, S + 1), heads averaged, ends of sentence included; no layers where a model does not attend."""
    found: list[NDArray[np.float32]] = []
    for begin in range(0, len(sources), BATCH):
        batch = collate(list(sources[begin : begin + BATCH]), list(targets[begin : begin + BATCH])).to(device)
        maps = [m for m in model.look(batch.source, batch.source_mask, batch.target_input) if m.kind == "cross"]
        layers = sorted({m.layer for m in maps})
        means = [torch.stack([m.weights for m in maps if m.layer == layer]).mean(0).cpu().numpy() for layer in layers]
        for row, (source, target) in enumerate(
            zip(sources[begin : begin + BATCH], targets[begin : begin + BATCH], strict=True)
        ):
            shape = (0, len(target) + 1, len(source) + 1)
            kept = [mean[row, : shape[1], : shape[2]] for mean in means]
            found.append(np.stack(kept) if kept else np.zeros(shape, dtype=np.float32))
    return found


def links_of(weights: NDArray[np.float32], source: list[list[int]], target: list[list[int]]) -> Links:
    """Each target word with the source word that its pieces look at most: weights (T + 1, S + 1), words of each piece."""
    count = 1 + max((word for words in source for word in words), default=-1)
    by_word = np.zeros((len(weights), max(count, 1)))
    for column, words in enumerate(source):
        for word in words:
            by_word[:, word] += weights[:, column] / len(words)
    looks: dict[int, NDArray[np.float64]] = {}
    for row, words in enumerate(target):
        for word in words:
            looks[word] = looks.get(word, np.zeros(by_word.shape[1])) + by_word[row]
    return {(int(look.argmax()), word) for word, look in looks.items()}


def error_rate(pairs: Iterable[tuple[Links, Links]]) -> tuple[float, float, float]:
    """(alignment error rate, precision, recall) over pairs of (found, gold) links."""
    right = found = gold = 0
    for guess, truth in pairs:
        right, found, gold = right + len(guess & truth), found + len(guess), gold + len(truth)
    if not found or not gold:
        return 1.0, 0.0, 0.0
    return 1 - 2 * right / (found + gold), right / found, right / gold


def alignment_of(
    model: Generator,
    tokenizers: Tokenizers,
    tuning: Sequence[GoldPair],
    test: Sequence[GoldPair],
    device: torch.device | str = "cpu",
) -> Alignment | None:
    """How a model's attention agrees with gold links of `test`, read from the layer that agrees best on `tuning`; None without attention."""
    tuned = _links_by_layer(model, tokenizers, tuning, device)
    if not tuned:
        return None
    layer = min(range(len(tuned)), key=lambda index: error_rate(tuned[index])[0])
    rate, precision, recall = error_rate(_links_by_layer(model, tokenizers, test, device)[layer])
    return Alignment(rate, precision, recall, layer, len(tuned))


def _links_by_layer(
    model: Generator, tokenizers: Tokenizers, pairs: Sequence[GoldPair], device: torch.device | str
) -> list[list[tuple[Links, Links]]]:
    """For each layer, (found, gold) of every pair that the tokenizers can spell."""
    sources = [tokenizers.encode_source(pair.source) for pair in pairs]
    targets = [tokenizers.encode_target(pair.target) for pair in pairs]
    before, begun = (len(marks) for marks in tokenizers.marks)
    layers: list[list[tuple[Links, Links]]] = []
    for pair, source, target, weights in zip(
        pairs, sources, targets, cross_attention(model, sources, targets, device), strict=True
    ):
        source_words = words_of_pieces(tokenizers.source.pieces(source[before:]), pair.source_words)
        target_words = words_of_pieces(tokenizers.target.pieces(target[begun:]), pair.target_words)
        if source_words is None or target_words is None:
            continue
        layers = layers or [[] for _ in weights]
        for layer, weight in zip(layers, weights, strict=True):
            layer.append((links_of(weight[begun:, before:], source_words, target_words), set(pair.links)))
    return layers
