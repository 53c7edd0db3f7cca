"""adapt and augment as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kente.cli import main
from kente.data.toys import toy

SETTINGS = {
    "tokenizer.kind": "words",
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.width": 32,
    "model.feedforward": 64,
    "model.heads": 2,
    "batches.tokens": 512,
    "batches.max_length": 32,
    "train.validate_sentences": 20,
}
COMMON = ["--threads", "1", "-q"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed")
    for name, kind, symbols in (("old", "reverse", "abcdef"), ("new", "sort", "abcxyz")):
        pairs = toy(kind, 200, seed=1, max_length=6, symbols=symbols)
        (folder / f"{name}.a").write_text("".join(f"{source}\n" for source, _ in pairs))
        (folder / f"{name}.b").write_text("".join(f"{target}\n" for _, target in pairs))
    sets = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    assert main(["train", *corpus(folder, "old"), "--out", f"{folder}/run", "--updates", "20", *sets, *COMMON]) == 0
    return folder


def corpus(folder: Path, name: str) -> list[str]:
    return ["--source", f"{folder}/{name}.a", "--target", f"{folder}/{name}.b"]


def test_adapt_prints_old_and_new_scores_and_goes_on_with_resume(folder, tmp_path, capsys):
    out = f"{tmp_path}/run"
    command = ["adapt", f"{folder}/run", *corpus(folder, "new"), "--replay", "0.5", "--grow-vocabulary", "5"]
    assert main([*command, "--updates", "4", "--out", out, *COMMON]) == 0
    printed = capsys.readouterr().out
    assert "before" in printed and "old text, bleu" in printed and "new text, chrf" in printed
    assert main(["adapt", "--resume", out, "--json", *COMMON]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["step"] == 4 and result["adapted_from"] == "run" and set(result["scores"]) == {"old", "new"}
    assert main(["info", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["adapted_from"]["parent"] == "run"


def test_augment_makes_pairs_that_train_takes(folder, tmp_path, capsys):
    out = f"{tmp_path}/pairs.tsv"
    command = ["augment", f"{folder}/run", "--text", f"{folder}/new.a", "--out", out, "--beam", "1", "--limit", "30"]
    assert main([*command, "--engine", "torch", "--json", *COMMON]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["read"] == 30 and result["tag"] == "<bt>" and result["kept"] + sum(result["dropped"].values()) == 30
    (tmp_path / "more.tsv").write_text("<bt> a b c\tc b a\n")
    train = ["train", *corpus(folder, "new"), "--also", f"{tmp_path}/more.tsv", "--updates", "1"]
    train += ["--set", "tokenizer.kind=words"]
    assert main([*train, "--out", f"{tmp_path}/more", *COMMON]) == 0
    assert '"<bt>"' in (tmp_path / "more" / "tokenizer" / "tokenizer.json").read_text()


def test_fields_are_those_of_the_pairs_and_not_of_more_pairs(folder, tmp_path, capsys):
    lines = zip(*((folder / f"new.{side}").read_text().splitlines() for side in "ab"), strict=True)
    (tmp_path / "turned.tsv").write_text("".join(f"{target}\t{source}\n" for source, target in lines))
    (tmp_path / "more.tsv").write_text("<bt> c c c c c c c\ta\n")
    train = ["train", "--pairs", f"{tmp_path}/turned.tsv", "--fields", "2,1", "--also", f"{tmp_path}/more.tsv"]
    train += ["--updates", "1", "--set", "tokenizer.kind=words", "--set", "cleaning.max_ratio=0"]
    assert main([*train, "--out", f"{tmp_path}/run", *COMMON]) == 0
    assert '"<bt>"' in (tmp_path / "run" / "tokenizer" / "tokenizer.json").read_text()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["adapt", "--source", "a", "--target", "b", "--out", "x"], "which translator? kente adapt RUN"),
        (["adapt", "RUN", "--out", "x"], "no corpus given"),
        (["augment", "RUN", "--text", "SOME", "--out", "pairs.txt"], "ends in .tsv"),
        (
            ["augment", "RUN", "--text", "SOME", "--out", "p.tsv", "--top-k", "5"],
            "--top-k is for drawing at random; add --sample",
        ),
        (
            ["augment", "RUN", "--text", "SOME", "--out", "p.tsv", "--seed", "5"],
            "--seed is for drawing at random; add --sample",
        ),
        (["train", "--resume", "RUN", "--encoder-from", "RUN"], "leave out --encoder-from"),
        (["adapt", "--resume", "RUN", "--freeze", "words"], "leave out --freeze"),
    ],
)
def test_what_is_missing_is_said(folder, capsys, command, said):
    words = [{"RUN": f"{folder}/run", "SOME": f"{folder}/new.a"}.get(word, word) for word in command]
    assert main(words) == 2
    assert said in capsys.readouterr().err
