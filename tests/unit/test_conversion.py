"""Random Transformers of every kind, converted for CTranslate2: the same numbers. (The same answers: test_ctranslate2_engine.)"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kente.config import ConvConfig, IntraAttentionConfig, RecurrentConfig, TransformerConfig
from kente.decode.conversion import Array, Numbers, alibi_slopes, convert, names_of, obstacle, sinusoid, vocabulary_map
from kente.decode.library import ctranslate2
from kente.errors import RunError, UsageError
from kente.models.build import build
from kente.nn import positions

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SOURCE, TARGET = 31, 29
TINY = TransformerConfig(encoder_layers=2, decoder_layers=3, width=24, feedforward=40, heads=4, max_length=64)
VARIANTS = {
    "paper": TINY,
    "pre": replace(TINY, norm_place="pre"),
    "rms": replace(TINY, norm="rms"),
    "pre-rms-swiglu": replace(TINY, norm_place="pre", norm="rms", activation="swiglu"),
    "gelu": replace(TINY, activation="gelu"),
    "learned": replace(TINY, positions="learned"),
    "rotary": replace(TINY, positions="rotary", norm_place="pre"),
    "relative": replace(TINY, positions="relative", relative_distance=3),
    "alibi": replace(TINY, positions="alibi"),
    "alibi-6-heads": replace(TINY, positions="alibi", heads=6, norm_place="pre"),
    "none": replace(TINY, positions="none"),
    "target-tied": replace(TINY, tie="target"),
    "untied": replace(TINY, tie="none"),
    "marian": replace(TINY, positions="sinusoid-halves", activation="silu", biases=True, output_bias=True),
    "m2m100": replace(
        TINY, norm_place="pre", positions="sinusoid-fairseq", biases=True, output_bias=True, tie="target"
    ),
    "unscaled": replace(TINY, scaled=False, norm_epsilon=1e-3, activation="gelu-tanh", tie="none", output_bias=True),
}
Ids = list[int]


def random_model(config: TransformerConfig, seed: int = 0) -> Any:
    """Weights that are nowhere zero or one, so that a forgotten bias or a swapped norm shows."""
    torch.manual_seed(seed)
    model = build(config, SOURCE, SOURCE if config.tie == "all" else TARGET).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def weights_of(model: Any) -> dict[str, Array]:
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


def converted(model: Any, folder: Path, numbers: Numbers = "float32", **more: Any) -> Any:
    folder.mkdir()
    target = len(model.output.weight)
    convert(model.config, weights_of(model), (names_of(SOURCE), names_of(target)), folder, numbers=numbers, **more)
    return ctranslate2().Translator(str(folder), device="cpu", inter_threads=1, intra_threads=1)


def tokens(ids: Ids) -> list[str]:
    return [str(i) for i in ids]


def random_ids(lengths: tuple[int, ...], vocabulary: int, seed: int = 1) -> list[Ids]:
    generator = np.random.default_rng(seed)
    return [generator.integers(EOS + 1, vocabulary, size=length).tolist() for length in lengths]


def padded(rows: list[Ids]) -> tuple[Tensor, Tensor]:
    width = max(map(len, rows)) + 1
    source = torch.tensor([[*row, EOS, *[PAD] * (width - 1 - len(row))] for row in rows])
    return source, source != PAD


@torch.inference_mode()
def log_probabilities(model: Any, source: Ids, target: Ids) -> Tensor:
    """Of each token of the target and its end mark, by our own model, one sentence at a time."""
    hidden = model(*padded([source]), torch.tensor([[BOS, *target]]))
    scores = torch.log_softmax(model.predict(hidden)[0], dim=-1)
    return scores.gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_gives_the_log_probabilities_of_our_own(variant: str, tmp_path: Path) -> None:
    model = random_model(VARIANTS[variant])
    translator = converted(model, tmp_path / "model")
    sources = random_ids((3, 9, 17, 33, 1), SOURCE)
    targets = random_ids((5, 2, 40, 63, 0), TARGET)
    results = translator.score_batch([tokens(s) for s in sources], [tokens(t) for t in targets])
    for source, target, result in zip(sources, targets, results, strict=True):
        wanted = log_probabilities(model, source, target)
        assert torch.allclose(torch.tensor(result.log_probs), wanted, atol=1e-4)


def test_int8_is_near_and_leaves_the_weights_it_was_given_alone(tmp_path: Path) -> None:
    model = random_model(replace(TINY, width=64, feedforward=128, norm_place="pre"))
    before = {name: array.copy() for name, array in weights_of(model).items()}
    translator = converted(model, tmp_path / "model", "int8")
    assert all(np.array_equal(array, before[name]) for name, array in weights_of(model).items())
    assert translator.compute_type.startswith("int8")
    source, target = random_ids((9, 30), SOURCE)
    result = translator.score_batch([tokens(source)], [tokens(target)])[0]
    off = (torch.tensor(result.log_probs) - log_probabilities(model, source, target)).abs()
    assert 0 < off.mean() < 0.5


def test_positions_reach_as_far_as_the_model_does(tmp_path: Path) -> None:
    translator = converted(random_model(TINY), tmp_path / "model")
    longest = random_ids((TINY.max_length - 1,), TARGET)[0]
    assert len(translator.score_batch([tokens(longest)], [tokens(longest)])[0].log_probs) == TINY.max_length


@pytest.mark.parametrize("heads", range(1, 13))
def test_tables_are_those_of_the_network(heads: int) -> None:
    assert np.allclose(alibi_slopes(heads), positions.alibi_slopes(heads).numpy())
    assert np.array_equal(sinusoid(70, 2 * heads), positions.sinusoid(70, 2 * heads).numpy())


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (RecurrentConfig(), "it carries Transformers, and this is a recurrent model"),
        (IntraAttentionConfig(), "it carries Transformers, and this is a lstmn model"),
        (ConvConfig(), "it carries Transformers, and this is a conv model"),
        (replace(TINY, experts=4), "it has no mixture of experts (model.experts = 4)"),
        (replace(TINY, span="window"), "it looks at everything (model.span = window)"),
        (replace(TINY, positions="xl"), "it has no positions of Transformer-XL (model.positions = xl)"),
        (
            replace(TINY, activations="reversible", norm_place="pre"),
            "it has no reversible layers (model.activations = reversible)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(config: Any, why: str, tmp_path: Path) -> None:
    assert obstacle(config) == why
    with pytest.raises(UsageError) as caught:
        convert(config, {}, (names_of(9), names_of(9)), tmp_path)
    assert str(caught.value) == f"CTranslate2 cannot carry this model: {why}" and not list(tmp_path.iterdir())


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_obstacle_is_seen_where_there_is_none(variant: str) -> None:
    assert obstacle(VARIANTS[variant]) is None


def test_weights_that_do_not_fit_the_settings_are_refused(tmp_path: Path) -> None:
    weights = weights_of(random_model(TINY))
    vocabularies = names_of(SOURCE), names_of(SOURCE)
    lacking = {name: array for name, array in weights.items() if name != "encoder.layers.1.attention.output.weight"}
    with pytest.raises(RunError, match=r"encoder\.layers\.1\.attention\.output\.weight is missing"):
        convert(TINY, lacking, vocabularies, tmp_path)
    with pytest.raises(RunError, match=r"nothing knows decoder\.layers\.3\.more"):
        convert(TINY, {**weights, "decoder.layers.3.more": np.zeros(3, np.float32)}, vocabularies, tmp_path)


# ---------------------------------------------------------------- vocabulary maps


def test_a_vocabulary_map_leaves_only_the_words_it_names(tmp_path: Path) -> None:
    model = random_model(replace(TINY, tie="none"), seed=5)
    sources = random_ids((6, 6), SOURCE, seed=4)
    always, of_first, of_second = [5, 9], [12, 13, 14], [20, 21]
    text = vocabulary_map(tokens(always), {str(sources[0][0]): tokens(of_first), str(sources[1][2]): tokens(of_second)})
    translator = converted(model, tmp_path / "model", vocabulary_map=text)
    settings = {"use_vmap": True, "max_decoding_length": 30, "min_decoding_length": 30, "disable_unk": True}

    def words(batch: list[Ids], **more: Any) -> list[set[int]]:
        results = translator.translate_batch([tokens(source) for source in batch], **{**settings, **more})
        return [{int(token) for token in result.hypotheses[0]} for result in results]

    for source, own in zip(sources, (of_first, of_second), strict=True):
        assert words([source])[0] <= {UNK, BOS, EOS, *always, *own} and words([source])[0] & {*always, *own}
    assert not set.union(*words(sources, use_vmap=False)) <= {UNK, BOS, EOS, *always, *of_first, *of_second}
    union = {UNK, BOS, EOS, *always, *of_first, *of_second}
    assert set.union(*words(sources)) <= union, "a batch shares what its sentences may be made of"


def test_the_text_of_a_vocabulary_map_has_a_line_for_all_and_one_for_each_source_token() -> None:
    assert vocabulary_map(["4", "7"], {"5": ["6"], "8": []}) == "\t4 7\n5\t6\n8\t\n"
    assert vocabulary_map([], {}) == "\t\n"  # CTranslate2 cannot read a file without a line


@pytest.mark.parametrize("token", ["", "New York", "a\tb", "a\n", "a\r"])
def test_tokens_that_would_break_a_line_are_refused(token: str) -> None:
    for always, candidates in (([token], {}), ([], {token: ["4"]}), ([], {"4": [token]})):
        with pytest.raises(UsageError, match="cannot stand in a vocabulary map"):
            vocabulary_map(always, candidates)


def test_names_of_tokens_are_safe_in_every_file() -> None:
    assert vocabulary_map(names_of(300), {name: names_of(300) for name in names_of(300)}).count("\n") == 301


def test_describing_a_model_neither_imports_torch_nor_hides_it_from_others() -> None:
    code = """
import subprocess
import sys
from kente.decode.library import ctranslate2, specifications
specs = specifications()
assert "torch" not in sys.modules and specs.TransformerSpec.from_config(2, 4).encoder
assert not specs.model_spec.torch_is_available and "ctranslate2.specs" not in sys.modules
assert ctranslate2().specs.model_spec.torch_is_available and "torch" in sys.modules
assert specifications() is ctranslate2().specs
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
