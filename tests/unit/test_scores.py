"""Scores are sacreBLEU's to the last digit, never travel without a signature, and refuse texts that do not line up."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from kente.errors import CorpusError, UsageError
from kente.measure.scores import Evaluation, corpus_bleu, corpus_chrf, evaluate_texts

HYPOTHESES = ["the cat sits on the mat .", "a dog runs", "she reads a red book", "we are here today", "yes"]
REFERENCES = ["the cat sat on the mat .", "a dog is running", "she reads the red book", "today we are here", "yes"]


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.mark.slow
def test_wmt21_outputs_get_the_published_figures_to_the_last_digit(data: Path) -> None:
    folder = data / "wmt21_en-ha"
    with (folder / "automatic-scores.tsv").open(encoding="utf-8", newline="") as file:
        rows = {(row["system"], row["metric"]): float(row["score"]) for row in csv.DictReader(file, delimiter="\t")}
    systems = sorted({system for system, _ in rows})
    assert len(systems) == 14
    reference = lines_of(folder / "newstest2021.en-ha.ref.A.ha")
    for system in systems:
        hypotheses = lines_of(folder / f"newstest2021.en-ha.hyp.{system}.ha")
        assert corpus_bleu(hypotheses, reference).value == rows[system, "bleu-A"], system
        assert corpus_chrf(hypotheses, reference, word_order=0).value == rows[system, "chrf-A"], system


def test_all_three_scores_are_those_of_sacrebleu() -> None:
    evaluation = evaluate_texts(HYPOTHESES, REFERENCES)
    assert evaluation.bleu.value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert evaluation.chrf.value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    assert evaluation.ter.value == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert (evaluation.bleu.higher_is_better, evaluation.ter.higher_is_better) == (True, False)


@pytest.mark.parametrize("tokenize", ["none", "13a", "intl", "char", "zh"])
def test_the_tokenizer_asked_for_is_used_and_stands_in_the_signature(tokenize: str) -> None:
    hypotheses, references = ["Don't stop, 3.5 km!", "猫が 好き"], ["Do not stop: 3.5 km!", "猫も 好き"]
    score = corpus_bleu(hypotheses, references, tokenize)
    assert score.value == sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenize).score
    assert f"tok:{tokenize}|" in score.signature


def test_lowercase_ignores_case_and_says_so() -> None:
    assert corpus_bleu(["THE CAT SAT DOWN"], ["the cat sat down"]).value == 0
    score = corpus_bleu(["THE CAT SAT DOWN"], ["the cat sat down"], lowercase=True)
    assert score.value == pytest.approx(100)
    assert "case:lc" in score.signature
    assert corpus_chrf(["ABC"], ["abc"], lowercase=True).value == pytest.approx(100)


def test_several_references_each_count() -> None:
    second = ["the cat is sitting on the mat .", "a dog runs", "she reads a red book", "we are here", "yes"]
    score = corpus_bleu(HYPOTHESES, [REFERENCES, second])
    assert score.value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES, second]).score
    assert "nrefs:2" in score.signature


def test_the_interval_is_what_drawing_sentences_again_gives() -> None:
    """Oracle: score each resampled corpus from its text, one by one."""
    generator = np.random.default_rng(3)
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    references = [" ".join(generator.choice(words, 8)) for _ in range(40)]
    hypotheses = [" ".join(generator.choice(line.split(), 7)) for line in references]
    evaluation = evaluate_texts(hypotheses, references)
    drawn = []
    for _ in range(300):
        rows = generator.integers(0, 40, 40)
        drawn.append(sacrebleu.corpus_bleu([hypotheses[i] for i in rows], [[references[i] for i in rows]]).score)
    low, high = np.quantile(drawn, (0.025, 0.975))
    assert evaluation.bleu.low is not None and evaluation.bleu.high is not None
    assert evaluation.bleu.low < evaluation.bleu.value < evaluation.bleu.high
    tolerance = 0.2 * (high - low)  # both ends are estimates
    assert evaluation.bleu.low == pytest.approx(low, abs=tolerance)
    assert evaluation.bleu.high == pytest.approx(high, abs=tolerance)


def test_the_same_texts_get_the_same_interval() -> None:
    assert evaluate_texts(HYPOTHESES, REFERENCES) == evaluate_texts(HYPOTHESES, REFERENCES)


def test_without_confidence_there_is_no_interval() -> None:
    evaluation = evaluate_texts(HYPOTHESES, REFERENCES, confidence=False)
    assert evaluation.bleu.low is evaluation.chrf.high is evaluation.ter.low is None
    assert "95 %" not in evaluation.lines()[0]


@given(st.lists(st.text("ab .\u0301猫", max_size=12), min_size=1, max_size=6))
def test_a_text_scored_against_itself_is_perfect_or_empty(lines: list[str]) -> None:
    evaluation = evaluate_texts(lines, lines, confidence=False)
    assert evaluation.ter.value == 0
    assert evaluation.chrf.value == pytest.approx(100) or not "".join(lines).strip()
    assert 0 <= evaluation.bleu.value <= 100 + 1e-9


def test_every_number_travels_with_its_signature() -> None:
    evaluation = replace(evaluate_texts(HYPOTHESES, REFERENCES), loss=1.5, history=("run demo", "beam 5"))
    numbers = evaluation.as_dict()
    assert numbers["signature"] == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" + sacrebleu.__version__
    assert "nw:2" in numbers["chrf_signature"] and "tok:tercom" in numbers["ter_signature"]
    assert numbers["bleu_low"] <= numbers["bleu"] <= numbers["bleu_high"]
    assert numbers["sentences"] == 5 and numbers["perplexity"] == pytest.approx(math.exp(1.5))
    bleu, chrf, ter, loss = evaluation.lines()
    assert re.fullmatch(
        r"BLEU [\d.]+ ± [\d.]+ \(95 %: [\d.]+ to [\d.]+\) \| run demo \| beam 5 \| 5 lines \| sacrebleu nrefs:1.*", bleu
    )
    assert chrf.startswith("chrF++ ") and ter.startswith("TER ")
    assert loss == "loss 1.500, perplexity 4.48 | run demo | beam 5"


def test_an_enormous_loss_still_has_a_perplexity() -> None:
    evaluation: Evaluation = replace(evaluate_texts(["a"], ["a"], confidence=False), loss=1e6)
    assert evaluation.perplexity is not None and math.isfinite(evaluation.perplexity)


def test_line_counts_that_differ_are_refused_with_both_numbers() -> None:
    with pytest.raises(CorpusError, match=r"hypothesis has 1,001 lines but the reference has 1,000"):
        corpus_bleu(["a"] * 1001, ["a"] * 1000)
    with pytest.raises(CorpusError, match=r"hypothesis has 2 lines but reference 2 has 1"):
        evaluate_texts(["a", "b"], [["a", "b"], ["a"]])


def test_nothing_to_score_is_said() -> None:
    with pytest.raises(CorpusError, match="nothing to score"):
        evaluate_texts([], [])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("14a", "no scoring tokenizer called 14a; did you mean 13a?"),
        ("moses", "no scoring tokenizer called moses; there are 13a, none"),
    ],
)
def test_an_unknown_tokenizer_is_named(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        corpus_bleu(["a"], ["a"], name)


def test_text_that_looks_tokenized_or_empty_is_remarked_on() -> None:
    hypotheses = ["a cat .", "is it ?", "", "four words stand here ."]
    evaluation = evaluate_texts(hypotheses, hypotheses, confidence=False)
    assert evaluation.lines()[-2].startswith("note: 3 of 4 hypotheses end in a separate full stop")
    assert evaluation.as_dict()["warnings"][1] == "1 of 4 hypotheses are empty"
    assert len(evaluate_texts(hypotheses, hypotheses, "none", confidence=False).warnings) == 1
