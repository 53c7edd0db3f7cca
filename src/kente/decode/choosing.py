"""Which engine is fastest: measured on the run's own validation sentences, once for each run and machine, and remembered beside it.

Nothing is assumed. Whole numbers (int8) are fast on one processor and slow on the next, two threads of one worker may be ten times slower
than two workers, and a file wants another set-up than a sentence someone waits for. int8 and shortlists take part in the race only if they
lose nothing noticeable: the validation set's translations, read with int8, may be less likely by `NOTICEABLE` nats a token at most; answers found
with a shortlist by `LESS_LIKELY`, and `SAME` of them must be those found without.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, get_args

from kente.config import DecodeConfig
from kente.data.shortlist import Shortlist
from kente.data.store import Store
from kente.decode.answers import Hypothesis, most_tokens
from kente.decode.choice import NAMES, Choice, Name, Way, Work
from kente.decode.conversion import Numbers
from kente.decode.ctranslate2_engine import CTranslate2Engine, Layout
from kente.decode.ctranslate2_search import Asker, Candidate
from kente.decode.engine import Deadline, Engine, Links, Question, ReadBack, rows_for
from kente.decode.engine_folder import EngineFolders
from kente.decode.library import ctranslate2
from kente.decode.native import NativeMissing, abilities, can_round
from kente.decode.native_engine import NativeEngine
from kente.errors import RunError
from kente.reporting import SILENT, Reporter
from kente.runs import processor

if TYPE_CHECKING:
    from kente.decode.torch_engine import TorchEngine

FEW, BULK = 8, 256
"""Questions asked at once that someone waits for; more are a file to be got through. So many that importing torch may be repaid."""
NOTICEABLE = 0.002
"""Nats a token that speed may cost: some 0.05 BLEU. At 0.0046 a third of the answers changed, and BLEU fell by 0.2 (docs/decisions/004)."""
SAME, LESS_LIKELY = 0.85, 0.005
"""Share of answers that a shortlist must leave as they are, and nats a token that it may cost them: within that, BLEU went up as often as down."""
MARGIN = 1.05
"""How many times faster int8, or a shortlist, must be to be worth anything."""
SAMPLED, READ = 200, 1000
"""Validation pairs to race on, and to judge int8 by."""
RACE = 6
"""Number of this race: what was measured in another one is measured again."""
HOPELESS = 5.0
"""How many times slower than the best so far an engine may be before it is stopped: threads that wait for each other on a busy machine."""

Pair = tuple[list[int], list[int]]


class Fastest:
    """An engine that is the fastest one for whatever is asked: CTranslate2 in one set-up or another, the compiled search, or torch.

    `threads` are to be used in all. `native` makes the compiled search, with one kind of numbers or the other, where it may race; where it does,
    or without `consider_torch`, torch does not. `shortlists` are the ways of weighing words that race: with the model's shortlist
    (`native_shortlist` for the compiled search), without, or both.
    """

    def __init__(
        self,
        engine: CTranslate2Engine,
        folders: EngineFolders,
        threads: int,
        *,
        consider_torch: bool = True,
        native: Callable[[Numbers], NativeEngine] | None = None,
        native_shortlist: Callable[[], Shortlist | None] = lambda: None,
        shortlists: Sequence[bool] = (False,),
        reporter: Reporter = SILENT,
    ) -> None:
        self.engine, self.folders, self.threads, self.reporter = engine, folders, threads, reporter
        self.consider_torch, self.shortlists = consider_torch, shortlists
        self.native, self.native_shortlist = native, native_shortlist
        self._engines: dict[Work, Engine] = {}
        self._choices: dict[Work, Choice] = {}
        self._networks: dict[Numbers, NativeEngine] = {}
        self._said: set[str] = set()
        self.name = engine.name

    def in_torch(self) -> TorchEngine:
        return self.engine.in_torch()

    def align(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[Links]:
        return self.engine.align(questions, answers)

    def read_back(self, questions: Sequence[Question], answers: Sequence[Sequence[int]]) -> list[ReadBack]:
        used = next(iter(self._engines.values()), self.engine)  # one that is loaded, if any
        return used.read_back(questions, answers)

    def search(
        self, questions: Sequence[Question], config: DecodeConfig, *, n_best: int = 1, deadline: Deadline | None = None
    ) -> list[list[Hypothesis]]:
        """Answers from the engine that is fastest at this."""
        if not questions:
            return []
        why = self.engine.cannot(config, n_best)
        engine = (
            self.fastest(questions, config, n_best, measure=deadline is None)
            if why is None
            else self._without_ctranslate2(config, n_best, why)
        )
        self.name = engine.name
        return engine.search(questions, config, n_best=n_best, deadline=deadline)

    def _without_ctranslate2(self, config: DecodeConfig, n_best: int, why: str) -> Engine:
        """What does `why` CTranslate2 cannot."""
        native = None if NativeEngine.cannot(config, n_best) else self._compiled()
        engine = native or self.in_torch()
        self._say(f"translating with {engine.name}; CTranslate2 cannot: {why}")
        return engine

    def _compiled(self, numbers: Numbers = "float32") -> NativeEngine | None:
        """The compiled search; None where it may not race, or cannot be had, which is said."""
        if self.native is None:
            return None
        try:
            if numbers not in self._networks:
                self._networks[numbers] = self.native(numbers)
            return self._networks[numbers]
        except NativeMissing as error:
            self._say(f"no native search: {error}")
            self.native = None
            return None

    def _say(self, text: str) -> None:
        """Each thing once."""
        if text not in self._said:
            self._said.add(text)
            self.reporter.say(text)

    def fastest(
        self, questions: Sequence[Question], config: DecodeConfig, n_best: int = 1, *, measure: bool = True
    ) -> Engine:
        """The engine for such questions; measured now if that was not done before, and said. Without `measure`, what like questions got."""
        work = self._work(len(questions), config, n_best)
        if work not in self._engines:
            choice = self._remembered(work) or self._unmeasured(work, config)
            alike = None if measure or choice else self._nearest(work)
            if alike is not None:
                return alike
            wanted = choice.numbers if choice else "float32"
            if work.native and (choice is None or choice.engine == "native") and self._compiled(wanted) is None:
                return self.fastest(questions, config, n_best, measure=measure)  # another race, without it
            choice = choice or self._measured(work, config)
            self._engines[work], self._choices[work] = self._chosen(choice), choice
            self._say(f"translating with {choice}")
        return self._engines[work]

    def _work(self, count: int, config: DecodeConfig, n_best: int) -> Work:
        """What kind of work so many questions are, and who may race at it."""
        many = count > FEW
        native = self.native is not None and NativeEngine.cannot(config, n_best) is None
        torch = self.consider_torch and not native and many
        torch = torch and (count >= BULK or sys.modules.get("torch") is not None)
        shortlist = (
            len(self.shortlists) > 1 and many and n_best == 1
        )  # where answers are compared, all words are weighed
        return Work(many, rows_for(config, n_best), torch, shortlist, native, config.batch_tokens)

    def _nearest(self, work: Work) -> Engine | None:
        """What was chosen for as many sentences, with the beam most like this one, so that nobody with a deadline waits for a race."""
        alike = [known for known in self._choices if known.many == work.many]
        if not alike:
            return None
        able = [known for known in alike if work.native or self._choices[known].engine != "native"]
        if not able:  # only the compiled search was chosen so far, and it cannot do this
            return self._weighing("ctranslate2", self.shortlists[0])
        nearest = min(able, key=lambda known: (abs(known.beam - work.beam), known.shortlist != work.shortlist))
        if work.shortlist or not nearest.shortlist:
            return self._engines[nearest]
        return self._chosen(self._choices[nearest].among_all_words())

    def _chosen(self, choice: Choice) -> Engine:
        if choice.layout is not None:
            return self.engine.with_layout(choice.layout)
        return self._weighing(choice.engine, choice.shortlist, choice.numbers)

    def _weighing(self, name: Name, shortlist: bool, numbers: Numbers = "float32") -> Engine:
        """An engine with the shortlist or without."""
        if name == "ctranslate2":
            return self.engine.with_layout(Layout("float32", self.threads, shortlist=shortlist))
        if name == "torch":
            return self.in_torch().with_shortlist(self.folders.shortlist if shortlist else None)
        native = self._compiled(numbers)
        assert native is not None
        return native.with_shortlist(self.native_shortlist() if shortlist else None)

    # ------------------------------------------------------------ remembering

    @property
    def _note(self) -> str:
        return _note_of(self.folders, self.threads)

    def _remembered(self, work: Work) -> Choice | None:
        choice = Choice.from_dict(self.folders.read_note(self._note).get(str(work)))
        if choice is not None and choice.engine == "native" and choice.numbers == "int8" and not can_round():
            return None  # another compiler may not have its products
        return choice

    def _remember(self, name: str, record: Any) -> None:
        note = self.folders.read_note(self._note)
        self.folders.write_note(self._note, {"processor": processor(), "threads": self.threads, **note, name: record})

    # ------------------------------------------------------------ measuring

    def _unmeasured(self, work: Work, config: DecodeConfig) -> Choice | None:
        """The choice where there is nothing to race on."""
        if any(source for source, _ in self._pairs(SAMPLED)):
            return None
        workers, threads = (self.threads, 1) if work.many else (1, self.threads)
        return Choice("ctranslate2", Layout("float32", workers, threads, config.batch_tokens, self.shortlists[0]))

    def _measured(self, work: Work, config: DecodeConfig) -> Choice:
        self.reporter.say(f"measuring engines, once for this run and machine ({work})")
        race = Race(work, config, self._pairs(SAMPLED), self.engine, self.folders.longest)
        shortlists = self._shortlists(race, "ctranslate2")
        choice = race.of_layouts(_layouts(work, self.threads, self._numbers("ctranslate2"), config, shortlists))
        rivals: list[Name] = ["native"] if work.native else ["torch"] if work.torch else []
        for name in rivals:
            ways = itertools.product(self._numbers(name), self._shortlists(race, name))
            choice = race.against(choice, name, {way: self._weighing(name, way[1], way[0]) for way in ways})
        self._remember(str(work), choice.as_dict())
        chosen = *self._choices.values(), choice
        self.engine.keep(*(one.layout for one in chosen if one.layout is not None))
        winners = {one.numbers for one in chosen if one.engine == "native"}
        self._networks = {numbers: network for numbers, network in self._networks.items() if numbers in winners}
        return choice

    def _shortlists(self, race: Race, whose: Name) -> Sequence[bool]:
        """The ways of weighing words that this engine may race with: a shortlist, where that is left to us, only if it loses nothing."""
        if len(self.shortlists) == 1:
            return self.shortlists
        return (False, True) if race.work.shortlist and self._shortlist_is_good(race, whose) else (False,)

    def _pairs(self, most: int) -> list[Pair]:
        """Validation pairs, evenly taken, as far as the model has places for them; none where the run has lost them."""
        try:
            store = Store.open(self.folders.run.path / "data" / "validation", self.folders.tokenizers.sha256)
        except RunError:
            return []
        rows = islice(range(0, len(store), max(1, len(store) // most)), most)
        pairs = ((store.source(row).tolist(), store.target(row).tolist()) for row in rows)
        return [pair for pair in pairs if max(map(len, pair)) <= self.folders.longest]

    def _numbers(self, whose: Name) -> list[Numbers]:
        """The kinds of numbers that this engine may race with."""
        return ["float32", "int8"] if self._has_int8(whose) and self._int8_is_good(whose) else ["float32"]

    def _has_int8(self, whose: Name) -> bool:
        if whose == "ctranslate2":
            return "int8" in ctranslate2().get_supported_compute_types("cpu")
        return whose == "native" and self._compiled() is not None and can_round()

    def _int8_is_good(self, whose: Name) -> bool:
        """Whether int8 loses nothing noticeable; measured once for all kinds of work."""
        name = f"int8 of {NAMES[whose]} loses"
        lost = self.folders.read_note(self._note).get(name)
        if not isinstance(lost, float):
            pairs = self._pairs(READ)
            float32, int8 = (self._loss(whose, numbers, pairs) for numbers in get_args(Numbers))
            lost = int8 - float32
            self._remember(name, round(lost, 5))
        return lost <= NOTICEABLE

    def _loss(self, whose: Name, numbers: Numbers, pairs: Sequence[Pair]) -> float:
        if whose == "ctranslate2":
            return reference_loss(self.engine.with_layout(Layout(numbers, self.threads)), pairs)
        native = self._compiled(numbers)
        assert native is not None
        return forced_loss(native, pairs)

    def _shortlist_is_good(self, race: Race, whose: Name) -> bool:
        """Whether answers made of the shortlist's words are mostly those made of all, and as likely; measured once for each engine and beam."""
        name = f"shortlist of {NAMES[whose]}, beam {race.work.beam}"
        found = self.folders.read_note(self._note).get(name)
        if not isinstance(found, dict):
            free, short = (race.answers(self._weighing(whose, used)) for used in (False, True))
            same = sum(one == other for one, other in zip(free, short, strict=True)) / len(free)
            found = {"loses": round(race.answer_loss(short) - race.answer_loss(free), 5), "same": round(same, 3)}
            self._remember(name, found)
        return bool(found["loses"] <= LESS_LIKELY and found["same"] >= SAME)


