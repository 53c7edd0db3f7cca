"""A translation written again, piece by piece: how likely each was, what else might have come, and what changes without a word of the source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from kente.config import DecodeConfig
from kente.data.tokenizer import BOS, EOS, PAD, Tokenizer
from kente.decode.answers import most_tokens
from kente.decode.engine import Question
from kente.decode.torch_engine import TorchEngine
from kente.measure.explored import Candidate, Step, Weights, Word

SHOWN = 8
"""Candidates of each step."""
TOGETHER = 64
"""Sources read at once."""


@torch.inference_mode()
def distributions(engine: TorchEngine, sources: Sequence[Sequence[int]], target: Sequence[int]) -> Iterator[Tensor]:
    """log p(piece | source, what stands before it) for each source (B, V), step by step while the target is written."""
    rows = [[*source, EOS] for source in sources]
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[PAD] * (width - len(row))] for row in rows], device=engine.device)
    lengths = torch.tensor([[len(row)] for row in rows], device=engine.device)
    state = engine.model.start(ids, torch.arange(width, device=engine.device) < lengths)
    for token in (BOS, *target):
        step = engine.model.step(state, torch.full((len(rows),), token, device=engine.device))
        state = step.state
        yield step.logits.float().log_softmax(-1)


def steps_of(
    engine: TorchEngine, tokenizer: Tokenizer, source: Sequence[int], target: Sequence[int]
) -> tuple[Step, ...]:
    """A step for each piece of the target and its end mark, without the beam."""
    steps = []
    for token, (likely,) in zip((*target, EOS), distributions(engine, [source], target), strict=True):
        best = likely.topk(min(SHOWN, len(likely)))
        shares = zip(tokenizer.pieces(best.indices.tolist()), best.values.exp().tolist(), strict=True)
        candidates = tuple(Candidate(piece, share) for piece, share in shares)
        rank = 1 + int((likely > likely[token]).sum())
        steps.append(Step(tokenizer.pieces([token])[0], float(likely[token].exp()), rank, candidates))
    return tuple(steps)


def probabilities(engine: TorchEngine, sources: Sequence[Sequence[int]], target: Sequence[int]) -> Weights:
    """p of each piece of the target and of its end mark, for each source: (sources, T + 1)."""
    found: list[Weights] = [np.zeros((0, len(target) + 1), dtype=np.float32)]
    for begin in range(0, len(sources), TOGETHER):
        steps = zip((*target, EOS), distributions(engine, sources[begin : begin + TOGETHER], target), strict=True)
        found.append(torch.stack([likely[:, token].exp() for token, likely in steps], dim=1).cpu().numpy())
    return np.concatenate(found)


def left_out(ids: Sequence[int], words: Sequence[Word]) -> list[list[int]]:
    """The ids without each of the words."""
    return [[*ids[: word.begin], *ids[word.end :]] for word in words]


def answers_without(
    engine: TorchEngine,
    tokenizer: Tokenizer,
    question: Question,
    variants: Sequence[Sequence[int]],
    config: DecodeConfig,
) -> tuple[str, ...]:
    """What the model makes of each variant of the source, taking the likeliest piece each time."""
    caps = [min(question.cap, most_tokens(len(ids) + 1, config.max_ratio)) for ids in variants]
    questions = [Question(list(ids), cap) for ids, cap in zip(variants, caps, strict=True)]
    answers = engine.search(questions, replace(config, beam=1, sample=False))
    return tuple(tokenizer.decode(found[0].ids) for found in answers)
