"""look as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kente.cli import main

TINY = '[model]\nkind = "recurrent"\nattention = "{}"\nwidth = 8\nembedding = 8\n'
LAST = ["--threads", "1", "-q"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that have seen one batch."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "t.en").write_text("".join(f"word{i % 50} one two three\n" for i in range(120)))
    (folder / "t.fr").write_text("".join(f"mot{i % 50} un deux trois\n" for i in range(120)))
    for name, attention in (("fixed", "none"), ("looking", "additive")):
        recipe = folder / f"{name}.toml"
        recipe.write_text(TINY.format(attention))
        line = f"train --source {folder}/t.en --target {folder}/t.fr --recipe {recipe} --updates 1 --set tokenizer.kind=words"
        assert main([*line.split(), "--set", "decode.max_ratio=0.5", "--out", str(folder / name), *LAST]) == 0
    return folder


def test_a_page_of_two_runs_side_by_side(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "look.html"
    assert main(["look", f"{runs}/fixed", f"{runs}/looking", "one two", "--out", str(out), *LAST]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"page: {out}" and printed[0].startswith("fixed    ") and printed[1].startswith("looking  ")
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_without_a_file_the_map_is_drawn_on_the_terminal(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", f"{runs}/looking", "one two", "--target", "un deux", *LAST]) == 0
    printed = capsys.readouterr().out
    assert "target to source, layer 1 of 1" in printed and "1 one   2 two   3 </s>" in printed


@pytest.mark.parametrize(
    ("name", "begins"),
    [("a.svg", b"<svg "), ("a.csv", b"model,map,"), ("a.json", b'{"sentence"'), ("a.txt", b"source: one")],
)
def test_the_ending_of_the_file_says_what_is_written(runs: Path, tmp_path: Path, name: str, begins: bytes) -> None:
    assert main(["look", f"{runs}/looking", "one two", "--no-occlusion", "--out", str(tmp_path / name), *LAST]) == 0
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_json_goes_to_standard_output(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["look", f"{runs}/looking", "one two", "--target", "un deux", "--links", "0-0 1-1", "--json", *LAST]
    assert main(line) == 0
    reading = json.loads(capsys.readouterr().out)["readings"][0]
    assert reading["links"] == [[0, 0], [1, 1]] and reading["occlusion"]["words"] == ["one", "two"]
    assert main([*line, "--out", str(tmp_path / "look.html")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["format"] == "html" and told["bytes"] == (tmp_path / "look.html").stat().st_size


def test_an_example_needs_no_sentence(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["look", f"{runs}/looking", "--example", "1", "--format", "csv", "--no-occlusion", *LAST]) == 0
    assert capsys.readouterr().out.startswith("model,map,row,")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("look RUN", "no sentence given"),
        ("look RUN RUN", "no sentence given"),
        ("look nowhere cat", "there is no run nowhere"),
        ("look RUN cat --out a.doc", "what should a.doc be? --format names it: html, svg"),
        ("look RUN cat --layer 0", "--layer 0: there are numbers from 1 on, and all"),
        ("look RUN cat --head first", "--head first: there are numbers from 1 on, and mean, max or rollout"),
        ("look RUN cat --layer 2", "no layer 2 of cross attention: there is 1"),
        ("look RUN cat --head rollout", "there is no rollout of cross attention"),
        ("look RUN cat --kind self", "no maps of kind self"),
        ("look RUN cat --links 0-0", "--links needs --target beside it"),
        ("look RUN --example 1 --links 0-0", "--example brings its own alignment"),
        ("look RUN RUN cat", "each run once, please"),
    ],
)
def test_mistakes(runs: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [f"{runs}/looking" if word == "RUN" else word for word in line.split()]
    assert main([*arguments, *LAST]) == 2
    assert message in capsys.readouterr().err
