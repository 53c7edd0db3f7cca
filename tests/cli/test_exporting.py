"""Exporting from the command line, and what `kente info` says about engines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kente import api
from kente.cli import main
from kente.config import BatchConfig, Config, DecodeConfig, ModelConfig, RecurrentConfig, TokenizerConfig
from kente.config import TransformerConfig as Settings
from kente.configfile import apply
from kente.data.store import Store
from kente.data.tokenizer import train_tokenizers
from kente.models.build import build
from kente.runs import Run

PAIRS = [(f"the {a} sees a {b}", f"le {b} voit un {a}") for a in ("cat", "dog", "man") for b in ("tree", "house")]
TINY = Settings(encoder_layers=1, decoder_layers=1, width=16, feedforward=32, heads=2, max_length=64, norm_place="pre")


def make(path: Path, model: ModelConfig) -> Path:
    config = Config(
        model,
        tokenizer=TokenizerConfig(vocabulary=320),
        batches=BatchConfig(max_length=32),
        decode=DecodeConfig(beam=1),
    )
    run = Run.create(path, config)

    def texts() -> Iterator[tuple[str, str]]:
        return iter(PAIRS * 20)

    tokenizers = train_tokenizers(texts, config.tokenizer)
    tokenizers.save(run.path / "tokenizer")
    Store.build(run.path / "data" / "validation", PAIRS, tokenizers, max_length=32)
    torch.manual_seed(1)
    network = build(model, tokenizers.source.size, tokenizers.target.size)
    weights = {name: parameter.detach() for name, parameter in network.named_parameters()}
    state = {"score": None, "plan": {"total": 1}, "progress": {"seconds": 60.0}}
    run.save(1, {"model": weights}, state, keep=1)
    return run.path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs that know nothing."""
    folder = tmp_path_factory.mktemp("exporting")
    make(folder / "transformer", TINY)
    make(folder / "gru", RecurrentConfig(width=16, embedding=16))
    return folder


def test_without_a_program_it_says_which_can_carry_the_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(runs / "transformer")]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["ctranslate2", "yes", "huggingface", "yes", "argos", "yes", "onnx", "yes"]
    assert "--to PROGRAM --out DIR" in printed.err
    assert main(["export", str(runs / "gru"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["onnx"] is None
    assert found["ctranslate2"] == "it carries Transformers, and this is a recurrent model"
    assert found["huggingface"] == "its translation models are Transformers, and this is a recurrent model"


@pytest.mark.parametrize(
    ("arguments", "next_step"),
    [
        (["--to", "ctranslate2", "--numbers", "int8"], "README.md shows how to translate with it"),
        (["--to", "huggingface"], "AutoModelForSeq2SeqLM.from_pretrained"),
        (["--to", "argos", "--languages", "en,fr", "--names", "English,French"], "install_from_path"),
        (["--to", "onnx"], "translate.py"),
    ],
)
def test_a_run_is_written_and_the_next_step_is_said(
    arguments: list[str], next_step: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a" / "b"
    assert main(["export", str(runs / "transformer"), "--out", str(out), *arguments]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{out}: {arguments[1]}, ") and next_step in second
    assert main(["export", str(runs / "transformer"), "--out", str(tmp_path / "c"), "--json", *arguments]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert files == {name: (tmp_path / "c" / name).stat().st_size for name in files} and len(files) > 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--to", "onnx"], "--out DIR names a folder"),
        (["--to", "onnx", "--out", "OUT", "--numbers", "int8"], "int8 numbers are for ctranslate2 and argos"),
        (["--to", "onnx", "--out", "OUT", "--languages", "en,fr"], "written for argos alone; onnx does not ask"),
        (["--to", "argos", "--out", "OUT"], "which languages does"),
        (["--to", "argos", "--out", "OUT", "--languages", "English,fr"], "'English' is not a language code"),
        (["--to", "huggingface", "--out", "RUN"], "exists already; choose another folder"),
        (["--to", "magic", "--out", "OUT"], "invalid choice: 'magic'"),
    ],
)
def test_mistakes_are_told_and_leave_nothing_behind(
    arguments: list[str], complaint: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs / "transformer"
    places = {"OUT": str(tmp_path / "out"), "RUN": str(run)}
    assert main(["export", str(run), *(places.get(word, word) for word in arguments)]) == 2
    assert complaint in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_exporting_needs_neither_torch_nor_the_programs(runs: Path, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'tokenizers', 'onnx', 'onnxruntime', 'argostranslate'):\n"
        "    sys.modules[name] = None\n"
        "from kente.cli import main\n"
        "for to in ('ctranslate2', 'huggingface', 'argos', 'onnx'):\n"
        "    languages = ['--languages', 'en,fr'] if to == 'argos' else []\n"
        "    assert main(['export', sys.argv[1], '--to', to, '--out', f'{sys.argv[2]}/{to}', *languages]) == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(runs / "transformer"), str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- engines


def engine(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    assert main(["info", str(run), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    return facts["engine"], facts["engine_because"]


def test_info_says_which_engine_translates_and_why(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = tmp_path / "run"
    shutil.copytree(runs / "transformer", run)
    name, because = engine(run, capsys)
    assert name == "CTranslate2" and because.endswith("is measured when it first translates")
    api.load(run).translate(["the cat sees a tree"])
    name, because = engine(run, capsys)
    assert name == "CTranslate2" and because.startswith("few sentences, beam 1: CTranslate2, ")
    assert "sentences/s when measured here" in because
    opened = Run.open(run)
    opened.write_config(apply(opened.config, {"decode": {"engine": "torch"}}))
    assert engine(run, capsys) == ("torch", "the run's setting decode.engine asks for it")


def test_info_says_what_keeps_the_fast_engine_from_a_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = "CTranslate2 cannot: it carries Transformers, and this is a recurrent model"
    assert engine(runs / "gru", capsys) == ("torch", wanted)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from kente import api
from kente.errors import KenteError
translator = api.load(sys.argv[1], beam=1)
assert len(translator.translate(["the cat sees a tree"] * 300)) == 300
try:
    api.load(sys.argv[1], sample=True).translate(["the cat"])
except KenteError as error:
    print(error)
"""


def test_without_torch_many_sentences_are_translated_and_what_needs_it_says_so(runs: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs / "transformer", run)
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, str(run)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("this needs torch, which is not installed here")


def test_a_command_that_needs_torch_says_so_where_it_is_not(runs: Path) -> None:
    script = "import sys; sys.modules['torch'] = None\nfrom kente.cli import main\nsys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "info", str(runs / "gru")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "this command needs torch, which is not installed here" in done.stderr
