"""What may be written next: special ids never, loops and repeats not, nothing beyond the greatest length, a forced beginning as it is."""

from __future__ import annotations

import torch
from torch import Tensor

from kente.decode.answers import LOOP_TOKENS, PERIODS, run_of_a_loop
from kente.decode.hypothesis import NEVER, Living
from kente.decode.words import Words

HARDLY = -1e4  # log-probability of a forced token that the model would never write


class Rules:
    """What limits every answer."""

    def __init__(self, eos: int, no_repeat: int, device: torch.device) -> None:
        self.eos = eos
        self.no_repeat = no_repeat
        self.loop_runs = torch.tensor([run_of_a_loop(period) for period in range(1, PERIODS + 1)], device=device)

    def allow(self, logits: Tensor, living: Living, words: Words) -> Tensor:
        """log p(token) for each row (N, A), -inf where the token may not come next. Notes in `living` where a guard overruled the model."""
        scores = words.log_softmax(logits.float())
        forced, forced_scores = self._forced(scores, living, words)
        words.forbid(scores)
        if self.no_repeat:
            rows, again = repeats(living.tokens, self.no_repeat, living.each(living.written))
            scores[rows, words.columns(rows // living.group, again)] = NEVER
        if int(living.written.max()) >= LOOP_TOKENS:
            self._forbid_loops(scores, living, words, forced)
        self._end(scores, living, words)
        if forced is not None:
            rows = forced.nonzero()[:, 0]
            scores[rows] = NEVER
            scores[rows, words.columns(rows // living.group, forced[rows])] = forced_scores[rows]
        return scores

    def _forced(self, scores: Tensor, living: Living, words: Words) -> tuple[Tensor | None, Tensor]:
        """The token that each row must write, 0 where it is free, and its log-probability."""
        length = living.prefix.shape[1]
        if not length or int(living.written.min()) >= length:
            return None, scores
        place = living.written.clamp(max=length - 1)[:, None]
        forced = living.each(living.prefix.gather(1, place)[:, 0] * (living.written < length))
        # a forced token is written even where the model says never
        sentences = torch.arange(len(scores), device=scores.device) // living.group
        return forced, scores.gather(1, words.columns(sentences, forced)[:, None])[:, 0].clamp(min=HARDLY)

    def _forbid_loops(self, scores: Tensor, living: Living, words: Words, forced: Tensor | None) -> None:
        looping = living.runs >= self.loop_runs
        if forced is not None:  # a forced beginning may go round
            looping &= (forced == 0)[:, None]
        rows, periods = looping.nonzero(as_tuple=True)
        if not len(rows):
            return
        guarded = living.guarded[rows // living.group]
        rows, periods = rows[guarded], periods[guarded]
        again = words.columns(rows // living.group, living.recent[rows, periods])  # what stood one period before
        wanted = scores[rows, again] >= scores[rows].amax(1)
        living.looped[rows[wanted]] = True
        scores[rows, again] = NEVER

    def _end(self, scores: Tensor, living: Living, words: Words) -> None:
        full = living.written >= living.cap
        if not bool(full.any()):
            return
        rows = living.each(full).nonzero()[:, 0]
        eos = words.columns(rows // living.group, torch.full_like(rows, self.eos))
        ends = scores[rows, eos]
        living.cut[rows] = ends < scores[rows].amax(1)
        scores[rows] = NEVER
        scores[rows, eos] = ends


def has_loop(tokens: Tensor, mask: Tensor) -> Tensor:
    """Whether each row (B, S) holds what would be broken off as a loop in an answer; (B,)."""
    found = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
    for period in range(1, PERIODS + 1):
        run = run_of_a_loop(period)
        if tokens.shape[1] >= period + run:
            again = (tokens[:, period:] == tokens[:, :-period]) & mask[:, period:]
            found |= again.unfold(1, run, 1).all(-1).any(-1)
    return found


def repeats(tokens: Tensor, length: int, written: Tensor) -> tuple[Tensor, Tensor]:
    """(rows, ids) of every id that would write a run of `length` for the second time; of `tokens` (N, T) so many are `written`."""
    longest = int(written.max())
    if longest < length:
        return written[:0], written[:0]
    before = torch.arange(1 - length, 0, device=tokens.device)
    begun = tokens.gather(1, (written[:, None] + before).clamp(min=0))  # the run that the next token would end
    runs = tokens[:, :longest].unfold(1, length, 1)  # (N, runs, length)
    whole = torch.arange(length, longest + 1, device=tokens.device) <= written[:, None]
    rows, places = ((runs[..., :-1] == begun[:, None]).all(-1) & whole).nonzero(as_tuple=True)
    return rows, runs[rows, places, -1]
