"""The doctor finds what was broken on purpose, leaves whole corpora alone, and says what to do."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kente.config import CleaningConfig
from kente.data.corpus import Corpus, read_lines
from kente.data.doctor import examine
from kente.data.findings import Finding, Report
from kente.data.shift import FEATURES, Features, Shift, find_shift, gather_features, line_features, shift_of
from kente.errors import CorpusError


def _texts(lines: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Two made-up languages whose sentences share length, numbers and question marks."""
    draw = random.Random(seed)
    source, target = [], []
    for _ in range(lines):
        words = draw.randint(8, 40)
        number = str(draw.randint(1, 999)) if draw.random() < 0.3 else ""
        end = "?" if draw.random() < 0.2 else "."
        source.append(" ".join(draw.choice(["ba", "kodi", "lemuna", "so"]) for _ in range(words)) + f" {number}{end}")
        target.append(
            " ".join(draw.choice(["tri", "vasko", "melindo"]) for _ in range(words + draw.randint(-1, 2)))
            + f" {number}{end}"
        )
    return source, target


def _finding(report: Report, check: str, side: str | None = None) -> Finding:
    return next(f for f in report.findings if f.check == check and side in (None, f.numbers.get("side")))


# ----------------------------------------------------------------------------------------------------------------- shift


@pytest.mark.parametrize("lost", [1, 3])
@pytest.mark.parametrize("at", [5, 400, 800])
@pytest.mark.parametrize("side", [0, 1])
def test_a_lost_line_is_found(at: int, lost: int, side: int) -> None:
    texts = _texts(1000)
    del texts[side][at : at + lost]
    found = find_shift(*texts)
    assert found.line is not None and abs(found.line - 1 - at) <= 10
    assert found.parts[0].offset == (lost if side == 0 else -lost)
    assert found.lines >= 1000 - at - lost - 10


def test_many_lines_lost_at_once_are_found() -> None:
    source, target = _texts(1000)
    del target[300:400]
    found = find_shift(source, target)
    assert found.line is not None and abs(found.line - 301) <= 20 and found.parts[-1].offset == -100


def test_a_part_that_is_shifted_and_comes_back_is_bounded() -> None:
    source, target = _texts(1000)
    target = [*target[:300], "melindo vasko.", *target[300:499], *target[500:]]
    (part,) = find_shift(source, target).parts
    assert abs(part.first - 301) <= 10 and abs(part.last - 500) <= 10 and part.offset == 1
    assert part.sentence() == f"lines {part.first} to {part.last} have their translation 1 line later"


def test_a_shuffled_part_fits_nothing() -> None:
    source, target = _texts(1500)
    middle = target[500:900]
    random.Random(3).shuffle(middle)
    (part,) = find_shift(source, [*target[:500], *middle, *target[900:]]).parts
    assert abs(part.first - 501) <= 15 and abs(part.last - 900) <= 15 and part.offset is None
    assert "fit nothing nearby" in part.sentence()


def test_whole_texts_look_whole_and_unrelated_ones_cannot_be_judged() -> None:
    source, target = _texts(2000)
    assert find_shift(source, target).parts == () and find_shift(source, target).judged
    assert not find_shift(source, random.Random(1).sample(target, len(target))).judged
    assert not find_shift(source[:20], target[:20]).judged
    assert not find_shift(["same"] * 500, ["same"] * 500).judged


def test_a_text_sorted_by_length_gives_no_false_alarm() -> None:
    pairs = sorted(zip(*_texts(2000), strict=True), key=lambda pair: len(pair[0]))
    found = find_shift([one for one, _ in pairs], [two for _, two in pairs])
    assert found.parts == ()


