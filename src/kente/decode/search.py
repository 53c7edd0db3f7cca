"""Search for the answer to a batch of sentences: greedy, beam or sampling, with any model that fits `Generator`.

No architecture and no text in here: ids in, ids out. The answer for a sentence does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from kente.config import DecodeConfig
from kente.decode.beam import beam_search
from kente.decode.guards import NEVER, Rules
from kente.decode.hypothesis import Hypothesis, Living, length_penalty, no_answer
from kente.decode.sampling import Sampler
from kente.models.interface import Generator, State, select

__all__ = ["Hypothesis", "length_penalty", "search"]

SLACK = 10
"""Tokens an answer may always have beyond `max_ratio` times its source."""

Choose = Callable[[Tensor, Tensor, int], Tensor]


@torch.inference_mode()
def search(
    model: Generator,
    source: Tensor,
    source_mask: Tensor,
    config: DecodeConfig,
    *,
    n_best: int = 1,
    prefix: Sequence[Sequence[int]] | None = None,
    max_lengths: int | Sequence[int] | None = None,
    bos: int = 2,
    eos: int = 3,
    pad: int = 0,
    unk: int = 1,
    deadline: Callable[[], bool] | None = None,
) -> list[list[Hypothesis]]:
    """Up to `n_best` answers for each row of source (B, S), best first; with sampling, `n_best` draws.

    `max_lengths` lowers the cap of max_ratio * (source tokens) + SLACK. `deadline` is asked before every step: once it says True, search
    hands back what it has; it may also raise. A beam narrower than `n_best` is widened to it.
    """
    assert n_best >= 1, n_best
    assert prefix is None or len(prefix) == len(source), "one prefix for each row"
    assert not any(token in (bos, eos, pad) for row in prefix or [] for token in row), "a prefix holds no special ids"
    if not len(source):
        return []
    late = deadline or _never
    caps = _caps(source_mask, config.max_ratio, max_lengths)
    rules = Rules(source, source_mask, caps, prefix, config.no_repeat, (pad, unk, bos), eos)
    state = model.start(source, source_mask)
    if config.sample:
        answers = _sample(model, state, source, source_mask, config, rules, bos, n_best, late)
    elif config.beam == 1 and n_best == 1:
        owner = torch.arange(len(source), device=source.device)
        answers = [
            [best]
            for best in follow(model, state, Living.begin(owner, bos), rules, _likeliest, config.length_penalty, late)
        ]
    else:
        answers = beam_search(model, state, rules, bos, max(config.beam, n_best), n_best, config.length_penalty, late)
    return [found or [no_answer()] for found in answers]


def follow(
    model: Generator, state: State, living: Living, rules: Rules, choose: Choose, power: float, late: Callable[[], bool]
) -> list[Hypothesis]:
    """Write every row of `living` to its end, one chosen token after the other. Rows that have ended leave the batch."""
    answers: list[Hypothesis] = [no_answer()] * len(living.owner)
    lines = torch.arange(len(living.owner), device=living.owner.device)  # the answer each row writes
    writing = torch.ones_like(lines, dtype=torch.bool)
    while len(lines):
        if late():
            _collect(answers, lines, living, writing, power, ended=False)
            break
        step = model.step(state, living.tokens[:, -1])
        scores = rules.allow(step.logits, living)
        tokens = choose(scores, lines, living.written)
        gained = scores.gather(1, tokens[:, None])[:, 0]
        ends = writing & (tokens == rules.eos)
        total = living.log_probability + gained
        if bool(ends.any()):
            living.log_probability = total
            _collect(answers, lines, living, ends & (total > NEVER), power, ended=True)
        living.write(tokens, total)
        state = step.state
        writing &= (tokens != rules.eos) & (total > NEVER)  # false for NaN too
        left = int(writing.sum())
        if left <= 0.75 * len(lines):  # copying the state has a price: let a few leave together
            stay = writing.nonzero()[:, 0]
            state, living, lines, writing = select(state, stay), select(living, stay), lines[stay], writing[stay]
    return answers


def _collect(
    answers: list[Hypothesis], lines: Tensor, living: Living, which: Tensor, power: float, ended: bool
) -> None:
    rows = which.nonzero()[:, 0]
    for line, hypothesis in zip(lines[rows].tolist(), select(living, rows).hypotheses(power, ended), strict=True):
        answers[line] = hypothesis


def _sample(
    model: Generator,
    state: State,
    source: Tensor,
    source_mask: Tensor,
    config: DecodeConfig,
    rules: Rules,
    bos: int,
    samples: int,
    late: Callable[[], bool],
) -> list[list[Hypothesis]]:
    sentences = [row[mask].tolist() for row, mask in zip(source, source_mask, strict=True)]
    sampler = Sampler(config, sentences, samples, (rules.caps + 1).tolist(), source.device)
    owner = torch.arange(len(source), device=source.device).repeat_interleave(samples)
    drawn = follow(model, select(state, owner), Living.begin(owner, bos), rules, sampler, config.length_penalty, late)
    rows = [drawn[start : start + samples] for start in range(0, len(drawn), samples)]
    return [sorted(row, key=lambda h: -h.score) for row in rows]


def _likeliest(scores: Tensor, lines: Tensor, position: int) -> Tensor:
    return scores.argmax(dim=1)


def _caps(source_mask: Tensor, max_ratio: float, max_lengths: int | Sequence[int] | None) -> Tensor:
    """Most tokens an answer may have, from the length of its own source."""
    caps = (source_mask.sum(1) * max_ratio).long() + SLACK
    if max_lengths is None:
        return caps
    return torch.minimum(caps, torch.as_tensor(max_lengths, device=caps.device, dtype=caps.dtype))


def _never() -> bool:
    return False
