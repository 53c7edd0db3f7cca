"""A run with random weights whose answers come to an end: all a server needs, made in a second."""

from __future__ import annotations

from pathlib import Path

import torch

from kente.config import BatchConfig, Config, DecodeConfig, TokenizerConfig, TransformerConfig
from kente.data.tokenizer import EOS, train_tokenizers
from kente.models.build import build
from kente.runs import Run
from kente.text.languages import learn_pair

CONFIG = Config(
    model=TransformerConfig(
        encoder_layers=1, decoder_layers=2, width=16, feedforward=32, heads=2, max_length=64, tie="none"
    ),
    tokenizer=TokenizerConfig(vocabulary=330),
    batches=BatchConfig(max_length=48),
    decode=DecodeConfig(beam=2),
)
NOUNS = ["cat", "dog", "man", "bird", "woman", "tree", "house", "fish"]
FRENCH = ["chat", "chien", "homme", "oiseau", "femme", "arbre", "maison", "poisson"]
PAIRS = [
    (f"The {NOUNS[a]} sees the {NOUNS[b]}.", f"Le {FRENCH[a]} regarde le {FRENCH[b]}.")
    for a in range(len(NOUNS))
    for b in range(len(NOUNS))
]


def make(folder: Path) -> Path:
    """The run, in a folder that does not exist yet. It has no validation set, so no time is spent on measuring engines."""
    run = Run.create(folder, CONFIG)
    tokenizers = train_tokenizers(lambda: iter(PAIRS * 4), CONFIG.tokenizer)
    tokenizers.save(run.path / "tokenizer")
    learn_pair(("en", "fr"), PAIRS).save(run.path / "languages.json")
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
