"""The compiled search against the search in torch on random Transformers: the same answers, scores and warnings, whatever is asked.

Random models loop, run on and repeat themselves far more than trained ones, so every rule is met.
"""

from __future__ import annotations

import itertools
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kente.config import DecodeConfig, RecurrentConfig, TransformerConfig
from kente.data.shortlist import Shortlist
from kente.decode import native
from kente.decode.answers import CUT, LATE, LOOPED, Hypothesis, end_of_loop, most_tokens, no_answer
from kente.decode.conversion import Numbers
from kente.decode.engine import Question
from kente.decode.native_engine import NativeEngine, Network, obstacle
from kente.decode.torch_engine import TorchEngine
from kente.models.build import build

pytestmark = pytest.mark.skipif(native.why_no_compiler() is not None, reason=native.NO_COMPILER)

UNK, BOS, EOS = 1, 2, 3
VOCABULARY = 150
TINY = TransformerConfig(encoder_layers=2, decoder_layers=2, width=32, feedforward=40, heads=2, max_length=128)
VARIANTS = {
    "paper": TINY,
    "pre-rms-swiglu": replace(TINY, norm_place="pre", norm="rms", activation="swiglu"),
    "learned-gelu": replace(TINY, positions="learned", activation="gelu", norm_place="pre"),
    "none-silu": replace(TINY, positions="none", activation="silu", scaled=False),
    "untied": replace(TINY, tie="none"),
    "marian": replace(TINY, positions="sinusoid-halves", biases=True, output_bias=True, activation="silu"),
    "m2m": replace(TINY, positions="sinusoid-fairseq", biases=True, norm_place="pre", norm_epsilon=1e-4, tie="target"),
    "heads of 32": replace(TINY, width=64, activation="gelu-tanh"),
    "heads of 64": replace(TINY, width=128, norm_place="pre", encoder_layers=1, decoder_layers=3),
    "heads of 48": replace(TINY, width=48, heads=1, norm_place="pre"),
}
GREEDY, BEAM = DecodeConfig(beam=1), DecodeConfig(beam=4)
SHORTLIST = Shortlist(
    always=np.array([0, 1, 2, 3, 17, 40, 99]),
    table=np.random.default_rng(3).integers(4, VOCABULARY, (VOCABULARY, 3)).astype(np.int32),
    vocabulary=VOCABULARY,
)


def random_model(config: TransformerConfig, seed: int, spread: float = 0.3, vocabulary: int = VOCABULARY) -> Any:
    torch.manual_seed(seed)
    model = build(config, vocabulary, vocabulary).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * spread)
    return model


def unasked() -> TorchEngine:
    raise AssertionError("torch was asked")


def compiled(
    model: Any,
    shortlist: Shortlist | None = None,
    in_torch: Callable[[], TorchEngine] = unasked,
    numbers: Numbers = "float32",
) -> NativeEngine:
    arrays = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    return NativeEngine(Network(model.config, arrays, numbers), 2, None, in_torch, shortlist)


def sentences(count: int, longest: int = 18, seed: int = 1, vocabulary: int = VOCABULARY) -> list[Question]:
    generator = np.random.default_rng(seed)
    sources = [generator.integers(EOS + 1, vocabulary, size=n).tolist() for n in generator.integers(1, longest, count)]
    return [Question(source, most_tokens(len(source) + 1, 1.5)) for source in sources]


def same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]], ties: int = 0) -> None:
    """Ids and warnings to the letter, numbers to a rounding; of `ties` sentences, two beginnings may be equally likely but for that."""
    for one, other in zip(found, wanted, strict=True):
        if ties and [h.ids for h in one] != [h.ids for h in other]:
            assert [h.score for h in one] == pytest.approx([h.score for h in other], rel=1e-3, abs=1e-3)
            ties -= 1
            continue
        assert [(h.ids, h.finished, h.warnings) for h in one] == [(h.ids, h.finished, h.warnings) for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-3)
        assert [h.log_probability for h in one] == pytest.approx([h.log_probability for h in other], abs=2e-3)


