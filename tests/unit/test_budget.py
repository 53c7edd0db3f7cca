"""What is chosen for a user, why, and what is left alone."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from kente.config import TokenizerConfig
from kente.configfile import load_recipe, override, recipe_settings
from kente.data.store import Store
from kente.data.tokenizer import Tokenizers, train_tokenizers
from kente.data.toys import toy
from kente.reporting import SILENT, Reporter
from kente.train import budget, language_budget
from kente.train.budget import (
    SIZES,
    Chooser,
    automatic,
    bend_schedule,
    choose_precision,
    fit_to_corpus,
    fit_to_minutes,
    measured_pace,
    size_for,
    training_choices,
)
from kente.train.language_budget import automatic_language, dropout_for, fit_text_to_minutes


@pytest.fixture(autouse=True)
def no_units_for_bfloat16(monkeypatch):
    """What is chosen for other reasons is the same on any processor."""
    monkeypatch.setattr(budget, "rounds_fast", lambda device: False)


@pytest.fixture(scope="module")
def tokenizers() -> Tokenizers:
    pairs = toy("copy", 500, seed=1)
    return train_tokenizers(lambda: iter(pairs), TokenizerConfig(kind="characters"))


@pytest.fixture(scope="module")
def store(tokenizers: Tokenizers, tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder: Path = tmp_path_factory.mktemp("store") / "train"
    return Store.build(folder, toy("copy", 500, seed=1), tokenizers, max_length=64)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_the_recipes_of_their_name(name):
    model = load_recipe(name).model
    assert {field: getattr(model, field) for field in SIZES[name]} == SIZES[name]


@pytest.mark.parametrize(
    ("epochs", "weights", "dropout"), [(2.5, 0.8, 0.0), (17, 0.8, 0.05), (14, 13, 0.3), (30, 13, 0.5)]
)
def test_a_text_is_read_with_more_dropout_the_sooner_it_is_learnt_by_heart(epochs, weights, dropout):
    assert dropout_for(epochs, weights) == dropout
    assert dropout_for(2 * epochs, weights) >= dropout and dropout_for(epochs, weights / 2) <= dropout


@pytest.mark.parametrize(("epochs", "dropout"), [(2, 0.0), (3, 0.05), (8, 0.1), (12, 0.15), (20, 0.2), (80, 0.3)])
def test_sentences_seen_more_often_are_read_with_more_dropout(epochs, dropout):
    chosen = {setting: value for setting, value, _ in training_choices(automatic(), 2000, epochs)}
    assert chosen["model.dropout"] == dropout


def test_a_short_run_warms_up_and_averages_shortly():
    short, long = ({s: v for s, v, _ in training_choices(automatic(), n, 5)} for n in (200, 20_000))
    assert short["optimiser.warmup"] == 10 and long["optimiser.warmup"] == 200
    assert short["train.ema_decay"] < long["train.ema_decay"] < 1


def test_what_a_person_set_is_left_alone():
    said = []

    class Listener(Reporter):
        def say(self, text: str) -> None:
            said.append(text)

    chooser = Chooser(override(automatic(), ["model.dropout=0.37"]), frozenset({"model.dropout"}), Listener())
    chooser.choose("model.dropout", 0.1, "never")
    chooser.choose("optimiser.warmup", 77, "a good number")
    assert chooser.config.model.dropout == 0.37 and chooser.config.optimiser.warmup == 77
    assert said == ["chosen: optimiser.warmup = 77  (a good number)"]
    assert [choice.setting for choice in chooser.choices] == ["optimiser.warmup"]


def test_without_an_end_the_schedule_needs_none(store):
    chooser = Chooser(automatic(), frozenset(), SILENT)
    fit_to_corpus(chooser, store)
    assert chooser.config.optimiser.schedule == "inverse-sqrt" and chooser.config.model.width == 128


def test_a_batch_chosen_for_the_corpus_holds_the_longest_sentence(store):
    chooser = Chooser(override(automatic(), ["batches.max_length=5000"]), frozenset({"batches.max_length"}), SILENT)
    fit_to_corpus(chooser, store)
    assert chooser.config.batches.tokens == 5000


def test_time_in_plenty_leaves_room_in_a_batch_for_the_longest_text(monkeypatch):
    monkeypatch.setattr(language_budget, "measured_pace", lambda *_, **__: 0.001)
    config = override(automatic_language("causal"), ["batches.max_length=10000"])
    chooser = Chooser(config, frozenset({"batches.max_length"}), SILENT)
    fit_text_to_minutes(chooser, lambda config: (nn.Linear(2, 2), None, None), lambda config: 10, 100.0, "cpu")
    assert chooser.config.batches.tokens == 10_000


def test_minutes_measure_this_machine(store, tokenizers):
    chooser = Chooser(automatic(), frozenset(), SILENT)
    updates, pace = fit_to_minutes(chooser, store, tokenizers, 20.0, "cpu")
    assert updates == int(20.0 / pace) and pace > 0
    settings = {choice.setting for choice in chooser.choices}
    assert {"model.width", "batches.tokens", "model.dropout", "optimiser.rate"} <= settings


def test_time_in_plenty_buys_larger_batches(store, tokenizers):
    small = [
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "model.width=32",
        "model.feedforward=32",
        "model.heads=2",
    ]
    fixed = frozenset(assignment.partition("=")[0] for assignment in small)
    chooser = Chooser(override(automatic(), small), fixed, SILENT)
    fit_to_minutes(chooser, store, tokenizers, 3600.0, "cpu")
    assert chooser.config.batches.tokens > 1024 and chooser.config.model.width == 32


def test_time_in_plenty_buys_no_larger_model_than_the_corpus_can_teach(store, tokenizers):
    chooser = Chooser(automatic(), frozenset(), SILENT)
    fit_to_minutes(chooser, store, tokenizers, 36_000.0, "cpu")
    assert {field: getattr(chooser.config.model, field) for field in SIZES["tiny"]} == SIZES["tiny"]
    assert [size_for(pairs) for pairs in (500, 149_999, 150_000, 1_500_000)] == ["tiny", "tiny", "small", "base"]


@pytest.mark.parametrize(
    ("kind", "sizes"), [("causal", ("tiny", "small", "base")), ("masked", ("tiny", "tiny", "small"))]
)
def test_what_learns_from_few_of_its_words_needs_more_updates_for_a_larger_model(kind, sizes, monkeypatch):
    paces = {128: 0.05, 256: 0.15, 512: 0.6}
    monkeypatch.setattr(language_budget, "measured_pace", lambda config, *_, **__: paces[config.model.width])
    small = nn.Linear(100, 100)
    for minutes, wanted in zip((5, 8, 60), sizes, strict=True):
        chooser = Chooser(automatic_language(kind), frozenset(), SILENT)
        fit_text_to_minutes(chooser, lambda config: (small, None, None), lambda config: 1000, minutes * 60, "cpu")
        assert chooser.config.model.width == language_budget.SIZES[wanted]["width"], minutes


def test_a_recipe_is_bent_to_land_and_otherwise_left_alone(store, tokenizers):
    noam = ["optimiser.schedule=noam", "optimiser.warmup=4000", "optimiser.rate=1.0"]
    settled = recipe_settings("tiny") | {assignment.partition("=")[0] for assignment in noam} | {"train.ema_decay"}
    chooser = Chooser(override(load_recipe("tiny"), noam), frozenset(), SILENT, recipe=settled)
    before = chooser.config
    updates, _ = fit_to_minutes(chooser, store, tokenizers, 10.0, "cpu")
    after = chooser.config
    assert after.optimiser.schedule == "linear" and after.optimiser.warmup == max(1, updates // 10)
    assert after.optimiser.rate == pytest.approx(128**-0.5 * 4000**-0.5)
    assert (after.model, after.batches, after.train) == (before.model, before.batches, before.train)


def test_what_a_recipe_leaves_open_is_chosen(store, tokenizers):
    """gru-attention says what the network is; how long it warms up and how much it drops depend on corpus and minutes."""
    recipe = recipe_settings("gru-attention")
    chooser = Chooser(load_recipe("gru-attention", base=automatic()), frozenset(), SILENT, recipe=recipe)
    model = chooser.config.model
    fit_to_minutes(chooser, store, tokenizers, 10.0, "cpu")
    assert replace(chooser.config.model, dropout=model.dropout) == model
    assert "model.dropout" in {choice.setting for choice in chooser.choices}
    fit_to_corpus(chooser, store)
    assert replace(chooser.config.model, dropout=model.dropout) == model


def test_a_schedule_set_by_hand_is_not_bent():
    chooser = Chooser(override(automatic(), ["optimiser.schedule=constant"]), frozenset({"optimiser.schedule"}), SILENT)
    bend_schedule(chooser, 10_000)
    assert chooser.config.optimiser.schedule == "constant"


@pytest.mark.parametrize(
    ("units", "exact", "rounded", "by_hand", "precision"),
    [
        (True, 0.24, 0.2, False, "bfloat16"),
        (True, 0.205, 0.2, False, "float32"),  # too little to round for
        (False, 0.24, 0.2, False, "float32"),
        (True, 0.24, 0.2, True, "float32"),
    ],
)
def test_factors_are_rounded_where_that_gives_more_updates(monkeypatch, units, exact, rounded, by_hand, precision):
    said = []

    class Listener(Reporter):
        def say(self, text: str) -> None:
            said.append(text)

    paces = {"bfloat16": rounded}
    monkeypatch.setattr(budget, "rounds_fast", lambda device: units)
    monkeypatch.setattr(budget, "measured_pace", lambda config, *_, **__: paces[config.train.precision])
    chooser = Chooser(automatic(), frozenset({"train.precision"} if by_hand else ()), Listener())
    pace = choose_precision(chooser, lambda config: (nn.Linear(1, 1), None, None), "cpu", exact, 1.0)
    assert chooser.config.train.precision == precision and pace == (rounded if precision == "bfloat16" else exact)
    chosen = ["chosen: train.precision = bfloat16  (1.2 times as many updates as float32 here)"]
    assert said == (chosen if precision == "bfloat16" else [])


def test_a_translator_and_a_language_model_are_asked_about_rounding(store, tokenizers, monkeypatch):
    asked = []

    def choose(chooser, parts, device, exact, most):
        asked.append(chooser.config.model.kind)
        return exact

    for module in (budget, language_budget):
        monkeypatch.setattr(module, "choose_precision", choose)
    fit_to_minutes(Chooser(automatic(), frozenset(), SILENT), store, tokenizers, 5.0, "cpu")
    monkeypatch.setattr(language_budget, "measured_pace", lambda *_, **__: 1.0)
    chooser = Chooser(automatic_language("causal"), frozenset(), SILENT)
    fit_text_to_minutes(chooser, lambda config: (nn.Linear(2, 2), None, None), lambda config: 10, 100.0, "cpu")
    assert asked == ["transformer", "language"]


def test_measuring_slow_updates_takes_two_of_them(store, tokenizers, monkeypatch):
    updates = []

    class Slow(budget.Optimiser):
        def step(self, rate, norm) -> None:
            updates.append(rate)
            time.sleep(0.05)

    monkeypatch.setattr(budget, "Optimiser", Slow)
    pace = measured_pace(automatic(), budget._translator(store, tokenizers), "cpu", most=0.04)
    assert len(updates) == 2 and pace >= 0.05
