"""The length penalty is the one under which a beam's answers are best, on pairs that were not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kente.config import DecodeConfig, TokenizerConfig
from kente.data.corpus import Pair
from kente.data.tokenizer import train_tokenizers
from kente.decode.answers import Hypothesis
from kente.decode.engine import Question
from kente.decode.translator import Translator
from kente.measure.lengths import PENALTIES, Weighed, weigh_penalties

LONG = "the red cat sees the small dog in the old house"
SHORT = "the red cat sees"
PAIRS = [Pair(LONG, LONG, 1)] * 5


class TwoAnswers:
    """An engine that finds a long and a short answer to everything, the short one likelier as a whole and less so for each token."""

    name = "two answers"

    def __init__(self, encode: Any) -> None:
        self.long, self.short = encode(LONG), encode(SHORT)

    def search(self, questions: Sequence[Question], config: DecodeConfig, n_best: int = 1, **_: Any) -> Any:
        assert n_best == config.beam
        return [[Hypothesis(self.short, 0.0, -6.0), Hypothesis(self.long, 0.0, -9.0)]] * len(questions)


@pytest.fixture(scope="module")
def translator() -> Translator:
    config = TokenizerConfig(kind="words", vocabulary=0)
    tokenizers = train_tokenizers(lambda: iter([(LONG, LONG)]), config)
    return Translator(TwoAnswers(tokenizers.target.encode), tokenizers)  # type: ignore[arg-type]


def test_each_penalty_takes_its_own_best_of_the_answers(translator: Translator) -> None:
    """11 tokens and the end: ((5 + 12) / 6)^p against ((5 + 5) / 6)^p. At p = 0.5 -5.35 < -4.65: short; at 1 -3.18 > -3.6: long."""
    weighed = weigh_penalties(translator, PAIRS)
    assert tuple(weighed.bleu) == PENALTIES
    assert weighed.bleu[0.5] < 50 and all(weighed.bleu[power] == pytest.approx(100) for power in (1.0, 1.5, 2.0))
    assert weighed.penalty == 1.0


def test_a_surely_better_penalty_is_taken(translator: Translator) -> None:
    """Where the short answer is right, 0.5 alone finds it, in each of many sentences."""
    weighed = weigh_penalties(translator, [Pair(LONG, SHORT, 1)] * 60)
    assert weighed.bleu[0.5] == pytest.approx(100) and weighed.p[1.0] < 0.05
    assert weighed.penalty == 0.5 and weighed.searched == pytest.approx(100)


def test_what_promises_more_and_finds_less_is_not_taken(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Led by 0.5 the search brings other answers to an end, and they are wrong."""
    engine, wrong = translator.engine, Hypothesis(translator.tokenizers.target.encode("dog dog dog"), 0.0, -0.1)
    search = engine.search

    def led(questions: Sequence[Question], config: DecodeConfig, n_best: int = 1, **more: Any) -> Any:
        found = search(questions, config, n_best, **more)
        return [[*some, wrong] for some in found] if config.length_penalty == 0.5 else found

    monkeypatch.setattr(engine, "search", led)
    weighed = weigh_penalties(translator, [Pair(LONG, SHORT, 1)] * 60)
    assert weighed.promising == 0.5 and weighed.searched is not None and weighed.searched < 1
    assert weighed.penalty == 1.0


def test_sentences_the_model_cannot_read_say_nothing(translator: Translator) -> None:
    weighed = weigh_penalties(translator, [Pair(" ", LONG, 1), Pair(LONG * 300, LONG, 2)])
    assert weighed == Weighed({}, {}) and weighed.penalty == 1.0


def test_the_usual_one_stays_unless_another_promises_surely_more() -> None:
    bleu = {0.5: 19.0, 1.0: 19.6, 1.5: 19.9, 2.0: 20.0}
    assert Weighed(bleu, {0.5: 0.01, 1.0: 0.2, 1.5: 0.5, 2.0: 1.0}).promising == 1.0
    assert Weighed(bleu, {0.5: 0.01, 1.0: 0.01, 1.5: 0.5, 2.0: 1.0}).promising == 1.5
    assert Weighed(bleu, {0.5: 1.0, 1.0: 0.01, 1.5: 0.5, 2.0: 0.01}).promising == 1.5, "of two as near, the better"
