"""Which length penalty suits a translator: found on pairs it was not trained on.

One search finds the answers that a beam brings to an end; under each penalty another of them may be the best. So all penalties are weighed
at the cost of one, and the one that promises most is then searched with: a beam that is led by it also finds longer answers that the first
search never ended. The usual one stays unless another is surely better both times: how long references are differs from one test set to the
next, and what is won on one by writing longer is lost on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kente.data.corpus import Pair
from kente.decode.answers import Hypothesis, length_penalty
from kente.decode.translator import Translator
from kente.errors import UsageError
from kente.measure.scores import corpus_bleu, paired_bootstrap

PENALTIES = (0.5, 1.0, 1.5, 2.0)
USUAL = 1.0
"""What is searched with, and what stays where nothing is better."""
SURE = 0.05
"""A penalty is worse than the best if chance would show such a difference less often than this."""


@dataclass(frozen=True)
class Weighed:
    """BLEU under each penalty, and p: how often chance alone would set it so far from the best."""

    bleu: dict[float, float]
    p: dict[float, float]
    searched: float | None = None
    """BLEU where the promising one led the search, if that is not the usual one."""
    surely: bool = False
    """Whether that is more than what the usual one finds, and by more than chance."""

    @property
    def penalty(self) -> float:
        """What to search with."""
        return self.promising if self.surely else USUAL

    @property
    def promising(self) -> float:
        """The one nearest to the usual that is not surely worse than the best, among the answers of one search."""
        fair = [power for power, chance in self.p.items() if chance >= SURE]
        return min(fair, key=lambda power: (abs(power - USUAL), -self.bleu[power]), default=USUAL)


def weigh_penalties(translator: Translator, pairs: Sequence[Pair]) -> Weighed:
    """How the best answers under each penalty score; nothing where no pair fits the model."""
    questions, references = [], []
    for pair in pairs:
        try:
            question, config = translator.question(pair.source)
        except UsageError:  # longer than the model reads, or nothing
            continue
        questions.append(question)
        references.append(pair.target)
    if not questions:
        return Weighed({}, {})
    begun, decode = len(translator.tokenizers.target_marks), translator.tokenizers.target.decode

    def found(power: float) -> list[list[Hypothesis]]:
        return translator.engine.search(questions, replace(config, length_penalty=power), n_best=config.beam)

    def best_of(answers: list[list[Hypothesis]], power: float) -> list[str]:
        return [decode(max(some, key=lambda answer: _score(answer, power)).ids[begun:]) for some in answers]

    usual = found(USUAL)
    chosen = {power: best_of(usual, power) for power in PENALTIES}
    bleu = {power: corpus_bleu(some, references).value for power, some in chosen.items()}
    best = max(bleu, key=lambda power: bleu[power])
    others = paired_bootstrap({str(power): some for power, some in chosen.items()}, str(best), references)
    weighed = Weighed(bleu, {power: others[str(power)][1] if power != best else 1.0 for power in PENALTIES})
    if (power := weighed.promising) == USUAL:
        return weighed
    texts = best_of(found(power), power)
    searched = corpus_bleu(texts, references).value
    _, chance = paired_bootstrap({"usual": chosen[USUAL], "other": texts}, "other", references)["usual"]
    return replace(weighed, searched=searched, surely=searched > bleu[USUAL] and chance < SURE)


def _score(answer: Hypothesis, power: float) -> float:
    return answer.log_probability / length_penalty(float(len(answer.ids) + answer.finished), power)
