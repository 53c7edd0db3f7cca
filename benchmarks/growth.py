"""Part: how cost grows: for each token against the length of sentences, against the size of the corpus, against the size of the model."""

from __future__ import annotations

import functools
import itertools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import training
from benchmarks.bench import Bench, Table, Variant
from benchmarks.corpus import Corpus, settings, write_for_peers
from benchmarks.environments import PeerMissing
from benchmarks.results import fingerprint
from benchmarks.shapes import DROPOUT, SHAPES
from kente.api.corpora import Data
from kente.api.training import prepare_corpus
from kente.data.store import Store
from kente.data.tokenizer import Tokenizer, Tokenizers

LENGTHS, QUICK_LENGTHS = (16, 32, 64, 128, 256, 512, 1024), (16, 128)
PAIRS, QUICK_PAIRS = (10_000, 100_000, 1_010_245), (10_000,)
SIZES, QUICK_SIZES = ("tiny", "small", "base"), ("tiny", "small")


def measure(bench: Bench, data: Path) -> None:
    lengths(bench)
    sizes(bench)
    corpora(bench, data)


def _kente(bench: Bench, corpus: Corpus, shape: str, **more: Any) -> dict[str, Any]:
    return bench.job(
        "train",
        shape=SHAPES[shape].as_dict(),
        dropout=DROPOUT,
        batch_tokens=bench.batch_tokens,
        prepared=str(corpus.prepared),
        source=str(bench.text.text("validation.source")),
        target=str(bench.text.text("validation.target")),
        text_settings=settings(int(corpus.facts["asked_vocabulary"])),
        settings=training.SAME_OPTIMISER,
        **{"warmup": 3, "updates": 4 if bench.quick else 10} | more,
    )


# --- sentence length ---


def of_length(bench: Bench, length: int) -> Corpus:
    """Multi30k's words run together until no further one fits into `length` tokens, end mark included; the same vocabulary."""
    base = bench.text
    folder = bench.folder / "growth" / f"{base.facts['key']}-length-{length}"
    corpus = Corpus(folder, {"vocabulary": base.vocabulary, "asked_vocabulary": base.facts["asked_vocabulary"]})
    if not (folder / "train.npz").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(base.prepared, folder / "prepared")
        tokenizers = Tokenizers.load(folder / "prepared" / "tokenizer")
        store = Store.open(base.prepared / "data" / "train", tokenizers.sha256)
        rows = 32 * bench.batch_tokens // length
        sides = [_run_together(tokenizers.source, side.ids, length, rows) for side in store.sides]
        train = folder / "prepared" / "data" / "train"
        Store.build(train, zip(*sides, strict=True), tokenizers, max_length=length + 1)
        write_for_peers(folder)
    return corpus


def _run_together(tokenizer: Tokenizer, ids: Any, length: int, rows: int) -> list[str]:
    """Lines of just under `length` tokens. A text is cut into pieces word by word, so the pieces of words add up."""
    words = itertools.cycle(tokenizer.decode(ids[: rows * length].tolist()).split(" "))
    pieces = functools.cache(lambda word: len(tokenizer.encode(word)))
    lines, line, room = list[str](), list[str](), length - 1
    while len(lines) < rows:
        word = next(words)
        if pieces(word) > room:
            lines.append(" ".join(line))
            line, room = [], length - 1
        line.append(word)
        room -= pieces(word)
    return lines


def lengths(bench: Bench) -> None:
    chosen = QUICK_LENGTHS if bench.quick else LENGTHS
    rows = []
    for length in chosen:
        corpus = of_length(bench, length)
        rows.append(Variant(f"Kente, {length}", "kente", _kente(bench, corpus, "tiny")))
        plain = bench.job(
            "train",
            shape=SHAPES["tiny"].as_dict(),
            vocabulary=corpus.vocabulary,
            dropout=DROPOUT,
            batch_tokens=bench.batch_tokens,
            corpus=str(corpus.folder),
            warmup=2,
            updates=3 if bench.quick else 6,
        )
        rows.append(Variant(f"nn.Transformer, {length}", "plain", plain))
    bench.measure(Table("growth length", tuple(rows), _rounds(bench), finish=training.finish))


# --- model size ---


def sizes(bench: Bench) -> None:
    chosen = QUICK_SIZES if bench.quick else SIZES
    products = training.gemm_shapes(SHAPES["base"], bench.text.vocabulary, bench.batch_tokens)
    rows = [Variant(training.GEMM, "plain", bench.job("gemm", shapes=products, seconds=0.3 if bench.quick else 1.0))]
    for size in chosen:
        updates = {"tiny": 8, "small": 5, "base": 3}[size]
        rows.append(Variant(f"Kente, {size}", "kente", _kente(bench, bench.text, size, warmup=2, updates=updates)))
    bench.measure(Table("growth size", tuple(rows), _rounds(bench), 40.0, finish=training.finish))


# --- corpus size ---


def of_pairs(bench: Bench, data: Path, pairs: int, vocabulary: int = 8000) -> Corpus:
    """So many pairs of the eBible scale corpus, evenly taken, prepared as Kente prepares any corpus."""
    maker = data / "ebible" / "make_pairs.py"
    if not maker.is_file():
        raise PeerMissing(
            f"{maker} is not there; growth with the corpus needs it (KENTE_DATA names the folder of corpora)"
        )
    scale = bench.folder / "growth" / "ebible"
    if not (scale / "done").is_file():
        scale.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(maker), str(scale / "all")], check=True, capture_output=True)
        (scale / "done").touch()
    folder = bench.folder / "growth" / f"pairs-{pairs}-{fingerprint(vocabulary)}"
    corpus = Corpus(folder, {"asked_vocabulary": vocabulary})
    if not (folder / "prepared" / "cleaning.json").is_file():
        bench.say(f"preparing {pairs:,} pairs ...")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _take_evenly(scale, folder, pairs)
        train = Data(folder / "train.source", folder / "train.target")
        prepare_corpus(train, folder / "prepared", settings=settings(vocabulary), threads=bench.threads)
    return corpus


def _take_evenly(scale: Path, folder: Path, pairs: int) -> None:
    with open(scale / "all.src", "rb") as file:
        total = sum(1 for _ in file)
    for ending, side in (("src", "source"), ("tgt", "target")):
        with open(scale / f"all.{ending}", "rb") as lines, open(folder / f"train.{side}", "wb") as out:
            for number, line in enumerate(lines):
                if (number + 1) * pairs // total != number * pairs // total:
                    out.write(line)


def corpora(bench: Bench, data: Path) -> None:
    chosen = QUICK_PAIRS if bench.quick else PAIRS
    rows = []
    for pairs in chosen:
        try:
            corpus = of_pairs(bench, data, pairs)
        except PeerMissing as error:
            bench.say(str(error))
            return
        rows.append(Variant(f"Kente, {pairs:,} pairs", "kente", _kente(bench, corpus, "tiny", updates=12)))
    bench.measure(Table("growth corpus", tuple(rows), _rounds(bench), finish=training.finish))


def _rounds(bench: Bench) -> int:
    return min(bench.rounds, 3)
