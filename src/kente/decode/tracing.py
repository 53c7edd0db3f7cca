"""Search, watched: the same method on the same desk, and beside its answer what lived and what was dropped at every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from kente.config import DecodeConfig
from kente.data.tokenizer import BOS, EOS, PAD, UNK
from kente.decode.answers import Hypothesis, no_answer
from kente.decode.beam import Beam, rank
from kente.decode.engine import Question
from kente.decode.following import Follow
from kente.decode.guards import Rules
from kente.decode.hypothesis import NEVER, Living
from kente.decode.queue import Desk, Queue, Request
from kente.decode.search import choose_method
from kente.decode.torch_engine import TorchEngine, at_rest
from kente.decode.words import Words

Fate = Literal["lives", "ended", "beaten", "hopeless", "weak"]
"""lives: is carried on. ended: a whole answer, the best so far. Dropped: beaten by likelier ones, hopeless (whatever came, it could not
beat an answer that is there), weak (it ended, but below an answer that is there)."""


@dataclass(frozen=True)
class Branch:
    """A beginning that search considered at one step, and what became of it."""

    ids: tuple[int, ...]
    log_probability: float
    fate: Fate


@dataclass(frozen=True)
class Trace:
    """An answer, and every step of the way to it."""

    answer: Hypothesis
    steps: tuple[tuple[Branch, ...], ...]


class Watched:
    """A method that chooses as ever, and remembers. For one sentence at a time."""

    def __init__(self, method: Beam | Follow) -> None:
        self.method, self.copies, self.several = method, method.copies, method.several
        self.places = (
            method.width if isinstance(method, Beam) else 0
        )  # where a candidate stays unless something speaks against it
        self.steps: list[tuple[Branch, ...]] = []

    def advance(self, logits: Tensor, living: Living, words: Words) -> tuple[Tensor | None, Living]:
        before, answers = _rows(living), self.answers()[0]
        scores = self.method.rules.allow(logits.clone(), living, words)
        ranked = rank(scores, living, words, max(1, self.places))
        columns = (ranked.parent[0], ranked.token[0], ranked.log_probability[0])
        candidates = [
            Branch((*before[parent][0], token), total, "beaten")
            for parent, token, total in zip(*(x.tolist() for x in columns), strict=True)
            if total > NEVER
        ]
        parents, after = self.method.advance(logits, living, words)
        whole = {tuple(h.ids) for h in self.answers()[0] if h not in answers}
        self.steps.append(tuple(_with_fates(candidates, before, _rows(after), whole, self.places)))
        return parents, after

    def stop(self, living: Living) -> None:
        self.method.stop(living)

    def answers(self) -> list[list[Hypothesis]]:
        return [list(found) for found in self.method.answers()]


def _rows(living: Living) -> list[tuple[tuple[int, ...], float]]:
    """(ids, log-probability) of each row of the one sentence, empty places included."""
    written = int(living.written[0])
    return [
        (tuple(ids[:written]), total)
        for ids, total in zip(living.tokens.tolist(), living.log_probability.tolist(), strict=True)
    ]


def _with_fates(
    candidates: Sequence[Branch],
    before: Sequence[tuple[tuple[int, ...], float]],
    after: Sequence[tuple[tuple[int, ...], float]],
    whole: set[tuple[int, ...]],
    places: int,
) -> list[Branch]:
    """Living ones first, then those that ended, then those dropped; a beginning that nothing continues is dropped as it stands."""
    living = [Branch(ids, total, "lives") for ids, total in after if total > NEVER]
    alive = {branch.ids for branch in living}
    ended, dropped, going_on = [], [], 0
    for place, branch in enumerate(candidates):
        if branch.ids[-1] == EOS and branch.ids[:-1] in whole:
            ended.append(replace(branch, fate="ended"))
        elif branch.ids[-1] == EOS:
            dropped.append(replace(branch, fate="weak" if place < places else "beaten"))
        else:
            going_on += 1
            if branch.ids not in alive:
                dropped.append(replace(branch, fate="hopeless" if going_on <= places else "beaten"))
    continued = {branch.ids[:-1] for branch in (*living, *ended, *dropped)}
    dropped += [Branch(ids, total, "beaten") for ids, total in before if total > NEVER and ids not in continued]
    return sorted(living, key=lambda branch: -branch.log_probability) + ended + dropped


@torch.inference_mode()
def trace(engine: TorchEngine, question: Question, config: DecodeConfig) -> Trace:
    """The answer that engine.search gives to the question, and how it was found."""
    requests = [Request(0, [*question.source, EOS], question.prefix, question.cap)]
    with at_rest(engine.model):
        rules = Rules(EOS, config.no_repeat, engine.device)
        method = Watched(choose_method(requests, config, 1, rules, engine.device))
        desk = Desk(engine.model, method, (PAD, UNK, BOS), BOS, engine.shortlist, engine.device)
        desk.work(Queue(requests, None), lambda: False)
    found = method.answers()[0]
    return Trace(found[0] if found else no_answer(), tuple(method.steps))
