"""Systems side by side: what is measured, chosen and said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kente import api
from kente.api.comparison import compare, report
from kente.errors import UsageError
from kente.measure.compare import _buckets, _choose, _lengths
from kente.measure.comparison import Alignment, Bucket, Comparison, Significance, System
from kente.measure.findings import findings
from kente.measure.scores import corpus_bleu, paired_bootstrap, sentence_chrf
from kente.reporting import Reporter
from kente.runs import Run, Score

SMALL = ["train.validate_sentences=20", "tokenizer.kind=words"]


# --- significance ---

REFERENCES = [f"the {a} sees the {b} in the garden ." for a in ("cat", "dog", "bird", "old man") for b in range(12)]
GOOD = [line.replace("garden", "house") if i % 6 == 0 else line for i, line in enumerate(REFERENCES)]
BAD = [line.replace("the", "a") if i % 2 == 0 else line for i, line in enumerate(REFERENCES)]


def test_the_same_system_twice_is_no_better():
    ((difference, p),) = paired_bootstrap({"one": GOOD, "two": list(GOOD)}, "one", REFERENCES).values()
    assert difference == 0 and p == 1.0


def test_a_clear_difference_is_significant_and_has_the_right_size():
    found = paired_bootstrap({"good": GOOD, "bad": BAD}, "good", REFERENCES)
    difference, p = found["bad"]
    assert list(found) == ["bad"]
    assert difference == pytest.approx(corpus_bleu(BAD, REFERENCES).value - corpus_bleu(GOOD, REFERENCES).value)
    assert p < 0.05


def test_p_agrees_with_sacrebleu():
    """sacreBLEU's own paired bootstrap draws other test sets: the same p but for the luck of the draw."""
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    nearly = [line.replace("the cat", "a cat") if i in (2, 7) else line for i, line in enumerate(GOOD)]
    (_, ours) = paired_bootstrap({"good": GOOD, "nearly": nearly}, "good", REFERENCES)["nearly"]
    systems = [("good", GOOD), ("nearly", nearly)]
    _, scores = PairedTest(systems, {"BLEU": BLEU()}, [REFERENCES], test_type="bs", n_samples=1000)()
    theirs = scores["BLEU"][1].p_value
    assert 0.01 < theirs < 0.9, "the case should be neither clear nor hopeless"
    assert ours == pytest.approx(theirs, abs=0.05)


def test_chrf_of_a_sentence():
    assert sentence_chrf(["the cat", "x"], ["the cat", "the dog"]) == [100.0, 0.0]


# --- lengths and samples ---


def test_buckets_hold_every_sentence_once():
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 140, 500).tolist()
    buckets, members = _buckets(lengths)
    assert sorted(row for rows in members for row in rows) == list(range(500))
    for bucket, rows in zip(buckets, members, strict=True):
        assert bucket.sentences == len(rows) and all(bucket.low <= lengths[row] <= bucket.high for row in rows)
    assert buckets[0].label == "1-5" and buckets[-1].high == max(lengths)


def test_an_empty_bucket_is_left_out():
    assert [bucket.label for bucket in _buckets([3, 3, 12])[0]] == ["1-5", "11-15"]


def test_scripts_without_spaces_are_counted_in_characters():
    assert _lengths(["こんにちは", "ありがとう。"]) == ("characters", [5, 6])
    assert _lengths(["good day", "yes"]) == ("words", [2, 1])


def test_samples_are_the_best_the_worst_and_others():
    means = [float(i) for i in range(30)]
    chosen = _choose(means, [8] * 29 + [2])  # the very best is too short to show anything
    assert [row for choice, row in chosen if choice == "best"] == [28, 27, 26]
    assert [row for choice, row in chosen if choice == "worst"] == [0, 1, 2]
    drawn = [row for choice, row in chosen if choice == "random"]
    assert len(drawn) == 3 and not {0, 1, 2, 26, 27, 28, 29} & set(drawn)
    assert chosen == _choose(means, [8] * 29 + [2])


def test_two_sentences_are_enough_to_choose_from():
    assert _choose([1.0, 2.0], [1, 1]) == [("best", 1), ("best", 0)]


# --- findings ---


