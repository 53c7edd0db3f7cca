"""The CTranslate2 engine against the torch engine on random Transformers of every kind: the same answers, scores and warnings.

Random models loop, run on and repeat themselves far more than trained ones, so every rule is met. CTranslate2 shares out the probability
of words that may not be written; where that is much, the torch side here does so too (`Allowed`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kente.config import DecodeConfig, TransformerConfig
from kente.data.tokenizer import Symbols, Tokenizers
from kente.decode import guards
from kente.decode.answers import CUT, LATE, LOOPED, Hypothesis, end_of_loop, length_penalty, most_tokens, no_answer
from kente.decode.conversion import Numbers, convert, names_of, vocabulary_map
from kente.decode.ctranslate2_engine import CTranslate2Engine, Layout
from kente.decode.engine import Question, batches
from kente.decode.torch_engine import TorchEngine
from kente.models.build import build
from kente.models.interface import AttentionMap, Generator, State, Step

PAD, UNK, BOS, EOS = 0, 1, 2, 3
VOCABULARY = 40
TINY = TransformerConfig(encoder_layers=2, decoder_layers=2, width=24, feedforward=40, heads=4, max_length=128)
VARIANTS = {
    "paper": TINY,
    "pre-rms-swiglu": replace(TINY, norm_place="pre", norm="rms", activation="swiglu"),
    "learned-gelu": replace(TINY, positions="learned", activation="gelu"),
    "rotary": replace(TINY, positions="rotary", norm_place="pre"),
    "relative": replace(TINY, positions="relative", relative_distance=3),
    "alibi": replace(TINY, positions="alibi"),
    "alibi-6-heads": replace(TINY, positions="alibi", heads=6, norm_place="pre"),
    "none": replace(TINY, positions="none"),
    "untied": replace(TINY, tie="none"),
}
GREEDY, BEAM = DecodeConfig(beam=1), DecodeConfig(beam=4)


class Spelling(Symbols):
    """Characters that pass for bytes: a vocabulary whose model never learns to write UNK."""

    spells_everything = True  # type: ignore[assignment]


def tokenizers(kind: type[Symbols] = Spelling) -> Tokenizers:
    side = kind("characters", [chr(0x4E00 + i) for i in range(VOCABULARY - 4)], "nfc")
    return Tokenizers(side, side, joint=True)


class Allowed:
    """A model that was never told of the words that may not be written."""

    def __init__(self, model: Generator) -> None:
        self.model = model

    def start(self, source: Tensor, source_mask: Tensor) -> State:
        return self.model.start(source, source_mask)

    def step(self, state: State, tokens: Tensor) -> Step:
        step = self.model.step(state, tokens)
        return replace(step, logits=step.logits.index_fill(1, torch.tensor([PAD, UNK, BOS]), -torch.inf))

    def look(self, source: Tensor, source_mask: Tensor, target: Tensor) -> list[AttentionMap]:
        return self.model.look(source, source_mask, target)


def random_model(config: TransformerConfig, seed: int, spread: float = 0.3) -> Any:
    torch.manual_seed(seed)
    model = build(config, VOCABULARY, VOCABULARY).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * spread)
    return model


def ending_model(config: TransformerConfig, seed: int, readiness: float = 2.0) -> Any:
    """A random model whose answers come to an end, and which never wants to write what may not be written.

    Every last hidden vector leans in one direction, in which the end mark lies, and against which PAD, UNK and BOS do.
    """
    model = random_model(replace(config, tie="none"), seed)  # a shared table would make it say the last word again
    norm = model.decoder.norm if config.norm_place == "pre" else model.decoder.layers[-1].feedforward_residual.norm
    with torch.no_grad():
        towards = torch.nn.functional.normalize(torch.randn(config.width), dim=0)
        norm.bias += 6 * towards
        output = model.output.weight
        output -= (output @ towards)[:, None] * towards
        output[EOS] += readiness / 6 * towards
        output[[PAD, UNK, BOS]] = -6 * towards
    return model


def never_asked() -> TorchEngine:
    raise AssertionError("torch was asked")


def fast_engine(
    model: Any,
    folder: Path,
    in_torch: Callable[[], TorchEngine] = never_asked,
    kind: type[Symbols] = Spelling,
    shortlist: str | None = None,
) -> CTranslate2Engine:
    """The engine over a model that lies in `folder`."""
    vocabularies = names_of(VOCABULARY), names_of(VOCABULARY)
    weights = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}

    def find(numbers: Numbers) -> Path:
        home = folder / numbers
        if not home.exists():
            home.mkdir()
            convert(model.config, weights, vocabularies, home, numbers=numbers, vocabulary_map=shortlist)
        return home

    return CTranslate2Engine(find, tokenizers(kind), in_torch, Layout(workers=2, shortlist=shortlist is not None))


def sentences(count: int, longest: int = 18, seed: int = 1) -> list[Question]:
    generator = np.random.default_rng(seed)
    sources = [generator.integers(EOS + 1, VOCABULARY, size=n).tolist() for n in generator.integers(1, longest, count)]
    return [Question(source, most_tokens(len(source) + 1, 1.5)) for source in sources]


@torch.inference_mode()
def log_probabilities(model: Any, source: list[int], target: list[int]) -> Tensor:
    """Of each token of the target and its end mark, read in one go by our own model."""
    ids = torch.tensor([[*source, EOS]])
    hidden = model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[BOS, *target]]))
    return torch.log_softmax(model.predict(hidden)[0], dim=-1).gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]


def same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert [h.ids for h in one] == [h.ids for h in other]
        assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)
        assert [h.log_probability for h in one] == pytest.approx([h.log_probability for h in other], abs=1e-3)
        assert [h.finished for h in one] == [h.finished for h in other]


# ---------------------------------------------------------------- the same answers


@pytest.mark.parametrize("variant", VARIANTS)
def test_greedy_answers_of_every_variant_are_those_of_torch(variant: str, tmp_path: Path) -> None:
    model, questions = random_model(VARIANTS[variant], seed=2), sentences(30)
    found = fast_engine(model, tmp_path).search(questions, GREEDY)
    wanted = TorchEngine(Allowed(model)).search(questions, GREEDY)
    clean = [place for place, (answer,) in enumerate(wanted) if not answer.warnings]
    same([found[place] for place in clean], [wanted[place] for place in clean])
    for (one,), (other,) in zip(found, wanted, strict=True):
        assert one.ids == other.ids and (CUT in one.warnings) == (CUT in other.warnings)


@pytest.mark.parametrize("variant", [name for name, config in VARIANTS.items() if config.norm == "layer"])
@pytest.mark.parametrize("power", [1.0, 0.0])
def test_beams_of_every_variant_find_what_torch_finds(variant: str, power: float, tmp_path: Path) -> None:
    model, questions = ending_model(VARIANTS[variant], seed=2), sentences(40)
    config = replace(BEAM, length_penalty=power)
    found = fast_engine(model, tmp_path).search(questions, config)
    wanted = TorchEngine(model).search(questions, config)
    plain = [place for place, (answer,) in enumerate(wanted) if not (answer.warnings or found[place][0].warnings)]
    agree = [place for place in plain if found[place][0].ids == wanted[place][0].ids]
    assert len(plain) >= 10 and len(agree) >= 0.9 * len(plain)  # torch goes on for longer than CTranslate2 has patience
    same([found[place] for place in agree], [wanted[place] for place in agree])
    for place in set(plain) - set(agree):
        assert found[place][0].score <= wanted[place][0].score + 1e-4


def test_the_best_few_come_in_the_order_of_our_score(tmp_path: Path) -> None:
    model, questions = ending_model(TINY, seed=2), sentences(30)
    found = fast_engine(model, tmp_path).search(questions, BEAM, n_best=3)
    wanted = TorchEngine(model).search(questions, BEAM, n_best=3)
    assert sum(a[0].ids == b[0].ids for a, b in zip(found, wanted, strict=True)) >= 0.8 * len(questions)
    for hypotheses in found:
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True) and len({tuple(h.ids) for h in hypotheses}) == len(hypotheses)
        assert scores == pytest.approx([h.log_probability / length_penalty(len(h.ids) + 1.0, 1.0) for h in hypotheses])


def test_more_answers_than_the_beam_is_wide_widen_it(tmp_path: Path) -> None:
    engine = fast_engine(ending_model(TINY, seed=2), tmp_path)
    assert all(len(h) == 3 for h in engine.search(sentences(5), GREEDY, n_best=3))


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_an_answer_does_not_depend_on_its_neighbours(config: DecodeConfig, tmp_path: Path) -> None:
    engine, questions = fast_engine(ending_model(TINY, seed=4), tmp_path), sentences(20)
    together = engine.search(questions, config, n_best=1)
    same([engine.search([question], config)[0] for question in questions], together)
    narrow = engine.with_layout(Layout(batch_tokens=40)).search([*questions[::-1], *sentences(5, seed=7)], config)
    same(narrow[: len(questions)][::-1], together)


def test_no_batch_is_larger_than_the_settings_or_the_layout_allow(tmp_path: Path) -> None:
    engine, questions = fast_engine(ending_model(TINY, seed=4), tmp_path), sentences(20)

    def batches_of(layout: int, setting: int) -> list[list[int]]:
        return engine.with_layout(Layout(batch_tokens=layout))._batches(questions, 4, setting)

    assert len(batches_of(4096, 4096)) == 1
    assert len(batches_of(80, 4096)) > 8 and batches_of(80, 4096) == batches_of(4096, 80)
    found = engine.search(questions, replace(BEAM, batch_tokens=80))
    same(found, engine.with_layout(Layout(batch_tokens=80)).search(questions, BEAM))


def test_several_layouts_share_what_is_loaded_and_none_is_left_behind(tmp_path: Path) -> None:
    engine = fast_engine(ending_model(TINY, seed=4), tmp_path)
    other = engine.with_layout(Layout(threads=2))
    assert engine.translator is engine.with_layout(Layout(workers=2, batch_tokens=7)).translator is not other.translator
    engine.keep(engine.layout, other.layout)
    assert list(engine._loaded) == [("float32", 2, 1), ("float32", 1, 2)]
    engine.keep(other.layout)
    assert list(engine._loaded) == [("float32", 1, 2)]
    assert not engine.search([], GREEDY)


# ---------------------------------------------------------------- our rules


def test_answers_end_at_their_own_greatest_length_whatever_the_batch_allows(tmp_path: Path) -> None:
    model = random_model(TINY, seed=2)
    questions = [replace(question, cap=3 + place % 5) for place, question in enumerate(sentences(20))]
    engine, torch_engine = fast_engine(model, tmp_path), TorchEngine(Allowed(model))
    cut = 0
    for (one,), (other,) in zip(engine.search(questions, GREEDY), torch_engine.search(questions, GREEDY), strict=True):
        assert one.ids == other.ids and one.finished == other.finished and one.warnings == other.warnings
        cut += CUT in one.warnings
    assert cut > 10
    for question, (best,) in zip(questions, engine.search(questions, BEAM), strict=True):
        assert len(best.ids) <= question.cap and best.finished == (CUT not in best.warnings)


def test_an_answer_that_was_cut_has_the_log_probability_of_its_end(tmp_path: Path) -> None:
    model, (question,) = random_model(TINY, seed=2), [replace(sentences(1)[0], cap=4)]
    (best,) = fast_engine(model, tmp_path).search([question], GREEDY)[0]
    assert best.warnings == (CUT,) and len(best.ids) == 4
    assert best.log_probability == pytest.approx(
        float(log_probabilities(model, question.source, best.ids).sum()), abs=1e-3
    )


def test_loops_are_broken_off_where_torch_breaks_them_off(tmp_path: Path) -> None:
    questions = [replace(question, cap=60) for question in sentences(30)]
    looped = 0
    for seed in range(4):
        model = random_model(TINY, seed)
        (tmp_path / str(seed)).mkdir()
        found = fast_engine(model, tmp_path / str(seed)).search(questions, GREEDY)
        wanted = TorchEngine(model).search(questions, GREEDY)
        for (one,), (other,) in zip(found, wanted, strict=True):
            assert one.ids == other.ids and end_of_loop(one.ids, 1) is None
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-3)
            assert one.warnings == other.warnings
            looped += LOOPED in other.warnings
    assert looped > 20


def test_a_source_that_repeats_itself_may_be_answered_in_kind(tmp_path: Path) -> None:
    model = random_model(TINY, seed=1)
    calm, looping = Question([5, 6, 7], 30), Question([5, 6] * 12, 30)
    found = fast_engine(model, tmp_path).search([calm, looping], GREEDY)
    wanted = TorchEngine(Allowed(model)).search([calm, looping], GREEDY)
    assert [h.ids for (h,) in found] == [h.ids for (h,) in wanted]
    assert end_of_loop(found[0][0].ids, 1) is None and end_of_loop(found[1][0].ids, 1) is not None


def test_a_forced_beginning_is_written_and_counted(tmp_path: Path) -> None:
    model = ending_model(TINY, seed=2)
    prefixes = [[], [7], [8, 9, 10], [UNK, 30]]
    questions = [replace(q, prefix=prefixes[place % 4], cap=20) for place, q in enumerate(sentences(24))]
    found = fast_engine(model, tmp_path).search(questions, GREEDY)
    for question, (one,), (other,) in zip(questions, found, TorchEngine(model).search(questions, GREEDY), strict=True):
        assert one.ids == other.ids and one.ids[: len(question.prefix)] == question.prefix
        total = float(log_probabilities(model, question.source, one.ids).sum())
        assert one.log_probability == pytest.approx(total, abs=1e-2)


def test_repeats_are_forbidden_as_in_torch(tmp_path: Path) -> None:
    model, questions = random_model(TINY, seed=2), sentences(20)
    for no_repeat in (1, 2, 3):
        config = replace(GREEDY, no_repeat=no_repeat)
        found = fast_engine(model, tmp_path).search(questions, config)
        for (one,), (other,) in zip(found, TorchEngine(model).search(questions, config), strict=True):
            assert one.ids == other.ids
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-3)
        (tmp_path / "float32").rename(tmp_path / f"done-{no_repeat}")


def test_where_unknown_words_take_probability_scores_are_still_the_models_own(tmp_path: Path) -> None:
    model, questions = ending_model(TINY, seed=2), sentences(20)
    found = fast_engine(model, tmp_path, kind=Symbols).search(questions, BEAM)
    for question, (best,) in zip(questions, found, strict=True):
        if not best.warnings:
            total = float(log_probabilities(model, question.source, best.ids).sum())
            assert best.log_probability == pytest.approx(total, abs=1e-3)
            assert best.score == pytest.approx(total / length_penalty(len(best.ids) + 1.0, 1.0), abs=1e-3)


def test_a_model_whose_numbers_are_not_numbers_gives_no_answer(tmp_path: Path) -> None:
    model = random_model(TINY, seed=2)
    with torch.no_grad():
        model.decoder.layers[-1].feedforward_residual.norm.bias.fill_(torch.nan)
    (best,) = fast_engine(model, tmp_path).search([Question([5, 6], 4)], GREEDY)[0]
    assert best == no_answer()


def test_with_a_shortlist_answers_are_made_of_its_words(tmp_path: Path) -> None:
    model = ending_model(TINY, seed=2)
    always, of_each = (
        [str(i) for i in range(4, 10)],
        {str(i): [str(i), str((i + 7) % 30 + 4)] for i in range(4, VOCABULARY)},
    )
    engine = fast_engine(model, tmp_path, shortlist=vocabulary_map(always, of_each))
    alone = engine.with_layout(Layout(batch_tokens=1, shortlist=True))  # CTranslate2 shares the words among a batch
    for config in (GREEDY, BEAM):
        for question, (best,) in zip(sentences(20), alone.search(sentences(20), config), strict=True):
            words = {*map(int, always), *(int(word) for i in question.source for word in of_each[str(i)])}
            assert set(best.ids) <= words or best.warnings  # without it, where an answer is asked for again
    begun = [replace(question, prefix=[38, 39]) for question in sentences(20)]
    found, wanted = engine.search(begun, GREEDY), TorchEngine(model).search(begun, GREEDY)
    assert [h.ids for (h,) in found] == [h.ids for (h,) in wanted], "a forced beginning goes without"


# ---------------------------------------------------------------- what only torch can do


@pytest.mark.parametrize(
    ("config", "n_best", "why"),
    [
        (DecodeConfig(sample=True, seed=5), 2, "its draws do not follow our seed"),
        (DecodeConfig(beam=3, no_repeat=2), 1, "words that must not be repeated disturb the order of its beam"),
        (DecodeConfig(beam=19), 1, "40 words are too few for its beam of 19"),
    ],
    ids=["draws", "beam without repeats", "beam wider than the vocabulary"],
)
def test_what_it_cannot_do_is_done_in_torch(config: DecodeConfig, n_best: int, why: str, tmp_path: Path) -> None:
    model, questions = random_model(TINY, seed=2), sentences(4)
    torch_engine = TorchEngine(model)
    engine = fast_engine(model, tmp_path, lambda: torch_engine)
    assert engine.cannot(config, n_best) == why
    assert engine.search(questions, config, n_best=n_best) == torch_engine.search(questions, config, n_best=n_best)


@pytest.mark.parametrize("variant", [*VARIANTS, "one layer", "three layers"])
def test_answers_read_back_have_the_numbers_and_the_attention_of_torch(variant: str, tmp_path: Path) -> None:
    deep = {"one layer": replace(TINY, decoder_layers=1), "three layers": replace(TINY, decoder_layers=3)}
    model, questions = random_model({**VARIANTS, **deep}[variant], seed=3), sentences(7)
    answers = [[5, 6, 7, 8], [], [9], [4, 4, 5, 6, 7, 8, 9, 10, 11], [UNK], [5, 6], [30, 31, 32]]
    fast = fast_engine(model, tmp_path).read_back(questions, answers)
    slow = TorchEngine(model).read_back(questions, answers)
    for question, answer, one, other in zip(questions, answers, fast, slow, strict=True):
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-4)
        own = log_probabilities(model, question.source, answer)
        assert other.log_probabilities == pytest.approx(own.tolist(), abs=1e-4)
        assert len(one.weights) == len(other.weights) == len(answer)
        for row, wanted in zip(one.weights, other.weights, strict=True):
            assert row == pytest.approx(wanted, abs=1e-5) and len(row) == len(question.source)
            assert 0 < sum(row) < 1  # the rest went to the end mark


def test_alignments_are_those_of_the_network(tmp_path: Path) -> None:
    model, questions = random_model(TINY, seed=2), sentences(9)
    torch_engine = TorchEngine(model)
    answers = [[5, 6, 7], [], [8] * 5] * 3
    links = fast_engine(model, tmp_path).align(questions, answers)
    assert links == [torch_engine.align([q], [a])[0] for q, a in zip(questions, answers, strict=True)]
    assert [len(pairs) for pairs in links] == [3, 0, 5] * 3


# ---------------------------------------------------------------- time


def test_out_of_time_what_is_unanswered_comes_back_with_a_warning(tmp_path: Path) -> None:
    engine, questions = fast_engine(ending_model(TINY, seed=4), tmp_path), sentences(30)
    late = engine.search(questions, BEAM, deadline=lambda: True)
    assert all(h.ids == [] and h.warnings == (LATE,) and not h.finished for (h,) in late)
    narrow, asked = engine.with_layout(Layout(batch_tokens=60)), itertools.count()

    def soon() -> bool:
        time.sleep(0.1)  # meanwhile a batch is answered
        return next(asked) > 4

    some = narrow.search(questions, BEAM, deadline=soon)
    answered = [place for place, (h,) in enumerate(some) if LATE not in h.warnings]
    assert 0 < len(answered) < 30
    whole = narrow.search(questions, BEAM, deadline=lambda: False)
    same([some[place] for place in answered], [whole[place] for place in answered])


class Counting:
    """A translator, and how often it was asked for something."""

    def __init__(self, translator: Any) -> None:
        self.translator, self.asked = translator, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.translator, name)
        if name not in ("translate_batch", "score_batch"):
            return found

        def counted(*arguments: Any, **options: Any) -> Any:
            self.asked += 1
            return found(*arguments, **options)

        return counted


def counted(engine: CTranslate2Engine) -> Counting:
    """The engine's translator, from now on counted."""
    counting = Counting(engine.translator)
    engine._loaded[engine.layout.numbers, engine.layout.workers, engine.layout.threads] = counting
    return counting


