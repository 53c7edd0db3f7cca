"""What docs/text.md says about telling languages apart: learnt from corpora, asked about lines that were held out.

    python -m benchmarks.detection [LINES]          accuracy by length; LINES of each language (200)

Corpora come from $KENTE_DATA (default ../shared/data). A text is the beginning of a line, cut after so many characters wherever that is.
"""

from __future__ import annotations

import gzip
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kente.text.languages import Detector, learn

DATA = Path(os.environ.get("KENTE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LENGTHS = (5, 20, 50, 100)
HELD_OUT = 500
"""Lines at the end of a corpus that has no test set."""

LEARNT = {  # code: (learnt from, asked about); None for the last lines of the same file
    "am": ("mafand/en-amh/dev.amh", "mafand/en-amh/test.amh"),
    "ar": ("tico19/eng-ara.ara", None),
    "cs": ("multi30k/train.cs", "multi30k/test_2016_flickr.cs"),
    "de": ("multi30k/train.de", "multi30k/test_2016_flickr.de"),
    "en": ("mafand/en-hau/train.en", "mafand/en-hau/test.en"),
    "fr": ("mafand/fr-wol/train.fr", "mafand/fr-wol/test.fr"),
    "ha": ("mafand/en-hau/train.hau", "mafand/en-hau/test.hau"),
    "hi": ("tico19/eng-hin.hin", None),
    "ig": ("mafand/en-ibo/train.ibo", "mafand/en-ibo/test.ibo"),
    "ja": ("enja_small/train.ja", "enja_small/test.ja"),
    "luo": ("mafand/en-luo/train.luo", "mafand/en-luo/test.luo"),
    "pcm": ("mafand/en-pcm/train.pcm", "mafand/en-pcm/test.pcm"),
    "sn": ("ebible/verses/sna-sna.txt.gz", None),
    "so": ("tico19/eng-som.som", None),
    "sw": ("mafand/en-swa/dev.swa", "mafand/en-swa/test.swa"),
    "ti": ("tico19/eng-tir.tir", None),
    "tw": ("mafand/en-twi/train.twi", "mafand/en-twi/test.twi"),
    "wo": ("mafand/fr-wol/train.wol", "mafand/fr-wol/test.wol"),
    "yo": ("mafand/en-yor/train.yor", "mafand/en-yor/test.yor"),
    "zu": ("tico19/eng-zul.zul", None),
}
OTHER_TEXTS = {
    "am": "tico19/eng-amh.amh",
    "de": "wmt_newstest_ende/newstest2018.eng-deu.de",
    "en": "tico19/eng-amh.eng",
    "fr": "multi30k/test_2016_flickr.fr",
    "ha": "tico19/eng-hau.hau",
    "luo": "ebible/verses/luo-luo.txt.gz",
    "sw": "tico19/eng-swa.swa",
    "tw": "ebible/verses/twi-twiasante.txt.gz",
    "yo": "menyo20k/dev.yo",
}


def lines_of(name: str) -> list[str]:
    path = DATA / name
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [line.strip() for line in data.decode().splitlines() if line.strip() and "<range>" not in line]


def corpora() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """(lines to learn from, lines to ask about) by language."""
    learnt, asked = {}, {}
    for code, (train, test) in LEARNT.items():
        lines = lines_of(train)
        learnt[code], asked[code] = (lines, lines_of(test)) if test else (lines[:-HELD_OUT], lines[-HELD_OUT:])
    return learnt, asked


def beginnings(lines: list[str], length: int, most: int) -> Iterator[str]:
    """Beginnings of lines that are at least so long, evenly taken."""
    long_enough = [line[:length] for line in lines if len(line) >= length]
    stride = max(1, len(long_enough) // most)
    yield from long_enough[::stride][:most]


def ask(detector: Detector, asked: dict[str, list[str]], length: int, most: int) -> dict[str, list[tuple[str, float]]]:
    """(best guess, confidence) for each text of each language."""
    return {
        code: [detector.detect(text)[0] for text in beginnings(lines, length, most)] for code, lines in asked.items()
    }


def right(answers: dict[str, list[tuple[str, float]]]) -> dict[str, float]:
    """Share of right guesses, by language."""
    return {
        code: sum(guess == code for guess, _ in found) / len(found) if found else float("nan")
        for code, found in answers.items()
    }


def table(name: str, results: dict[int, dict[str, list[tuple[str, float]]]]) -> None:
    shares = {length: right(answers) for length, answers in results.items()}
    print(f"\n{name}\n| | " + " | ".join(f"{length} characters" for length in shares) + " |")
    print("|---|" + "---|" * len(shares))
    for code in next(iter(shares.values())):
        print(f"| {code} | " + " | ".join(f"{100 * share[code]:.1f}" for share in shares.values()) + " |")
    means = [sum(share.values()) / len(share) for share in shares.values()]
    print("| **mean** | " + " | ".join(f"**{100 * mean:.1f}**" for mean in means) + " |")


def confusions(answers: dict[str, list[tuple[str, float]]]) -> str:
    wrong = Counter((code, guess) for code, found in answers.items() for guess, _ in found if guess != code)
    return ", ".join(f"{code} taken for {guess} {number}" for (code, guess), number in wrong.most_common(6))


def calibration(results: dict[int, dict[str, list[tuple[str, float]]]]) -> None:
    """How often a guess is right that is made with some confidence."""
    print("\n| confidence | guesses | right |\n|---|---|---|")
    answers = [(code, *one) for found in results.values() for code, some in found.items() for one in some]
    for low, high in ((0, 30), (30, 60), (60, 80), (80, 95), (95, 101)):
        within = [code == guess for code, guess, sure in answers if low <= sure < high]
        if within:
            print(f"| {low} to {min(high, 100)} | {len(within):,} | {100 * sum(within) / len(within):.1f} % |")


def strangers(learnt: dict[str, list[str]], detector: Detector, asked: dict[str, list[str]], most: int) -> None:
    """Each language asked about as if nobody had learnt it: how sure is the detector of something else?"""
    for length in LENGTHS[1:]:
        sure = 0
        total = 0
        for code, lines in asked.items():
            others = Detector({other: known for other, known in detector.languages.items() if other != code})
            found = [others.detect(text)[0][1] for text in beginnings(lines, length, most // 4)]
            sure += sum(confidence >= 50 for confidence in found)
            total += len(found)
        print(f"languages nobody learnt, {length} characters: confidence of 50 or more for {100 * sure / total:.1f} %")


def main(most: int) -> None:
    learnt, asked = corpora()
    began = time.perf_counter()
    detector = learn(learnt)
    seconds = time.perf_counter() - began
    grams = sum(len(language.grams) for language in detector.languages.values()) / len(learnt)
    print(f"{len(learnt)} languages learnt in {seconds:.1f} s, {grams:,.0f} runs of letters each on average")
    results = {}
    for length in LENGTHS:
        began = time.perf_counter()
        results[length] = ask(detector, asked, length, most)
        each = (time.perf_counter() - began) / sum(map(len, results[length].values()))
        print(f"{length} characters: {1000 * each:.2f} ms a text; {confusions(results[length])}")
    table("Held-out lines", results)
    calibration(results)
    others = {code: lines_of(name) for code, name in OTHER_TEXTS.items()}
    elsewhere = {length: ask(detector, others, length, most) for length in LENGTHS}
    table("Texts of another kind", elsewhere)
    calibration(elsewhere)
    strangers(learnt, detector, asked, most)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
