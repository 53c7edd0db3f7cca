"""A Transformer to look into: the one of a run, or a small one trained here on the embedded grammar."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from kente.config import TokenizerConfig, TransformerConfig
from kente.data.batches import Batch, collate
from kente.data.grammar import GrammarPair, generate, words
from kente.data.sampling import SPACE
from kente.data.store import Store
from kente.data.tokenizer import BOS, EOS, Tokenizers, train_tokenizers
from kente.errors import RunError
from kente.lectures.practice import next_right, practise, seeded
from kente.models.transformer import Transformer
from kente.reporting import Reporter
from kente.runs import Run

LONGEST = 8
"""Words in the sentences the small model learns from."""
HELD_BACK = 200
BATCH = 64
UPDATES = 400

Head = tuple[int, int]
"""(layer, head), both from 0."""


@dataclass(frozen=True)
class Subject:
    """A trained Transformer, its tokenizers, and sentences that it was not trained on."""

    model: Transformer
    tokenizers: Tokenizers
    about: str
    sentences: list[list[int]]
    """Source ids, without the end mark."""
    in_words: bool = False
    """Its texts are cut into words and marks first, with a space between any two."""

    def source(self, text: str) -> list[int]:
        return self.tokenizers.source.encode(self._cut(text, "english"))

    def target(self, text: str) -> list[int]:
        return self.tokenizers.target.encode(self._cut(text, "french"))

    def _cut(self, text: str, language: Literal["english", "french"]) -> str:
        return " ".join(words(text, language)) if self.in_words else text

    def source_names(self, ids: list[int]) -> list[str]:
        return [_name(piece) for piece in self.tokenizers.source.pieces(ids)]

    def target_names(self, ids: list[int]) -> list[str]:
        return [_name(piece) for piece in self.tokenizers.target.pieces(ids)]

    def encoder_maps(self, source: list[int]) -> dict[Head, Tensor]:
        """Self-attention (S, S) of every encoder head; the source ends with its mark."""
        return self._look("encoder", source, [])

    def decoder_maps(self, source: list[int], target: list[int]) -> dict[Head, Tensor]:
        """Self-attention (T, T) of every decoder head; the target begins with its mark."""
        return self._look("decoder", source, target)

    @torch.inference_mode()
    def _look(self, kind: str, source: list[int], target: list[int]) -> dict[Head, Tensor]:
        ids = torch.tensor([[*source, EOS]])
        maps = self.model.look(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[BOS, *target]]))
        return {(m.layer, m.head): m.weights[0] for m in maps if m.kind == kind}


def _name(piece: str) -> str:
    """A subword that begins a word says so by a space that can be seen; under a picture it need not."""
    return piece.removeprefix(SPACE) or SPACE


def subject(run: Path | None, reporter: Reporter, updates: int = UPDATES) -> Subject:
    """The Transformer of `run`; without a run a small one, trained now."""
    return _of_run(run) if run is not None else _small(reporter, updates)


def _of_run(path: Path) -> Subject:
    run = Run.open(path)
    model = run.model()
    if not isinstance(model, Transformer):
        raise RunError(
            f"{path} holds a {run.config.model.kind} model, which has no heads to look into; name the run of a transformer, or none"
        )
    tokenizers = run.tokenizers()
    store = Store.open(path / "data" / "validation", tokenizers.sha256)
    sentences = [[int(i) for i in store.source(row)] for row in range(min(len(store), HELD_BACK))]
    return Subject(model, tokenizers, f"the run {path}", sentences)


@cache
def _small(reporter: Reporter, updates: int, count: int = 6000) -> Subject:
    """Trained once for all experiments that ask with the same reporter."""
    pairs = list(generate(1, count + HELD_BACK, max_words=LONGEST))
    held_back, pairs = pairs[:HELD_BACK], pairs[HELD_BACK:]
    texts = [(" ".join(pair.source_words), " ".join(pair.target_words)) for pair in pairs]
    tokenizers = train_tokenizers(lambda: iter(texts), TokenizerConfig(kind="words"))
    config = TransformerConfig(
        encoder_layers=2, decoder_layers=2, width=96, feedforward=192, heads=4, dropout=0.0, norm_place="pre"
    )
    with seeded(1):
        model = Transformer(config, tokenizers.source.size, tokenizers.target.size)
        ids = [(tokenizers.encode_source(source), tokenizers.encode_target(target)) for source, target in texts]

        def batch_of(step: int) -> Batch:
            chosen = random.Random(step).sample(ids, BATCH)
            return collate([source for source, _ in chosen], [target for _, target in chosen])

        practise(model, batch_of, updates, reporter, "a small translator", rate=3e-3)
    sides = [_encode(tokenizers, pair) for pair in held_back]
    right = next_right(model, collate([source for source, _ in sides], [target for _, target in sides]))
    about = f"a small Transformer trained here for {updates} updates ({right:.0%} of the next words right on sentences held back)"
    return Subject(model, tokenizers, about, [source for source, _ in sides], in_words=True)


def _encode(tokenizers: Tokenizers, pair: GrammarPair) -> tuple[list[int], list[int]]:
    return tokenizers.encode_source(" ".join(pair.source_words)), tokenizers.encode_target(" ".join(pair.target_words))
