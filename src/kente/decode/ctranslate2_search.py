"""How CTranslate2 is asked, and its answers held to the rules of ours.

It searches the way `search` does, and differs in four things, which are put right here:
- it divides log-probabilities by length^power: it is asked for all answers that it finished, and they are ranked anew by our score;
- it shares out the probability of words that may not be written among the others: where that is more than a trace, answers are read again;
- it has one greatest length for a batch and no end mark there: answers beyond their own are cut and ended;
- it does not mind loops: a sentence whose answer holds one is asked again with that loop forbidden, until none is left.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from kente.config import DecodeConfig
from kente.data.tokenizer import BOS, EOS, PAD
from kente.decode.answers import CUT, LOOPED, Hypothesis, end_of_loop, length_penalty, no_answer, run_of_a_loop
from kente.decode.engine import Deadline, Question, rows_for

PATIENCE = 1.4
"""Answers finished before a beam stops, for each place in the beam: a better one that ends later is missed now and then. More patience
misses fewer and takes longer; docs/decisions/004 has the figures."""
NEARLY = 0.75
"""length^(0.75 power) grows with length as our ((5 + length) / 6)^power does around 15 tokens: of answers too many, the right ones go."""
TRACE = 1e-6
"""A power that changes nothing, but is not 0, at which a beam would stop at its first answer."""
ROUNDS = 8
"""How often a sentence is asked again for the loops in its answers."""
TOGETHER = 16
"""Rows of a batch of sentences that are asked again, or of answers that are read while a deadline is near: few enough for every worker to have some."""
READ_TOKENS = 256
"""Tokens read at once to take the log-probabilities of answers, each over all words: with 4,096 it took three times as long."""

SOONEST, WAITED = 0.0002, 0.05
"""Seconds between two looks at the deadline at least, and as a share of the time waited already."""

IMPOSSIBLE = -1e9
"""Log-probability of an answer that holds what may not be written."""

Loop = tuple[int, ...]
Group = TypeVar("Group")
Kept = TypeVar("Kept", covariant=True)


@dataclass(frozen=True)
class Candidate:
    """An answer as CTranslate2 gave it: ids, their log-probability, whether it ended with its end mark."""

    ids: list[int]
    log_probability: float
    ended: bool

    def score(self, power: float) -> float:
        return self.log_probability / length_penalty(len(self.ids) + 1.0, power)


class Promised(Protocol[Kept]):
    """What CTranslate2 is at work on."""

    def is_kept(self) -> bool: ...

    def kept(self) -> Kept:
        """What was promised, waited for."""
        ...


class Promise:
    """Answers to one question, when they come."""

    def __init__(self, result: Any, power: float) -> None:
        """`power` of the length by which CTranslate2 divides its scores."""
        self._result, self._power = result, power

    def is_kept(self) -> bool:
        return bool(self._result.done())

    def kept(self) -> list[Candidate]:
        """What was promised, waited for."""
        result, found = self._result.result(), []
        for tokens, score in zip(result.hypotheses, result.scores, strict=True):
            ids = [int(token) for token in tokens]
            ended = bool(ids) and ids[-1] == EOS
            found.append(Candidate(ids[:-1] if ended else ids, score * len(ids) ** self._power, ended))
        return found


class Reading:
    """How likely each token of an answer and its end mark are, when it is read."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def is_kept(self) -> bool:
        return bool(self._result.done())

    def kept(self) -> list[float]:
        return list(self._result.result().log_probs)


