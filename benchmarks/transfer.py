"""What transfer is worth, measured by running the commands.

    python -m benchmarks.transfer hausa [--quick]     English to Hausa from 5,865 pairs of news (mafand): from scratch, from an English-Swahili
                                                      parent, with back-translation, with both; BLEU and chrF on test, equal minutes for
                                                      each child
    python -m benchmarks.transfer news [--quick]      a translator of captions (Multi30k, English to German) learns news: with and without
                                                      replay, with maps of low rank, with a frozen encoder; old and new test before and after,
                                                      docs/images/forgetting.svg
    python -m benchmarks.transfer start [--quick]     English to Hausa with an encoder and a decoder pre-trained on text alone

The texts are mafand/, ebible_sw-en/, ebible/, tico19/, wmt21_en-ha/, multi30k/ and wmt_newstest_ende/ in $KENTE_DATA (default
../shared/data). Runs go to .bench/transfer; those that exist are gone on with or kept, so an interrupted measurement goes on too.
Results are printed as JSON, one line each. --quick is a look at whether all of it works, not a result.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.plot import Line, lines

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("KENTE_DATA", ROOT.parent / "shared" / "data"))
RUNS = ROOT / ".bench" / "transfer"
HAUSA, SWAHILI = DATA / "mafand" / "en-hau", DATA / "ebible_sw-en"
CAPTIONS, NEWS = DATA / "multi30k", DATA / "wmt_newstest_ende"
TRAINED_ON = ("news-test2008", *(f"newstest{year}" for year in (2009, 2010, 2011, 2012, 2015, 2016, 2017, 2018)))
VALIDATED_ON, TESTED_ON = "newstest2013", "newstest2014"
VERSES = 6000
"""Verses of the Hausa Bible, which may stand beside the 3,100 lines of news and health that are translated back."""
NEW_PIECES = 1500


def kente(*arguments: object) -> str:
    """Run a command; what it printed."""
    command = [sys.executable, "-m", "kente", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


def finished(run: Path) -> bool:
    return (run / "README.md").exists()


def trained(run: Path, verb: str, *arguments: object) -> dict[str, Any]:
    """A run made by this command, gone on with if it was interrupted, left alone if it is finished."""
    if not finished(run):
        standing = (run / "prepared.json").exists()
        kente(*(("train", "--resume", run) if standing else (verb, *arguments, "--out", run, "--force")), "-q")
    return dict(json.loads(kente("info", run, "--json")))


def evaluated(run: Path, source: Path, reference: Path, limit: int | None) -> dict[str, float]:
    few = ("--limit", limit) if limit else ()
    told = json.loads(kente("evaluate", run, "--source", source, "--reference", reference, "--json", "-q", *few))
    return {"bleu": round(told["bleu"], 2), "chrf": round(told["chrf"], 2)}


def say(**facts: Any) -> dict[str, Any]:
    print(json.dumps(facts, ensure_ascii=False), flush=True)
    return facts


def sides(folder: Path, name: str, source: str, target: str) -> tuple[object, ...]:
    return ("--source", folder / f"{name}.{source}", "--target", folder / f"{name}.{target}")


def validated(folder: Path, name: str, source: str, target: str) -> tuple[object, ...]:
    return ("--validation-source", folder / f"{name}.{source}", "--validation-target", folder / f"{name}.{target}")


# --- English to Hausa ---


def hausa(quick: bool, seeds: list[int], minutes: float, parent_minutes: float) -> None:
    limit = 100 if quick else None
    text = ("en", "hau"), ("hau", "en")
    forward, backward = ((*sides(HAUSA, "train", *way), *validated(HAUSA, "dev", *way)) for way in text)
    for parent, way in (("en-sw", ("en", "sw")), ("sw-en", ("sw", "en"))):
        corpus = (*sides(SWAHILI, "train", *way), *validated(SWAHILI, "dev", *way))
        info = trained(RUNS / parent, "train", *corpus, "--minutes", parent_minutes, "--seed", 1)
        say(part="hausa", system=f"parent {parent}", minutes=info["minutes"], parameters=info["parameters"])
    grow = ("--grow-vocabulary", NEW_PIECES)
    for seed in seeds:
        end = ("--minutes", minutes, "--seed", seed)
        reverse = RUNS / f"hau-en-{seed}"
        trained(reverse, "adapt", RUNS / "sw-en", *backward, *grow, *end)
        say(
            part="hausa",
            system="reverse hau-en",
            seed=seed,
            **evaluated(reverse, HAUSA / "test.hau", HAUSA / "test.en", limit),
        )
        near, far = (("--also", synthetic_pairs(reverse, seed, quick, verses)) for verses in (0, VERSES))
        systems: dict[str, tuple[object, ...]] = {
            "scratch": ("train", *forward),
            "parent": ("adapt", RUNS / "en-sw", *forward, *grow),
            "back-translation": ("train", *forward, *near),
            "back-translation, verses too": ("train", *forward, *far),
            "parent and back-translation": ("adapt", RUNS / "en-sw", *forward, *grow, *near),
        }
        for name, command in systems.items():
            run = RUNS / f"en-hau-{name.replace(',', '').replace(' ', '-')}-{seed}"
            info = trained(run, *command, *end)  # type: ignore[arg-type]
            scores = evaluated(run, HAUSA / "test.en", HAUSA / "test.hau", limit)
            say(part="hausa", system=name, seed=seed, minutes=info["minutes"], updates=info["step"], **scores)


def hausa_text(verses: int) -> Path:
    """Hausa text of one language: news, health, and so many verses of the Bible."""
    path = RUNS / f"mono-{verses}.hau"
    if not path.exists():
        news = (DATA / "wmt21_en-ha" / "newstest2021.en-ha.ref.A.ha").read_text(encoding="utf-8").splitlines()
        health = (DATA / "tico19" / "eng-hau.hau").read_text(encoding="utf-8").splitlines()
        with gzip.open(DATA / "ebible" / "verses" / "hau-hausa.txt.gz", "rt", encoding="utf-8") as file:
            bible = [line.rstrip("\n") for line in file if line.strip() and line.strip() != "<range>"]
        some = bible[:: max(1, len(bible) // verses)][:verses] if verses else []
        path.write_text("".join(f"{line}\n" for line in (*news, *health, *some)), encoding="utf-8")
    return path


def synthetic_pairs(reverse: Path, seed: int, quick: bool, verses: int) -> Path:
    """Hausa text of one language, translated back; sentences of test and validation are left out."""
    out = RUNS / f"synthetic-{verses}-{seed}.tsv"
    if not out.exists():
        held_out = ("--exclude", HAUSA / "test.hau", HAUSA / "dev.hau")
        few, text = (("--limit", 200) if quick else ()), hausa_text(verses)
        told = json.loads(kente("augment", reverse, "--text", text, "--out", out, *held_out, *few, "--json", "-q"))
        say(part="hausa", system="augment", verses=verses, seed=seed, **told)
    return out


def start(quick: bool, seeds: list[int], minutes: float, parent_minutes: float) -> None:
    """The encoder begins as one that filled gaps in English, the decoder as one that went on with Hausa; one vocabulary each."""
    limit = 100 if quick else None
    corpus = (*sides(HAUSA, "train", "en", "hau"), *validated(HAUSA, "dev", "en", "hau"))
    english, written = RUNS / "mono.en", hausa_text(VERSES)
    if not english.exists():
        read = [(SWAHILI / "train.en"), *sorted((DATA / "mafand").glob("en-*/train.en"))]
        english.write_text("".join(path.read_text(encoding="utf-8") for path in read), encoding="utf-8")
    shape = [
        part
        for name, value in (("layers", 4), ("width", 128), ("feedforward", 256), ("heads", 4))
        for part in ("--set", f"model.{name}={value}")
    ]
    lines_of = ("--documents", "lines", *shape, "--minutes", parent_minutes)
    trained(RUNS / "english", "pretrain", "--text", english, "--kind", "masked", *lines_of)
    trained(RUNS / "hausa", "pretrain", "--text", written, HAUSA / "train.hau", "--kind", "causal", *lines_of)
    begin = {
        "encoder": ("--encoder-from", RUNS / "english"),
        "encoder and decoder": ("--encoder-from", RUNS / "english", "--decoder-from", RUNS / "hausa"),
    }
    for seed in seeds:
        for name, given in begin.items():
            run = RUNS / f"en-hau-from-{name.replace(' ', '-')}-{seed}"
            info = trained(run, "train", *corpus, *given, "--minutes", minutes, "--seed", seed)
            scores = evaluated(run, HAUSA / "test.en", HAUSA / "test.hau", limit)
            say(part="start", system=name, seed=seed, minutes=info["minutes"], updates=info["step"], **scores)


# --- captions, then news ---


def news(quick: bool, seeds: list[int], minutes: float, parent_minutes: float, only: list[str]) -> None:
    limit = 100 if quick else None
    for side in ("en", "de"):
        parts = (NEWS / f"{name}.eng-deu.{side}" for name in TRAINED_ON)
        (RUNS / f"news.{side}").write_text(
            "".join(part.read_text(encoding="utf-8") for part in parts), encoding="utf-8"
        )
    captions = (*sides(CAPTIONS, "train", "en", "de"), *validated(CAPTIONS, "val", "en", "de"))
    parent = RUNS / "captions"
    trained(parent, "train", *captions, "--minutes", parent_minutes, "--seed", 1)
    tests = {
        "old": (CAPTIONS / "test_2016_flickr.en", CAPTIONS / "test_2016_flickr.de"),
        "new": (NEWS / f"{TESTED_ON}.eng-deu.en", NEWS / f"{TESTED_ON}.eng-deu.de"),
    }
    say(part="news", system="before", **{name: evaluated(parent, *test, limit) for name, test in tests.items()})
    corpus = (*sides(RUNS, "news", "en", "de"), *validated(NEWS, f"{VALIDATED_ON}.eng-deu", "en", "de"))
    grow = ("--grow-vocabulary", 2 * NEW_PIECES)
    systems: dict[str, tuple[object, ...]] = {
        "no replay": grow,
        "replay 0.25": (*grow, "--replay", 0.25),
        "replay 0.5": (*grow, "--replay", 0.5),
        "low rank 16": ("--lora", 16),
        "low rank 16, replay 0.5": ("--lora", 16, "--replay", 0.5),
        "frozen encoder": ("--freeze", "encoder", *grow),
    }
    curves = []
    for seed in seeds:
        for name, how in systems.items():
            if only and name not in only:
                continue
            run = RUNS / f"news-{name.replace(' ', '-').replace(',', '')}-{seed}"
            info = trained(run, "adapt", parent, *corpus, *how, "--minutes", minutes, "--seed", seed)
            scores = {text: evaluated(run, *test, limit) for text, test in tests.items()}
            say(part="news", system=name, seed=seed, minutes=info["minutes"], updates=info["step"], **scores)
            if seed == seeds[0] and name in ("no replay", "replay 0.5"):
                curves += forgetting(run, name)
    title = "A translator of captions learns news"
    picture = lines(title, "minutes of adapting on two cores", "validation BLEU, greedy", curves)
    (ROOT / "docs" / "images" / "forgetting.svg").write_text(picture, encoding="utf-8")


def forgetting(run: Path, name: str) -> list[Line]:
    """Old and new validation BLEU along a run, from what its parent could."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    scores = [(r["seconds"] / 60, r["validation"]) for r in records if "validation" in r]
    before = json.loads((run / "prepared.json").read_text(encoding="utf-8"))["before"]
    found = []
    for text, key in (("captions", "old_bleu"), ("news", "bleu")):
        begin = before["old" if key == "old_bleu" else "new"]["bleu"]
        found.append(Line(f"{text}, {name}", [(0.0, begin), *((minute, told[key]) for minute, told in scores)]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("hausa", "news", "start"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--minutes", type=float, help="for each child (10; quick 0.3)")
    parser.add_argument("--parent-minutes", type=float, help="for each parent (15; quick 0.3)")
    parser.add_argument(
        "--systems", nargs="+", default=[], help="of news, only these, such as 'no replay' 'replay 0.5'"
    )
    given = parser.parse_args()
    global RUNS
    RUNS = RUNS.with_name("transfer-quick") if given.quick else RUNS
    RUNS.mkdir(parents=True, exist_ok=True)
    minutes = given.minutes or (0.3 if given.quick else 10)
    parent_minutes = given.parent_minutes or (0.3 if given.quick else 15)
    if given.part == "news":
        news(given.quick, given.seeds, minutes, parent_minutes, given.systems)
    else:
        {"hausa": hausa, "start": start}[given.part](given.quick, given.seeds, minutes, parent_minutes)


if __name__ == "__main__":
    main()
