"""The surface: words, exit codes, what goes to which stream. What needs a trained model is in test_end_to_end.py."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

from kente import __version__
from kente.cli import main
from kente.cli.commands import COMMANDS, Command, Family
from kente.cli.printing import print_json
from kente.cli.terminal import Terminal
from kente.errors import CorpusError, Diverged, Interrupted, KenteError


def kente(*arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own, as people run it."""
    return subprocess.run(
        [sys.executable, "-m", "kente", *arguments],
        input=stdin,
        capture_output=True,
        env=os.environ | (env or {}),
        timeout=120,
    )


@pytest.fixture
def texts(tmp_path: Path) -> tuple[str, str]:
    hypothesis, reference = tmp_path / "out.fr", tmp_path / "test.fr"
    hypothesis.write_text("je vais bien .\nle chat est là .\n", encoding="utf-8")
    reference.write_text("je vais bien .\nle chat est ici .\n", encoding="utf-8")
    return str(hypothesis), str(reference)


# ---------------------------------------------------------------- help and version


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_kente_alone_explains_itself(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert all(f"\n  {name}" in printed for name in COMMANDS)
    assert "exit codes: 0 done, 1 failure, 2 usage or bad input, 3 diverged, 130 interrupted" in printed
    lines = printed.splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 100, "it fits a screen"


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kente {__version__}\n"


EVERY = [
    f"{name} {verb}".strip()
    for name, command in COMMANDS.items()
    for verb in (command.commands if isinstance(command, Family) else [""])
]
"""Commands of one word and of two."""


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_help_with_examples_and_the_common_options(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name.split(), "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"examples:\n  kente {name}" in printed
    for option in ("--threads N", "--device {auto,cpu,cuda,mps}", "--quiet", "--verbose", "--json", "--no-color"):
        assert option in printed
    capsys.readouterr()
    assert main(["help", *name.split()]) == 0
    assert capsys.readouterr().out == printed


def test_the_words_of_the_surface_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    words = {
        "check": "--source --target --pairs --fields",
        "train": "--source --target --pairs --fields --validation-source --validation-target --validation-pairs --recipe "
        "--minutes --updates --save-every --seed --set --out --resume --force --languages",
        "translate": "RUN TEXT --beam --n-best --sample --temperature --top-k --top-p --length-penalty --prefix --seed "
        "--no-split --file --out --column",
        "detect": "RUN TEXT",
        "evaluate": "RUN --source --reference --beam --tokenize",
        "score": "--hypothesis --reference --tokenize",
        "compare": "--source --target --pairs --validation-source --test-source --test-target --models --minutes-each "
        "--updates-each --tokenize --beam --set --seed --out --force",
        "report": "RUN --source --reference --out --tokenize --beam",
        "lecture": "EXPERIMENT --run --out",
        "serve": "RUN --languages --host --port --keys --rate --characters --waiting --deadline --corrections --engine --beam",
        "look": "RUN --target --out --format --example --links --beam --no-occlusion --kind --layer --head --pieces",
        "export": "RUN --to --out --numbers --languages --names",
        "import": "DIR|PACKAGE --out --languages --force",
        "adapt": "RUN --source --target --pairs --old-source --old-target --freeze --lora --replay --grow-vocabulary --also --from --to --out",
        "augment": "RUN --text --out --kind --tag --exclude --limit --beam --sample --from --to",
        "summary": "RUN|RECIPE",
        "info": "RUN",
    }
    for name, wanted in words.items():
        assert main([name, "--help"]) == 0
        printed = capsys.readouterr().out
        assert [word for word in wanted.split() if word not in printed] == []


def test_help_version_and_mistakes_never_import_torch() -> None:
    calls = [["--help"], ["--version"], ["trian"], ["train"], ["train", "--set", "help"], ["lecture"]]
    calls += [[*name.split(), "--help"] for name in (*COMMANDS, *EVERY)]
    script = (
        "import sys, json; from kente.cli import main\n"
        "for call in json.loads(sys.argv[1]): main(call)\n"
        "print('heavy:', sorted({'torch', 'numpy', 'sacrebleu', 'sentencepiece'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, json.dumps(calls)], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "heavy: []", done.stderr


def test_every_setting_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--set", "help"]) == 0
    printed = capsys.readouterr().out
    assert "model.width = 512  (for model.kind = transformer)\n    Size of every vector between layers." in printed
    assert 'model.cell = "gru"  (for model.kind = recurrent)' in printed
    assert "model.encoder_kernels = [3, 3, 3, 3]  (for model.kind = conv)" in printed and "null" not in printed


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trian", "no command called trian; did you mean train?"),
        ("--verison", "no option called --verison"),
        ("embroider", "no command called embroider; there are demo, check"),
        ("train --souce a --target b", "no option --souce; did you mean --source?"),
        ("translate run --beams=5", "no option --beams=5; did you mean --beam?"),
        ("train --minutes 0 --out r", "--minutes: 0 must be above 0"),
        ("train --minutes soon --out r", "--minutes: 'soon' is not a number"),
        ("train --minutes nan --out r", "--minutes: nan is not a number one can use"),
        ("train --minutes 5 --updates 5", "--updates: not allowed with argument --minutes"),
        ("translate run --beam 0", "--beam: 0 is too small, it must be at least 1"),
        ("translate run --beam many", "--beam: 'many' is not a whole number"),
        ("translate run --temperature 0.5 hello", "--temperature is for drawing at random; add --sample"),
        ("translate", "required: RUN"),
        ("evaluate run --source a", "required: --reference"),
        ("info --device gpu", "invalid choice: 'gpu'"),
        ("check --pairs a.tsv --fields en", "'en' should be two names such as en,fr"),
        ("train --resume r --source a", "--resume goes on with the run's own data and settings; leave out --source"),
        ("train --resume r --set model.width=8", "leave out --set"),
    ],
)
def test_mistakes_are_named_with_exit_code_2(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("kente: ") and message in streams.err
    assert "Traceback" not in streams.err


def test_text_that_is_not_utf8_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "run", "caf\udce9"]) == 2
    assert r"caf\udce9 is not UTF-8" in capsys.readouterr().err