class Asker:
    """Asks a ctranslate2.Translator for answers under one set of settings.

    `names` are the names of ids; `shortlist` says that the model has a vocabulary map to be used. Once `deadline` says that time is out,
    nothing more is asked for, and what is asked for already is not waited for.
    """

    def __init__(
        self,
        translator: Any,
        config: DecodeConfig,
        n_best: int,
        names: Sequence[str],
        shortlist: bool = False,
        deadline: Deadline | None = None,
    ) -> None:
        self.translator, self.config, self.n_best, self.names = translator, config, n_best, names
        self.beam = rows_for(config, n_best)
        self.shortlist, self.deadline = shortlist, deadline

    def _options(self, patient: bool) -> dict[str, Any]:
        """`patient`, a beam hands over all it finished; otherwise, where the longest sum wins, it stops when nothing can beat its best."""
        power = NEARLY * self.config.length_penalty or (TRACE if patient else 0.0)
        at_once = self.beam == 1 or power == 0
        wanted = self.n_best if at_once else math.ceil(self.beam * PATIENCE)
        return {
            "beam_size": self.beam,
            "num_hypotheses": wanted,
            "patience": max(1.0, wanted / self.beam),
            "length_penalty": 0.0 if at_once else power,
            "no_repeat_ngram_size": self.config.no_repeat,
            "disable_unk": True,
            "min_decoding_length": 0,
            "max_input_length": 0,
            "return_scores": True,
            "return_end_token": True,
        }

    # ------------------------------------------------------------ asking

    def ask(self, questions: Sequence[Question], longest: int, loops: Iterable[Loop] | None = None) -> list[Promise]:
        """Promises of answers, one for each question; they have `longest` tokens at most, an end mark counted, and none of `loops`."""
        prefixes = [self._tokens(question.prefix) for question in questions]
        options = self._options(patient=loops is not None)
        promised = self.translator.translate_batch(
            [self._tokens(question.source) for question in questions],
            target_prefix=prefixes if any(prefixes) else None,
            suppress_sequences=[self._tokens(never) for never in ((PAD,), (BOS,), *(loops or ()))],
            max_decoding_length=max(1, longest),
            # with a shortlist, CTranslate2 would look up forced or forbidden tokens in that of another batch
            use_vmap=self.shortlist and not (loops or any(prefixes)),
            asynchronous=True,
            **options,
        )
        return [Promise(result, options["length_penalty"]) for result in promised]

    def in_turn(
        self, groups: Iterable[Group], ask: Callable[[Group], Sequence[Promised[Kept]]]
    ) -> Iterator[tuple[Group, list[Kept]]]:
        """(group, what it was promised) as they come, in their order; the rest is missing once time is out."""
        waiting, asked = deque(groups), deque[tuple[Group, Sequence[Promised[Kept]]]]()
        late = self.deadline
        ahead = len(waiting) if late is None else self.translator.num_translators + 1  # nothing asked can be taken back
        while waiting or asked:
            while waiting and len(asked) < ahead:
                if late is not None and late():
                    return
                group = waiting.popleft()
                asked.append((group, ask(group)))
            group, promises = asked.popleft()
            if late is not None and not _kept_in_time(promises, late):
                return
            yield group, [promise.kept() for promise in promises]

    def _tokens(self, ids: Iterable[int]) -> list[str]:
        return [self.names[i] for i in ids]

    # ------------------------------------------------------------ answers

    def best(self, good: Iterable[Candidate], bad: Iterable[Candidate] = ()) -> list[Candidate] | None:
        """The best of the good ones; None if a bad one would come before the last of them."""
        power = self.config.length_penalty
        ranked = sorted(good, key=lambda candidate: -candidate.score(power))[: self.n_best]
        bar = ranked[-1].score(power) if len(ranked) == self.n_best else -math.inf
        return None if any(candidate.score(power) > bar for candidate in bad) else ranked

    def answers(self, question: Question, candidates: Sequence[Candidate]) -> list[Hypothesis] | None:
        """The answers our search would have found; None if CTranslate2 must be asked again to find out."""
        best = self.best(*sort_out(question, candidates))
        return None if best is None else [self._hypothesis(candidate) for candidate in best] or [no_answer()]

    def _hypothesis(self, candidate: Candidate, warnings: tuple[str, ...] = ()) -> Hypothesis:
        score = candidate.score(self.config.length_penalty)
        return Hypothesis(candidate.ids, score, candidate.log_probability, candidate.ended, warnings)

    def settle(
        self, questions: Sequence[Question], candidates: Sequence[Sequence[Candidate]]
    ) -> dict[int, list[Hypothesis]]:
        """Answers, by the places of their questions, where the candidates held none: cut at their greatest length and ended there; with loops,
        asked again, loops forbidden. What was not settled in time is missing."""
        found: dict[int, Sequence[Candidate]] = dict(enumerate(candidates))
        loops = {place: loops_in(questions[place], some) for place, some in found.items()}
        if self.beam > 1:  # a loop takes the place of others, and other lengths make other beams
            found = self._asked_each(questions, found, loops)
        found = self._cut(questions, found)
        known: dict[int, list[Candidate]] = defaultdict(list)
        settled: list[int] = []
        for round_ in range(ROUNDS + 1):
            looping = {}
            for place, some in found.items():
                good, bad = sort_out(questions[place], some, at_cap=True)
                known[place] = distinct(known[place], good)
                if self.best(known[place], bad) is None:
                    looping[place] = some
                    loops[place] |= loops_in(questions[place], some)
            settled += [place for place in found if place not in looping]
            if not looping or round_ == ROUNDS:
                break
            found = self._cut(questions, self._asked_each(questions, looping, loops))
        stumps = dict(zip(looping, self._broken_off(questions, looping), strict=True))
        for place, some in stumps.items():
            known[place] = distinct(known[place], some)
        unread = list(stumps) if self.beam > 1 else sorted([*settled, *stumps])
        exact = self.read_again([questions[place] for place in unread], [known[place] for place in unread])
        known.update(zip(unread, exact, strict=False))
        late = {*unread[len(exact) :]}
        return {p: self._final(known[p], bool(loops[p])) for p in (*settled, *stumps) if p not in late}

    def _asked_each(
        self, questions: Sequence[Question], wanted: Iterable[int], loops: Mapping[int, set[Loop]]
    ) -> dict[int, Sequence[Candidate]]:
        """Candidates for the questions in the places `wanted`, as if each had been asked alone, its loops forbidden. Those with loops may share them,
        for what goes round in one answer may not do so in another; a neighbour's greatest length is felt by a beam that comes to its own."""
        wanted, size = [*wanted], math.ceil(TOGETHER / self.beam)
        groups = []
        for with_loops in (False, True):
            places = [place for place in wanted if bool(loops[place]) == with_loops]
            places.sort(key=lambda place: questions[place].cap)
            groups += [places[begin : begin + size] for begin in range(0, len(places), size)]
        found = self._found(questions, groups, loops)
        if self.beam > 1:
            again = of_one_length(questions, found, loops)
            found = {p: some for p, some in found.items() if not any(p in places for places in again)}
            found |= self._found(questions, again, loops)
        return {place: found[place] for place in wanted if place in found}

    def _found(
        self, questions: Sequence[Question], groups: Iterable[list[int]], loops: Mapping[int, set[Loop]]
    ) -> dict[int, Sequence[Candidate]]:
        """Candidates by the places of their questions, each group asked together; those that came in time."""

        def ask(places: list[int]) -> list[Promise]:
            group, never = [questions[place] for place in places], set[Loop]().union(*(loops[p] for p in places))
            return self.ask(group, max(q.cap for q in group) + 1, never)

        return {
            place: some
            for places, found in self.in_turn(groups, ask)
            for place, some in zip(places, found, strict=True)
        }

    def _final(self, candidates: Sequence[Candidate], looped: bool) -> list[Hypothesis]:
        best = self.best(candidates) or []
        return [self._hypothesis(candidate, warnings_of(candidate, looped)) for candidate in best] or [no_answer()]

    def _broken_off(
        self, questions: Sequence[Question], waiting: Mapping[int, Sequence[Candidate]]
    ) -> list[list[Candidate]]:
        """Answers that find ever new loops, up to the first of them."""
        stumps = []
        for place, candidates in waiting.items():
            ends = [(c, end_of_loop(c.ids, 1, len(questions[place].prefix))) for c in candidates]
            stumps.append([Candidate(c.ids[: end[0]], 0.0, ended=False) for c, end in ends if end is not None])
        return stumps

    def _cut(
        self, questions: Sequence[Question], found: Mapping[int, Sequence[Candidate]]
    ) -> dict[int, Sequence[Candidate]]:
        """Candidates up to their greatest length: what is longer was not ended by the model. In a beam, with the model's own numbers."""
        shorter = []
        for place, some in found.items():
            cap = questions[place].cap
            shorter.append(distinct(c if len(c.ids) <= cap else replace(c, ids=c.ids[:cap], ended=False) for c in some))
        if self.beam > 1:
            shorter = self.read_again([questions[place] for place in found], shorter)
        return dict(zip(found, shorter, strict=False))

    # ------------------------------------------------------------ the model's own numbers

    def read_again(
        self, questions: Sequence[Question], candidates: Sequence[Sequence[Candidate]]
    ) -> list[list[Candidate]]:
        """The candidates with log-probabilities over all words and to the end mark; of the first few questions where time is out."""
        pairs = [(q, c) for q, some in zip(questions, candidates, strict=True) for c in some]
        numbers = deque(self.log_probabilities([q for q, _ in pairs], [c.ids for _, c in pairs]))
        exact = []
        for some in candidates:
            if len(numbers) < len(some):
                break
            exact.append([replace(c, log_probability=sum(numbers.popleft())) for c in some])
        return exact

    def log_probabilities(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[list[float]]:
        """Of each token of the answers and their end marks, over all words; of the first few answers where time is out."""

        def read(some: slice) -> list[Reading]:
            scored = self.translator.score_batch(
                [self._tokens(question.source) for question in questions[some]],
                [self._tokens(answer) for answer in answers[some]],
                max_batch_size=READ_TOKENS,
                batch_type="tokens",
                max_input_length=0,
                asynchronous=True,
            )
            return [Reading(result) for result in scored]

        size = max(1, len(answers)) if self.deadline is None else TOGETHER
        shares = [slice(begin, begin + size) for begin in range(0, len(answers), size)]
        return [numbers for _, found in self.in_turn(shares, read) for numbers in found]

    def attention(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[list[list[float]]]:
        """For each token of each answer its weights over the source's tokens: the answers are forced as beginnings, what follows is let go."""
        read = self.translator.translate_batch(
            [self._tokens(question.source) for question in questions],
            target_prefix=[self._tokens(answer) for answer in answers],
            beam_size=1,
            max_decoding_length=max(1, *(len(answer) for answer in answers)),
            max_input_length=0,
            return_attention=True,
        )
        return [result.attention[0][: len(answer)] for result, answer in zip(read, answers, strict=True)]


def _kept_in_time(promises: Sequence[Promised[Any]], late: Deadline) -> bool:
    began = time.perf_counter()
    while not all(promise.is_kept() for promise in promises):
        if late():
            return False
        time.sleep(max(SOONEST, WAITED * (time.perf_counter() - began)))
    return True


def of_one_length(
    questions: Sequence[Question], found: Mapping[int, Iterable[Candidate]], loops: Mapping[int, set[Loop]]
) -> list[list[int]]:
    """Places of questions with an answer longer than they allow; together are those of one greatest length, with loops or without."""
    places: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for place, candidates in found.items():
        if any(len(candidate.ids) > questions[place].cap for candidate in candidates):
            places[questions[place].cap, bool(loops[place])].append(place)
    return [*places.values()]


def sort_out(
    question: Question, candidates: Iterable[Candidate], *, at_cap: bool = False
) -> tuple[list[Candidate], list[Candidate]]:
    """(good, bad): what our search could have written, and the rest. `at_cap`: one without an end was ended by its own greatest length."""
    good: list[Candidate] = []
    bad: list[Candidate] = []
    for candidate in candidates:
        fits = (candidate.ended or at_cap) and len(candidate.ids) <= question.cap
        (bad if not fits or loops_in(question, [candidate]) else good).append(candidate)
    return [candidate for candidate in good if candidate.log_probability > IMPOSSIBLE], bad  # not NaN either


def distinct(*lists: Iterable[Candidate]) -> list[Candidate]:
    """All of them, one for each answer."""
    return [*{tuple(candidate.ids): candidate for some in lists for candidate in some}.values()]


def guarded(question: Question) -> bool:
    """Whether loops are broken off: a source that repeats itself may be answered in kind."""
    return end_of_loop(question.source) is None


def loops_in(question: Question, candidates: Iterable[Candidate]) -> set[Loop]:
    """What must not be written for the loops in these answers to end in time: each one token too long, from each of its tokens on."""
    found: set[Loop] = set()
    for candidate in candidates:
        end = end_of_loop(candidate.ids[: question.cap], 1, len(question.prefix))
        if end is not None and guarded(question):
            place, period = end
            length = period + run_of_a_loop(period) + 1
            cycle = candidate.ids[place + 1 - period : place + 1]
            found |= {tuple(cycle[(first + i) % period] for i in range(length)) for first in range(period)}
    return found


def warnings_of(candidate: Candidate, looped: bool) -> tuple[str, ...]:
    """What was done to an answer that was asked for again, where another was `looped`."""
    broken_off = looped and end_of_loop(candidate.ids) is not None
    return (LOOPED,) * broken_off + (CUT,) * (not candidate.ended)
