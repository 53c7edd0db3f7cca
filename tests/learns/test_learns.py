"""Systems that must learn: the whole road from text to translations, judged by what comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kente import api
from kente.data.corpus import write_pairs
from kente.data.grammar import generate
from kente.data.toys import toy_split

pytestmark = pytest.mark.learns

TOY = (
    "tokenizer.kind=words",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "model.width=64",
    "model.feedforward=128",
    "model.heads=4",
    "model.dropout=0.0",
    "batches.tokens=1024",
    "batches.max_length=32",
    "train.label_smoothing=0.0",
    "optimiser.warmup=40",
)


def write(folder: Path, name: str, pairs: list[tuple[str, str]]) -> api.Data:
    source, target = folder / f"{name}.source", folder / f"{name}.target"
    source.write_text("".join(f"{one}\n" for one, _ in pairs))
    target.write_text("".join(f"{other}\n" for _, other in pairs))
    return api.Data(source, target)


@pytest.mark.parametrize(("task", "updates"), [("copy", 500), ("reverse", 600), ("sort", 700)])
def test_toy_tasks_are_learned_to_the_last_letter(task, updates, tmp_path):
    train, test = toy_split(task, 6000, 200, seed=1, max_length=8)
    run = tmp_path / "run"
    options = {
        "updates": updates,
        "threads": 1,
        "settings": (*TOY, f"train.validate_every={updates}", "cleaning.identical=keep"),
    }
    api.train(write(tmp_path, "train", train), run, validation=write(tmp_path, "validation", test[:20]), **options)
    answers = api.load(run, beam=1, threads=1).translate([source for source, _ in test])
    right = sum(answer.text == target for answer, (_, target) in zip(answers, test, strict=True))
    assert right == len(test)


def test_the_grammar_is_learned_from_short_sentences(tmp_path):
    """A smaller sibling of `kente demo`: the first six hundred updates on short sentences must already translate most of them."""
    pairs = list(generate(1, 12_400, max_words=8))
    for name, part in (("train", pairs[:12_000]), ("validation", pairs[12_000:12_100]), ("test", pairs[12_100:])):
        write_pairs(tmp_path, name, part, ("en", "fr"))
    run = tmp_path / "run"
    api.train(
        api.Data(tmp_path / "train.en", tmp_path / "train.fr"),
        run,
        validation=api.Data(tmp_path / "validation.en", tmp_path / "validation.fr"),
        updates=600,
        threads=1,
        settings=(
            "model.encoder_layers=2",
            "model.decoder_layers=2",
            "batches.tokens=1024",
            "train.validate_every=600",
        ),
    )
    result = api.evaluate(run, tmp_path / "test.en", tmp_path / "test.fr", beam=1, threads=1)
    assert result.bleu.value > 75
    assert api.load(run).translate(["I am good"])[0].text == "Je vais bien"
