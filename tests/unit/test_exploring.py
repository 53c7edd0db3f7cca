"""Looking into models: every weight where it belongs, every number as a plain reading of the model gives it."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from kente import api
from kente.config import (
    ConvConfig,
    DecodeConfig,
    IntraAttentionConfig,
    ModelConfig,
    RecurrentConfig,
    TokenizerConfig,
    TransformerConfig,
)
from kente.data.grammar import generate
from kente.data.tokenizer import BOS, EOS, Symbols, Tokenizers, train_tokenizers
from kente.decode.torch_engine import TorchEngine
from kente.decode.translator import UNKNOWN, Translator
from kente.errors import UsageError
from kente.measure.alignment import GoldPair
from kente.measure.explore import ANOTHER, SEVERAL
from kente.measure.explored import Explored, Maps, Reading, Side, Word, by_words
from kente.measure.habits import distance, entropy, looks_back
from kente.measure.joining import side_of
from kente.measure.rollout import from_source, within
from kente.models.build import build
from kente.models.recurrent_seq2seq import WHY_NO_ATTENTION

SENTENCE = "the old cat sleeps on a red chair ."
TARGET = "le vieux chat dort sur une chaise rouge ."
WORDS = [*dict.fromkeys([*SENTENCE.split(), *TARGET.split(), "and", "dreams", "of", "fish"])]
TRANSFORMER = TransformerConfig(encoder_layers=2, decoder_layers=3, width=16, feedforward=24, heads=4)
MODELS: dict[str, ModelConfig] = {
    "transformer": TRANSFORMER,
    "gru-attention": RecurrentConfig(attention="additive", width=10, embedding=8),
    "lstmn": IntraAttentionConfig(width=8, embedding=8),
    "conv": ConvConfig(
        embedding=8,
        encoder_channels=(12,),
        encoder_kernels=(3,),
        decoder_channels=(12, 12),
        decoder_kernels=(3, 3),
        max_length=64,
    ),
    "gru": RecurrentConfig(attention="none", width=10, embedding=8),
}
SHAPES = {
    "transformer": {"cross": (3, 4), "encoder": (2, 4), "decoder": (3, 4)},
    "gru-attention": {"cross": (1, 1)},
    "lstmn": {"cross": (1, 1), "encoder": (1, 1), "decoder": (1, 1)},
    "conv": {"cross": (2, 1)},
    "gru": {},
}


def translator(config: ModelConfig, **decode: Any) -> Translator:
    side = Symbols("words", WORDS, "nfc")
    torch.manual_seed(2)
    model: Any = build(config, side.size, side.size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)  # a fresh model finds all words alike; this one has opinions
    settings = DecodeConfig(
        **{"beam": 3, "max_ratio": 0.4, "length_penalty": 4.0, **decode}
    )  # untaught, it would stop at once
    return Translator(TorchEngine(model), Tokenizers(side, side, joint=True), settings)


@pytest.fixture(scope="module")
def explored() -> Explored:
    return api.look({name: translator(config) for name, config in MODELS.items()}, SENTENCE)


@pytest.fixture(scope="module")
def forced() -> Explored:
    return api.look({name: translator(config) for name, config in MODELS.items()}, SENTENCE, target=TARGET)


def reading_of(explored: Explored, name: str) -> Reading:
    return next(reading for reading in explored.readings if reading.name == name)


@torch.inference_mode()
def read_plainly(name: str, source: list[int], target: list[int]) -> np.ndarray:
    """p of every word at every step (T + 1, V), in one go."""
    model: Any = translator(MODELS[name]).model
    ids = torch.tensor([[*source, EOS]])
    hidden = model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[BOS, *target]]))
    return model.predict(hidden)[0].softmax(-1).numpy()


def ids_of(text: str) -> list[int]:
    return Symbols("words", WORDS, "nfc").encode(text)


# ---------------------------------------------------------------- maps


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_and_head_is_there_and_rows_sum_to_one(forced: Explored, name: str) -> None:
    reading = reading_of(forced, name)
    assert {maps.kind: (maps.layers, maps.heads) for maps in reading.maps} == SHAPES[name]
    for maps in reading.maps:
        rows, columns = reading.sides[maps.rows].pieces, reading.sides[maps.columns].pieces
        assert maps.weights.shape[2:] == (len(rows), len(columns))
        np.testing.assert_allclose(maps.weights.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_kinds_that_a_model_has_not_are_explained(forced: Explored, name: str) -> None:
    reading = reading_of(forced, name)
    assert {*reading.absent, *(maps.kind for maps in reading.maps)} == {"cross", "encoder", "decoder"}
    meet = {"conv": "convolutions", "gru-attention": "a recurrence"}.get(name)
    assert meet is None or all(f"meet in {meet} here" in words for words in reading.absent.values())


def test_sides_are_what_stands_on_the_axes(forced: Explored) -> None:
    sides = reading_of(forced, "transformer").sides
    assert sides["source"].pieces == (*SENTENCE.split(), "</s>")
    assert sides["written"].pieces == (*TARGET.split(), "</s>")
    assert sides["read"].pieces == ("<s>", *TARGET.split())


def test_a_fixed_context_shows_its_one_vector_and_says_why_there_is_no_map(forced: Explored) -> None:
    reading = reading_of(forced, "gru")
    assert reading.maps == () and set(reading.absent.values()) == {WHY_NO_ATTENTION}
    model: Any = translator(MODELS["gru"]).model
    ids = torch.tensor([[*ids_of(SENTENCE), EOS]])
    with torch.inference_mode():
        context = model.start(ids, torch.ones_like(ids, dtype=torch.bool)).context[0]
    assert reading.vector == pytest.approx(context.tolist(), abs=1e-6)
    assert all(other.vector == () for other in forced.readings if other is not reading)


def test_maps_are_chosen_averaged_and_their_maximum_taken() -> None:
    weights = np.random.default_rng(0).random((3, 4, 5, 6)).astype(np.float32)
    maps = Maps("cross", "written", "source", weights)
    np.testing.assert_allclose(maps.seen(1, 2), weights[1, 2])
    np.testing.assert_allclose(maps.seen(1, "mean"), sum(weights[1, head] for head in range(4)) / 4, rtol=1e-6)
    np.testing.assert_allclose(
        maps.seen(None, "max"), np.maximum.reduce([weights[i, j] for i in range(3) for j in range(4)])
    )
    for layer, head, message in (
        (3, "mean", "no layer 4 of cross attention: there are 3"),
        (0, 4, "no head 5"),
        (0, "rollout", "no rollout"),
    ):
        with pytest.raises(UsageError, match=message):
            maps.seen(layer, head)


# ---------------------------------------------------------------- habits and rollout


def test_habits_of_heads_whose_habit_is_known() -> None:
    size = 8
    previous = np.eye(size, k=-1, dtype=np.float32)
    previous[0, 0] = 1
    even = np.full((size, size), 1 / size, dtype=np.float32)
    ahead = np.eye(size, k=2, dtype=np.float32)
    ahead[-2:, -1] = 1
    assert entropy(previous) == pytest.approx(0) and entropy(even) == pytest.approx(math.log2(size))
    assert distance(previous) == pytest.approx((size - 1) / size) and distance(np.eye(size)) == pytest.approx(0)
    assert looks_back(previous) == pytest.approx((size - 1) / size) and looks_back(ahead) == 0
    assert looks_back(even) == pytest.approx(sum(range(size)) / size**2)


def test_in_cross_attention_distance_counts_from_the_diagonal() -> None:
    diagonal = np.zeros((3, 5), dtype=np.float32)
    diagonal[[0, 1, 2], [0, 2, 4]] = 1
    assert distance(diagonal) == pytest.approx(0) and looks_back(diagonal) == 0
    assert looks_back(diagonal[:, ::-1]) == pytest.approx(1 / 3)  # of a map turned round, only the last row looks back


def random_maps(layers: int, heads: int, rows: int, columns: int, seed: int, causal: bool = False) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(layers, heads, rows, columns)) * 2
    if causal:
        scores = np.where(np.tri(rows, columns) > 0, scores, -np.inf)
    weights = np.exp(scores)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def paths(mixed: list[np.ndarray], start: int, end: int) -> float:
    """Weight of all ways from a row of the last layer down to a column of the first, walked one by one."""
    size, total = len(mixed[0]), 0.0
    for between in itertools.product(range(size), repeat=len(mixed) - 1):
        places = (start, *between, end)
        total += math.prod(layer[a, b] for layer, a, b in zip(mixed[::-1], places, places[1:], strict=False))
    return total


def test_rollout_sums_the_weights_of_all_paths() -> None:
    weights = random_maps(3, 2, 4, 4, seed=3)
    mixed = [(layer.mean(0) + np.eye(4)) / 2 for layer in weights]
    rolled = within(weights)
    for start, end in itertools.product(range(4), repeat=2):
        for layer in range(3):
            assert rolled[layer, start, end] == pytest.approx(paths(mixed[: layer + 1], start, end), abs=1e-5)


def test_what_does_not_come_from_the_source_comes_from_what_was_written() -> None:
    """Source and target flow together are all there is: their rows sum to one."""
    decoder, cross, encoder = (
        random_maps(3, 2, 5, 5, 1, causal=True),
        random_maps(3, 2, 5, 4, 2),
        random_maps(2, 2, 4, 4, 3),
    )
    source = from_source(decoder, cross, encoder)
    target = np.eye(5)
    for layer in range(3):
        target = (decoder[layer].mean(0) + np.eye(5)) / 2 @ target / 2
        np.testing.assert_allclose(source[layer].sum(-1) + target.sum(-1), 1, atol=1e-5)


def test_only_a_transformer_has_a_rollout(forced: Explored) -> None:
    for reading in forced.readings:
        for maps in reading.maps:
            assert (maps.rollout is not None) == (reading.name == "transformer")
    cross = reading_of(forced, "transformer").of("cross")
    assert cross is not None and cross.rollout is not None and cross.rollout.shape == (3, 10, 10)


# ---------------------------------------------------------------- words


@cache
def subwords() -> Tokenizers:
    pairs = [(pair.source, pair.target) for pair in generate(1, 400, 3, 9)]
    return train_tokenizers(lambda: iter(pairs), TokenizerConfig(vocabulary=500))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The old cat sleeps.", ["The", "old", "cat", "sleeps", "."]),
        ("Où est-il, l'ami?", ["Où", "est-il", ",", "l'ami", "?"]),
        ("naïve – Ω≈π", None),
        ("a  b", ["a", "b"]),
    ],
)
def test_pieces_join_to_words_and_marks_stand_alone(text: str, words: list[str] | None) -> None:
    side = side_of(subwords().source, [*subwords().source.encode(text), EOS])
    assert side.words[-1].text == "</s>"
    assert [piece for word in side.words for piece in side.pieces[word.begin : word.end]] == list(side.pieces)
    if words is not None:
        assert [word.text for word in side.words[:-1]] == words


def test_characters_join_to_words_and_a_script_without_spaces_stays_apart() -> None:
    letters = Symbols("characters", sorted(set("the cat.我们在家。")), "nfc")
    side = side_of(letters, [BOS, *letters.encode("the cat. 我们在家。"), EOS])
    assert [word.text for word in side.words] == ["<s>", "the", "cat", ".", "我", "们", "在", "家", "。", "</s>"]


def test_bytes_of_one_character_stay_together() -> None:
    side = side_of(subwords().source, subwords().source.encode("a 漢字"))
    assert [word.text for word in side.words] == ["a", "漢字"] or [word.text for word in side.words] == [
        "a",
        "漢",
        "字",
    ]
    assert len(side.pieces) >= 7, "they were spelt in bytes"


def test_a_word_looks_as_its_pieces_on_average_and_is_looked_at_as_they_are_together() -> None:
    rows = Side(("a", "b", "c"), (Word("ab", 0, 2), Word("c", 2, 3)))
    columns = Side(("x", "y", "z"), (Word("x", 0, 1), Word("yz", 1, 3)))
    weights = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0], [1.0, 0.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(by_words(weights, rows, columns), [[0.4, 0.6], [1.0, 0.0]], rtol=1e-6)


# ---------------------------------------------------------------- steps and beams


@pytest.mark.parametrize("name", MODELS)
def test_steps_tell_what_a_plain_reading_finds_likely(forced: Explored, name: str) -> None:
    likely, wanted = read_plainly(name, ids_of(SENTENCE), ids_of(TARGET)), [*ids_of(TARGET), EOS]
    pieces = ["<pad>", "<unk>", "<s>", "</s>", *WORDS]
    for step, row, token in zip(reading_of(forced, name).steps, likely, wanted, strict=True):
        assert step.piece == pieces[token] and step.probability == pytest.approx(row[token], abs=1e-4)
        assert sum(row > row[token] * 1.001) < step.rank <= sum(row >= row[token] * 0.999)
        best = sorted(row, reverse=True)[: len(step.candidates)]
        assert [c.probability for c in step.candidates] == pytest.approx(best, abs=1e-4)
        assert step.candidates[0].piece == pieces[int(row.argmax())]


@pytest.mark.parametrize("name", MODELS)
def test_the_way_to_an_answer_is_there_and_its_beginnings_are_marked(explored: Explored, name: str) -> None:
    reading = reading_of(explored, name)
    assert reading.answer == reading.text and not reading.given
    assert reading.text == translator(MODELS[name]).translate(SENTENCE)[0].text
    written = reading.text.split()
    assert len(written) > 2
    for place, step in enumerate(reading.steps):
        chosen = [b for b in step.beginnings if b.chosen]
        assert len(chosen) == 1 and chosen[0].text == " ".join(written[: place + 1])
        assert chosen[0].fate == ("ended" if place == len(reading.steps) - 1 else "lives")


def test_a_target_that_search_does_not_find_has_no_beam_and_one_that_it_finds_has(
    explored: Explored, forced: Explored
) -> None:
    assert all(step.beginnings == () for step in reading_of(forced, "transformer").steps)
    assert (
        reading_of(forced, "transformer").answer == reading_of(explored, "transformer").text
        and reading_of(forced, "transformer").given
    )
    own = reading_of(explored, "conv").text
    again = api.look({"conv": translator(MODELS["conv"])}, SENTENCE, target=own, occlusion=False).readings[0]
    assert again.given and all(step.beginnings for step in again.steps) and again.occlusion is None


def test_greedy_search_shows_the_one_it_carries_on_and_the_runner_up() -> None:
    reading = api.look({"a": translator(TRANSFORMER, beam=5)}, SENTENCE, beam=1, occlusion=False).readings[0]
    assert reading.beam == 1
    for step in reading.steps[:-1]:
        assert [b.fate for b in step.beginnings] == ["lives", "beaten"]


# ---------------------------------------------------------------- words left out


@pytest.mark.parametrize("name", MODELS)
def test_leaving_a_word_out_is_reading_the_sentence_without_it(forced: Explored, name: str) -> None:
    occlusion = reading_of(forced, name).occlusion
    assert occlusion is not None and occlusion.words == tuple(SENTENCE.split())
    wanted = [*ids_of(TARGET), EOS]
    for place in (0, 2, 8):
        words = SENTENCE.split()
        del words[place]
        likely = read_plainly(name, ids_of(" ".join(words)), ids_of(TARGET))
        expected = [row[token] for row, token in zip(likely, wanted, strict=True)]
        assert occlusion.probabilities[place] == pytest.approx(expected, abs=1e-4)
        assert occlusion.instead[place] == translator(MODELS[name]).translate(" ".join(words), beam=1)[0].text


def test_a_sentence_of_one_word_can_lose_it() -> None:
    reading = api.look({"a": translator(TRANSFORMER)}, "cat").readings[0]
    assert reading.occlusion is not None and reading.occlusion.probabilities.shape[0] == 1


# ---------------------------------------------------------------- known alignments and mistakes


def test_links_of_words_become_links_of_pieces() -> None:
    known = api.links_of_words("The cat sleeps.", "Le chat dort.", "0-0 1-1 2-2")
    assert known.links == {(0, 0), (1, 1), (2, 2)} and known.target_words == ("Le", "chat", "dort.")
    torch.manual_seed(1)
    model: Any = build(TRANSFORMER, subwords().source.size, subwords().target.size).eval()
    reader = Translator(TorchEngine(model), subwords(), DecodeConfig(beam=1, max_ratio=0.1))
    reading = api.look({"a": reader}, known.source, known=known, occlusion=False).readings[0]
    assert reading.given and reading.text == "Le chat dort."
    source, written = reading.sides["source"], reading.sides["written"]

    def owner(side: Side, place: int) -> int | None:
        """Which word, cut at spaces, a piece is of; a space alone is of none."""
        spaces = sum(piece.startswith("▁") for piece in side.pieces[: place + 1])
        return None if side.pieces[place] == "▁" else spaces - 1

    expected = {
        (row, column)
        for row in range(len(written.pieces) - 1)
        for column in range(len(source.pieces) - 1)
        if owner(written, row) == owner(source, column) is not None
    }
    assert set(reading.links) == expected and len(expected) > 3


def test_an_example_of_the_embedded_corpus_brings_its_alignment() -> None:
    pair = api.example(3)
    assert pair.links and pair.source != api.example(4).source
    with pytest.raises(UsageError, match="no example 501: the embedded corpus has 500 test sentences"):
        api.example(501)


def test_an_alignment_of_other_words_is_not_drawn_and_said_so() -> None:
    known = GoldPair(SENTENCE, "le chat", tuple(SENTENCE.split()), ("le", "chat"), frozenset({(0, 0)}))
    reading = api.look({"a": translator(TRANSFORMER)}, SENTENCE, target=TARGET, known=known, occlusion=False).readings[
        0
    ]
    assert reading.links == () and ANOTHER in reading.warnings


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ("0-x", "'0-x' is not a link"),
        ("0", "'0' is not a link"),
        ("0-2", "points beyond the words: the source has 1, the target 2"),
    ],
)
def test_links_that_cannot_be(links: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        api.links_of_words("cat", "le chat", links)


@pytest.mark.parametrize(
    ("sentence", "target", "message"),
    [
        (" \t", None, "the sentence is empty"),
        ("cat", "  ", "the target is empty"),
        ("cat " * 300, None, "has 301 tokens with its end mark, but the model reads 256 at most"),
    ],
)
def test_what_cannot_be_read_is_refused(sentence: str, target: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        api.look({"a": translator(TRANSFORMER)}, sentence, target=target)


def test_several_sentences_and_unknown_words_are_warned_about() -> None:
    side = Symbols("words", ["Cats", "sleep.", "Dogs", "too."], "nfc")
    torch.manual_seed(1)
    model: Any = build(TRANSFORMER, side.size, side.size).eval()
    reader = Translator(TorchEngine(model), Tokenizers(side, side, joint=True), DecodeConfig(beam=1, max_ratio=0.1))
    reading = api.look({"a": reader}, "Cats sleep. Dogs run.", occlusion=False).readings[0]
    assert SEVERAL in reading.warnings and UNKNOWN in reading.warnings


def test_the_same_run_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="each run once, please: runs/a, runs/a"):
        api.look(["runs/a", "runs/a"], "cat")


# ---------------------------------------------------------------- JSON


def test_all_of_it_can_be_written_as_json(explored: Explored) -> None:
    record = json.loads(json.dumps(explored.as_dict(), allow_nan=False))
    assert record["sentence"] == SENTENCE and [r["name"] for r in record["readings"]] == list(MODELS)
    first = record["readings"][0]
    cross = next(maps for maps in first["maps"] if maps["kind"] == "cross")
    found = explored.readings[0].of("cross")
    assert found is not None
    np.testing.assert_allclose(cross["weights"], found.weights, atol=1e-6)
    assert first["steps"][0]["candidates"][0]["piece"] == explored.readings[0].steps[0].candidates[0].piece
    assert replace(explored, target="x").as_dict()["target"] == "x"
