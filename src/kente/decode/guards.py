"""What may be written next: special ids never, loops and repeats not, nothing beyond the greatest length, a forced beginning as it is."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from kente.decode.hypothesis import PERIODS, Living

NEVER = -torch.inf
LOOP_REPEATS = 4  # the same run of tokens this often in a row is a loop ...
LOOP_TOKENS = 8  # ... if it is at least this long: "no no no no" and 10,000 spelt in digits are answers


class Rules:
    """Everything about a batch that limits its answers. Constant during a search."""

    def __init__(
        self, caps: Tensor, prefix: Sequence[Sequence[int]] | None, no_repeat: int, never: Sequence[int], eos: int
    ) -> None:
        device = caps.device
        self.eos = eos
        self.no_repeat = no_repeat
        self.never = torch.tensor(list(never), device=device)
        self.prefix = _padded(prefix or [[]] * len(caps), device)  # (B, P), -1 where free
        self.caps = torch.maximum(caps, (self.prefix >= 0).sum(1))  # (B,) tokens before EOS at most
        self.first_cap = int(self.caps.min()) if len(caps) else 0
        periods = torch.arange(1, PERIODS + 1, device=device)
        self.loop_runs = torch.maximum((LOOP_REPEATS - 1) * periods, LOOP_TOKENS - periods)

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
