"""Pairs from text in one language: which lines, which way round, and what an interruption costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kente import api
from kente.api import augmenting
from kente.data.toys import toy
from kente.decode.translator import Translator
from kente.errors import CorpusError, Interrupted, RunError, UsageError
from kente.runs import Run

SETTINGS = (
    "tokenizer.kind=words",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "model.width=32",
    "model.feedforward=64",
    "model.heads=2",
    "batches.tokens=512",
    "batches.max_length=24",
    "cleaning.identical=keep",
    "train.validate_sentences=20",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that copies in capitals, more or less, and text it has not seen."""
    folder = tmp_path_factory.mktemp("augment")
    pairs = toy("copy", 700, seed=1, max_length=5, symbols="abcdef")
    (folder / "train.a").write_text("".join(f"{source}\n" for source, _ in pairs[:500]))
    (folder / "train.b").write_text("".join(f"{target.upper()}\n" for _, target in pairs[:500]))
    (folder / "text").write_text("".join(f"{source}\n" for source, _ in pairs[500:]))
    data = api.Data(folder / "train.a", folder / "train.b")
    api.train(data, folder / "run", updates=150, threads=1, settings=SETTINGS)
    return folder


def augment(folder: Path, out: Path, text: Path | None = None, **how):
    how = {"beam": 1, "engine": "torch", "threads": 1} | how
    return api.augment(folder / "run", [text or folder / "text"], out, **how)


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_back_translation_writes_its_answer_as_the_source_and_tags_it(folder, tmp_path):
    result = augment(folder, tmp_path / "pairs.tsv")
    lines = (folder / "text").read_text().splitlines()
    written = rows(result.out)
    assert result.read == len(lines) and result.kept == len(written) == len(lines) - sum(result.dropped.values()) > 100
    assert all(source.startswith("<bt> ") and target in lines for source, target in written)
    answers = {t.source: t.text for t in api.load(folder / "run", beam=1, engine="torch").translate(lines)}
    assert all(source == f"<bt> {answers[target]}" for source, target in written)


def test_self_training_writes_its_answer_as_the_target(folder, tmp_path):
    result = augment(folder, tmp_path / "pairs.tsv", kind="self", limit=20)
    lines = (folder / "text").read_text().splitlines()[:20]
    written = rows(result.out)
    assert result.tag == "<st>" and all(source.removeprefix("<st> ") in lines for source, _ in written)
    bare = augment(folder, tmp_path / "bare.tsv", kind="self", limit=20, tag="")
    assert [f"<st> {source}" for source, _ in rows(bare.out)] == [source for source, _ in written]


def test_training_understands_the_tags(folder, tmp_path):
    pairs = augment(folder, tmp_path / "pairs.tsv", kind="self").out
    data = api.Data(folder / "train.a", folder / "train.b")
    run = api.train(
        data, tmp_path / "run", also=[api.Data(pairs=pairs)], updates=2, threads=1, settings=SETTINGS
    ).run  # fmt: skip
    tokenizers, plain = run.tokenizers(), Run.open(folder / "run").tokenizers()
    assert tokenizers.tags == ("<st>",) and tokenizers.source.size == plain.source.size + 1
    from kente.data.store import Store

    store = Store.open(run.path / "data" / "train", tokenizers.sha256)
    firsts = [int(store.source(row)[0]) for row in range(len(store))]
    assert firsts.count(tokenizers.source.size - 1) == len(rows(pairs))
    validation = (run.path / "data" / "validation.source").read_text()
    assert "<st>" not in validation


def test_lines_that_are_no_use_are_counted_and_not_translated(folder, tmp_path):
    lines = (folder / "text").read_text().splitlines()
    validated = (folder / "run" / "data" / "validation.source").read_text().splitlines()[0]
    (tmp_path / "text").write_text(
        "\n".join([lines[0], "", lines[0], "a\x00b", lines[1], validated, lines[2], "a " * 300]) + "\n"
    )
    (tmp_path / "test").write_text(lines[2].upper() + "\n")
    result = augment(folder, tmp_path / "out.tsv", tmp_path / "text", exclude=[tmp_path / "test"])
    counts = {"empty": 1, "seen before": 1, "control characters": 1, "held out": 2, "too long": 1}
    assert {reason: result.dropped.get(reason) for reason in counts} == counts
    assert {target for _, target in rows(result.out)} <= {lines[0], lines[1]}


def test_answers_that_break_the_rules_of_cleaning_are_dropped(folder, tmp_path):
    (tmp_path / "text").write_text("q q q q q q q q\n")  # unknown words: the model says so
    result = augment(folder, tmp_path / "out.tsv", tmp_path / "text")
    assert result.kept == 0 and sum(result.dropped.values()) == 1


def test_an_interruption_costs_nothing_that_was_done(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(augmenting, "TOGETHER", 30)
    whole = augment(folder, tmp_path / "whole.tsv", sample=True, seed=3)
    real, calls = Translator.translate, []

    def fails_in_the_third(*given, **how):
        calls.append(1)
        if len(calls) == 3:
            raise Interrupted("killed")
        return real(*given, **how)

    monkeypatch.setattr(Translator, "translate", fails_in_the_third)
    with pytest.raises(Interrupted):
        augment(folder, tmp_path / "broken.tsv", sample=True, seed=3)
    part = tmp_path / "broken.tsv.part"
    assert part.exists() and not (tmp_path / "broken.tsv").exists()
    with open(part, "a") as file:
        file.write("half a li")  # torn by the kill
    with pytest.raises(UsageError, match="was begun from another run, text or setting"):
        augment(folder, tmp_path / "broken.tsv", sample=True, seed=4)
    result = augment(folder, tmp_path / "broken.tsv", sample=True, seed=3)
    assert (tmp_path / "broken.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    assert (result.read, result.kept, result.dropped) == (whole.read, whole.kept, whole.dropped)
    assert len(calls) == 3 + 5 and sorted(p.name for p in tmp_path.iterdir()) == ["broken.tsv", "whole.tsv"]


def test_what_cannot_be_done_is_refused_before_it_begins(folder, tmp_path):
    with pytest.raises(UsageError, match=r"choose a name that ends in .tsv"):
        augment(folder, tmp_path / "pairs.txt")
    with pytest.raises(UsageError, match="a tag is one word"):
        augment(folder, tmp_path / "pairs.tsv", tag="<a> <b>")
    with pytest.raises(RunError, match="there is no run"):
        api.augment(tmp_path / "nowhere", [folder / "text"], tmp_path / "pairs.tsv")
    (tmp_path / "latin").write_bytes(b"a b c\n" * 60_000 + b"caf\xe9\n")
    with pytest.raises(CorpusError, match=r"latin:60001: not UTF-8"):
        augment(folder, tmp_path / "pairs.tsv", tmp_path / "latin")
    (tmp_path / "pairs.tsv").write_text("kept\tkept\n")
    with pytest.raises(UsageError, match="exists already"):
        augment(folder, tmp_path / "pairs.tsv")
    assert augment(folder, tmp_path / "pairs.tsv", limit=3, force=True).read == 3
