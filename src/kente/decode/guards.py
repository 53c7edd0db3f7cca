"""What may be written next: special ids never, loops and repeats not, nothing beyond the greatest length, a forced beginning as it is."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kente.decode.answers import LOOP_REPEATS, LOOP_TOKENS, PERIODS, run_of_a_loop
from kente.decode.hypothesis import Living

__all__ = ["LOOP_REPEATS", "LOOP_TOKENS", "NEVER", "Rules", "forbid_repeats", "has_loop"]

NEVER = -torch.inf


class Rules:
    """Everything about a batch that limits its answers. Constant during a search."""

    def __init__(
        self,
        source: Tensor,
        source_mask: Tensor,
        caps: Tensor,
        prefix: Sequence[Sequence[int]] | None,
        no_repeat: int,
        never: Sequence[int],
        eos: int,
    ) -> None:
        device = source.device
        self.eos = eos
        self.no_repeat = no_repeat
        self.never = torch.tensor(list(never), device=device)
        self.prefix = _padded(prefix or [[]] * len(source), device)  # (B, P), -1 where free
        self.caps = torch.maximum(caps, (self.prefix >= 0).sum(1))  # (B,) tokens before EOS at most
        self.first_cap = int(self.caps.min())
        self.loop_runs = torch.tensor([run_of_a_loop(period) for period in range(1, PERIODS + 1)], device=device)
        self.loops_forbidden = ~has_loop(source, source_mask)  # a source that repeats itself may be answered in kind

    def allow(self, logits: Tensor, living: Living) -> Tensor:
        """log p(token) for each row (N, V), -inf where the token may not come next. Notes in `living` where a guard overruled the model."""
        scores = torch.log_softmax(logits.float(), dim=-1)
        forced, forced_scores = self._forced(scores, living)
        scores.index_fill_(1, self.never, NEVER)
        if self.no_repeat:
            forbid_repeats(scores, living.tokens, self.no_repeat)
        if living.written >= LOOP_TOKENS:
            self._forbid_loops(scores, living)
        if living.written >= self.first_cap:
            self._end(scores, living)
        if forced is not None:
            rows = (forced >= 0).nonzero()[:, 0]
            scores[rows] = NEVER
            scores[rows, forced[rows]] = forced_scores[rows]
        return scores

    def _forced(self, scores: Tensor, living: Living) -> tuple[Tensor | None, Tensor]:
        if living.written >= self.prefix.shape[1]:
            return None, scores
        forced = self.prefix[living.owner, living.written]
        # a forced token is written even where the model says never
        return forced, scores.gather(1, forced.clamp(min=0)[:, None])[:, 0].clamp(min=-1e4)

    def _forbid_loops(self, scores: Tensor, living: Living) -> None:
        rows, periods = (living.runs >= self.loop_runs).nonzero(as_tuple=True)
        if not len(rows):
            return
        guarded = self.loops_forbidden[living.owner[rows]]
        rows, periods = rows[guarded], periods[guarded]
        again = living.tokens[rows, living.written - periods]  # what stood one period before the next place
        wanted = scores[rows, again] >= scores[rows].amax(1)
        living.looped[rows[wanted]] = True
        scores[rows, again] = NEVER

    def _end(self, scores: Tensor, living: Living) -> None:
        rows = (self.caps[living.owner] <= living.written).nonzero()[:, 0]
        ends = scores[rows, self.eos]
        living.cut[rows] = ends < scores[rows].amax(1)
        scores[rows] = NEVER
        scores[rows, self.eos] = ends


def has_loop(tokens: Tensor, mask: Tensor) -> Tensor:
    """Whether each row (B, S) holds what would be broken off as a loop in an answer; (B,)."""
    found = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
    for period in range(1, PERIODS + 1):
        run = run_of_a_loop(period)
        if tokens.shape[1] >= period + run:
            again = (tokens[:, period:] == tokens[:, :-period]) & mask[:, period:]
            found |= again.unfold(1, run, 1).all(-1).any(-1)
    return found


def forbid_repeats(scores: Tensor, tokens: Tensor, length: int) -> None:
    """Set to -inf, in place, every token that would write a run of `length` tokens (N, T) for the second time."""
    if tokens.shape[1] < length:
        return
    windows = tokens.unfold(1, length - 1, 1)  # (N, T - length + 2, length - 1)
    rows, starts = (windows[:, :-1] == windows[:, -1:]).all(-1).nonzero(as_tuple=True)
    scores[rows, tokens[rows, starts + length - 1]] = NEVER


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[-1] * (width - len(row))] for row in rows], dtype=torch.long, device=device).reshape(
        len(rows), width
    )
