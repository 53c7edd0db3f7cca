"""How good a translation is: BLEU, chrF++ and TER, as sacreBLEU counts them. A number never travels without its signature.

Intervals are percentile bootstrap (Koehn 2004): the corpus is drawn again 1,000 times from its own sentences, and 95 % of the
scores lie between low and high. Sentence statistics are taken once, so that the draws cost one matrix product.
"""

from __future__ import annotations

import difflib
import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kente.errors import CorpusError, UsageError
from kente.reporting import SILENT, Reporter
from kente.runs import Score

TOKENIZERS = ("13a", "none", "intl", "char", "zh", "ja-mecab")
RESAMPLES = 1000
SEED = 12345
SLICE = 100
"""Sentences scored between two signs of life: TER of a thousand takes many seconds."""

References = Sequence[str] | Sequence[Sequence[str]]


@dataclass(frozen=True)
class Evaluation:
    """What a test set says about a translator."""

    bleu: Score
    chrf: Score
    ter: Score
    sentences: int
    loss: float | None = None
    """Cross entropy of the references in nats per token, when a model was at hand."""
    history: tuple[str, ...] = ()
    """Where the numbers come from, such as "run demo", "beam 5"."""
    warnings: tuple[str, ...] = ()

    @property
    def perplexity(self) -> float | None:
        return None if self.loss is None else math.exp(min(self.loss, 700.0))  # e^709 is the end of float64

    def as_dict(self) -> dict[str, Any]:
        """For programs: every number beside its signature."""
        numbers: dict[str, Any] = {}
        for key, score in (("bleu", self.bleu), ("chrf", self.chrf), ("ter", self.ter)):
            numbers[key] = score.value
            numbers[f"{key}_low"] = score.low
            numbers[f"{key}_high"] = score.high
            numbers["signature" if key == "bleu" else f"{key}_signature"] = score.signature
        numbers["sentences"] = self.sentences
        if self.loss is not None:
            numbers |= {"loss": self.loss, "perplexity": self.perplexity}
        return numbers | {"history": list(self.history), "warnings": list(self.warnings)}

    def lines(self) -> list[str]:
        """For people, one score to a line."""
        lines = []
        for score in (self.bleu, self.chrf, self.ter):
            spread = ""
            if score.low is not None and score.high is not None:
                half = (score.high - score.low) / 2
                spread = f" ± {half:.1f} (95 %: {score.low:.1f} to {score.high:.1f})"
            origin = (*self.history, f"{self.sentences:,} lines", f"sacrebleu {score.signature}")
            lines.append(" | ".join((f"{score.name} {score.value:.1f}{spread}", *origin)))
        if self.loss is not None:
            lines.append(" | ".join((f"loss {self.loss:.3f}, perplexity {self.perplexity:.2f}", *self.history)))
        return lines + [f"note: {warning}" for warning in self.warnings]


def evaluate_texts(
    hypotheses: Sequence[str],
    references: References,
    tokenize: str = "13a",
    lowercase: bool = False,
    confidence: bool = True,
    reporter: Reporter = SILENT,
) -> Evaluation:
    """All three scores of a corpus; `references` is one list of lines, or several such lists."""
    wanted = _reference_lists(hypotheses, references)
    metrics = {"BLEU": _bleu(tokenize, lowercase), "chrF++": _chrf(2, lowercase), "TER": _ter()}
    draws = _draws(len(hypotheses)) if confidence else None
    bleu, chrf, ter = (_score(name, metric, hypotheses, wanted, draws, reporter) for name, metric in metrics.items())
    return Evaluation(bleu, chrf, ter, len(hypotheses), warnings=_doubts(hypotheses, tokenize))