def test_features_agree_with_counting_by_hand() -> None:
    lines = ["", "Is 2019 “new”? Yes, it IS!", "١٢، ሰላም።", "a" * 50]
    features = np.expm1(line_features(lines).astype(float))
    marks = [",،、，፣;；؛፤", ".。።।…", "?？؟፧", "!！", "\"'«»“”„‘’()[]「」『』（）", ":：፡"]
    for row, line in zip(features, lines, strict=True):
        expected = [sum(line.count(mark) for mark in group) for group in marks]
        expected += [sum(int(c) for c in line if c.isdecimal()), sum(map(str.isupper, line)), len(line)]
        np.testing.assert_allclose(row, expected, rtol=0.01, atol=0.01)
    assert gather_features([]).shape == (0, FEATURES)


REAL = [
    ("multi30k/train.en", "multi30k/train.de"),
    ("multi30k/tok/train.en", "multi30k/tok/train.fr"),
    ("ebible_sw-en/train.sw", "ebible_sw-en/train.en"),
    ("enja_small/train.en", "enja_small/train.ja"),
    ("mafand/en-twi/train.en", "mafand/en-twi/train.twi"),
    ("mafand/en-yor/train.en", "mafand/en-yor/train.yor"),
    ("mafand/en-amh/dev.en", "mafand/en-amh/dev.amh"),
    ("tico19/eng-hin.eng", "tico19/eng-hin.hin"),
    ("wmt_newstest_ende/newstest2014.eng-deu.en", "wmt_newstest_ende/newstest2014.eng-deu.de"),
]


def _features(data: Path, names: tuple[str, str]) -> tuple[Features, Features]:
    return gather_features(read_lines(data / names[0])), gather_features(read_lines(data / names[1]))


@pytest.mark.parametrize("names", REAL, ids=lambda names: names[0])
def test_real_texts_are_whole_until_a_line_is_deleted(data: Path, names: tuple[str, str]) -> None:
    source, target = _features(data, names)
    assert shift_of(source, target).parts == () and shift_of(source, target).judged
    draw = random.Random(names[0])
    for trial in range(6):
        place = draw.randrange(100, len(source) - 100)
        cut = [source, target]
        cut[trial % 2] = np.delete(cut[trial % 2], place, axis=0)
        line = shift_of(*cut).line
        assert line is not None and abs(line - 1 - place) <= 50


@pytest.mark.parametrize(
    ("names", "first"),
    [(("mafand/en-hau/train.en", "mafand/en-hau/train.hau"), 706), (("tico19/eng-som.eng", "tico19/eng-som.som"), 838),
     (("mafand/fr-wol/train.fr", "mafand/fr-wol/train.wol"), 2116)],
    ids=lambda value: str(value),
)  # fmt: skip
def test_real_faults_of_published_corpora_are_found(data: Path, names: tuple[str, str], first: int) -> None:
    """Seen by eye: these texts really part there."""
    line = shift_of(*_features(data, names)).line
    assert line is not None and abs(line - first) <= 3


# ---------------------------------------------------------------------------------------------------------------- report


def _memory(source: list[str], target: list[str], name: str = "made up") -> Corpus:
    return Corpus.of_memory(zip(source, target, strict=True), name)


def test_a_good_corpus_has_nothing_but_ok() -> None:
    corpus = _memory(*_texts(12_000))
    report = examine(corpus)
    assert {finding.severity for finding in report.findings} == {"ok"}, "\n".join(report.lines())
    assert report.worst == "ok" and report.pairs == 12_000
    assert report.lines()[0] == "made up: 12,000 pairs"
    assert report.lines()[-1] == f"in short: {len(report.findings)} ok"


def test_the_report_is_json() -> None:
    report = examine(_memory(*_texts(200)), _memory(*_texts(50, 2)), _memory(*_texts(50, 3)))
    again = json.loads(json.dumps(report.as_dict()))
    assert again["pairs"] == 200 and again["worst"] == report.worst
    assert {"check", "severity", "title", "seen", "remedy", "examples", "numbers"} == set(again["findings"][0])