# ---------------------------------------------------------------- the same answers


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("config", [GREEDY, BEAM, replace(BEAM, length_penalty=0.0)], ids=["greedy", "beam", "sums"])
def test_answers_of_every_variant_are_those_of_torch(variant: str, config: DecodeConfig) -> None:
    model, questions = random_model(VARIANTS[variant], seed=2), sentences(40)
    same(compiled(model).search(questions, config), TorchEngine(model).search(questions, config))


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_with_a_shortlist_they_are_those_of_torch_with_it(config: DecodeConfig) -> None:
    model = random_model(TINY, seed=2)
    questions = [replace(q, prefix=[[], [60, 61]][place % 2]) for place, q in enumerate(sentences(40))]
    same(
        compiled(model, SHORTLIST).search(questions, config),
        TorchEngine(model, "cpu", SHORTLIST).search(questions, config),
    )


def test_the_best_few_are_those_of_torch_in_their_order() -> None:
    model, questions = random_model(TINY, seed=2), sentences(20)
    same(compiled(model).search(questions, BEAM, n_best=3), TorchEngine(model).search(questions, BEAM, n_best=3))
    same(compiled(model).search(questions, GREEDY, n_best=3), TorchEngine(model).search(questions, GREEDY, n_best=3))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    beam=st.integers(1, 7),
    keep=st.integers(1, 3),
    power=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    no_repeat=st.integers(0, 3),
    shape=st.tuples(st.sampled_from(["pre", "post"]), st.sampled_from([(32, 2), (48, 3), (64, 1)]), st.booleans()),
)
def test_whatever_is_asked_torch_would_have_said_the_same(
    seed: int, beam: int, keep: int, power: float, no_repeat: int, shape: tuple[Any, tuple[int, int], bool]
) -> None:
    place, (width, heads), short = shape
    model = random_model(replace(TINY, norm_place=place, width=width, heads=heads), seed)
    config = DecodeConfig(beam=beam, length_penalty=power, no_repeat=no_repeat)
    shortlist = SHORTLIST if short else None
    questions = sentences(6, seed=seed)
    found = compiled(model, shortlist).search(questions, config, n_best=keep)
    wanted = TorchEngine(model, "cpu", shortlist).search(questions, config, n_best=keep)
    same(found, wanted, ties=1)


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_an_answer_does_not_depend_on_its_neighbours(config: DecodeConfig) -> None:
    engine, questions = compiled(random_model(TINY, seed=4)), sentences(70)
    together = engine.search(questions, config)
    assert [engine.search([question], config)[0] for question in questions] == together, "to the last bit"
    assert engine.search(questions[::-1], replace(config, batch_tokens=40))[::-1] == together
    short = engine.with_shortlist(SHORTLIST)  # words of others stand in between, so sums are rounded otherwise
    alone, together = [short.search([question], config)[0] for question in questions], short.search(questions, config)
    assert sum(one[0].ids == other[0].ids for one, other in zip(alone, together, strict=True)) >= len(questions) - 2


# ---------------------------------------------------------------- rounded to eight bits