def bleu_and_chrf(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> tuple[Score, Score]:
    """BLEU and chrF++ with their intervals: all but TER, which takes longer than the two together."""
    wanted, draws = _reference_lists(hypotheses, references), _draws(len(hypotheses))
    metrics = {"BLEU": _bleu(tokenize, False), "chrF++": _chrf(2, False)}
    bleu, chrf = (_score(name, metric, hypotheses, wanted, draws) for name, metric in metrics.items())
    return bleu, chrf


def corpus_bleu(
    hypotheses: Sequence[str], references: References, tokenize: str = "13a", lowercase: bool = False
) -> Score:
    """BLEU alone and without an interval: quick enough for a training loop."""
    return _score("BLEU", _bleu(tokenize, lowercase), hypotheses, _reference_lists(hypotheses, references))


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF++ of each sentence alone: unlike BLEU it says something about a single one."""
    metric = _chrf(2, False)
    return [
        float(metric.sentence_score(hypothesis, [reference]).score)
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def paired_bootstrap(
    systems: dict[str, Sequence[str]], best: str, references: Sequence[str], tokenize: str = "13a"
) -> dict[str, tuple[float, float]]:
    """{system: (BLEU less that of `best`, p)} for every other system: are they really different, or is it this test set?

    All systems are scored on the same redrawn test sets (Koehn, 2004). p is the share of draws whose difference exceeds its mean by at
    least the difference observed, as sacreBLEU counts it (after Riezler and Maxwell, 2005).
    """
    metric = _bleu(tokenize, False)
    draws = _draws(len(references)).astype(np.float64)
    scores, drawn = {}, {}
    for name, hypotheses in systems.items():
        statistics = metric._extract_corpus_statistics(hypotheses, [references])
        scores[name] = float(metric._aggregate_and_compute(statistics).score)
        sums = draws @ np.asarray(statistics, dtype=np.float64)
        drawn[name] = np.array([metric._compute_score_from_stats(row).score for row in sums.tolist()])
    found = {}
    for name in systems:
        if name != best:
            difference, differences = scores[name] - scores[best], np.abs(drawn[name] - drawn[best])
            stray = differences - differences.mean() >= abs(difference)
            found[name] = (difference, float((stray.sum() + 1) / (RESAMPLES + 1)))
    return found


def corpus_chrf(
    hypotheses: Sequence[str], references: References, word_order: int = 2, lowercase: bool = False
) -> Score:
    """chrF++ (word_order 2) or chrF2 (word_order 0) alone and without an interval."""
    name = "chrF" + ("+" * word_order or "2")
    return _score(name, _chrf(word_order, lowercase), hypotheses, _reference_lists(hypotheses, references))


def _reference_lists(hypotheses: Sequence[str], references: References) -> list[Sequence[str]]:
    """The references as sacreBLEU wants them, once the line counts are known to agree."""
    lists: list[Any] = list(references)
    wanted: list[Sequence[str]] = [lists] if not lists or isinstance(lists[0], str) else lists
    for number, lines in enumerate(wanted, 1):
        if len(lines) != len(hypotheses):
            which = f"reference {number}" if len(wanted) > 1 else "the reference"
            raise CorpusError(
                f"the hypothesis has {len(hypotheses):,} lines but {which} has {len(lines):,}; "
                "line i of one must be the translation of line i of the other"
            )
    if not hypotheses:
        raise CorpusError("nothing to score: hypothesis and reference have no lines")
    return wanted


def _bleu(tokenize: str, lowercase: bool) -> Any:
    from sacrebleu.metrics import BLEU

    if tokenize not in TOKENIZERS:
        near = difflib.get_close_matches(tokenize, TOKENIZERS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(TOKENIZERS)}"
        raise UsageError(f"no scoring tokenizer called {tokenize}; {hint}")
    if tokenize == "ja-mecab" and not (importlib.util.find_spec("MeCab") and importlib.util.find_spec("ipadic")):
        raise UsageError("--tokenize ja-mecab needs MeCab: pip install 'sacrebleu[ja]', or score with --tokenize char")
    return BLEU(
        tokenize=tokenize, lowercase=lowercase, force=True
    )  # force: advice on tokenized text is ours, see _doubts


def _chrf(word_order: int, lowercase: bool) -> Any:
    from sacrebleu.metrics import CHRF

    return CHRF(word_order=word_order, lowercase=lowercase)


def _ter() -> Any:
    from sacrebleu.metrics import TER

    return TER()  # without regard to case, as sacreBLEU and tercom have it; the signature says so


def _score(
    name: str,
    metric: Any,
    hypotheses: Sequence[str],
    references: list[Sequence[str]],
    draws: np.ndarray | None = None,
    reporter: Reporter = SILENT,
) -> Score:
    """One metric of a corpus. The sentence statistics serve the score and the interval: TER is too slow to take twice."""
    statistics: list[Any] = []
    for begin in range(0, len(hypotheses), SLICE):
        part = slice(begin, begin + SLICE)
        statistics += metric._extract_corpus_statistics(hypotheses[part], [lines[part] for lines in references])
        reporter.progress(f"scoring {name}", len(statistics), len(hypotheses))
    reporter.finish()
    value = float(metric._aggregate_and_compute(statistics).score)
    low = high = None
    if draws is not None:
        table = np.asarray(statistics, dtype=np.float64)  # (sentences, statistics)
        slices = np.array_split(draws, RESAMPLES // 50)  # the whole of `draws` as float64 would be eight times its size
        sums = [row for some in slices for row in (some.astype(np.float64) @ table).tolist()]
        values = [metric._compute_score_from_stats(row).score for row in sums]
        low, high = (float(bound) for bound in np.quantile(values, (0.025, 0.975)))
    return Score(
        name=name,
        value=value,
        signature=metric.get_signature().format(),
        low=low,
        high=high,
        higher_is_better=name != "TER",
    )


def _draws(sentences: int) -> np.ndarray:
    """How often each sentence is drawn in each resample, (resamples, sentences): one draw of numbers for every metric."""
    generator = np.random.default_rng(SEED)
    draws = np.empty((RESAMPLES, sentences), dtype=np.uint8)
    for row in draws:
        row[:] = np.bincount(generator.integers(0, sentences, sentences), minlength=sentences)
    return draws


def _doubts(hypotheses: Sequence[str], tokenize: str) -> tuple[str, ...]:
    """What a reader of the score should know about the text it was taken on."""
    doubts = []
    tokenized = sum(line.endswith((" .", " ?", " !")) for line in hypotheses)
    if tokenize != "none" and tokenized > len(hypotheses) / 4:
        doubts.append(
            f"{tokenized:,} of {len(hypotheses):,} hypotheses end in a separate full stop: the text looks tokenized already; "
            f"with --tokenize none it would not be tokenized again"
        )
    empty = sum(not line.strip() for line in hypotheses)
    if empty:
        doubts.append(f"{empty:,} of {len(hypotheses):,} hypotheses are empty")
    return tuple(doubts)
