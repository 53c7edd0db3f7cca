"""The commands of the tour, run one after the other on a small model, as a person would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kente.cli import main
from kente.data.toys import toy

SETTINGS = {
    "tokenizer.kind": "words",
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.width": 64,
    "model.feedforward": 128,
    "model.heads": 2,
    "batches.tokens": 1024,
    "batches.max_length": 32,
    "train.validate_every": 400,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus and a run trained on it by the command line."""
    folder = tmp_path_factory.mktemp("tour")
    pairs = toy("copy", 2000, seed=1, max_length=5, symbols="abcdef")
    for name, part in (("train", pairs[:1900]), ("test", pairs[1900:])):
        (folder / f"{name}.a").write_text("".join(f"{source}\n" for source, _ in part))
        (folder / f"{name}.b").write_text("".join(f"{target.upper()}\n" for _, target in part))
    sets = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    command = ["train", "--source", f"{folder}/train.a", "--target", f"{folder}/train.b", "--out", f"{folder}/run"]
    assert (
        main([*command, "--updates", "400", "--save-every", "100", "--seed", "1", "--threads", "1", "-q", *sets]) == 0
    )
    return folder


def kente(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kente", *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def evaluation(folder: Path, reference: str) -> list[str]:
    return ["evaluate", f"{folder}/run", "--source", f"{folder}/test.a", "--reference", f"{folder}/{reference}"]


def test_translate_reads_lines_and_writes_as_many(folder):
    done = kente("translate", folder / "run", "--beam", 1, stdin="a b c\n\nd e f\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert len(lines) == 4 and lines[1] == "" and lines[3] == ""
    assert lines[0] == "A B C" and lines[2] == "D E F"


def test_translate_takes_text_and_answers_in_json(folder, capsys):
    assert main(["translate", str(folder / "run"), "a b c", "c d e", "--n-best", "2", "--json", "--threads", "1"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["text"] for answer in answers] == ["A B C", "C D E"]
    assert [answer["source"] for answer in answers] == ["a b c", "c d e"]
    alternatives = answers[0]["alternatives"]
    assert (
        len(alternatives) == 1 and alternatives[0]["text"] != "A B C" and alternatives[0]["score"] < answers[0]["score"]
    )


def test_n_best_gives_n_different_lines(folder, capsys):
    assert main(["translate", str(folder / "run"), "a b c", "--n-best", "3", "--threads", "1"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["1"] * 3 and len({row[2] for row in rows}) == 3
    assert [float(row[1]) for row in rows] == sorted((float(row[1]) for row in rows), reverse=True)


def test_sampling_follows_its_seed(folder, capsys):
    texts = []
    for seed in ("1", "1", "2"):
        assert (
            main(
                [
                    "translate",
                    str(folder / "run"),
                    *["a b c d e"] * 8,
                    "--sample",
                    "--temperature",
                    "3",
                    "--seed",
                    seed,
                    "-q",
                ]
            )
            == 0
        )
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_evaluate_scores_and_says_how(folder, capsys):
    arguments = evaluation(folder, "test.b")
    assert main([*arguments, "--beam", "2", "--json", "--threads", "1"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (
        result["bleu"] > 90 and result["chrf"] > 90 and "tok:13a" in result["signature"] and result["sentences"] == 100
    )
    assert result["bleu_low"] <= result["bleu"] <= result["bleu_high"] and result["perplexity"] < 2
    assert main([*arguments, "--tokenize", "none", "--limit", "20"]) == 0
    text = capsys.readouterr().out
    assert "BLEU" in text and "tok:none" in text and "20 lines" in text and "beam 5" in text


def test_score_agrees_with_evaluate(folder, tmp_path, capsys):
    assert main(["translate", str(folder / "run"), "--beam", "2", *(folder / "test.a").read_text().splitlines()]) == 0
    (tmp_path / "out").write_text(capsys.readouterr().out)
    assert main(["score", "--hypothesis", str(tmp_path / "out"), "--reference", str(folder / "test.b"), "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    arguments = evaluation(folder, "test.b")
    assert main([*arguments, "--beam", "2", "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert {k: scored[k] for k in ("bleu", "chrf", "ter", "signature")} == {
        k: evaluated[k] for k in ("bleu", "chrf", "ter", "signature")
    }


def test_evaluate_refuses_files_that_do_not_match(folder, capsys):
    arguments = evaluation(folder, "train.b")
    assert main(arguments) == 2
    assert "test.a has 100 lines but" in capsys.readouterr().err


def test_summary_of_a_run_and_of_a_recipe(folder, capsys):
    assert main(["summary", str(folder / "run"), "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["parameters"] == sum(layer["parameters"] for layer in run["layers"]) > 0
    assert main(["summary", "base"]) == 0
    assert "parameters" in capsys.readouterr().out
    assert main(["summary", "bsae"]) == 2
    assert "neither a run nor a recipe" in capsys.readouterr().err


def test_info_tells_where_a_run_stands(folder, capsys):
    assert main(["info", str(folder / "run"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["step"] == 400 and facts["finished"] and len(facts["weights_sha256"]) == 64 and facts["parameters"] > 0
    assert main(["info", "--json"]) == 0
    assert "torch" in json.loads(capsys.readouterr().out)["versions"]


def test_resume_of_a_finished_run_is_done_at_once(folder, capsys):
    assert main(["train", "--resume", str(folder / "run")]) == 0
    assert "after 400 updates" in capsys.readouterr().out


def test_resume_takes_no_new_data(folder, capsys):
    assert main(["train", "--resume", str(folder / "run"), "--source", "x"]) == 2
    assert "leave out --source" in capsys.readouterr().err


def test_check_names_a_shifted_line(folder, tmp_path, capsys):
    arguments = ["check", "--source", str(folder / "train.a"), "--target", str(folder / "train.b")]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
    lines = (folder / "train.b").read_text().splitlines()
    (tmp_path / "short.b").write_text("\n".join(lines[:700] + lines[701:]) + "\n")
    assert main(["check", "--source", str(folder / "train.a"), "--target", str(tmp_path / "short.b")]) == 1
    assert "1,900" in (said := capsys.readouterr().out) and "1,899" in said


def test_training_on_files_of_different_length_is_refused(folder, tmp_path, capsys):
    lines = (folder / "train.b").read_text().splitlines()
    (tmp_path / "short.b").write_text("\n".join(lines[:700] + lines[701:]) + "\n")
    command = ["train", "--source", f"{folder}/train.a", "--target", f"{tmp_path}/short.b", "--out", f"{tmp_path}/run"]
    assert main(command) == 2
    assert "has 1,900 lines but" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_a_run_that_is_not_there_is_a_users_mistake(folder, capsys):
    assert main(["translate", str(folder / "rum"), "a"]) == 2
    assert f"did you mean {folder / 'run'}?" in capsys.readouterr().err


def test_pairs_in_one_file_train_too(folder, tmp_path, capsys):
    rows = zip(
        (folder / "train.a").read_text().splitlines(), (folder / "train.b").read_text().splitlines(), strict=True
    )
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    sets = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    command = [
        "train",
        "--pairs",
        f"{tmp_path}/pairs.tsv",
        "--out",
        f"{tmp_path}/run",
        "--updates",
        "3",
        "--json",
        *sets,
    ]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["step"] == 3


def test_the_one_line_api(folder):
    import kente

    assert kente.load(folder / "run").translate(["a b c"])[0].text == "A B C"


def test_a_tampered_tokenizer_is_refused(folder, tmp_path, capsys):
    import shutil

    shutil.copytree(folder / "run", tmp_path / "run")
    for path in (tmp_path / "run" / "tokenizer").iterdir():
        path.write_bytes(path.read_bytes().replace(b"a", b"z", 1))
    assert main(["translate", str(tmp_path / "run"), "a"]) == 1
    assert "tokenizer" in capsys.readouterr().err