def _note_of(folders: EngineFolders, threads: int) -> str:
    """The note of what was measured: one for each machine, and for whatever else changes the race."""
    circumstances = RACE, processor(), abilities(), threads, ctranslate2().__version__
    machine = hashlib.sha256(json.dumps(circumstances).encode()).hexdigest()[:8]
    return f"speed-{machine}-{folders.identity}.json"


def remembered(folders: EngineFolders, threads: int) -> dict[str, Choice]:
    """The winners of all races run here so far, by the work they won at."""
    note = folders.read_note(_note_of(folders, threads))
    found = {work: Choice.from_dict(record) for work, record in note.items()}
    return {work: choice for work, choice in found.items() if choice is not None}


def reference_loss(engine: CTranslate2Engine, pairs: Sequence[Pair]) -> float:
    """Nats a token of the pairs' target sides."""
    asker = Asker(engine.translator, DecodeConfig(beam=1), 1, engine.names)
    questions = [Question(source, len(target)) for source, target in pairs]
    read = asker.read_again(questions, [[Candidate(target, 0.0, True)] for _, target in pairs])
    return -sum(some[0].log_probability for some in read) / sum(len(target) + 1 for _, target in pairs)


def forced_loss(engine: Engine, pairs: Sequence[Pair]) -> float:
    """The same from an engine that does not read answers: it is made to write them."""
    questions = [Question(source, len(target), target) for source, target in pairs]
    found = engine.search(questions, DecodeConfig(beam=1))
    return -sum(some[0].log_probability for some in found) / sum(len(target) + 1 for _, target in pairs)


