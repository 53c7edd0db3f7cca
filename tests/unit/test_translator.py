"""Text in, text out, through a model that copies: what comes back shows what was done to the text."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from kente.config import DecodeConfig, TokenizerConfig
from kente.data.tokenizer import EOS, PAD, UNK, Symbols, Tokenizers, train_tokenizers
from kente.decode.answers import CUT, LATE, WORST, Hypothesis
from kente.decode.torch_engine import TorchEngine
from kente.decode.translator import SHORTENED, SPLIT, UNKNOWN, Alternative, Translation, Translator, best_combinations
from kente.errors import UsageError
from kente.models.interface import AttentionMap, Step


@dataclass
class Memory:
    source: Tensor  # (B, S)
    position: Tensor  # (B,)


class Copier(nn.Module):
    """Says again what it reads, `stutter` times over; prefers a little the lower of all other ids."""

    def __init__(self, vocabulary: int, stutter: int = 1) -> None:
        super().__init__()
        self.vocabulary, self.stutter = vocabulary, stutter
        self.read: list[Tensor] = []
        self.modes: list[bool] = []

    def start(self, source: Tensor, source_mask: Tensor) -> Memory:
        assert ((source == EOS).sum(1) == 1).all() and ((source != PAD) == source_mask).all()
        self.read.append(source)
        self.modes.append(self.training)
        return Memory(source, torch.zeros(len(source), dtype=torch.long))

    def step(self, state: Memory, tokens: Tensor) -> Step:
        rows = torch.arange(len(tokens))
        last = (state.source == EOS).int().argmax(1)
        wanted = state.source[rows, torch.minimum(state.position // self.stutter, last)]
        logits = torch.arange(self.vocabulary).flip(0).expand(len(tokens), -1) * 0.01
        logits[rows, wanted] = 8.0
        return Step(logits, Memory(state.source, state.position + 1))

    def look(self, source: Tensor, source_mask: Tensor, target: Tensor) -> list[AttentionMap]:
        """In the middle of three layers, target piece t looks at source piece t, but more at the end; elsewhere at the first."""
        first = torch.zeros(len(source), target.shape[1], source.shape[1])
        first[:, :, 0] = 1.0
        straight = 0.4 * torch.eye(target.shape[1], source.shape[1]) + 0.6 * (source == EOS)[:, None]
        maps = [
            AttentionMap("cross", layer, head, straight if layer == 1 else first)
            for layer in range(3)
            for head in range(2)
        ]
        return [*maps, AttentionMap("encoder", 0, 0, first)]


WORDS = ["One", "Two", "three", "four.", "Five", "six!", "seven,", "eight", "nine", "ten."]
CHARACTERS = sorted(set(string.ascii_letters + " .,!?我们今天在家。，"))


def words(**options: object) -> Translator:
    side = Symbols("words", WORDS, "nfc")
    return Translator(TorchEngine(Copier(side.size)), Tokenizers(side, side, joint=True), **options)  # type: ignore[arg-type]


def characters(stutter: int = 1, **options: object) -> Translator:
    side = Symbols("characters", CHARACTERS, "nfc")
    return Translator(TorchEngine(Copier(side.size, stutter)), Tokenizers(side, side, joint=True), **options)  # type: ignore[arg-type]


def reads(translator: Translator) -> list[str]:
    """What went through the model, row by row."""
    model = translator.model
    assert isinstance(model, Copier)
    return [translator.tokenizers.source.decode(row.tolist()) for batch in model.read for row in batch]


def texts(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    lines = [" ".join(draw.choices(["ab", "Cd", "e,", "f.", "Gh", "i!"], k=draw.randint(0, 9))) for _ in range(count)]
    return [line if draw.random() < 0.9 else "" for line in lines]


@pytest.mark.parametrize("beam", [1, 4])
def test_answers_come_in_the_order_of_the_questions(beam: int) -> None:
    lines = texts(60)
    answers = characters(config=DecodeConfig(batch_tokens=200)).translate(lines, beam=beam)
    assert [a.text for a in answers] == lines == [a.source for a in answers]


def test_the_whole_answer_is_the_same_alone_and_in_company() -> None:
    lines = texts(25)
    together = characters().translate(lines, n_best=2)
    assert together == [characters().translate(line, n_best=2)[0] for line in lines]
    assert together[::-1] == characters(config=DecodeConfig(batch_tokens=60)).translate(lines[::-1], n_best=2)


def test_text_is_cut_and_joined_by_several_threads_as_by_one() -> None:
    lines = [*texts(90), "ab  Cd\tGh", " ".join(["ab Cd, Gh"] * 30), "\u2581 我"]
    config = TokenizerConfig(kind="unigram", vocabulary=300)
    both = train_tokenizers(lambda: ((line, line) for line in lines), config)
    one, several = (
        Translator(TorchEngine(Copier(both.source.size)), both, max_source_tokens=40, threads=count)  # type: ignore[arg-type]
        for count in (1, 3)
    )
    found = several.translate(lines, n_best=2)
    assert found == one.translate(lines, n_best=2)
    assert [answer.text for answer in found[:91]] == [*lines[:90], "ab Cd Gh"]
    assert found[91].warnings == (SPLIT,) and found[92].text == lines[92]


@pytest.mark.parametrize("blank", ["", " ", "\t\u00a0", "\u200b\ufeff", "\n\n"])
def test_empty_in_empty_out_without_a_model(blank: str) -> None:
    translator = words()
    assert translator.translate([blank], n_best=3) == [Translation(blank, "", 0.0)]
    assert reads(translator) == []
    assert translator.translate([]) == []


def test_a_single_text_needs_no_list() -> None:
    (answer,) = words().translate("One three four.")
    assert answer.text == "One three four." and answer.warnings == () and answer.alternatives == ()
    assert WORST < answer.score < 0


def test_sentences_are_translated_one_by_one_and_joined() -> None:
    translator = words()
    (answer,) = translator.translate("One three four.   Five eight six!\nTwo")
    assert answer.text == "One three four. Five eight six!\nTwo"
    assert sorted(reads(translator)) == ["Five eight six!", "One three four.", "Two"]
    alone = [words().translate(part)[0].score for part in ("One three four.", "Five eight six!", "Two")]
    assert answer.score == pytest.approx(sum(alone) / 3)


def test_sentences_without_a_space_between_them_stay_so_in_a_script_without_spaces() -> None:
    translator = characters()
    assert translator.translate("我们在家。今天在家。")[0].text == "我们在家。今天在家。"
    assert sorted(reads(translator)) == ["今天在家。", "我们在家。"]


def test_splitting_can_be_turned_off_for_a_model_or_a_call() -> None:
    off, on = words(split_sentences=False), words()
    for translator, split in ((off, None), (on, False)):
        assert translator.translate("One four. Two ten.", split=split)[0].text == "One four. Two ten."
        assert reads(translator) == ["One four. Two ten."]
    assert len(reads(on)) == 1 and on.translate("One four. Two ten.") and len(reads(on)) == 3


def test_runs_of_blanks_are_read_as_one() -> None:
    translator = words()
    assert translator.translate("One \t three")[0].warnings == ()
    assert reads(translator) == ["One three"]


def test_over_long_sentences_are_translated_in_parts_with_a_warning() -> None:
    translator = characters(max_source_tokens=20)
    text = "abcd efgh, ijkl mnop qrst uvwx, yzab cdef"
    (answer,) = translator.translate(text)
    assert answer.text == text and answer.warnings == (SPLIT,)
    assert max(len(part) for part in reads(translator)) < 20
    assert "abcd efgh," in reads(translator)


def test_a_sentence_that_just_fits_is_not_touched() -> None:
    translator = characters(max_source_tokens=20)
    assert translator.translate("abcd efgh ijkl mnop")[0].warnings == ()
    assert translator.translate("abcd efgh ijkl mnopq")[0].warnings == (SPLIT,)


@pytest.mark.timeout(60)  # cutting it up piece by piece would take far longer
def test_an_unbreakable_word_is_shortened_and_says_so() -> None:
    translator = characters(max_source_tokens=50, config=DecodeConfig(beam=1, max_ratio=1.0))
    answer, neighbour = translator.translate(["x" * 1_000_000, "ab."])
    assert SHORTENED in answer.warnings and reads(translator)[0] == "x" * 49
    assert neighbour.text == "ab." and neighbour.warnings == ()


@pytest.mark.timeout(60)
def test_a_very_long_line_is_translated_whole() -> None:
    text = " ".join(["abc de, fg"] * 2000)
    translator = characters(max_source_tokens=100, config=DecodeConfig(beam=1))
    assert translator.translate(text)[0].text == text


def test_unknown_words_are_warned_about() -> None:
    known, unknown = words().translate(["One three", "One zebra"])
    assert known.warnings == () and unknown.warnings == (UNKNOWN,)
    assert "⁇" not in unknown.text


def test_an_answer_cut_at_its_greatest_length_is_warned_about() -> None:
    translator = characters(stutter=3, max_target_tokens=7)
    (answer,) = translator.translate("abcdef")
    assert answer.text == "aaabbbc" and answer.warnings == (CUT,)


def test_n_best_gives_other_answers_in_order() -> None:
    (answer,) = words().translate("One three", n_best=4)
    scores = [answer.score, *(other.score for other in answer.alternatives)]
    assert len(scores) == 4 and scores == sorted(scores, reverse=True)
    assert len({answer.text, *(other.text for other in answer.alternatives)}) == 4
    assert isinstance(answer.alternatives[0], Alternative)
    with pytest.raises(UsageError, match=r"n_best \(0\) must be at least 1"):
        words().translate("One", n_best=0)


def test_n_best_of_several_sentences_varies_one_at_a_time() -> None:
    (answer,) = words().translate("One four. Two ten.", n_best=3)
    first, second = answer.text, answer.alternatives[0].text
    assert first == "One four. Two ten." and second != first
    assert second.startswith("One four.") or second.endswith("Two ten.")


def test_combinations_are_the_best_of_all() -> None:
    draw = random.Random(3)
    lists = [sorted((Hypothesis([], -draw.random(), 0.0) for _ in range(4)), key=lambda h: -h.score) for _ in range(4)]
    every = sorted(-sum(h.score for h in way) for way in product(*lists))
    found = best_combinations(lists, 9)
    assert [-sum(h.score for h in way) for way in found] == pytest.approx(every[:9])
    assert best_combinations(lists, 1) == [tuple(choices[0] for choices in lists)]


def test_answers_that_read_the_same_are_given_once() -> None:
    side = Symbols("words", ["same", "other"], "nfc")

    class Twins(Symbols):
        def decode(self, ids: object) -> str:
            return "same"

    twins = Translator(
        TorchEngine(Copier(side.size)), Tokenizers(side, Twins("words", ["same", "other"], "nfc"), joint=False)
    )
    (answer,) = twins.translate("same", n_best=3)
    assert answer.text == "same" and answer.alternatives == ()


def test_a_prefix_begins_every_answer_or_each_its_own() -> None:
    translator = words()
    for answer in translator.translate(["One three", "eight nine ten."], prefix="Five six! "):
        assert answer.text.startswith("Five six!")
    own = translator.translate(["One three", "", "eight. Two"], prefix=["Two", "Two", ""])
    assert (
        own[0].text.startswith("Two") and own[1].text == "" and own[2].text == words().translate("eight. Two")[0].text
    )
    with pytest.raises(UsageError, match="2 texts but 1 prefixes"):
        translator.translate(["One", "Two"], prefix=["One"])
    with pytest.raises(UsageError, match="has 4 tokens, but the model writes 3 at most"):
        words(max_target_tokens=3).translate("One", prefix="One Two three eight")


def test_alignment_points_from_each_target_piece_into_the_whole_source() -> None:
    (answer,) = words().translate("One three four. Two eight", align=True)
    assert answer.source_pieces == answer.target_pieces == ("One", "three", "four.", "Two", "eight")
    assert answer.alignment == tuple((place, place) for place in range(5))
    empty, one = words().translate(["", "One"], align=True)
    assert empty.alignment == () and one.alignment == ((0, 0),)
    assert words().translate("One")[0].alignment is None


def test_a_model_without_cross_attention_aligns_nothing() -> None:
    translator = words()
    translator.model.look = lambda *_: []  # type: ignore[method-assign]
    assert translator.translate("One three", align=True)[0].alignment == ()


def test_a_model_in_training_rests_while_translating_and_goes_on_after() -> None:
    translator = words()
    model = translator.model
    assert isinstance(model, Copier) and model.training
    translator.translate("One")
    assert model.modes == [False] and model.training
    model.eval()
    translator.translate("One")
    assert not model.training


def test_out_of_time_answers_say_so() -> None:
    answers = words().translate(["One three", "Two", ""], deadline=lambda: True)
    assert [(a.text, a.warnings) for a in answers] == [("", (LATE,)), ("", (LATE,)), ("", ())]


def test_sampling_is_repeatable_and_does_not_feel_the_batch() -> None:
    config = DecodeConfig(sample=True, temperature=4.0, seed=5)
    lines = ["One three", "Two eight nine", "Five"]
    together = words(config=config).translate(lines, n_best=3)
    assert together == [words(config=config).translate(line, n_best=3)[0] for line in lines]
    assert together != words(config=DecodeConfig(sample=True, temperature=4.0, seed=6)).translate(lines, n_best=3)


def test_a_stream_is_lazy_in_order_and_never_far_ahead() -> None:
    taken = 0

    def lines() -> Iterator[str]:
        nonlocal taken
        for line in ["One", "", "Two three", "eight"] * 25:
            taken += 1
            yield line

    stream = words().stream(lines(), lookahead=10)
    assert taken == 0
    for number, answer in enumerate(stream, start=1):
        assert answer.text == ["One", "", "Two three", "eight"][(number - 1) % 4]
        assert number <= taken <= number + 10
    assert taken == 100


def test_a_slow_reader_is_answered_line_by_line() -> None:
    asked: list[str] = []

    def typed() -> Iterator[str]:
        for line in ["One", "Two"]:
            asked.append(line)
            yield line

    stream = words().stream(typed(), lookahead=1, n_best=2)
    assert next(stream).text == "One" and asked == ["One"]
    assert len(next(stream).alternatives) == 1 and asked == ["One", "Two"]


def test_batches_hold_texts_of_like_length_within_their_budget() -> None:
    translator = characters(config=DecodeConfig(batch_tokens=120), split_sentences=False)
    translator.translate([("ab " * n).strip() for n in (1, 9, 2, 8, 3, 7, 1, 9, 30)], beam=2)
    assert isinstance(translator.model, Copier)
    shapes = [batch.shape for batch in translator.model.read]
    assert all(rows * width <= 60 or rows == 1 for rows, width in shapes)
    assert sum(rows for rows, _ in shapes) == 9 and len(shapes) < 9
    assert not any((batch == UNK).any() for batch in translator.model.read)
