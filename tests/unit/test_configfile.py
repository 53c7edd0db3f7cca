"""TOML <-> dataclasses, overrides, and messages that name the value and the next move."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kente.config import BatchConfig, Config, OptimiserConfig, TokenizerConfig, TrainConfig, TransformerConfig
from kente.configfile import (
    config_hash,
    differences,
    dump_config,
    help_texts,
    load_config,
    load_recipe,
    override,
    recipe_description,
    recipes,
    to_dict,
)
from kente.errors import ConfigError


@dataclass(frozen=True)
class RecurrentConfig:
    """A second architecture, as a later issue will add one."""

    kind: Literal["recurrent"] = "recurrent"
    """The architecture."""
    width: int = 77
    """Size of the state."""
    cell: Literal["gru", "lstm"] = "gru"
    """What carries it."""
    name: str = ""
    """Free text."""


@dataclass(frozen=True)
class TwoModels:
    """A Config whose model is one of two."""

    model: TransformerConfig | RecurrentConfig = field(default_factory=TransformerConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(call: Any, *arguments: Any) -> str:
    with pytest.raises(ConfigError) as error:
        call(*arguments)
    return str(error.value)


# ---------------------------------------------------------------- reading and writing


small_floats = st.floats(0, 0.999, allow_nan=False)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    heads = draw(st.sampled_from([1, 2, 4]))
    return Config(
        model=TransformerConfig(
            heads=heads,
            width=heads * 2 * draw(st.integers(1, 10**6)),
            dropout=draw(small_floats),
            norm=draw(st.sampled_from(["layer", "rms"])),
        ),
        tokenizer=TokenizerConfig(joint=draw(st.booleans()), sampling=draw(small_floats)),
        optimiser=OptimiserConfig(
            rate=draw(st.floats(5e-324, 1e308)),
            betas=(draw(small_floats), draw(small_floats)),
            epsilon=draw(small_floats),
        ),
        train=TrainConfig(seed=draw(st.integers(-(2**63), 2**63 - 1)), minutes=draw(st.integers(0, 99))),
    )


@settings(max_examples=40)
@given(configs())
def test_what_is_written_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, config: Config) -> None:
    path = tmp_path_factory.getbasetemp() / "round.toml"
    path.write_text(dump_config(config), encoding="utf-8")
    assert load_config(path) == config
    assert config_hash(load_config(path)) == config_hash(config)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_toml(text: str) -> None:
    config = TwoModels(model=RecurrentConfig(name=text))
    assert tomllib.loads(dump_config(config))["model"]["name"] == text


def test_the_help_stands_above_each_setting() -> None:
    text = dump_config(Config())
    assert "# Size of every vector between layers.\nwidth = 512\n" in text
    assert "# How weights move.\n[optimiser]\n" in text
    assert "betas = [0.9, 0.98]\n" in text and "max_updates = 200_000\n" in text and "divergence = true\n" in text


def test_a_file_holds_only_what_differs(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff[model]\nwidth = 64\n[optimiser]\nrate = 1\nbetas = [0, 0.5]\n")
    config = load_config(path)
    assert differences({"before": Config(), "after": config}) == {
        "model.width": {"before": 512, "after": 64},
        "optimiser.rate": {"before": 1e-3, "after": 1.0},
        "optimiser.betas": {"before": (0.9, 0.98), "after": (0.0, 0.5)},
    }
    assert isinstance(config.optimiser.rate, float)
    assert load_config(written(tmp_path, "[model]\nheads = 4\n"), base=config).model.width == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\nwidht = 3\n", ":2: no setting called model.widht; did you mean model.width?"),
        ("\n[modle]\nwidth = 3\n", ":2: no section called modle; did you mean model?"),
        ("[decode]\n[model]\nbeam = 3\n", ":3: no setting called model.beam; did you mean decode.beam?"),
        ("width = 3\n", ":1: no setting called width; did you mean model.width?"),
        ("model = 3\n", ":1: model should be a section, [model], not 3"),
        ("[model]\nwidth = 1.5\n", ":2: model.width should be a whole number, not 1.5"),
        ("[model]\nwidth = true\n", ":2: model.width should be a whole number, not True"),
        ("[model]\ndropout = nan\n", ":2: model.dropout should be a number, not nan"),
        ("[model]\nnorm = 'foo'\n", ":2: model.norm must be one of layer, rms, not 'foo'"),
        ("[train]\ndivergence = 1\n", ":2: train.divergence should be true or false, not 1"),
        ("[optimiser]\nbetas = [0.9]\n", ":2: optimiser.betas should be 2 values such as 0,0, not [0.9]"),
        ("[model]\n# wide\nwidth = 100\n", ":3: model.width (100) must be a multiple of model.heads (8)"),
        ("[train]\nupdates = 3\nminutes = 3\n", ": give train.updates or train.minutes, not both"),
        ("[model]\nwidth = \n", ":2: not TOML: Invalid value"),
        ("[model]\nnorm = 'foo", ":2: not TOML: "),
        ("[model]\nwidth = 3\nwidth = 4\n", ":3: not TOML: Cannot overwrite a value"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    assert complaint(load_config, path).startswith(f"{path}{message}")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert complaint(load_config, tmp_path / "no.toml") == f"there is no file {tmp_path / 'no.toml'}"
    assert complaint(load_config, tmp_path) == f"cannot read {tmp_path}: Is a directory"
    (tmp_path / "latin.toml").write_bytes(b"[model]\n# caf\xe9\n")
    assert complaint(load_config, tmp_path / "latin.toml") == f"{tmp_path / 'latin.toml'}:2: not UTF-8 text (byte 0xe9)"


# ---------------------------------------------------------------- overrides


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("model.width=256", 256),
        (" model.width = 1_024 ", 1024),
        ("train.max_updates=1e4", 10_000),
        ("optimiser.rate=1e-3", 1e-3),
        ("optimiser.rate=2", 2.0),
        ("optimiser.warmup=10_000", 10_000),
        ("optimiser.betas=0.8,0.9", (0.8, 0.9)),
        ("optimiser.betas=[0.8, 0.9]", (0.8, 0.9)),
        ("optimiser.betas=(0.8 0.9)", (0.8, 0.9)),
        ("train.divergence=false", False),
        ("train.divergence=True", True),
        ("model.norm=rms", "rms"),
        ('model.norm="rms"', "rms"),
        ("optimiser.schedule=inverse-sqrt", "inverse-sqrt"),
    ],
)
def test_an_override_takes_the_type_of_its_setting(assignment: str, value: Any) -> None:
    section, name = assignment.split("=")[0].strip().split(".")
    result = getattr(getattr(override(Config(), [assignment]), section), name)
    assert result == value and type(result) is type(value)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("model.widht=3", "no setting called model.widht; did you mean model.width?"),
        ("model.width=abc", "model.width should be a whole number, not 'abc'"),
        ("model.width=1.5", "model.width should be a whole number, not '1.5'"),
        ("model.width=", "model.width should be a whole number, not ''"),
        ("train.max_updates=inf", "train.max_updates should be a whole number, not 'inf'"),
        ("model.norm=foo", "model.norm must be one of layer, rms, not 'foo'"),
        ("model.dropout=nan", "model.dropout should be a number, not 'nan'"),
        ("optimiser.rate=fast", "optimiser.rate should be a number, not 'fast'"),
        ("train.divergence=no", "train.divergence should be true or false, not 'no'"),
        ("optimiser.betas=0.9", "optimiser.betas should be 2 values such as 0,0, not '0.9'"),
        ("optimiser.betas=0.9,x", "optimiser.betas should be a number, not 'x'"),
        ("beam=4", "no setting called beam; did you mean decode.beam?"),
        ("optimizer.rate=1", "no setting called optimizer.rate; did you mean optimiser.rate?"),
        ("model.d_model=1", "no setting called model.d_model; model has kind, width, feedforward, heads, "),
        (
            "x.y=1",
            "no setting called x.y; the sections are model, head, tokenizer, cleaning, text, batches, optimiser, train, transfer, decode",
        ),
        ("model.width", "a setting is written section.name=value, such as model.width=256, not 'model.width'"),
        ("=3", "a setting is written section.name=value, such as model.width=256, not '=3'"),
        ("model.width=100", "model.width (100) must be a multiple of model.heads (8)"),
    ],
)
def test_a_mistaken_override_says_what_was_wanted(assignment: str, message: str) -> None:
    assert complaint(override, Config(), [assignment]).startswith(message)


def test_overrides_are_checked_together_and_the_last_one_wins() -> None:
    config = override(Config(), ["model.width=100", "model.heads=7", "model.heads=10"])
    assert (config.model.width, config.model.heads) == (100, 10)
    assert override(Config(), []) == Config()


def test_a_batch_grows_with_the_longest_text_unless_its_tokens_are_given(tmp_path: Path) -> None:
    base = Config(batches=BatchConfig(tokens=1024, max_length=128))
    assert override(base, ["batches.max_length=2048"]).batches == BatchConfig(tokens=2048, max_length=2048)
    assert override(base, ["batches.max_length=512"]).batches == BatchConfig(tokens=1024, max_length=512)
    assert load_config(written(tmp_path, "[batches]\nmax_length = 4_000\n"), base).batches.tokens == 4000
    refused = complaint(override, base, ["batches.max_length=2048", "batches.tokens=1024"])
    assert refused == "batches.tokens (1024) must be at least batches.max_length (2048)"
    assert complaint(override, base, ["batches.max_length=x"]).startswith("batches.max_length should be a whole number")


# ---------------------------------------------------------------- a model of another kind


def test_kind_tells_the_members_of_a_union_apart(tmp_path: Path) -> None:
    path = written(tmp_path, '[model]\nkind = "recurrent"\ncell = "lstm"\n')
    config: Any = load_config(path, base=TwoModels())  # type: ignore[arg-type]
    assert config.model == RecurrentConfig(cell="lstm")
    path.write_text(dump_config(config))
    assert load_config(path, base=TwoModels()) == config  # type: ignore[arg-type]
    assert "# What carries it.\ncell" in dump_config(config)
    assert config_hash(config) != config_hash(TwoModels())
    assert differences({"one": config, "other": TwoModels()})["model.cell"] == {"one": "lstm"}  # type: ignore[dict-item]
    assert help_texts(TwoModels)["model.cell"] == "What carries it."


def test_overrides_of_a_union() -> None:
    two: Any = TwoModels()
    assert override(two, ["model.kind=recurrent"]).model == RecurrentConfig()
    assert override(two, ["model.width=6", "model.kind=recurrent"]).model == RecurrentConfig(width=6)
    kept = override(TwoModels(TransformerConfig(width=64)), ["model.kind=transformer"])  # type: ignore[arg-type]
    assert kept.model == TransformerConfig(width=64)
    assert complaint(override, two, ["model.kind=rnn"]) == "model.kind must be one of transformer, recurrent, not 'rnn'"
    assert complaint(override, two, ["model.kind=recurrent", "model.heads=2"]).startswith(
        "no setting called model.heads"
    )


# ---------------------------------------------------------------- identity


def test_the_hash_knows_every_setting_and_nothing_else() -> None:
    assert config_hash(Config()) == config_hash(Config())
    assert config_hash(Config(train=TrainConfig(minutes=10))) == config_hash(Config(train=TrainConfig(minutes=10.0)))
    assert config_hash(TransformerConfig()) != config_hash(TransformerConfig(width=64))
    changes = ["model.norm=rms", "train.seed=2", "decode.beam=4", "tokenizer.joint=false", "optimiser.betas=0.9,0.999"]
    hashes = {config_hash(override(Config(), [change])) for change in changes} | {config_hash(Config())}
    assert len(hashes) == len(changes) + 1
    assert all(len(digest) == 64 for digest in hashes)


def test_to_dict_is_every_setting() -> None:
    values = to_dict(Config())
    assert list(values) == [section.name for section in dataclasses.fields(Config)]
    assert values["model"]["width"] == 512 and values["optimiser"]["betas"] == (0.9, 0.98)


# ---------------------------------------------------------------- recipes


def test_every_recipe_loads_and_says_what_it_is() -> None:
    assert set(recipes()) >= {"tiny", "small", "base", "big", "multi30k-tiny", "rnn", "gru-attention", "conv", "gnmt"}
    for name, path in recipes().items():
        assert load_recipe(name) == load_config(path)
        assert len(recipe_description(path)) > 40


@pytest.mark.parametrize(
    ("name", "layers", "width", "feedforward", "heads"),
    [("tiny", 4, 128, 256, 4), ("small", 4, 256, 1024, 4), ("base", 6, 512, 2048, 8), ("big", 6, 1024, 4096, 16)],
)
def test_the_sizes(name: str, layers: int, width: int, feedforward: int, heads: int) -> None:
    model = load_recipe(name).model
    assert (model.encoder_layers, model.decoder_layers) == (layers, layers)
    assert (model.width, model.feedforward, model.heads) == (width, feedforward, heads)


@pytest.mark.parametrize(("name", "dropout"), [("base", 0.1), ("big", 0.3)])
def test_base_and_big_are_the_papers(name: str, dropout: float) -> None:
    recipe = load_recipe(name)
    model, optimiser = recipe.model, recipe.optimiser
    assert (model.norm_place, model.activation, model.positions, model.tie) == ("post", "relu", "sinusoid", "all")
    assert model.dropout == dropout and recipe.train.label_smoothing == 0.1
    assert (optimiser.schedule, optimiser.warmup, optimiser.betas, optimiser.epsilon) == (
        "noam",
        4000,
        (0.9, 0.98),
        1e-9,
    )


def test_multi30k_tiny_is_the_published_recipe() -> None:
    recipe = load_recipe("multi30k-tiny")
    assert (recipe.model.norm_place, recipe.model.width, recipe.model.dropout) == ("post", 128, 0.3)
    assert (recipe.tokenizer.kind, recipe.tokenizer.vocabulary, recipe.tokenizer.joint) == ("bpe", 10_000, True)
    assert (recipe.optimiser.schedule, recipe.optimiser.rate, recipe.optimiser.warmup) == ("inverse-sqrt", 5e-3, 2000)
    assert recipe.batches.tokens == 4096
    assert "41.02" in recipe_description(recipes()["multi30k-tiny"])


def test_a_recipe_of_ones_own(tmp_path: Path) -> None:
    assert load_recipe(written(tmp_path, "[model]\nwidth = 64\n")).model.width == 64
    assert complaint(load_recipe, "mine.toml") == "there is no file mine.toml"


def test_an_unknown_recipe_lists_the_known() -> None:
    message = complaint(load_recipe, "multi30k-tyni")
    assert message.startswith(f"no recipe called multi30k-tyni; the recipes are {', '.join(recipes())}")
    assert message.endswith("Did you mean multi30k-tiny?")
    assert "mean" not in complaint(load_recipe, "xyzzy")


def test_a_setting_added_later_does_not_lock_older_runs_out() -> None:
    """The fingerprint is bound into every checkpoint: a new setting at its default must not change it."""
    model = Config().model
    older = {name: value for name, value in to_dict(Config())["model"].items() if name not in ADDED_LATER}
    assert config_hash(model) == hashlib.sha256(json.dumps(older, sort_keys=True).encode()).hexdigest()
    assert config_hash(dataclasses.replace(model, experts=4)) != config_hash(model)


def test_a_section_added_later_leaves_no_trace_until_it_is_used() -> None:
    fingerprints = _fingerprints(Config())
    older = {section: values for section, values in fingerprints.items() if section not in SECTIONS_ADDED_LATER}
    assert config_hash(Config()) == hashlib.sha256(json.dumps(older, sort_keys=True).encode()).hexdigest()
    assert config_hash(override(Config(), ["text.packed=false"])) != config_hash(Config())


def _fingerprints(config: Config) -> dict[str, dict[str, object]]:
    """Every setting but those added later, which are at their defaults here."""
    later = {
        section.name: {f.name for f in dataclasses.fields(getattr(config, section.name)) if f.metadata.get("later")}
        for section in dataclasses.fields(Config)
    }
    return {
        section: {name: value for name, value in values.items() if name not in later[section]}
        for section, values in to_dict(config).items()
    }


ADDED_LATER = (
    *("relative_distance", "experts", "experts_used", "balance"),
    *("span", "reach", "remembered", "cross", "activations"),
    *("biases", "norm_epsilon", "scaled", "output_bias"),
)
SECTIONS_ADDED_LATER = ("text", "head", "transfer")
