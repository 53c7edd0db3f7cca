"""pretrain and generate on the command line: words, exit codes, what goes to which stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kente.cli import main

TINY = "--set model.layers=1 --set model.width=16 --set model.feedforward=32 --set model.heads=2 --set batches.tokens=256 --set batches.max_length=32"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("language")
    text = folder / "play.txt"
    text.write_text("".join(f"line {n % 10}: the king sleeps\n" for n in range(200)))
    out = folder / "run"
    command = f"pretrain --text {text} --tokenizer characters --updates 6 --out {out} --threads 1 -q {TINY}"
    assert main(command.split()) == 0
    return out


def test_training_ends_with_a_score_and_resumes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("pretrain", "train"):
        assert main([verb, "--resume", str(run), "--threads", "1"]) == 0
        printed = capsys.readouterr()
        assert "planned updates done after 6 updates" in printed.out and "best validation loss" in printed.out
        assert "next: kente generate" in printed.err


def test_text_is_written_behind_its_prompt(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write = ["generate", str(run), "--prompt", "line 1", "--tokens", "12", "--seed", "3", "--threads", "1"]
    assert main(write) == 0
    first = capsys.readouterr().out
    assert first.startswith("line 1") and len(first) <= len("line 1") + 13
    assert main(write) == 0 and capsys.readouterr().out == first
    assert main([*write, "--json", "--samples", "2", "--top-k", "5", "--repetition", "1.3", "--min-p", "0.01"]) == 0
    samples = json.loads(capsys.readouterr().out)
    assert len(samples) == 2 and {"prompt", "text", "tokens", "ended_by"} == set(samples[0])


def test_a_stop_string_may_be_a_line_end(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", str(run), "--prompt", r"a\nb", "--stop", r"\n", "--tokens", "40", "--threads", "1"]) == 0
    assert capsys.readouterr().out.startswith("a\nb")


def test_a_language_model_is_scored_on_text(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = str(run.parent / "play.txt")
    assert main(["evaluate", str(run), "--text", text, "--threads", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("loss ") and "bits per character" in printed and "play.txt" in printed
    assert main(["evaluate", str(run), "--text", text, "--limit", "2", "--threads", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["characters"] == 2 * len("line 0: the king sleeps\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pretrain --out r", "no text given: --text FILE ... names what to read"),
        ("pretrain --text a", "where should the run go?"),
        ("pretrain --text a --kind both --out r", "invalid choice: 'both'"),
        ("pretrain --resume r --text a", "leave out --text"),
        ("generate RUN --temperature -1", "the temperature (-1.0) must be 0"),
        ("generate RUN --stop=", "a stop string cannot be empty"),
        ("translate RUN hello", "is a language model; translating needs a translator"),
        ("evaluate RUN --text a --source b", "not both"),
        ("evaluate RUN --text a --beam 4 --tokenize none", "--beam, --tokenize: of no use with --text"),
        ("evaluate RUN --source a --reference b", "there is no file a"),
    ],
)
def test_mistakes_are_named(run: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run) if word == "RUN" else word for word in line.split()]) in (1, 2)
    assert message in capsys.readouterr().err
