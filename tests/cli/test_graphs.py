"""kente graph as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kente.cli import main

NODES = "id,label,colour,size\n" + "".join(
    f"n{i},{'odd' if i % 2 else 'even'},{'red' if i % 2 else 'blue'},{i}\n" for i in range(20)
)
EDGES = "source,target\n" + "".join(f"n{i},n{(i + 2) % 20}\n" for i in range(20))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graph")
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text(EDGES)
    return folder


@pytest.fixture(scope="module")
def run(files: Path) -> Path:
    line = (
        f"graph train --nodes {files}/nodes.csv --edges {files}/edges.csv --updates 30 --threads 1 -q --out {files}/run"
    )
    assert main(line.split()) == 0
    return files / "run"


def test_train_tells_how_good_it_is_and_json_says_the_same(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"graph train --nodes {files}/nodes.csv --edges {files}/edges.csv --updates 30 --threads 1 --recipe gcn --out {files}/other"
    assert main(line.split()) == 0
    told = capsys.readouterr()
    assert f"{files}/other: planned updates done after 30 updates" in told.out
    assert "accuracy 100.0 %" in told.out and "| validation | 4 nodes" in told.out
    assert "graph: 20 nodes, 20 edges, 3 features" in told.err and "kente graph look" in told.err
    assert main([*line.split(), "--force", "-q", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["step"] == 30 and numbers["scores"]["validation"]["value"] == 100.0


def test_predict_prints_a_line_for_each_node_or_writes_a_table(
    files: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["graph", "predict", str(run), "--threads", "1", "-q"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines[:2]] == [["n0", "even"], ["n1", "odd"]] and len(lines) == 20
    (files / "new.tsv").write_text("id\tcolour\tsize\nx\tred\t3\ny\tblue\t4\n")
    (files / "new-edges.tsv").write_text("x\tx\n")
    new = ["--nodes", str(files / "new.tsv"), "--edges", str(files / "new-edges.tsv"), "--out", str(files / "out.tsv")]
    assert main(["graph", "predict", str(run), *new, "--threads", "1", "-q"]) == 0
    table = [row.split("\t") for row in (files / "out.tsv").read_text().splitlines()]
    assert [row[:2] for row in table] == [["id", "class"], ["x", "odd"], ["y", "even"]]
    assert main(["graph", "predict", str(run), *new, "--threads", "1", "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"][0]["class"] == "odd"


def test_look_writes_a_page(files: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = files / "look.html"
    assert main(["graph", "look", str(run), "n4", "--out", str(page), "--threads", "1", "-q"]) == 0
    printed = capsys.readouterr().out
    assert f"page: {page}" in printed and "Layer 2: " in printed
    assert "<svg" in page.read_text()
    assert main(["graph", "look", str(run), "--out", str(page), "--threads", "1", "-q", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["layers"]) == 2


def test_answers_and_pages_go_to_folders_that_are_made(
    files: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "folder"
    assert main(["graph", "predict", str(run), "--threads", "1", "-q", "--out", str(out / "answers.tsv")]) == 0
    assert main(["graph", "look", str(run), "--threads", "1", "-q", "--out", str(out / "more" / "look.html")]) == 0
    assert (
        len((out / "answers.tsv").read_text().splitlines()) == 21 and "<svg" in (out / "more" / "look.html").read_text()
    )


def test_a_stopped_run_goes_on_by_either_command(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "train", "--resume", str(run), "--updates", "40", "-q"]) == 0
    assert "after 40 updates" in capsys.readouterr().out
    assert main(["train", "--resume", str(run), "--updates", "50", "-q"]) == 0
    assert "after 50 updates" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("graph", "kente graph train"),
        ("graph tarin", "no command called graph tarin; did you mean train?"),
        ("graph train --nodes a.tsv", "--nodes a.tsv needs --edges beside it: a graph is two files"),
        ("graph train --out x", "no graph given: --nodes FILE --edges FILE"),
        ("graph train --nodes nowhere.tsv --edges e.tsv --out x", "there is no file nowhere.tsv"),
        ("graph train --nodes a --edges b", "where should the run go?"),
        ("graph train --resume x --nodes a --edges b", "leave out --nodes"),
        ("graph predict nowhere", "there is no run nowhere"),
        ("graph predict x --columns id,label", "--columns id,label names columns of --nodes, which is missing"),
        ("graph look x --columns id", "--columns id names columns of --nodes, which is missing"),
        ("graph train --resume x --columns id", "leave out --columns"),
        ("graph predict x --columns id,,y", "should be names such as id,label,features"),
    ],
)
def test_mistakes(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == (0 if line == "graph" else 2)
    told = capsys.readouterr()
    assert message in told.out + told.err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("train", "predict", "look"):
        assert main(["graph", verb, "--help"]) == 0
        assert f"kente graph {verb} " in capsys.readouterr().out
    assert main(["graph", "--help"]) == 0
    assert all(f"  {verb} " in capsys.readouterr().out for verb in ("train",))