def rounded_product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Rows of both in units of their own, summed exactly."""

    def in_units(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        most = rows.abs().amax(-1, keepdim=True)
        return (rows * (127 / most)).nan_to_num().round().double(), most / 127

    (x, x_units), (weight, units) = in_units(x), in_units(weight)
    found = (x @ weight.T).float() * (units[:, 0] * x_units)
    return found if bias is None else found + bias


needs_rounding = pytest.mark.skipif(
    native.why_no_compiler() is not None or not native.can_round(),
    reason="the compiled search has no products of int8 on this processor",
)


@needs_rounding
@pytest.mark.parametrize("variant", [*VARIANTS, "odd sizes"])
@pytest.mark.parametrize("shortlist", [None, SHORTLIST], ids=["all words", "shortlist"])
def test_rounded_answers_are_those_of_torch_with_rounded_factors(
    variant: str, shortlist: Shortlist | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {**VARIANTS, "odd sizes": replace(TINY, feedforward=43)}[variant]
    model = random_model(config, seed=2, spread=config.width**-0.5)
    questions = [
        replace(q, prefix=[int(i) for i in np.random.default_rng(n).integers(4, VOCABULARY, 6)], cap=6)
        for n, q in enumerate(sentences(40))
    ]
    engine = compiled(model, shortlist, numbers="int8")

    def likelihoods(engine: Any) -> np.ndarray[Any, Any]:
        return np.array([found[0].log_probability for found in engine.search(questions, GREEDY)])

    exact = likelihoods(TorchEngine(model, "cpu", shortlist))
    with monkeypatch.context() as patch:
        patch.setattr("kente.nn.linear.with_onednn", lambda: False)
        patch.setattr(torch.nn.functional, "linear", rounded_product)
        wanted = likelihoods(TorchEngine(model, "cpu", shortlist))
    found = likelihoods(engine)
    off, rounding = np.abs(found - wanted), np.abs(wanted - exact)
    assert np.median(off) < 1e-3 < np.median(rounding), "but for numbers halfway between two, which fall to either side"
    assert off.mean() < rounding.mean() / 5


@needs_rounding
def test_a_rounded_answer_does_not_depend_on_its_neighbours() -> None:
    engine, questions = compiled(random_model(TINY, seed=4), numbers="int8"), sentences(70)
    together = engine.search(questions, BEAM)
    assert [engine.search([question], BEAM)[0] for question in questions] == together, "to the last bit"


@needs_rounding
@pytest.mark.parametrize("what", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["encoder.layers.0.feedforward.inner.weight", "source_embedding.weight"])
def test_rounding_hides_no_number_that_is_none(what: float, where: str) -> None:
    model = random_model(TINY, seed=3)
    with torch.no_grad():
        dict(model.named_parameters())[where][:, 0] = what
    for found in compiled(model, numbers="int8").search(sentences(8), GREEDY):
        assert found == [no_answer()]


@needs_rounding
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_an_infinite_number_on_the_way_is_not_rounded_to_a_finite_one(sign: float) -> None:
    model = random_model(replace(TINY, norm_place="pre", activation="relu"), seed=3)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        parameters["decoder.layers.0.feedforward_residual.norm.bias"][0] = float("inf")
        parameters["decoder.layers.0.feedforward.inner.weight"][:, 0] = sign * 0.5
    for found in compiled(model, numbers="int8").search(sentences(8), GREEDY):
        assert found == [no_answer()]


@needs_rounding
def test_rows_and_columns_of_zeros_stay_zeros() -> None:
    model = random_model(TINY, seed=3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "feedforward" in name or "cross" in name:
                parameter.zero_()
    exact, found = (compiled(model, numbers=numbers).search(sentences(20), GREEDY) for numbers in ("float32", "int8"))
    score = [[np.mean([h[0].log_probability / (len(h[0].ids) + 1) for h in some])] for some in (exact, found)]
    assert np.isfinite(score).all() and score[0] == pytest.approx(score[1], rel=0.05)


# ---------------------------------------------------------------- at the edges


@pytest.mark.parametrize("beam", [5, 20])
def test_a_beam_may_be_wider_than_the_vocabulary(beam: int) -> None:
    model = random_model(TINY, seed=2, vocabulary=9)
    questions = sentences(10, longest=5, vocabulary=9)
    config = DecodeConfig(beam=beam)
    same(compiled(model).search(questions, config), TorchEngine(model).search(questions, config))


def test_no_questions_no_answers() -> None:
    assert compiled(random_model(TINY, seed=2)).search([], BEAM) == []


# ---------------------------------------------------------------- our rules


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_each_answer_ends_at_its_own_greatest_length(config: DecodeConfig) -> None:
    model = random_model(TINY, seed=2)
    questions = [replace(question, cap=3 + place % 5) for place, question in enumerate(sentences(20))]
    found = compiled(model).search(questions, config)
    same(found, TorchEngine(model).search(questions, config))
    assert sum(CUT in h.warnings for (h,) in found) > 5
    assert all(len(h.ids) <= question.cap for question, (h,) in zip(questions, found, strict=True))


def test_loops_are_broken_off_where_torch_breaks_them_off() -> None:
    questions, looped = [replace(question, cap=60) for question in sentences(30)], 0
    for seed in range(4):
        model = random_model(TINY, seed)
        for config in (GREEDY, BEAM):
            found = compiled(model).search(questions, config)
            same(found, TorchEngine(model).search(questions, config), ties=2 if config.beam > 1 else 0)
            assert all(end_of_loop(h.ids, 1) is None for (h,) in found)
            looped += sum(LOOPED in h.warnings for (h,) in found)
    assert looped > 20


def test_a_source_that_repeats_itself_may_be_answered_in_kind() -> None:
    model = random_model(TINY, seed=1)
    questions = [Question([5, 6, 7], 30), Question([5, 6] * 12, 30)]
    found = compiled(model).search(questions, GREEDY)
    same(found, TorchEngine(model).search(questions, GREEDY))
    assert end_of_loop(found[0][0].ids, 1) is None and end_of_loop(found[1][0].ids, 1) is not None


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_a_forced_beginning_is_written_and_counted(config: DecodeConfig) -> None:
    model, prefixes = random_model(TINY, seed=2), [[], [7], [8, 9, 10], [UNK, 30]]
    questions = [replace(q, prefix=prefixes[place % 4], cap=20) for place, q in enumerate(sentences(24))]
    found = compiled(model).search(questions, config)
    same(found, TorchEngine(model).search(questions, config))
    assert all(h.ids[: len(q.prefix)] == q.prefix for q, (h,) in zip(questions, found, strict=True))


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_a_model_whose_numbers_are_not_numbers_gives_no_answer(config: DecodeConfig) -> None:
    model = random_model(TINY, seed=2)
    with torch.no_grad():
        model.decoder.layers[-1].feedforward_residual.norm.bias.fill_(torch.nan)
    assert compiled(model).search([Question([5, 6], 4)], config) == [[no_answer()]]


# ---------------------------------------------------------------- what others do


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (DecodeConfig(sample=True, seed=5), "it draws nothing at random"),
        (DecodeConfig(beam=65), "its beam has at most 64 hypotheses"),
    ],
    ids=["draws", "wide beams"],
)
def test_what_it_cannot_do_is_done_in_torch(config: DecodeConfig, why: str) -> None:
    model, questions = random_model(TINY, seed=2), sentences(4)
    in_torch = TorchEngine(model)
    engine = compiled(model, in_torch=lambda: in_torch)
    assert engine.cannot(config) == why
    assert engine.search(questions, config) == in_torch.search(questions, config)


def test_texts_longer_than_its_table_of_positions_are_left_to_torch() -> None:
    model = random_model(TINY, seed=2)
    in_torch = TorchEngine(model)
    engine = compiled(model, in_torch=lambda: in_torch)
    for question in (Question([5] * 128, 10), Question([5, 6], 128), Question([5, 6], 3, [7] * 128)):
        assert engine.search([question], GREEDY) == in_torch.search([question], GREEDY)


def test_learned_positions_may_be_fewer_than_the_words_of_a_text() -> None:
    model = random_model(replace(TINY, positions="learned"), seed=2)
    arrays = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    short = {n: a[:9].copy() if "positions" in n else a for n, a in arrays.items()}
    shared = {n: np.pad(a, ((0, 119), (0, 0)), "edge") if "positions" in n else a for n, a in short.items()}
    engines = [NativeEngine(Network(model.config, some), 1, None, unasked) for some in (short, shared)]
    assert engines[0].search(sentences(10), GREEDY) == engines[1].search(sentences(10), GREEDY)


def test_answers_are_read_again_by_whoever_is_beside_it() -> None:
    model, questions, answers = random_model(TINY, seed=2), sentences(3), [[5, 6], [], [7, 8, 9]]
    in_torch = TorchEngine(model)
    engine = compiled(model, in_torch=lambda: in_torch)
    assert engine.align(questions, answers) == in_torch.align(questions, answers)
    assert engine.read_back(questions, answers) == in_torch.read_back(questions, answers)
    engine.beside, engine.in_torch = in_torch, unasked
    assert engine.align(questions, answers) == in_torch.align(questions, answers)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (RecurrentConfig(), "it carries Transformers, and this is a recurrent model"),
        (replace(TINY, experts=4), "it has no mixture of experts (model.experts = 4)"),
        (replace(TINY, span="window"), "it looks at everything, in layers that are not reversible"),
        (
            replace(TINY, activations="reversible", norm_place="pre"),
            "it looks at everything, in layers that are not reversible",
        ),
        (replace(TINY, positions="rotary"), "it has no positions inside attention (model.positions = rotary)"),
        (replace(TINY, heads=4), "it has heads of 16 values or a multiple of that, not of 8"),
    ],
)
def test_a_model_that_does_not_fit_is_told_why(config: Any, why: str) -> None:
    assert obstacle(config) == why
    assert all(obstacle(fitting) is None for fitting in VARIANTS.values())


# ---------------------------------------------------------------- time


def test_out_of_time_answers_come_back_as_they_are() -> None:
    model = random_model(replace(TINY, max_length=4000), seed=4)
    questions = [replace(q, cap=3000) for q in sentences(64, seed=3)]
    engine = compiled(model)
    late = engine.search(questions, BEAM, deadline=lambda: True)
    assert all(LATE in h.warnings and not h.finished for (h,) in late)
    asked = itertools.count()

    def soon() -> bool:
        return next(asked) > 10

    some = engine.search(questions, replace(BEAM, batch_tokens=100), deadline=soon)
    unfinished = [h for (h,) in some if LATE in h.warnings]
    assert unfinished and not any(h.finished for h in unfinished)


def test_a_deadline_that_is_never_reached_changes_nothing() -> None:
    engine, questions = compiled(random_model(TINY, seed=4)), sentences(30)
    assert engine.search(questions, BEAM, deadline=lambda: False) == engine.search(questions, BEAM)


def test_a_deadline_may_raise_and_ends_the_search() -> None:
    def gone() -> bool:
        raise ConnectionError

    engine = compiled(random_model(replace(TINY, max_length=4000), seed=4))
    began = time.perf_counter()
    with pytest.raises(ConnectionError):
        engine.search([Question([5, 6, 7], 3900)] * 200, replace(BEAM, batch_tokens=10), deadline=gone)
    assert time.perf_counter() - began < 30


# ---------------------------------------------------------------- memory


STARVED = """
#include <stdlib.h>
#define aligned_alloc(alignment, bytes) NULL
#include "search.c"