@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_out_of_time_nothing_is_asked_again_and_what_is_settled_stays(config: DecodeConfig, tmp_path: Path) -> None:
    engine = fast_engine(ending_model(TINY, seed=5), tmp_path)
    questions = [replace(q, cap=2 if place % 2 else q.cap) for place, q in enumerate(sentences(40))]
    counting = counted(engine)
    whole = engine.search(questions, config, deadline=lambda: False)
    same(whole, engine.with_layout(engine.layout).search(questions, config))
    first = len(engine._batches(questions, config.beam, config.batch_tokens))
    counting.asked = 0
    engine.search(questions, config, deadline=lambda: False)
    for after in range(first + 1, counting.asked):
        counting.asked = 0
        found = engine.search(questions, config, deadline=lambda: counting.asked >= after)  # noqa: B023
        assert counting.asked == after
        answered = [place for place, (h,) in enumerate(found) if LATE not in h.warnings]
        assert 0 < len(answered) < len(questions)
        same([found[place] for place in answered], [whole[place] for place in answered])


def test_out_of_time_answers_are_not_read_again(tmp_path: Path) -> None:
    model, questions = ending_model(TINY, seed=2, readiness=4.0), sentences(40)
    engine = fast_engine(model, tmp_path, kind=Symbols)
    counting, first = counted(engine), len(engine._batches(questions, BEAM.beam, BEAM.batch_tokens))
    found = engine.search(questions, BEAM, deadline=lambda: counting.asked > first)
    assert counting.asked == first + 1 and sum(LATE in h.warnings for (h,) in found) >= 30