def test_different_line_counts_are_reported_with_the_place(tmp_path: Path) -> None:
    source, target = _texts(900)
    del target[450]
    (tmp_path / "train.tw").write_text("\n".join(source) + "\n")
    (tmp_path / "train.en").write_text("\n".join(target) + "\n")
    corpus = Corpus.of_files(tmp_path / "train.tw", tmp_path / "train.en")
    finding = _finding(examine(corpus), "lines")
    assert finding.severity == "error" and finding.numbers["lines"] == (900, 899)
    assert (
        "train.tw has 900 lines but" in finding.seen and "the first pair that looks shifted is line 45" in finding.seen
    )
    with pytest.raises(
        CorpusError, match=r"has 900 lines but .* has 899; the first pair that looks shifted is line 45"
    ):
        corpus.count()
    (tmp_path / "train.en").write_text("\n".join(_texts(900)[1][:-3]) + "\n")
    with pytest.raises(CorpusError, match="no pair looks shifted, so the lines too many are probably at the end"):
        list(corpus)


def test_a_broken_validation_text_does_not_stop_the_rest(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"\xff\n")
    report = examine(_memory(*_texts(300)), validation=Corpus.of_files(tmp_path / "bad", tmp_path / "bad"))
    assert _finding(report, "readable").severity == "error" and "bad:1: not UTF-8" in _finding(report, "readable").seen
    assert _finding(report, "amount").numbers["kept"] == 300


def test_unrelated_sides_and_shifted_sides_are_told() -> None:
    source, target = _texts(2000)
    unrelated = _finding(examine(_memory(source, random.Random(5).sample(target, 2000))), "shift")
    assert unrelated.severity == "warning" and "nothing in common" in unrelated.seen
    shifted = _finding(examine(_memory(source[1:], target[:-1])), "shift")
    assert shifted.severity == "error" and shifted.numbers["first"] == 1
    assert _finding(examine(_memory(source[:30], target[:30])), "shift").severity == "note"
    one_part = [*source[:600], *source[601:640], source[600], *source[640:]]
    assert _finding(examine(_memory(one_part, target)), "shift").severity == "warning"


def test_counts_of_cleaning_come_with_examples_and_remedy() -> None:
    source, target = _texts(300)
    source[9], target[19], source[29] = "", "\x00", target[29]
    report = examine(_memory([*source, source[0]], [*target, target[0]]))
    assert _finding(report, "empty").examples[0].startswith("line 10:")
    assert _finding(report, "control-characters").remedy.startswith("training leaves them out; replace them")
    assert _finding(report, "identical").numbers == {"pairs": 1}
    assert _finding(report, "duplicate").seen == "1 pair (0.3 %)"
    assert _finding(report, "amount").numbers["dropped"] == {
        "empty": 1,
        "control characters": 1,
        "identical": 1,
        "duplicate": 1,
    }
    kept = examine(_memory(source, target), config=CleaningConfig(identical="keep"))
    assert _finding(kept, "identical").seen == "not looked for: the settings keep them"


def test_nothing_left_is_an_error_and_little_left_a_warning() -> None:
    source, target = _texts(100)
    assert _finding(examine(_memory(source, source)), "amount").severity == "error"
    assert _finding(examine(_memory([], [])), "amount").severity == "error"
    assert _finding(examine(_memory([*source[:60], *[""] * 40], target)), "amount").severity == "warning"
    assert _finding(examine(_memory(source, target)), "amount").severity == "warning"
    assert _finding(examine(_memory(*_texts(3000))), "amount").severity == "note"


def test_characters_are_looked_at() -> None:
    source, target = _texts(300)
    source[4], source[5], target[6], target[7] = "ba so\ufffd.", "cafÃ© ba", "tri\u200b vas\u00adko", "\u200ftri"
    target[8], target[9] = "vasko\u0301", "vask\u00f3"
    report = examine(_memory(source, target))
    assert _finding(report, "replacement-characters").examples == ("source line 5: ba so\ufffd.",)
    assert _finding(report, "wrongly-decoded-letters").severity == "warning"
    assert _finding(report, "characters-of-no-width").numbers == {"source_lines": 0, "target_lines": 1}
    assert _finding(report, "direction-marks").examples == ("target line 8: \\u200ftri",)
    assert _finding(report, "unicode-form").numbers["target"] == {"not_nfc": 1, "composed": 1}
    assert "the same letter is written in two ways" in _finding(report, "unicode-form").seen


