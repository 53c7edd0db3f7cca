"""Following one thread: each row writes the token chosen for it, the likeliest (greedy) or one drawn at random, until it ends."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from kente.decode.answers import Hypothesis, no_answer
from kente.decode.guards import Rules
from kente.decode.hypothesis import NEVER, Living
from kente.decode.likeliest import likeliest
from kente.decode.words import Words

Choose = Callable[[Tensor, Living], Tensor]
"""(log-probabilities (N, A), rows) -> a column for each row."""


def greedy(scores: Tensor, living: Living) -> Tensor:
    """The likeliest."""
    return likeliest(scores, 1)[1][:, 0]


class Follow:
    """Writes `copies` answers to each sentence, each on its own."""

    several = False

    def __init__(self, sentences: int, rules: Rules, choose: Choose, copies: int, power: float) -> None:
        self.rules, self.choose, self.copies, self.power = rules, choose, copies, power
        self.found = [no_answer()] * (sentences * copies)

    def advance(self, logits: Tensor, living: Living, words: Words) -> tuple[None, Living]:
        """One token further; no row goes on from another."""
        scores = self.rules.allow(logits, living, words)
        columns = self.choose(scores, living)
        tokens = words.tokens(columns[:, None])[:, 0]
        log_probability = living.log_probability + scores.gather(1, columns[:, None])[:, 0]
        ends = tokens == self.rules.eos
        done = (ends & (log_probability > NEVER)).nonzero()[:, 0]
        if len(done):
            self._keep(living, done, log_probability, ended=True)
        living.write(tokens, log_probability.masked_fill(ends, NEVER))
        return None, living

    def _keep(self, living: Living, rows: Tensor, log_probability: Tensor, ended: bool) -> None:
        for owner, hypothesis in living.hypotheses(rows, log_probability[rows], self.power, ended):
            self.found[owner] = hypothesis

    def stop(self, living: Living) -> None:
        """Out of time: what is being written counts as it stands."""
        rows = (living.log_probability > NEVER).nonzero()[:, 0]
        self._keep(living, rows, living.log_probability, ended=False)

    def answers(self) -> list[list[Hypothesis]]:
        """The answers to each sentence, best first."""
        found = [self.found[start : start + self.copies] for start in range(0, len(self.found), self.copies)]
        return [sorted(row, key=lambda h: -h.score) for row in found]