int main(void) {
    Model model = {.shape = {.width = 16, .heads = 1, .inner = 16, .encoder_layers = 1, .decoder_layers = 2}, .stride = 16};
    int ids[2] = {4, 5}, starts[2] = {0, 2};
    Sources sources = {ids, starts, 1, NULL};
    Arena arena = {0};
    read_sources(&model, &sources, &arena);
    return arena.failed ? 7 : 0;
}
"""


def test_where_there_is_no_memory_for_a_text_nothing_is_written_through_it(tmp_path: Path) -> None:
    (tmp_path / "starved.c").write_text(STARVED)
    options = [flag for flag in native._flags() if flag not in ("-shared", "-O3")]
    made = [*(native._compiler() or ()), *options, "-w", "-I", str(native.FOLDER), str(tmp_path / "starved.c")]
    subprocess.run([*made, "-o", str(tmp_path / "starved"), "-lm"], check=True)
    assert subprocess.run([tmp_path / "starved"]).returncode == 7, "it says so, and does not crash"


# ---------------------------------------------------------------- compiling


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and nothing compiled yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    native.library.cache_clear()
    yield tmp_path
    native.library.cache_clear()


def test_it_is_compiled_once_and_kept_in_the_cache(fresh: Path) -> None:
    native.library()
    (made,) = (fresh / "kente" / "native").iterdir()
    when = made.stat().st_mtime_ns
    native.library.cache_clear()
    native.library()
    assert made.stat().st_mtime_ns == when and made.suffix == ".so"


def test_without_a_compiler_that_is_said(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert native.why_no_compiler() == native.NO_COMPILER
    with pytest.raises(native.NativeMissing, match="no C compiler here"):
        native.library()


def test_a_compiler_that_fails_is_quoted_and_tried_again_only_after_hours(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, tries = fresh / "broken-cc", fresh / "tries"
    broken.write_text(f"#!/bin/sh\necho once >> {tries}\necho 'fatal error: math.h: no such file' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    for _ in range(2):
        with pytest.raises(native.NativeMissing, match=r"broken-cc could not compile it: fatal error: math\.h"):
            native.library()
    assert tries.read_text() == "once\n", "the second time it is known"
    (note,) = (fresh / "kente" / "native").iterdir()
    with pytest.raises(native.NativeMissing, match=rf"not tried again for 6 hours, or until {note} is removed"):
        native.library()
    long_ago = time.time() - 3600 * (native.HOURS + 1)
    os.utime(note, (long_ago, long_ago))
    with pytest.raises(native.NativeMissing):
        native.library()
    assert tries.read_text() == "once\nonce\n", "by then something may have been installed"


def test_what_was_compiled_and_cannot_be_loaded_is_told_until_something_can(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, _ = compiler_that(fresh, 'while [ "$1" != -o ]; do shift; done; echo nothing to run > "$2"')
    with monkeypatch.context() as patch:
        patch.setenv("CC", command)
        assert native.why_not_compiled() is None, "nobody has tried"
        assert why_missing() == f"what {command} made cannot be loaded"
        said = native.why_not_compiled()
        assert said == why_missing() and said.startswith(f"what {command} made cannot be loaded (not tried again for 6")
        useless = native._path(native._compiler() or ())
    native.library()
    made = native._path(native._compiler() or ())
    made.with_suffix(".failed").write_text("it could not be loaded on another machine that shares this folder")
    assert useless.exists() and native.why_not_compiled() is None, "here it can"


def compiler_that(folder: Path, does: str) -> tuple[str, Path]:
    """(a compiler that does this and nothing else, a file with a line for each time it was started)."""
    made, tries = folder / "some-cc", folder / "tries"
    made.write_text(f"#!/bin/sh\necho once >> {tries}\n{does}\n")
    made.chmod(0o755)
    return str(made), tries


def why_missing() -> str:
    with pytest.raises(native.NativeMissing) as caught:
        native.library()
    return str(caught.value)


INTERRUPTED = f"exec {shlex.quote(sys.executable)} -c 'import os, signal; signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), 2)'"
"""Also where the tests were started with SIGINT ignored, as in the background of a script; a shell could not undo that."""


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("kill -KILL $$", "some-cc was ended by SIGKILL; the next process tries again"),
        (INTERRUPTED, "some-cc was ended by SIGINT; the next process tries again"),
        (
            "echo 'cc: fatal error: Killed signal terminated program cc1' >&2; exit 1",
            "some-cc could not compile it: cc: fatal error: Killed signal terminated program cc1; the next process tries again",
        ),
        (
            "echo 'search.c:1:' >&2; echo 'error: /tmp/cc1.s: No space left on device' >&2; exit 1",
            "some-cc could not compile it: error: /tmp/cc1.s: No space left on device; the next process tries again",
        ),
    ],
    ids=["killed", "interrupted", "a part of it killed", "disk full"],
)
def test_a_failure_that_passes_is_not_remembered(
    does: str, says: str, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, tries = compiler_that(fresh, does)
    monkeypatch.setenv("CC", command)
    assert why_missing().endswith(says) and why_missing().endswith(says)
    assert tries.read_text() == "once\nonce\n" and not [*(fresh / "kente" / "native").iterdir()]


def test_a_compiler_is_interrupted_by_nobody_and_ends_with_those_it_started(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, _ = compiler_that(fresh, f"sleep 60 & echo $! > {fresh}/helper; echo $$ > {fresh}/session; wait")
    monkeypatch.setenv("CC", command)
    monkeypatch.setattr(native, "SECONDS", 1)
    groups: list[int] = []
    kill = os.killpg
    monkeypatch.setattr(os, "killpg", lambda group, number: (groups.append(group), kill(group, number)))
    assert why_missing().endswith("some-cc took more than 1 s to compile it")
    assert groups == [int((fresh / "session").read_text())] != [os.getpgrp()]
    helper = Path(f"/proc/{int((fresh / 'helper').read_text())}/stat")
    for _ in range(100):
        if not helper.exists() or helper.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.02)
    else:
        os.kill(int((fresh / "helper").read_text()), signal.SIGKILL)
        pytest.fail("what the compiler started goes on")


def test_of_all_a_compiler_says_the_error_is_quoted(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (
        "In file included from search.c:5:\nproducts.h:6:10: fatal error: math.h: No such file\ncompilation terminated."
    )
    command, _ = compiler_that(fresh, f"cat >&2 <<END\n{words}\nEND\nexit 1")
    monkeypatch.setenv("CC", command)
    assert why_missing() == f"{command} could not compile it: products.h:6:10: fatal error: math.h: No such file"


def test_all_words_of_cc_begin_the_command_and_others_make_another_library(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, _ = compiler_that(fresh, f'printf "%s\\n" "$1" "$2" "$3" > {fresh}/words; exit 1')
    monkeypatch.setenv("CC", f"{command} gcc '-DNAME=two words'")
    assert why_missing() == f"{command} gcc '-DNAME=two words' could not compile it: it said nothing"
    assert (fresh / "words").read_text() == f"gcc\n-DNAME=two words\n{native.FLAGS[0]}\n"
    paths = set()
    for words in ("", " gcc", " clang"):
        monkeypatch.setenv("CC", command + words)
        paths.add(native._path(native._compiler() or ()))
    assert len(paths) == 3
    monkeypatch.setenv("CC", 'gcc "unclosed')
    assert why_missing() == native.NO_COMPILER


def test_a_processor_that_can_do_less_under_the_same_name_gets_a_library_of_its_own(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, told = set(), set()
    monkeypatch.setattr(native, "processor", lambda: "AMD EPYC")
    monkeypatch.setattr(native, "CPUINFO", fresh / "cpuinfo")
    one = "model name\t: AMD EPYC\ncpu MHz\t\t: {}\n{}\n\n"
    for megahertz, lines in (
        (2000, "flags\t\t: fpu avx2 avx512f"),
        (3000, "flags\t\t: fpu avx2 avx512f"),
        (2000, "flags\t\t: fpu avx2"),
        (2000, "Features\t: asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40"),
        (2000, "Features\t: asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f"),
        (2000, ""),
    ):
        (fresh / "cpuinfo").write_text(one.format(megahertz, lines) * 2)
        paths.add(native._path(native._compiler() or ()))
        told.add(native.abilities())
    assert len(paths) == len(told) == 5, "how fast it goes at the moment does not count"


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="there is no folder that nobody may write to")
def test_a_cache_that_is_there_and_cannot_be_written_to_is_not_blamed_on_the_compiler(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, tries = compiler_that(fresh, "exit 1")
    monkeypatch.setenv("CC", command)
    (fresh / "kente").mkdir()
    (fresh / "kente" / "native").symlink_to("/sys/kernel")
    assert why_missing().startswith(f"it could not be compiled into {fresh}/kente/native: ")
    assert not tries.exists(), "it is found out before anything is compiled"


def test_a_cache_that_cannot_be_written_to_is_named(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(fresh / "file"))
    with pytest.raises(native.NativeMissing, match=r"could not be compiled into .*Not a directory"):
        native.library()


def test_what_was_torn_on_disk_is_compiled_again(fresh: Path) -> None:
    native.library()
    (made,) = (fresh / "kente" / "native").iterdir()
    native.library.cache_clear()
    made.unlink()
    made.write_bytes(b"\x7fELF torn")
    assert native.library().kente_search
