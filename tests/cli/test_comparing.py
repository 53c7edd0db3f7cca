"""compare, report and lecture as people type them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kente.cli import main

TINY = '[model]\nkind = "recurrent"\nattention = "{}"\nwidth = 8\nembedding = 8\n'


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "t.en").write_text("".join(f"word{i} one two three\n" for i in range(300)))
    (folder / "t.fr").write_text("".join(f"mot{i} un deux trois\n" for i in range(300)))
    (folder / "fixed.toml").write_text(TINY.format("none"))
    (folder / "looking.toml").write_text(TINY.format("additive"))
    return folder


@pytest.fixture(scope="module")
def compared(corpus: Path) -> Path:
    out = corpus / "out"
    models = f"{corpus}/fixed.toml,{corpus}/looking.toml"
    data = f"--source {corpus}/t.en --target {corpus}/t.fr"
    line = f"compare {data} --models {models} --updates-each 2 --beam 1 --set tokenizer.kind=words --threads 1 -q --out {out}"
    assert main(line.split()) == 0
    return out


def test_compare_leaves_a_page_and_numbers(compared: Path) -> None:
    assert (compared / "comparison.html").stat().st_size > 10_000
    numbers = json.loads((compared / "comparison.json").read_bytes())
    assert [system["name"] for system in numbers["systems"]] == ["fixed", "looking"]
    assert numbers["budget"] == "2 updates of the same batches for each, 1 thread"


def test_report_prints_the_table_or_json(compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(compared / "fixed"), str(compared / "looking")]
    assert main(["report", *runs, "--beam", "1", "-q", "--out", str(tmp_path / "a")]) == 0
    printed = capsys.readouterr().out
    assert "BLEU by source length in words" in printed and f"page: {tmp_path}/a/comparison.html" in printed
    assert main(["report", *runs, "--beam", "1", "-q", "--json", "--out", str(tmp_path / "b")]) == 0
    assert json.loads(capsys.readouterr().out)["page"] == str(tmp_path / "b" / "comparison.html")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compare --minutes-each 1 --updates-each 2", "not allowed with"),
        ("compare --models gru,gru", "each model once, please: gru, gru"),
        ("compare --test-source a --test-target b", "needs a corpus beside it"),
        ("report nowhere", "there is no run nowhere"),
        ("report a --source b", "a test set has two files: --source F --reference F"),
        ("lecture gradient", "no experiment called gradient; did you mean gradients?"),
        ("lecture mask --run nowhere", "there is no run nowhere"),
    ],
)
def test_mistakes(line: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = [] if line.startswith("lecture g") else ["--out", str(tmp_path / "out")]
    assert main([*line.split(), *out]) == 2
    assert message in capsys.readouterr().err


def test_lectures_are_listed_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lecture"]) == 0
    listed = capsys.readouterr().out
    assert all(
        name in listed
        for name in ("gradients", "unrolled", "order", "costs", "bottleneck", "mask", "heads", "fibonacci")
    )
    assert main(["lecture", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "gradients"
    assert main(["lecture", "unrolled", "-q", "--threads", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "unrolled: " in printed and f"page: {tmp_path}/lecture.html" in printed
    assert "<svg" in (tmp_path / "lecture.html").read_text()
    assert main(["lecture", "unrolled", "-q", "--json", "--threads", "1", "--out", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["name"] == "unrolled"
