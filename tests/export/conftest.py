"""Runs with random weights for every kind of model, and what they say: the oracle that each export is held against."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from kente.config import BatchConfig, Config, DecodeConfig, ModelConfig, TokenizerConfig
from kente.data.tokenizer import Tokenizers, train_tokenizers
from kente.models.build import build
from kente.runs import Run

HERE = Path(__file__).parent
PAD, UNK, BOS, EOS = 0, 1, 2, 3
SUBWORDS = TokenizerConfig(vocabulary=380)
PAIRS = [
    (f"The {a} sees {b}, and {c}!", f"L'{c} voit « {b} » et le {a}.")
    for a in ("cat", "café", "Ɛte sɛn", "naïve man", "ẹ̀kọ́ ọ̀")
    for b in ("a tree", "the 42 houses", "日本語。", "nobody")
    for c in ("sleeps", "does not", "éàü")
]
LINES = [
    *(source for source, _ in PAIRS[::4]),
    "  The cat   sees\ta tree ",
    "cafe\u0301 and e\u0323\u0300 and e\u0300\u0323, decomposed",
    "\u2581 stands for a space, \uf8f0 for nothing",
    "never seen: Жъ 😀 <s> </s> <unk> <0x41>",
    "I",
]


@dataclass(frozen=True)
class Made:
    """A run, and its model and tokenizers as Kente itself has them."""

    path: Path
    config: Config
    tokenizers: Tokenizers
    model: Any

    def source_ids(self, line: str) -> list[int]:
        """What the translator makes of a line."""
        return self.tokenizers.source.encode(" ".join(line.split()))

    @torch.inference_mode()
    def log_probabilities(self, source: list[int], target: list[int]) -> Tensor:
        """Of every word after each beginning of `target`: (len(target) + 1, V)."""
        ids = torch.tensor([[*source, EOS]])
        hidden = self.model(ids, ids != PAD, torch.tensor([[BOS, *target]]))
        return torch.log_softmax(self.model.predict(hidden)[0], dim=-1)

    def greedy(self, source: list[int], cap: int) -> list[int]:
        """The likeliest word, and so on: a plain loop."""
        written: list[int] = []
        while len(written) < cap:
            scores = self.log_probabilities(source, written)[-1].clone()
            scores[[PAD, UNK, BOS]] = -torch.inf
            if int(scores.argmax()) == EOS:
                break
            written.append(int(scores.argmax()))
        return written


def _random_weights(config: Config, sizes: tuple[int, int]) -> Any:
    """Weights that are nowhere zero or one, so that a forgotten bias or a swapped norm shows; ends that come sooner or later."""
    torch.manual_seed(7)
    model = build(config.model, *sizes, joint=config.tokenizer.joint).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Made]:
    """make(model settings, tokenizer settings): a run, made once."""

    @cache
    def made(model: ModelConfig, tokenizer: TokenizerConfig = SUBWORDS) -> Made:
        config = Config(model, tokenizer=tokenizer, batches=BatchConfig(max_length=48), decode=DecodeConfig(beam=2))

        def texts() -> Iterator[tuple[str, str]]:
            return iter(PAIRS * 3)

        run = Run.create(tmp_path_factory.mktemp("runs") / "run", config)
        tokenizers = train_tokenizers(texts, tokenizer)
        tokenizers.save(run.path / "tokenizer")
        network = _random_weights(config, (tokenizers.source.size, tokenizers.target.size))
        weights = {name: parameter.detach() for name, parameter in network.named_parameters()}
        run.save(1, {"model": weights}, {"score": None}, keep=1)
        run.write_json("request.json", {"data": {"source": "corpus/train.en", "target": "corpus/train.fr.gz"}})
        return Made(run.path, config, tokenizers, network)

    return made


@pytest.fixture(scope="session")
def lines() -> list[str]:
    return LINES


@pytest.fixture(scope="session")
def onnx_in_numpy() -> SimpleNamespace:
    """ONNX files read and run by nothing but numpy."""
    return SimpleNamespace(**runpy.run_path(str(HERE / "onnx_in_numpy.py")))
