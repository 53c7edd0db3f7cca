"""Translating from the command line: which engine is said to translate, and that CTranslate2 does so without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kente.config import BatchConfig, Config, DecodeConfig, TokenizerConfig, TransformerConfig
from kente.data.store import Store
from kente.data.tokenizer import EOS, train_tokenizers
from kente.models.build import build
from kente.runs import Run

CONFIG = Config(
    model=TransformerConfig(
        encoder_layers=1, decoder_layers=1, width=16, feedforward=32, heads=2, max_length=64, tie="none"
    ),
    tokenizer=TokenizerConfig(vocabulary=320),
    batches=BatchConfig(max_length=32),
    decode=DecodeConfig(beam=2),
)
PAIRS = [
    (f"the {a} sees a {b}", f"le {b} voit un {a}")
    for a in ["cat", "dog", "man", "bird"]
    for b in ["tree", "house", "fish"]
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with random weights, which answer with characters at random but without loops, and everything else a run has that translating needs."""
    run = Run.create(tmp_path_factory.mktemp("engines") / "run", CONFIG)

    def texts() -> Iterator[tuple[str, str]]:
        return iter(PAIRS * 20)

    tokenizers = train_tokenizers(texts, CONFIG.tokenizer)
    tokenizers.save(run.path / "tokenizer")
    Store.build(run.path / "data" / "validation", PAIRS, tokenizers, max_length=32)
    torch.manual_seed(1)
    model = build(CONFIG.model, tokenizers.source.size, tokenizers.target.size)
    norm, output = model.decoder.layers[-1].feedforward_residual.norm, model.output.weight
    with torch.no_grad():
        towards = torch.nn.functional.normalize(torch.randn(CONFIG.model.width), dim=0)
        norm.bias += 6 * towards
        output[EOS] = 0.6 * towards
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    run.save(1, {"model": weights}, {"score": None}, keep=1)
    return run.path


ASK = """
import json, sys
if sys.argv[1] == "without torch":
    sys.modules["torch"] = None
from kente.decode.choosing import Fastest
Fastest._int8_is_good = lambda *_: False  # which numbers win a race depends on the machine, and rounding is felt in random weights
from kente.cli import main
code = main(sys.argv[2:])
print(json.dumps(sorted({name.split(".")[0] for name, module in sys.modules.items() if module})), file=sys.stderr)
sys.exit(code)
"""


def translate(*arguments: object, torch: str = "with torch", stdin: str = "") -> tuple[str, list[str], set[str]]:
    """(standard output, lines of standard error but for warnings, packages imported) of `kente translate`."""
    command = [sys.executable, "-c", ASK, torch, "translate", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, env=environment)
    *said, imported = done.stderr.splitlines()
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in said if not line.startswith("warning")], set(json.loads(imported))


HEAVY = {"torch", "sacrebleu", "jaxtyping", "scipy", "pandas", "sympy"}


def test_a_sentence_is_translated_without_torch(run: Path) -> None:
    first, measured, imported = translate(run, "the cat sees a tree")
    assert "ctranslate2" in imported and not HEAVY & imported
    assert measured[0].startswith("measuring engines") and measured[1].startswith("translating with CTranslate2, ")
    assert first.strip()
    again, said, imported = translate(run, "the cat sees a tree")
    assert again == first and said == measured[1:] and not HEAVY & imported


def test_where_torch_cannot_be_imported_a_sentence_is_translated_all_the_same(run: Path) -> None:
    assert translate(run, "the cat sees a tree", torch="without torch")[0] == translate(run, "the cat sees a tree")[0]


def test_torch_can_be_asked_for_and_gives_the_same_answer(run: Path) -> None:
    text, said, imported = translate(run, "--engine", "torch", "--beam", 1, "the dog sees a fish")
    assert "torch" in imported and "ctranslate2" not in imported and said == []
    assert translate(run, "--engine", "ctranslate2", "--beam", 1, "the dog sees a fish")[0] == text


def test_a_file_is_answered_line_by_line_and_the_engine_is_said_once(run: Path) -> None:
    lines = [source for source, _ in PAIRS]
    text, said, _ = translate(run, "--engine", "ctranslate2", "--beam", 1, stdin="".join(f"{line}\n" for line in lines))
    assert text.count("\n") == len(lines)
    assert sum(line.startswith("translating with CTranslate2, ") for line in said) == 1


def test_a_quiet_one_does_not_say_which_engine(run: Path) -> None:
    _, said, _ = translate(run, "-q", "--beam", 1, "the man sees a house")
    assert not any("translating" in line or "measuring" in line for line in said)


def test_an_engine_that_does_not_exist_is_a_usage_error(run: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kente", "translate", str(run), "--engine", "magic", "x"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "'magic'" in done.stderr and "ctranslate2" in done.stderr


def test_the_setting_of_a_run_chooses_its_engine_and_leaves_no_trace_at_its_default(run: Path) -> None:
    from kente.configfile import apply, config_hash

    assert config_hash(apply(CONFIG, {"decode": {"engine": "auto"}})) == config_hash(CONFIG)
    assert config_hash(apply(CONFIG, {"decode": {"engine": "torch"}})) != config_hash(CONFIG)
    opened = Run.open(run)
    try:
        opened.write_config(apply(CONFIG, {"decode": {"engine": "torch"}}))
        assert "torch" in translate(run, "the cat sees a fish")[2]
    finally:
        opened.write_config(CONFIG)
