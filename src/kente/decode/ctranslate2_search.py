"""How CTranslate2 is asked, and its answers held to the rules of ours.

It searches the way `search` does, and differs in four things, which are put right here:
- it ranks answers by their mean log-probability: it is asked for all that it finished, and they are ranked anew by our score;
- it shares out the probability of words that may not be written among the others: where that is more than a trace, answers are read again;
- it has one greatest length for a batch and no end mark there: sentences that reach theirs are asked again, with it, and then ended;
- it does not mind loops: a sentence whose answer holds one is asked again with that loop forbidden, until none is left.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kente.config import DecodeConfig
from kente.data.tokenizer import BOS, EOS, PAD
from kente.decode.answers import CUT, LOOPED, Hypothesis, end_of_loop, length_penalty, no_answer, run_of_a_loop
from kente.decode.engine import Question, rows_for

PATIENCE = 1.4
"""Answers finished before a beam stops, for each place in the beam: at 1, a better one that ends later is sometimes missed."""
ROUNDS = 8
"""How often a sentence is asked again for the loops in its answers."""
READ_TOKENS = 4096
"""Tokens read at once to take the log-probabilities of answers."""

Loop = tuple[int, ...]


@dataclass(frozen=True)
class Candidate:
    """An answer as CTranslate2 gave it: ids, their log-probability, whether it ended with its end mark."""

    ids: list[int]
    log_probability: float
    ended: bool

    def score(self, power: float) -> float:
        return self.log_probability / length_penalty(len(self.ids) + 1.0, power)


class Asker:
    """Asks a ctranslate2.Translator for answers under one set of settings.

    `names` are the names of ids; `shortlist` says that the model has a vocabulary map to be used.
    """

    def __init__(
        self, translator: Any, config: DecodeConfig, n_best: int, names: Sequence[str], shortlist: bool = False
    ) -> None:
        self.translator, self.config, self.n_best, self.names = translator, config, n_best, names
        self.beam = rows_for(config, n_best)
        self.shortlist = shortlist
        self.options = self._options()

    def _options(self) -> dict[str, Any]:
        by_sum = self.config.length_penalty == 0  # what is best can then no longer be beaten, and the beam stops at once
        wanted = self.n_best if self.beam == 1 or by_sum else round(self.beam * PATIENCE)
        return {
            "beam_size": self.beam,
            "num_hypotheses": wanted,
            "patience": max(1.0, wanted / self.beam),
            "length_penalty": 0 if self.beam == 1 or by_sum else 1,
            "no_repeat_ngram_size": self.config.no_repeat,
            "disable_unk": True,
            "min_decoding_length": 0,
            "max_input_length": 0,
            "return_scores": True,
            "return_end_token": True,
        }

    # ------------------------------------------------------------ asking

    def ask(self, questions: Sequence[Question], longest: int, loops: Iterable[Loop] = ()) -> list[Any]:
        """Promises of results, one for each question; answers have `longest` tokens at most, an end mark counted."""
        prefixes = [self._tokens(question.prefix) for question in questions]
        promises: list[Any] = self.translator.translate_batch(
            [self._tokens(question.source) for question in questions],
            target_prefix=prefixes if any(prefixes) else None,
            suppress_sequences=[self._tokens(never) for never in ((PAD,), (BOS,), *loops)],
            max_decoding_length=max(1, longest),
            use_vmap=self.shortlist and not any(prefixes),  # its ids of a prefix would be those of another batch
            asynchronous=True,
            **self.options,
        )
        return promises

    def _tokens(self, ids: Iterable[int]) -> list[str]:
        return [self.names[i] for i in ids]

    def read(self, promise: Any) -> list[Candidate]:
        """What was promised, best first by our score."""
        result = promise.result()
        mean = self.options["length_penalty"] == 1
        found = []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            ids = [int(token) for token in tokens]
            ended = bool(ids) and ids[-1] == EOS
            found.append(Candidate(ids[:-1] if ended else ids, score * len(ids) if mean else score, ended))
        return self.ranked(found)

    def ranked(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        return sorted(candidates, key=lambda candidate: -candidate.score(self.config.length_penalty))

    # ------------------------------------------------------------ answers

    def acceptable(self, question: Question, candidates: Sequence[Candidate], *, at_cap: bool = False) -> bool:
        """Whether the best are what our search could have found. `at_cap`: they were asked for with their own greatest length."""
        return all(
            (candidate.ended or at_cap)
            and len(candidate.ids) <= question.cap
            and not (end_of_loop(candidate.ids, 1, len(question.prefix)) and guarded(question))
            for candidate in candidates[: self.n_best]
        )

    def hypotheses(self, candidates: Sequence[Candidate]) -> list[Hypothesis]:
        """The best of them as answers; none where the model's numbers are not numbers."""
        numbers = [candidate for candidate in candidates if math.isfinite(candidate.log_probability)]
        power = self.config.length_penalty
        best = [Hypothesis(c.ids, c.score(power), c.log_probability) for c in numbers[: self.n_best]]
        return best or [no_answer()]

    def ask_again(
        self, questions: Sequence[Question], before: Sequence[Sequence[Candidate]]
    ) -> list[list[Hypothesis] | None]:
        """Answers where `before` were not acceptable: each asked with its own greatest length, loops forbidden; None where loops remain."""
        answers: list[list[Hypothesis] | None] = [None] * len(questions)
        waiting = dict(enumerate(before))
        loops: set[Loop] = set()
        for _ in range(ROUNDS):
            for place, candidates in waiting.items():
                loops |= self._loops(questions[place], candidates)
            asked: dict[int, list[Candidate]] = {}
            for places in self._alike(questions, waiting):
                forbidden = loops if guarded(questions[places[0]]) else ()
                group = [questions[place] for place in places]
                for place, promise in zip(places, self.ask(group, group[0].cap, forbidden), strict=True):
                    asked[place] = self.read(promise)
            exact = self.read_again([questions[place] for place in asked], list(asked.values()))
            waiting = {}
            for place, candidates in zip(asked, exact, strict=True):
                if self.acceptable(questions[place], candidates, at_cap=True):
                    answers[place] = self._warned(questions[place], candidates)
                else:
                    waiting[place] = candidates
            if not waiting:
                break
        return answers

    def _alike(self, questions: Sequence[Question], places: Iterable[int]) -> list[list[int]]:
        """Places of questions with one greatest length that may, or may not, be answered with a loop."""
        groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for place in places:
            groups[questions[place].cap, guarded(questions[place])].append(place)
        return list(groups.values())

    def _loops(self, question: Question, candidates: Iterable[Candidate]) -> set[Loop]:
        """What must not be written for the loops in these answers to end in time: each loop one token too long, from each of its tokens on."""
        found: set[Loop] = set()
        if guarded(question):
            for candidate in candidates:
                if end := end_of_loop(candidate.ids, 1, len(question.prefix)):
                    place, period = end
                    length = period + run_of_a_loop(period) + 1
                    cycle = candidate.ids[place + 1 - period : place + 1]
                    found |= {tuple(cycle[(first + i) % period] for i in range(length)) for first in range(period)}
        return found

    def _warned(self, question: Question, candidates: Sequence[Candidate]) -> list[Hypothesis]:
        """The best of them as answers, with what was done to them."""
        answers = []
        for candidate, answer in zip(candidates, self.hypotheses(candidates), strict=False):
            looped = guarded(question) and end_of_loop(candidate.ids, 0, len(question.prefix)) is not None
            warnings = (LOOPED,) * looped + (CUT,) * (not candidate.ended) + answer.warnings
            answers.append(replace(answer, finished=answer.finished and candidate.ended, warnings=warnings))
        return answers

    # ------------------------------------------------------------ the model's own numbers

    def read_again(
        self, questions: Sequence[Question], candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[Candidate]]:
        """The candidates with log-probabilities over all words and to the end mark, best first."""
        pairs = [(q, c) for q, some in zip(questions, candidates, strict=True) for c in some]
        scored = self.translator.score_batch(
            [self._tokens(question.source) for question, _ in pairs],
            [self._tokens(candidate.ids) for _, candidate in pairs],
            max_batch_size=READ_TOKENS,
            batch_type="tokens",
            max_input_length=0,
        )
        exact = iter([replace(c, log_probability=sum(r.log_probs)) for (_, c), r in zip(pairs, scored, strict=True)])
        return [self.ranked([next(exact) for _ in some]) for some in candidates]


def guarded(question: Question) -> bool:
    """Whether loops are broken off: a source that repeats itself may be answered in kind."""
    return end_of_loop(question.source) is None