def test_a_corpus_must_be_named_whole(capsys: pytest.CaptureFixture[str]) -> None:
    for line, message in {
        "check": "no corpus given: --source FILE --target FILE, or --pairs FILE.tsv",
        "check --source a.en": "--source a.en needs --target beside it",
        "check --target a.fr": "--target a.fr needs --source beside it",
        "check --pairs a.tsv --source a.en": "give --source and --target, or --pairs, not both",
        "train --source a --target b": "where should the run go? --out RUN",
        "train --out r": "no corpus given",
    }.items():
        assert main(line.split()) == 2
        assert message in capsys.readouterr().err


# ---------------------------------------------------------------- what happens when things happen


def _raising(error: BaseException) -> Command:
    def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
        terminal.progress("working", 1, 2)
        raise error

    return Command("A command that fails.", (), lambda parser: None, run)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KenteError("no room"), 1, "kente: no room\n"),
        (CorpusError("train.en:7: not UTF-8"), 2, "kente: train.en:7: not UTF-8\n"),
        (Diverged("the loss climbed to 12.1"), 3, "kente: the loss climbed to 12.1\n"),
        (Interrupted("saved at update 40"), 130, "kente: saved at update 40\n"),
        (KeyboardInterrupt(), 130, "kente: interrupted\n"),
        (PermissionError(13, "Permission denied", "runs/x"), 1, "kente: runs/x: Permission denied\n"),
        (OSError("something about a socket"), 1, "kente: something about a socket\n"),
        (MemoryError(), 1, "kente: out of memory; smaller batches need less: --set batches.tokens=1024"),
        (ZeroDivisionError("by zero"), 1, "kente: something broke inside Kente: ZeroDivisionError: by zero\n"),
    ],
)
def test_every_end_has_its_exit_code_and_message(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(COMMANDS, "fail", _raising(error))
    assert main(["fail"]) == code
    streams = capsys.readouterr()
    assert message in streams.err and "Traceback" not in streams.err and streams.out == ""
    assert main(["fail", "-v"]) == code
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("KENTE_TRACEBACK", "1")
    assert main(["fail"]) == code
    assert "Traceback" in capsys.readouterr().err


def test_an_unexpected_failure_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(COMMANDS, "fail", _raising(ValueError("x")))
    main(["fail"])
    told = capsys.readouterr().err
    assert "Run it again with -v" in told and "`kente info`" in told


def test_a_reader_that_leaves_is_no_news() -> None:
    script = "import sys; from kente.cli import main; sys.exit(main(['train', '--set', 'help']))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


# ---------------------------------------------------------------- score


def test_score_prints_lines_with_signatures(texts: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--hypothesis", texts[0], "--reference", texts[1], "--tokenize", "none"]) == 0
    streams = capsys.readouterr()
    bleu, chrf, ter = streams.out.splitlines()
    expected = sacrebleu.corpus_bleu(
        ["je vais bien .", "le chat est là ."], [["je vais bien .", "le chat est ici ."]], tokenize="none"
    )
    assert bleu.startswith(f"BLEU {expected.score:.1f}") and "| 2 lines |" in bleu and "tok:none" in bleu
    assert chrf.startswith("chrF++ ") and ter.startswith("TER ")


def test_score_json_is_alone_on_standard_output(texts: tuple[str, str]) -> None:
    done = kente("score", "--hypothesis", texts[0], "--reference", texts[1], "--json")
    assert done.returncode == 0, done.stderr
    numbers = json.loads(done.stdout)
    assert {"bleu", "chrf", "ter", "signature", "bleu_low", "bleu_high", "chrf_signature", "sentences"} <= set(numbers)
    assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--tokenize", "14a", "no scoring tokenizer called 14a; did you mean 13a?"),
        ("--reference", "nowhere.fr", "nowhere.fr"),
    ],
)
def test_score_names_what_it_cannot_use(
    option: str, value: str, message: str, texts: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "--hypothesis", texts[0], "--reference", texts[1], option, value]) == 2
    assert message in capsys.readouterr().err