def system(name, bleu, by_length, *, p=None, fixed=False, rate=None):
    return System(
        name=name, description="", run="", parameters=1, updates=1, minutes=1.0, tokens_per_second=1.0,
        sentences_per_second=1.0, peak_memory=1.0, bleu=Score("BLEU", bleu, "sig", bleu - 1, bleu + 1),
        chrf=Score("chrF++", bleu, "sig"), significance=None if p is None else Significance("best", -1.0, p),
        by_length=by_length, curve=(), alignment=None if rate is None else Alignment(rate, 0.5, 0.5, 0, 1),
        why_no_attention="one vector" if fixed else "",
    )  # fmt: skip


def test_findings_say_who_won_what_length_does_and_how_attention_aligns():
    systems = [
        system("gru", 40.0, (80.0, 30.0, 2.0), p=0.001, fixed=True),
        system("gru-attention", 70.0, (80.0, 70.0, 40.0), p=0.2, rate=0.31),
        system("transformer", 72.0, (82.0, 74.0, 20.0), rate=0.25),
    ]
    buckets = [Bucket(1, 5, 19), Bucket(16, 20, 19), Bucket(31, 40, 19)]
    winner, fixed, attending, aligned = findings(systems, buckets, trained_length=20)
    assert "transformer does best: BLEU 72.0, against 70.0 for gru-attention" in winner
    assert "cannot tell it from gru-attention" in winner
    assert "One fixed vector (gru): BLEU falls from 80.0 on sentences of 1-5 words to 30.0 on those of 16-20" in fixed
    assert "2.0 on 31-40 words, longer than any trained on" in fixed
    assert "BLEU falls from 81.0" in attending and "to 72.0" in attending and "30.0 on 31-40" in attending
    assert "most with the gold alignments in transformer: 25%" in aligned and "31% in gru-attention" in aligned


def test_lengths_that_few_sentences_have_are_not_spoken_of():
    systems = [system("gru", 40.0, (1.0, 80.0, 30.0, 99.0), p=0.001, fixed=True)]
    buckets = [Bucket(1, 5, 2), Bucket(6, 10, 500), Bucket(16, 20, 30), Bucket(31, 40, 3)]
    _, told = findings(systems, buckets, trained_length=20)
    assert "falls from 80.0 on sentences of 6-10 words to 30.0 on those of 16-20." in told
    assert "longer" not in told


def test_unequal_time_is_said():
    short = replace(system("a", 40.0, (1.0,), p=0.001), minutes=0.7, updates=10)
    long = replace(system("b", 72.0, (1.0,)), minutes=3.3, updates=50)
    told = findings([short, long], [Bucket(1, 5, 9)], 0)
    assert told[1] == "They were not trained equally long (minutes: a 0.7, b 3.3), so part of the difference is time."
    same_updates = [short, replace(long, updates=10)]  # a budget in updates: time may differ
    assert not any("equally long" in sentence for sentence in findings(same_updates, [Bucket(1, 5, 9)], 0))


def test_a_lead_over_all_is_called_significant():
    systems = [system("a", 40.0, (1.0,), p=0.001), system("b", 72.0, (1.0,))]
    assert findings(systems, [Bucket(1, 5, 9)], 0)[0].endswith("its lead over every other system is significant.")


# --- the whole of it ---


class Listener(Reporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory):
    out = tmp_path_factory.mktemp("compare") / "out"
    own = out.parent / "narrow.toml"
    own.write_text('[model]\nkind = "recurrent"\nattention = "none"\nwidth = 16\nembedding = 16\n')
    attentive = out.parent / "looking.toml"
    attentive.write_text('[model]\nkind = "recurrent"\nwidth = 16\nembedding = 16\n')
    models = [str(own), str(attentive)]
    return compare(out, models=models, updates_each=6, settings=SMALL, beam=1, threads=1), models


