"""What people taught goes into training: more than once, the latest word on each sentence, and never into validation."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from kente import api
from kente.config import BatchConfig, Config, TokenizerConfig
from kente.data.corpus import Corpus
from kente.errors import CorpusError
from kente.reporting import Reporter
from kente.runs import Run
from kente.train.prepare import CORRECTED, Prepared, prepare

CONFIG = Config(tokenizer=TokenizerConfig(kind="words"), batches=BatchConfig(max_length=32))
PAIRS = [(f"the {a} sees {b}", f"le {a} voit {b}") for a in ("cat", "dog", "man") for b in "abcdefghijklmnopqrst"]
VALIDATION = PAIRS[::10]


class Listener(Reporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def trained_on(folder: Path, taught: list[tuple[str, str]], listener: Reporter) -> Counter[tuple[str, str]]:
    """The pairs that training would read, and how often each stands there."""
    run = Run.create(folder, CONFIG)
    corpus, held_out = (Corpus.of_memory(pairs, name) for name, pairs in (("train", PAIRS), ("validation", VALIDATION)))
    prepare(run, corpus, held_out, CONFIG, 1, listener, corrections=Corpus.of_memory(taught, "corrections"))
    prepared = Prepared.open(run)
    decode = [side.decode for side in (prepared.tokenizers.source, prepared.tokenizers.target)]
    store = prepared.train
    return Counter(
        (decode[0](store.source(row).tolist()), decode[1](store.target(row).tolist())) for row in range(len(store))
    )


def test_corrections_are_trained_on_several_times_and_the_latest_counts(tmp_path: Path) -> None:
    listener = Listener()
    taught = [("the cat sees x", "wrong"), ("the cat sees x", "le chat voit x"), ("the dog sees x", "le chien voit x")]
    counts = trained_on(tmp_path / "run", taught, listener)
    assert counts["the cat sees x", "le chat voit x"] == counts["the dog sees x", "le chien voit x"] == CORRECTED
    assert not any(target == "wrong" for _, target in counts)
    assert counts[PAIRS[1]] == 1
    assert f"corrections: 2 of 2 mixed in, each {CORRECTED} times" in listener.said


def test_what_is_validated_on_cannot_be_taught_and_bad_corrections_are_left_out(tmp_path: Path) -> None:
    listener = Listener()
    taught = [(VALIDATION[0][0], "le chat"), ("", "rien"), ("the man sees x", "l'homme voit x")]
    counts = trained_on(tmp_path / "run", taught, listener)
    assert not any(source == VALIDATION[0][0] for source, _ in counts)
    assert f"corrections: 1 of 3 mixed in, each {CORRECTED} times" in listener.said


def test_a_file_of_corrections_is_remembered_by_the_run_and_one_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    source, target = tmp_path / "train.en", tmp_path / "train.fr"
    source.write_text("".join(f"{one}\n" for one, _ in PAIRS))
    target.write_text("".join(f"{other}\n" for _, other in PAIRS))
    taught = tmp_path / "corrections.tsv"
    data = api.Data(source, target)
    with pytest.raises(CorpusError, match=r"there is no file .*corrections\.tsv"):
        api.train(data, tmp_path / "none", corrections=taught)
    assert not (tmp_path / "none").exists()
    taught.write_text("the cat sees x\tle chat voit x\t2026-11-16T08:00:00Z\n")
    settings = (
        "model.width=8",
        "model.feedforward=8",
        "model.heads=1",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
    )
    settings += ("tokenizer.kind=words", "train.validate_sentences=2")
    api.train(data, tmp_path / "run", corrections=taught, updates=1, threads=1, settings=settings)
    request = json.loads((tmp_path / "run" / "request.json").read_text())
    assert request["corrections"] == {"pairs": str(taught)}