def test_score_refuses_texts_of_different_length(
    texts: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = tmp_path / "short.fr"
    short.write_text("je vais bien .\n", encoding="utf-8")
    assert main(["score", "--hypothesis", str(short), "--reference", texts[1]]) == 2
    told = capsys.readouterr().err
    assert "short.fr has 1 lines" in told and "test.fr has 2" in told


def test_json_has_no_not_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"loss": float("nan"), "parts": [float("inf"), 1.5], "path": Path("runs/là")})
    assert capsys.readouterr().out == '{"loss": null, "parts": [null, 1.5], "path": "runs/là"}\n'


def test_info_without_a_run_is_about_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    lines = capsys.readouterr().out
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts and all(name in lines for name in facts)


@pytest.mark.parametrize("line", ["info nowhere", "translate nowhere hello", "train --resume nowhere"])
def test_a_run_that_is_not_there_is_named(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) in (1, 2)
    told = capsys.readouterr().err
    assert "nowhere" in told and "something broke" not in told


def test_a_recipe_is_summarised(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", "tiny", "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["parameters"] > 0 and numbers["layers"]


def test_check_reports_on_a_corpus_and_fails_when_its_sides_do_not_match(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = [f"line {number} of the text ." for number in range(60)]
    (tmp_path / "a.en").write_text("\n".join(numbers) + "\n", encoding="utf-8")
    (tmp_path / "a.fr").write_text("\n".join(f"le {line}" for line in numbers) + "\n", encoding="utf-8")
    (tmp_path / "short.fr").write_text("\n".join(numbers[:-1]) + "\n", encoding="utf-8")
    both = ["--source", str(tmp_path / "a.en"), "--target", str(tmp_path / "a.fr")]
    assert main(["check", *both]) == 0
    assert "60 pairs" in capsys.readouterr().out
    assert main(["check", *both, "--test-source", both[1], "--test-target", both[3], "--json"]) in (0, 1)
    assert isinstance(json.loads(capsys.readouterr().out), dict)
    assert main(["check", *both[:3], str(tmp_path / "short.fr")]) in (1, 2)
    streams = capsys.readouterr()
    assert "60" in streams.out + streams.err and "59" in streams.out + streams.err
