"""classify, embed, contrast, match and cluster as people type them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from kente.cli import main

ROWS = [
    (label, f"{start} {kind} {thing}")
    for start in ("the", "my")
    for kind in ("old", "red", "big", "wet")
    for label, things in (("animal", ("cat", "dog")), ("tool", ("saw", "axe")))
    for thing in things
]
TINY = ["model.layers=1", "model.width=16", "model.feedforward=32", "model.heads=2", "tokenizer.kind=words"]
SETTINGS = [part for setting in TINY for part in ("--set", setting)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "train.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in ROWS))
    (folder / "lines.txt").write_text("".join(f"{text}\n" for _, text in ROWS))
    (folder / "pairs.tsv").write_text("".join(f"{text}\t{text} too\n" for _, text in ROWS))
    (folder / "similar.tsv").write_text("5\tthe cat\tmy cat\n0\tthe cat\ta saw\n4\ta saw\tan axe\n")
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    line = f"classify train --labelled {folder}/train.tsv --updates 30 --threads 1 -q --set optimiser.rate=1e-2 --out {folder}/run"
    assert main([*line.split(), *SETTINGS]) == 0
    return folder / "run"


def test_classify_trains_goes_on_and_predicts(folder: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classify", "train", "--resume", str(run), "--updates", "31"]) == 2  # its rate has come down
    assert "has finished" in capsys.readouterr().err
    assert main(["classify", "predict", str(run), "--threads", "1", "the old cat", "my wet axe"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["animal", "tool"] and all(0.5 <= float(line[1]) <= 1 for line in lines)
    assert main(["classify", "predict", str(run), "--all", "the axe"]) == 0
    assert capsys.readouterr().out.startswith("tool ")
    assert main(["classify", "predict", str(run), "--json", "the axe"]) == 0
    assert set(json.loads(capsys.readouterr().out)["probabilities"]) == {"animal", "tool"}


def test_classify_reads_standard_input(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Standard:
        buffer = io.BytesIO(b"the dog\n\nthe saw\n")

    monkeypatch.setattr("sys.stdin", Standard())
    assert main(["classify", "predict", str(run), "-q"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_report_prints_scores_and_writes_a_page(folder: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"classify report {run} --labelled {folder}/train.tsv --out {folder}/page --threads 1"
    assert main(line.split()) == 0
    told = capsys.readouterr()
    assert "accuracy " in told.out and "precision  recall" in told.out and "animal" in told.out
    assert "report.html" in told.err and (folder / "page" / "report.html").exists()
    assert main([*line.split(), "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == ["animal", "tool"]


def test_embed_match_and_cluster(folder: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"embed {run} --text {folder}/lines.txt --out {folder}/v.npy --threads 1 -q".split()) == 0
    assert f"{folder}/v.npy: 32 vectors of 16 numbers" in capsys.readouterr().out
    assert np.load(folder / "v.npy").shape == (32, 16)
    assert main(f"embed {run} --similarity {folder}/similar.tsv --threads 1 -q".split()) == 0
    assert "Spearman " in capsys.readouterr().out
    line = f"match {run} --corpus {folder}/lines.txt --vectors {folder}/v.npy --nearest 2 --threads 1 -q".split()
    assert main([*line, "the red dog"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "the red dog" and told[1].startswith("  1.000\t") and len(told) == 3
    assert main([*line, "--queries", str(folder / "lines.txt"), "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 32
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    line = f"cluster {run} --labelled {folder}/train.tsv --out {folder}/clusters --threads 1 -q"
    assert main(line.split()) == 0
    assert "NMI" in capsys.readouterr().out and (folder / "clusters" / "clusters.html").exists()
    (folder / "gaps.tsv").write_text("label\ttext\nplant\t\n" + (folder / "train.tsv").read_text())
    line = f"cluster {run} --labelled {folder}/gaps.tsv --out {folder}/clusters --threads 1 -q"
    assert main(line.split()) == 0
    warned = capsys.readouterr().err
    assert f"{folder}/gaps.tsv: 1 rows left out: no text" in warned
    assert f"{folder}/gaps.tsv: 1 rows left out: names of columns" in warned


def test_contrast_trains(folder: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"contrast --encoder {run} --pairs {folder}/pairs.tsv --similar {folder}/similar.tsv --updates 3 --threads 1 --out {folder}/same"
    assert main([*line.split(), "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["name"] == "spearman"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("classify train --out x", "no labelled texts given: --labelled FILE"),
        ("classify train --labelled nowhere.tsv --out x", "there is no file nowhere.tsv"),
        ("classify train --labelled a.tsv", "where should the run go?"),
        ("classify train --resume x --encoder y", "leave out --encoder"),
        ("classify teach", "no command called classify teach; there are train, predict, report"),
        ("classify report x", "no labelled texts given"),
        ("classify predict nowhere y", "there is no run nowhere"),
        ("embed x", "where should the vectors go? --out vectors.npy"),
        ("embed x --fields 1,2", "should be three names such as 1,2,3"),
        ("match x --vectors v.npy q", "--vectors v.npy needs --corpus beside it"),
        ("cluster x", "give texts (--text F), or texts with labels (--labelled F), one of the two"),
        ("embed x --similarity s --out v.npy", "--out says nothing beside --similarity; leave it out"),
        ("embed x --similarity s --text t", "--text says nothing beside --similarity"),
        ("embed x --similarity s --unit", "--unit says nothing beside --similarity"),
        ("embed x --out v.npy --fields 1,2,3", "--fields says nothing without --similarity"),
        ("contrast --text t --fields 1,2 --out x", "--fields says nothing beside --text"),
        ("cluster x --text t --fields 1,2", "--fields says nothing beside --text"),
        ("cluster x --text pyproject.toml --smallest 5", "--smallest 5 is for HDBSCAN"),
        ("cluster x --text pyproject.toml --seed 4294967296", "--seed 4294967296 is too large for scikit-learn"),
        ("contrast --out x", "give pairs of texts that mean the same"),
    ],
)
def test_mistakes(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert message in capsys.readouterr().err


def test_classify_alone_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classify"]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {verb} " in printed for verb in ("train", "predict", "report"))