def test_scripts_are_told_and_strangers_found() -> None:
    source, target = _texts(320)
    source[10], target[10] = "ba kodi so ba kodi", "совсем другая строка"
    report = examine(_memory(source, target))
    assert _finding(report, "script", "source").seen.startswith("Latin 100 %")
    stranger = _finding(report, "script", "target")
    assert stranger.numbers["pairs"] == 1 and stranger.examples[0].startswith("line 11:")
    mixed = examine(_memory(source, [text if n % 2 else "другая строка" for n, text in enumerate(target)]))
    assert _finding(mixed, "script", "target").severity == "warning"


def test_sources_with_several_translations_are_counted() -> None:
    source, target = _texts(100)
    report = examine(_memory([*source, source[3], source[3].upper()], [*target, "tri vasko tri", "melindo tri"]))
    finding = _finding(report, "several-targets")
    assert finding.numbers == {"sources": 1, "pairs": 3} and finding.examples == (
        "lines 4, 101, 102 have the same source",
    )
    versions = examine(_memory(source * 3, [f"{text} {n}" for n in range(3) for text in target]))
    assert _finding(versions, "several-targets").severity == "note"


def test_lengths_and_coverage() -> None:
    source, target = _texts(1000)
    source[76] = "ba " * 150
    report = examine(_memory(source, target), test=_memory(["ba kodi nova", "so"], ["unknown words here only", "tri"]))
    lengths = _finding(report, "lengths").numbers
    assert lengths["source"]["longest"] == 150 and lengths["source"]["longest_line"] == 77
    assert _finding(report, "coverage", "source").numbers["covered"] == 0.75
    assert (
        _finding(report, "coverage", "target").severity == "error"
        and "new there: unknown" in _finding(report, "coverage", "target").examples[0]
    )
    tail = examine(_memory(source[:900] + [f"fresh{n} word{n}" for n in range(100)], target))
    assert _finding(tail, "coverage", "source").numbers["covered"] == 0.0
    assert "the last tenth" in _finding(tail, "coverage", "target").seen


def test_text_without_spaces_is_counted_by_character() -> None:
    draw = random.Random(4)
    target = ["".join(draw.choices("水火木金土日月山川田", k=20)) for _ in range(200)]
    finding = _finding(examine(_memory(_texts(200)[0], target)), "coverage", "target")
    assert finding.title == "characters of the target" and finding.numbers["different"] == 10


def test_leakage_between_all_three_texts() -> None:
    source, target = _texts(400)
    report = examine(
        _memory(source, target), _memory(source[7:57], target[7:57]), _memory(["new ba", source[7]], ["tri", "tri"])
    )
    leaks = [finding for finding in report.findings if finding.check == "leakage"]
    assert [(leak.numbers["of"], leak.numbers["in"], leak.numbers["pairs"]) for leak in leaks] == [
        ("validation", "training", 50), ("test", "training", 1), ("test", "validation", 1),
    ]  # fmt: skip
    assert leaks[1].examples == ("test line 2 is training line 8",) and leaks[0].severity == "error"


def test_a_shift_that_is_none_says_so() -> None:
    assert Shift().line is None and Shift().lines == 0


@pytest.mark.slow
def test_a_million_pairs_take_less_than_half_a_gigabyte(data: Path, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(data / "ebible" / "make_pairs.py"), str(tmp_path / "big")], check=True, capture_output=True
    )
    code = (
        "import sys\nfrom kente.data.corpus import Corpus\nfrom kente.data.doctor import examine\n"
        "report = examine(Corpus.of_files(*sys.argv[1:3]))\n"
        "print(report.pairs, next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "big.src"), str(tmp_path / "big.tgt")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    pairs, peak = map(int, done.stdout.split())
    assert pairs == 1_010_245 and peak < 500_000  # kilobytes