def test_a_deadline_may_raise(tmp_path: Path) -> None:
    def gone() -> bool:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        fast_engine(ending_model(TINY, seed=4), tmp_path).search(sentences(3), BEAM, deadline=gone)


# ---------------------------------------------------------------- rules shared with the torch search


@given(st.lists(st.integers(4, 6), max_size=60))
def test_a_loop_is_a_loop_with_and_without_torch(ids: list[int]) -> None:
    row = torch.tensor([[BOS, *ids]])
    assert (end_of_loop(ids) is not None) == bool(guards.has_loop(row, torch.ones_like(row, dtype=torch.bool))[0])


@given(st.lists(st.integers(4, 6), min_size=1, max_size=40), st.integers(0, 1), st.integers(0, 20))
def test_the_end_of_a_loop_is_the_first_place_that_makes_one(ids: list[int], beyond: int, start: int) -> None:
    found = end_of_loop(ids, beyond, start)
    places = [place for place in range(start, len(ids)) if _carries(ids[: place + 1], beyond)]
    assert (found is None) == (not places) and (found is None or found[0] == places[0])


def _carries(ids: list[int], beyond: int) -> bool:
    """Whether the last token belongs to a stretch of some period that is long enough: said again in other words."""
    for period in range(1, 17):
        long_enough = max(3 * period, 8 - period) + beyond
        tail = ids[len(ids) - period - long_enough :] if len(ids) >= period + long_enough else []
        if tail and all(tail[i] == tail[i + period] for i in range(long_enough)):
            return True
    return False


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 200))
def test_batches_hold_every_place_once_and_keep_within_their_tokens(lengths: list[int], tokens: int) -> None:
    found = list(batches(lengths, tokens))
    assert sorted(itertools.chain(*found)) == list(range(len(lengths)))
    widths = [max(lengths[place] for place in batch) for batch in found]
    assert all(width * len(batch) <= tokens or len(batch) == 1 for width, batch in zip(widths, found, strict=True))
    assert widths == sorted(widths, reverse=True)
