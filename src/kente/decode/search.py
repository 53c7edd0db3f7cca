"""Search for the answers to many sentences: greedy, beam or sampling, with any model that fits `Generator`.

No architecture and no text in here: ids in, ids out. The answer for a sentence does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from kente.config import DecodeConfig
from kente.data.shortlist import Shortlist
from kente.decode.answers import Hypothesis, most_tokens, no_answer
from kente.decode.beam import Beam
from kente.decode.following import Follow, greedy
from kente.decode.guards import Rules
from kente.decode.queue import Desk, Queue, Request
from kente.decode.sampling import Sampler
from kente.models.interface import Generator


def search(
    model: Generator, source: Tensor, source_mask: Tensor, config: DecodeConfig, **how: Any
) -> list[list[Hypothesis]]:
    """Answers to each row of source (B, S), all searched for at once; `how` as for `search_all`."""
    sentences = [row[mask].tolist() for row, mask in zip(source, source_mask, strict=True)]
    return search_all(model, sentences, config, device=source.device, **how)


@torch.inference_mode()
def search_all(
    model: Generator,
    sentences: Sequence[Sequence[int]],
    config: DecodeConfig,
    *,
    room: int | None = None,
    n_best: int = 1,
    prefix: Sequence[Sequence[int]] | None = None,
    max_lengths: int | Sequence[int] | None = None,
    shortlist: Shortlist | None = None,
    bos: int = 2,
    eos: int = 3,
    pad: int = 0,
    unk: int = 1,
    deadline: Callable[[], bool] | None = None,
    device: torch.device | str = "cpu",
) -> list[list[Hypothesis]]:
    """Up to `n_best` answers to each sentence, a list of ids that ends with EOS, best first; with sampling, `n_best` draws.

    `room` is how many source tokens, padding included, are worked on at once: the longest sentences first, and in the places of those
    that have ended the next ones. Without it all are, in their order. `max_lengths` lowers the cap of max_ratio * (source tokens) + SLACK.
    With a `shortlist` only its words are weighed. `deadline` is asked before every step: once it says True, search hands back what it
    has; it may also raise. A beam narrower than `n_best` is widened to it.
    """
    assert n_best >= 1, n_best
    assert prefix is None or len(prefix) == len(sentences), "one prefix for each sentence"
    assert not any(token in (bos, eos, pad) for row in prefix or [] for token in row), "a prefix holds no special ids"
    if not sentences:
        return []
    device = torch.device(device)
    requests = _requests(sentences, config.max_ratio, prefix, max_lengths)
    method = choose_method(requests, config, n_best, Rules(eos, config.no_repeat, device), device)
    desk = Desk(model, method, (pad, unk, bos), bos, shortlist, device)
    desk.work(Queue(requests, room), deadline or _never)
    return [found or [no_answer()] for found in method.answers()]


def _requests(
    sentences: Sequence[Sequence[int]],
    max_ratio: float,
    prefix: Sequence[Sequence[int]] | None,
    max_lengths: int | Sequence[int] | None,
) -> list[Request]:
    requests = []
    for owner, sentence in enumerate(sentences):
        limit = max_lengths if max_lengths is None or isinstance(max_lengths, int) else max_lengths[owner]
        begin, cap = prefix[owner] if prefix else (), most_tokens(len(sentence), max_ratio, limit)
        requests.append(Request(owner, sentence, begin, max(cap, len(begin))))
    return requests


def choose_method(
    requests: list[Request], config: DecodeConfig, n_best: int, rules: Rules, device: torch.device
) -> Beam | Follow:
    """How the settings want tokens to be chosen."""
    count, power = len(requests), config.length_penalty
    if config.sample:
        sources, steps = [list(r.source) for r in requests], [r.cap + 1 for r in requests]
        return Follow(count, rules, Sampler(config, sources, n_best, steps, device), n_best, power)
    if config.beam == 1 and n_best == 1:
        return Follow(count, rules, greedy, 1, power)
    return Beam(count, rules, max(config.beam, n_best), n_best, power, device)


def _never() -> bool:
    return False