def _layouts(
    work: Work, threads: int, numbers: Sequence[Numbers], config: DecodeConfig, shortlists: Sequence[bool] = (False,)
) -> list[Layout]:
    """The set-ups that race: one worker with all threads, one thread for each of all workers, and halfway."""
    shapes = {(1, 1), (1, threads)} if not work.many else {(threads, 1), (1, threads), (max(1, threads // 2), 2)}
    fitting = sorted((w, t) for w, t in shapes if w * t <= threads)
    return [
        Layout(kind, workers, each, config.batch_tokens, shortlist)
        for kind in numbers
        for shortlist in shortlists
        for workers, each in fitting
    ]


class Race:
    """Engines on the same sentences, one after the other."""

    def __init__(
        self,
        work: Work,
        config: DecodeConfig,
        pairs: Sequence[Pair],
        engine: CTranslate2Engine,
        limit: int,
    ) -> None:
        self.work, self.engine = work, engine
        self.config = dataclasses.replace(config, beam=work.beam, sample=False, no_repeat=0)
        self.questions = [
            Question(source, most_tokens(len(source) + 1, config.max_ratio, limit)) for source, _ in pairs if source
        ]
        self.heats = (4, 12) if not work.many else (96, 512) if work.beam == 1 else (32, 256)

    def of_layouts(self, layouts: Sequence[Layout]) -> Choice:
        """A first heat for all, a second for the best two and, for files, for a smaller batch too."""
        first: dict[Layout, float] = {}
        for layout in layouts:
            first[layout] = self.pace(self.engine.with_layout(layout), self.heats[0], max(first.values(), default=0.0))
        ways: dict[Layout, Way] = {layout: (layout.numbers, layout.shortlist) for layout in layouts}
        best = sorted(layouts, key=lambda layout: -_worth(ways[layout], first[layout]))[:2]
        if self.work.many:
            smaller = dataclasses.replace(best[0], batch_tokens=max(1, best[0].batch_tokens // 4))
            ways[smaller] = ways[best[0]]
            best.append(smaller)
        second = {layout: self.pace(self.engine.with_layout(layout), self.heats[1]) for layout in best}
        winner = max(second, key=lambda layout: _worth(ways[layout], second[layout]))
        return Choice("ctranslate2", winner, second[winner])

    def answers(self, engine: Engine) -> list[list[int]]:
        """What it finds, for every question."""
        return [found[0].ids for found in engine.search(self.questions, self.config)]

    def answer_loss(self, answers: Sequence[Sequence[int]]) -> float:
        """Nats a token of answers to the questions, weighed against all words."""
        asker = Asker(self.engine.translator, self.config, 1, self.engine.names)
        read = asker.log_probabilities(self.questions, answers)
        return -sum(map(sum, read)) / sum(map(len, read))

    def against(self, choice: Choice, name: Name, rivals: Mapping[Way, Engine]) -> Choice:
        """The last heat once more, with another engine, in all its ways."""
        paces = {way: self.pace(engine, self.heats[1]) for way, engine in rivals.items()}
        best = max(paces, key=lambda way: _worth(way, paces[way]))
        if _worth(best, paces[best]) > _worth(choice.way, choice.pace):
            beaten = choice.beaten | {NAMES[choice.engine]: choice.pace}
            return Choice(name, None, paces[best], beaten, best[1], best[0])
        return dataclasses.replace(choice, beaten=choice.beaten | {NAMES[name]: paces[best]})

    def pace(self, engine: Engine, count: int, best: float = 0.0) -> float:
        """Sentences a second over `count` of them, which come round again where there are too few; at a hopeless pace it is stopped."""
        questions = list(islice(cycle(self.questions), count))
        engine.search(questions[:1], self.config)  # what is slow only the first time
        seconds = [self._seconds(engine, questions[1:2])]
        alone = 20 if self.work.many else 1  # times slower that a sentence without company may be
        if seconds[0] * best > HOPELESS * alone:
            return 1 / seconds[0]
        if self.work.many:
            return count / self._seconds(engine, questions)
        seconds += [self._seconds(engine, [question]) for question in questions[2:]]
        return 1 / statistics.median(seconds)

    def _seconds(self, engine: Engine, questions: Sequence[Question]) -> float:
        began = time.perf_counter()
        engine.search(questions, self.config)
        return time.perf_counter() - began


def _worth(way: Way, pace: float) -> float:
    numbers, shortlist = way
    return pace / MARGIN ** ((numbers == "int8") + shortlist)
