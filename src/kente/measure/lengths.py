"""Which length penalty suits a translator: found on pairs it was not trained on.

One search finds the answers that a beam brings to an end; under each penalty another of them may be the best. So all penalties are weighed
at the cost of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kente.data.corpus import Pair
from kente.decode.answers import Hypothesis, length_penalty
from kente.decode.translator import Translator
from kente.errors import UsageError
from kente.measure.scores import corpus_bleu

PENALTIES = (0.5, 1.0, 1.5, 2.0)
USUAL = 1.0
"""What is searched with, and what stays where nothing is better."""


def bleu_by_penalty(translator: Translator, pairs: Sequence[Pair]) -> dict[float, float]:
    """BLEU of the best answers under each penalty; empty where no pair fits the model."""
    questions, references = [], []
    for pair in pairs:
        try:
            question, config = translator.question(pair.source)
        except UsageError:  # longer than the model reads, or nothing
            continue
        questions.append(question)
        references.append(pair.target)
    if not questions:
        return {}
    found = translator.engine.search(questions, replace(config, length_penalty=USUAL), n_best=config.beam)
    begun, decode = len(translator.tokenizers.target_marks), translator.tokenizers.target.decode

    def bleu(power: float) -> float:
        texts = [decode(max(some, key=lambda answer: _score(answer, power)).ids[begun:]) for some in found]
        return corpus_bleu(texts, references).value

    return {power: bleu(power) for power in PENALTIES}


def _score(answer: Hypothesis, power: float) -> float:
    return answer.log_probability / length_penalty(float(len(answer.ids) + answer.finished), power)


def best_penalty(bleu: dict[float, float]) -> float:
    """The penalty with the best BLEU; of equals, the one nearest to the usual."""
    return max(bleu, key=lambda power: (bleu[power], -abs(power - USUAL)), default=USUAL)