def test_a_comparison_is_a_page_and_its_numbers(compared):
    result, _ = compared
    numbers = json.loads(result.numbers.read_bytes())
    assert Comparison.from_dict(numbers) == result.comparison
    narrow, looking = result.comparison.systems
    assert (narrow.name, looking.name) == ("narrow", "looking")
    assert narrow.alignment is None and "one vector" in narrow.why_no_attention
    assert looking.alignment is not None and looking.why_no_attention == ""
    assert narrow.updates == looking.updates == 6 and min(narrow.peak_memory, narrow.tokens_per_second) > 0
    assert narrow.curve[-1].step == 6
    assert sum(bucket.sentences for bucket in result.comparison.buckets) == 800
    assert result.comparison.trained_length == 20
    assert "model.attention" in result.comparison.settings and "batches.tokens" not in result.comparison.settings
    assert {answer.system for answer in result.comparison.samples[0].answers} == {"narrow", "looking"}
    page = result.page.read_text()
    assert "narrow" in page and "one vector" in page
    lines = "\n".join(result.lines())
    assert "BLEU by source length in words (trained on up to 20)" in lines and str(result.page) in lines


def test_systems_share_one_corpus_and_one_tokenizer(compared):
    result, _ = compared
    runs = [Run.open(s.run) for s in result.comparison.systems]
    assert len({run.tokenizers().sha256 for run in runs}) == 1
    stored = [
        sorted((path.name, path.stat().st_ino) for path in (run.path / "data" / "train").iterdir()) for run in runs
    ]
    assert stored[0] == stored[1], "one copy on disk under two names"


def test_a_finished_model_is_not_trained_again(compared):
    result, models = compared
    before = {s.name: Run.open(s.run).latest().manifest for s in result.comparison.systems}
    listener = Listener()
    again = compare(
        result.page.parent, models=models, updates_each=6, settings=SMALL, beam=1, threads=1, reporter=listener
    )
    assert {s.name: Run.open(s.run).latest().manifest for s in again.comparison.systems} == before
    assert sum("is trained already" in said for said in listener.said) == 2
    same = {"created": "", "environment": {}}
    assert replace(again.comparison, **same) == replace(result.comparison, **same)


def test_a_comparison_begun_with_another_budget_is_not_mixed_with_this_one(compared):
    result, models = compared
    with pytest.raises(UsageError, match=r"was begun with other updates each \(updates_each 6\); choose another --out"):
        compare(result.page.parent, models=models, updates_each=7, settings=SMALL)


def test_report_makes_the_page_from_runs_that_exist(compared, tmp_path: Path):
    result, _ = compared
    runs = [s.run for s in result.comparison.systems]
    made = report(runs, tmp_path / "report", beam=1, threads=1)
    assert made.page.exists() and [s.name for s in made.comparison.systems] == ["narrow", "looking"]
    assert "validation sentences" in made.comparison.test
    source, reference = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text("I am good.\nThe cat sleeps.\n")
    reference.write_text("Je vais bien.\nLe chat dort.\n")
    again = report(runs[:1], tmp_path / "again", test=api.Data(source, reference), beam=1, threads=1)
    assert again.comparison.systems[0].bleu.value >= 0 and "2 lines" in again.comparison.test


def test_a_corpus_of_ones_own_gets_a_test_set_held_out(tmp_path: Path):
    pairs = [(f"word{i} one two three", f"mot{i} un deux trois") for i in range(300)]
    source, target = tmp_path / "t.en", tmp_path / "t.fr"
    source.write_text("".join(s + "\n" for s, _ in pairs))
    target.write_text("".join(t + "\n" for _, t in pairs))
    recipe = tmp_path / "tiny-gru.toml"
    recipe.write_text('[model]\nkind = "recurrent"\nattention = "none"\nwidth = 8\nembedding = 8\n')
    result = compare(
        tmp_path / "out",
        data=api.Data(source, target),
        models=[str(recipe)],
        updates_each=2,
        settings=SMALL,
        beam=1,
        threads=1,
    )
    held = (tmp_path / "out" / "corpus" / "test.source").read_text().splitlines()
    kept = (tmp_path / "out" / "corpus" / "train.source").read_text().splitlines()
    assert len(held) == 15 and not set(held) & set(kept) and len(held) + len(kept) == 300
    assert result.comparison.systems[0].alignment is None


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"models": ["gru", "gru"]}, "each model once"),
        ({"models": ["gro"]}, "no recipe called gro"),
        ({"test": api.Data(Path("a"), Path("b"))}, "needs a corpus beside it"),
    ],
)
def test_bad_requests_are_refused(tmp_path, how, message):
    with pytest.raises(Exception, match=message):
        compare(tmp_path / "out", **how)
