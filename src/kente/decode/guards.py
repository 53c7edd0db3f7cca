"""What may be written next: special ids never, loops and repeats not, nothing beyond the greatest length, a forced beginning as it is."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kente.decode.hypothesis import NEVER, PERIODS, Living
from kente.models.interface import Generator, Narrowable, Output

LOOP_REPEATS = 4  # the same run of tokens this often in a row is a loop ...
LOOP_TOKENS = 8  # ... if it is at least this long: "no no no no" and 10,000 spelt in digits are answers
SAMPLE = 128  # words off the shortlist that speak for all others
HARDLY = -1e4  # log-probability of a forced token that the model would never write


def _run_of_a_loop(period: int) -> int:
    """Tokens in a row that equal the one `period` before them, from which on they are a loop."""
    return max((LOOP_REPEATS - 1) * period, LOOP_TOKENS - period)


@dataclass(frozen=True)
class Words:
    """The words a step weighs: all of them, or those that stand on the shortlist of a sentence at hand.

    Logits (N, A) are then over `ids`. What stands on another's list is `foreign` to a sentence: no answer depends on its neighbours.
    A probability still is a share among all words. How much the words off the list have of it is told by a sample of them, the same for
    all: each of those off a sentence's list speaks for many. Without it answers would grow longer than they do with all words.
    """

    never: Tensor  # columns of the logits that are never chosen
    output: Output | None = None
    ids: Tensor | None = None  # (A,)
    places: Tensor | None = None  # (V,) where an id stands in ids
    foreign: Tensor | None = None  # (B, A)
    speaks_for: Tensor | None = None  # (B, A) logarithm of how many words a column speaks for

    @classmethod
    def of(cls, model: Generator | Narrowable, living: Living, never: Tensor) -> Words:
        """Every word that a living sentence may use, and the sample."""
        allowed, vocabulary = living.allowed, living.allowed.shape[1]
        if not vocabulary:
            return cls(never)
        assert hasattr(model, "narrowed"), "a shortlist needs a model that can weigh a few words alone"
        drawn = torch.zeros(vocabulary, dtype=torch.bool, device=allowed.device)
        drawn[:: max(1, vocabulary // SAMPLE)] = True
        ids = (allowed.any(0) | drawn).nonzero()[:, 0]
        places = ids.new_zeros(vocabulary)
        places[ids] = torch.arange(len(ids), device=ids.device)
        foreign = ~allowed[:, ids]
        sampled = foreign & drawn[ids]
        others = (vocabulary - allowed.sum(1)) / sampled.sum(1)  # words off the list for each that was drawn
        speaks_for = torch.where(sampled, others.log()[:, None], torch.where(foreign, NEVER, 0.0))
        known = never[torch.isin(never, ids)]
        return cls(places[known], model.narrowed(ids), ids, places, foreign, speaks_for)

    def log_softmax(self, logits: Tensor) -> Tensor:
        """log p(word) for each row and column (N, A), -inf where a word is foreign."""
        if self.foreign is None or self.speaks_for is None:
            return torch.log_softmax(logits, dim=-1)
        grouped = logits.view(len(self.foreign), -1, logits.shape[1])  # (B, G, A)
        total = (grouped + self.speaks_for[:, None]).logsumexp(-1, keepdim=True)
        return (grouped - total).masked_fill_(self.foreign[:, None], NEVER).view_as(logits)

    def at(self, ids: Tensor) -> Tensor:
        """The columns of the logits where these ids stand."""
        return ids if self.places is None else self.places[ids]

    def tokens(self, columns: Tensor) -> Tensor:
        """The ids that stand in these columns."""
        return columns if self.ids is None else self.ids[columns]


class Rules:
    """What limits every answer."""

    def __init__(self, eos: int, no_repeat: int, device: torch.device) -> None:
        self.eos = torch.tensor(eos, device=device)
        self.no_repeat = no_repeat
        self.loop_runs = torch.tensor([_run_of_a_loop(period) for period in range(1, PERIODS + 1)], device=device)

    def allow(self, logits: Tensor, living: Living, words: Words) -> Tensor:
        """log p(token) for each row (N, A), -inf where the token may not come next. Notes in `living` where a guard overruled the model."""
        scores = words.log_softmax(logits.float())
        forced, forced_scores = self._forced(scores, living, words)
        scores.index_fill_(1, words.never, NEVER)
        if self.no_repeat:
            forbid_repeats(scores, living.tokens, self.no_repeat, living.each(living.written), words)
        if int(living.written.max()) >= LOOP_TOKENS:
            self._forbid_loops(scores, living, words)
        self._end(scores, living, words)
        if forced is not None:
            rows = forced.nonzero()[:, 0]
            scores[rows] = NEVER
            scores[rows, words.at(forced[rows])] = forced_scores[rows]
        return scores

    def _forced(self, scores: Tensor, living: Living, words: Words) -> tuple[Tensor | None, Tensor]:
        """The token that each row must write, 0 where it is free, and its log-probability."""
        length = living.prefix.shape[1]
        if not length or int(living.written.min()) >= length:
            return None, scores
        place = living.written.clamp(max=length - 1)[:, None]
        forced = living.each(living.prefix.gather(1, place)[:, 0] * (living.written < length))
        # a forced token is written even where the model says never
        return forced, scores.gather(1, words.at(forced)[:, None])[:, 0].clamp(min=HARDLY)

    def _forbid_loops(self, scores: Tensor, living: Living, words: Words) -> None:
        rows, periods = (living.runs >= self.loop_runs).nonzero(as_tuple=True)
        if not len(rows):
            return
        guarded = living.guarded[rows // living.group]
        rows, periods = rows[guarded], periods[guarded]
        again = words.at(living.recent[rows, periods])  # what stood one period before the next place
        wanted = scores[rows, again] >= scores[rows].amax(1)
        living.looped[rows[wanted]] = True
        scores[rows, again] = NEVER

    def _end(self, scores: Tensor, living: Living, words: Words) -> None:
        full = living.written >= living.cap
        if not bool(full.any()):
            return
        rows, eos = living.each(full).nonzero()[:, 0], words.at(self.eos)
        ends = scores[rows, eos]
        living.cut[rows] = ends < scores[rows].amax(1)
        scores[rows] = NEVER
        scores[rows, eos] = ends


def has_loop(tokens: Tensor, mask: Tensor) -> Tensor:
    """Whether each row (B, S) holds what would be broken off as a loop in an answer; (B,)."""
    found = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
    for period in range(1, PERIODS + 1):
        run = _run_of_a_loop(period)
        if tokens.shape[1] >= period + run:
            again = (tokens[:, period:] == tokens[:, :-period]) & mask[:, period:]
            found |= again.unfold(1, run, 1).all(-1).any(-1)
    return found


def forbid_repeats(scores: Tensor, tokens: Tensor, length: int, written: Tensor, words: Words | None = None) -> None:
    """Set to -inf, in place, every token that would write a run of `length` for the second time; of `tokens` (N, T) so many are `written`."""
    longest = int(written.max())
    if longest < length:
        return
    before = torch.arange(1 - length, 0, device=tokens.device)
    begun = tokens.gather(1, (written[:, None] + before).clamp(min=0))  # the run that the next token would end
    runs = tokens[:, :longest].unfold(1, length, 1)  # (N, runs, length)
    whole = torch.arange(length, longest + 1, device=tokens.device) <= written[:, None]
    rows, places = ((runs[..., :-1] == begun[:, None]).all(-1) & whole).nonzero(as_tuple=True)
    again = runs[rows, places, -1]
    scores[rows, again if words is None else words.at(again)] = NEVER
