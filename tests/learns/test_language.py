"""Language models and masked encoders that must learn: a text whose rules are known, so that it is known how good one can get."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from kente import api

pytestmark = pytest.mark.learns

BLOCKS = ("batches.tokens=512", "batches.max_length=64")
SMALL = ("model.layers=2", "model.width=48", "model.feedforward=96", "model.heads=4", "model.dropout=0.0", *BLOCKS)
MODELS = {
    "transformer": SMALL,
    "lstm": ("model.kind=recurrent-language", "model.width=64", "model.embedding=32", "model.dropout=0.0", *BLOCKS),
}


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    """Two digits drawn at random, and then the line says them again: half of it can be known, half of it cannot."""
    draw = random.Random(1)
    pairs = [f"{draw.randrange(64):02o}" for _ in range(4000)]
    path = tmp_path / "count.txt"
    path.write_text("".join(f"{pair}{pair}\n" for pair in pairs))
    return path


@pytest.mark.parametrize("name", MODELS)
def test_a_language_model_learns_what_can_be_known(counting, tmp_path, name):
    """Of a line, two digits of eight are drawn and all else follows: log(64) nats for each line is the least."""
    out = tmp_path / "run"
    how = {"updates": 400, "threads": 1, "tokenizer": "characters"}
    result = api.pretrain([counting], out, settings=(*MODELS[name], "text.documents=lines"), **how)
    assert result.best.value < 1.15 * math.log(64) / 6  # two digits, twice, the line's end and the document's
    written = api.generate(out, "", most=200, temperature=1.0, threads=1)
    assert written[0].text[:2] == written[0].text[2:4]


def test_a_masked_encoder_fills_gaps_that_can_be_known(counting, tmp_path):
    settings = (*SMALL, "text.documents=lines", "text.packed=false", "text.whole_words=false", "text.mask_share=0.2")
    how = {"updates": 800, "threads": 1, "tokenizer": "characters", "kind": "masked"}
    result = api.pretrain([counting], tmp_path / "run", settings=settings, **how)
    scores = [record["validation"] for record in result.run.read("metrics") if "validation" in record]
    assert scores[-1]["accuracy"] > 0.8  # unless both places of a digit are hidden, the other one tells
