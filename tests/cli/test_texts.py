"""detect, and whole files through translate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kente.cli import main
from kente.config import BatchConfig, Config, DecodeConfig, TokenizerConfig, TransformerConfig
from kente.data.grammar import generate
from kente.data.tokenizer import train_tokenizers
from kente.models.build import build
from kente.runs import LANGUAGES, Run
from kente.text.languages import learn_pair

CONFIG = Config(
    model=TransformerConfig(encoder_layers=1, decoder_layers=1, width=16, feedforward=32, heads=2, max_length=64),
    tokenizer=TokenizerConfig(kind="characters", joint=True),
    batches=BatchConfig(max_length=64),
    decode=DecodeConfig(beam=1, engine="torch"),
)
PAIRS = [(pair.source, pair.target) for pair in generate(seed=1, count=400)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Random weights, real languages."""
    run = Run.create(tmp_path_factory.mktemp("texts") / "run", CONFIG)

    def texts() -> Iterator[tuple[str, str]]:
        return iter(PAIRS)

    tokenizers = train_tokenizers(texts, CONFIG.tokenizer)
    tokenizers.save(run.path / "tokenizer")
    torch.manual_seed(1)
    model = build(CONFIG.model, tokenizers.source.size, tokenizers.target.size, joint=True)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    run.save(1, {"model": weights}, {"score": None}, keep=1)
    learn_pair(("en", "fr"), PAIRS).save(run.path / LANGUAGES)
    return str(run.path)


def test_detect_names_the_language_of_each_text(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", run, "The dog sleeps in the garden.", "Le chien dort dans le jardin."]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["en", "fr"] and all(50 <= int(row[1]) <= 100 for row in rows)
    assert rows[0][2] == "The dog sleeps in the garden."


def test_detect_takes_several_runs_and_answers_in_json(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", run, run, "Le chien dort.", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["text"] == "Le chien dort."
    assert [one["language"] for one in answer["languages"]] == ["fr", "en"]


def test_detect_of_no_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", str(tmp_path / "nothing"), "Hello"]) == 2
    assert "there is no run" in capsys.readouterr().err


def test_a_file_is_translated_and_keeps_its_shape(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "film.srt", tmp_path / "film.fr.srt"
    source.write_bytes(b"1\r\n00:00:01,000 --> 00:00:02,000\r\nThe <i>dog</i> sleeps.\r\n\r\n")
    assert main(["translate", run, "--file", str(source), "--out", str(out), "--threads", "1", "--json"]) == 0
    first, times, said, *rest = out.read_bytes().split(b"\r\n")
    assert (first, times, rest) == (b"1", b"00:00:01,000 --> 00:00:02,000", [b"", b""])
    assert said.count(b"<i>") == said.count(b"</i>") == 1 and said != b"The <i>dog</i> sleeps."
    about = json.loads(capsys.readouterr().out)
    assert about["file"] == str(out) and about["bytes"] == len(out.read_bytes())


def test_without_out_a_file_goes_to_standard_output(
    run: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("id\ttext\n7\tThe dog sleeps.\n", encoding="utf-8")
    assert main(["translate", run, "--file", str(table), "--column", "text", "--threads", "1", "-q"]) == 0
    written = capfdbinary.readouterr().out.decode()
    assert written.startswith("id\ttext\n7\t") and written.endswith("\n") and written.count("\n") == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--out", "x.txt", "hello"], "--out goes with --file F"),
        (["--column", "2", "hello"], "--column goes with --file F"),
        (["--file", "FILE", "hello"], "--file translates a whole file; leave out TEXT"),
        (["--file", "FILE", "--n-best", "2"], "leave out --n-best"),
        (["--file", "FILE", "--out", "FILE"], "is the file to be translated itself"),
        (["--file", "DOCX"], "ends in .docx; files that can be translated end in .txt"),
    ],
)
def test_mistakes_about_files_are_named(
    line: list[str], message: str, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"FILE": tmp_path / "a.txt", "DOCX": tmp_path / "a.docx"}
    for path in names.values():
        path.write_text("Hello.")
    assert main(["translate", run, *(str(names.get(word, word)) for word in line)]) == 2
    assert message in capsys.readouterr().err


def test_languages_of_a_training_are_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--source", "a", "--target", "b", "--languages", "English,tw", "--out", "r"]) == 2
    assert "'English' is no code of a language, such as en, twi or pt-BR" in capsys.readouterr().err
