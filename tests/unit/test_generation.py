"""Writing on: draws, stops, repetition, windows, and text that comes as it is written."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from kente.config import LanguageModelConfig, RecurrentLanguageConfig
from kente.data.byte_level import ByteLevel, byte_letters
from kente.data.texts import decode_text, encode_text
from kente.data.tokenizer import BOS, EOS, Symbols
from kente.decode.generation import END, MOST, STOP, Manner, Writer, discourage
from kente.decode.sampling import narrow
from kente.errors import ConfigError, UsageError
from kente.models.build import build
from kente.models.interface import Step

LETTERS = Symbols("characters", list("abcdefgh "), "nfc")
TRANSFORMER = LanguageModelConfig(layers=2, width=16, feedforward=32, heads=2)
MODELS = {"transformer": TRANSFORMER, "lstm": RecurrentLanguageConfig(cell="lstm", width=12, embedding=8)}


def writer(config=TRANSFORMER, seed=0, **how) -> Writer:
    torch.manual_seed(seed)
    model = build(config, LETTERS.size, LETTERS.size).eval()
    with torch.no_grad():
        model.output.weight[BOS] = 0.0  # it hardly ever wants to end
    return Writer(model, LETTERS, **how)


@dataclass
class Told:
    """A model that always says what it was told, whatever it reads."""

    ids: list[int]
    size: int = LETTERS.size
    starts: int = 0

    def start(self, source: Tensor, source_mask: Tensor) -> Tensor:
        self.starts += 1
        return torch.zeros(len(source), 1, dtype=torch.long)

    def step(self, state: Tensor, tokens: Tensor) -> Step:
        logits = torch.ones(len(tokens), self.size)
        logits[:, :4] = 0.0
        logits[:, self.ids[min(int(state[0, 0]), len(self.ids) - 1)]] = 50.0
        return Step(logits, state + 1)


@pytest.mark.parametrize("name", MODELS)
def test_the_likeliest_text_is_what_reading_in_one_go_finds(name):
    pen = writer(MODELS[name])
    written = pen.write("abc", Manner(most=12, temperature=0))[0]
    ids = pen.ids("abc")
    while len(ids) < len(pen.ids("abc")) + written.tokens:
        source = torch.zeros(1, 0, dtype=torch.long)
        logits = pen.model.predict(pen.model(source, source.bool(), torch.tensor([ids])))[0, -1]
        logits[:2] = -torch.inf
        ids.append(int(logits.argmax()))
    assert decode_text(LETTERS, ids[1:]) == "abc" + written.text


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_writes_the_same_again_and_samples_differ(name):
    pen, manner = writer(MODELS[name]), Manner(most=20, temperature=1.5)
    three = [one.text for one in pen.write("ab", manner, samples=3)]
    assert three == [one.text for one in pen.write("ab", manner, samples=3)] and len(set(three)) == 3
    assert pen.write("ab", manner)[0].text == three[0]  # a sample does not feel the others
    assert pen.write("ab", replace(manner, seed=2))[0].text != three[0]
    assert pen.write("ba", manner)[0].text != three[0]


@pytest.mark.parametrize("name", MODELS)
def test_a_stream_is_the_text_in_pieces(name):
    pen, manner = writer(MODELS[name]), Manner(most=30, temperature=1.2, stop=("ab", "h"))
    for sample, whole in enumerate(pen.write("c", manner, samples=4)):
        pieces = list(pen.stream("c", manner, sample))
        assert "".join(pieces) == whole.text and all(pieces)


def test_a_text_longer_than_the_window_goes_on():
    pen = writer(window=8)
    written = pen.write("abcdefgh" * 3, Manner(most=40, temperature=0))[0]
    assert written.tokens == 40 and written.ended_by == MOST
    told = Told(LETTERS.encode("abc"))
    Writer(told, LETTERS, window=8).write("", Manner(most=20))
    assert told.starts == 1 + 3  # 8 tokens are read, then from the later half on 5 more each time


def test_a_prompt_longer_than_the_window_is_read_from_its_end():
    pen = writer(window=6)
    one = pen.write("abcdefgh", Manner(most=1, temperature=0))[0].text
    nothing = torch.zeros(1, 0, dtype=torch.long)
    hidden = pen.model(nothing, nothing.bool(), torch.tensor([pen.ids("abcdefgh")[-6:]]))
    logits = pen.model.predict(hidden)[0, -1]
    logits[:2] = -torch.inf
    assert one == decode_text(LETTERS, [int(logits.argmax())])


def test_a_document_ends_where_the_model_says_so():
    pen = Writer(Told([*LETTERS.encode("ab"), EOS, *LETTERS.encode("c"), BOS]), LETTERS)
    written = pen.write("", Manner(most=50))[0]
    assert (written.text, written.ended_by, written.tokens) == ("ab\nc", END, 4)


@pytest.mark.parametrize(
    ("stop", "text"),
    [(("cd",), "ab"), (("x", "d"), "abc"), (("abcde",), ""), (("zz",), "abcdefgh"), (("\n",), "abcdefgh")],
)
def test_a_stop_string_ends_the_text_and_is_not_shown(stop, text):
    pen = Writer(Told([*LETTERS.encode("abcdefgh"), EOS]), LETTERS)
    manner = Manner(most=8, stop=stop)
    written = pen.write("", manner)[0]
    assert written.text == text and written.ended_by == (STOP if text != "abcdefgh" else MOST)
    assert "".join(pen.stream("", manner)) == text


def test_nothing_that_may_begin_a_stop_string_is_told_too_early():
    pen = Writer(Told(LETTERS.encode("abcabd")), LETTERS)
    pieces = list(pen.stream("", Manner(most=6, stop=("abd",))))
    assert "".join(pieces) == "abc"


def test_bytes_are_told_when_their_character_is_whole():
    vocabulary = {letter: number for number, letter in enumerate(byte_letters().values())}
    tokenizer = ByteLevel(vocabulary, [])
    text = "né\nä€😀"
    pen = Writer(Told(tokenizer.encode(text), tokenizer.size), tokenizer, opening=BOS)
    manner = Manner(most=len(text.encode()), temperature=0)
    assert list(pen.stream("x", manner)) == list(text) and pen.write("x", manner)[0].text == text


def test_subwords_go_on_with_the_line_they_stand_in():
    words = Symbols("words", ["", "the", "cat", "sat"], "nfc")
    pen = Writer(Told([*words.encode("cat sat"), EOS, *words.encode("the cat")], words.size), words)
    assert pen.write("the", Manner(most=5, temperature=0))[0].text == " cat sat\nthe cat"


def test_no_run_of_tokens_is_written_twice():
    pen = writer(seed=3)
    text = pen.write("ab", Manner(most=60, temperature=0.3, no_repeat=3))[0].text
    ids = pen.ids("ab" + text)
    runs = [tuple(ids[place : place + 3]) for place in range(len(ids) - 2)]
    assert len(set(runs)) == len(runs)


def test_what_was_written_becomes_less_likely():
    logits = torch.tensor([[2.0, -1.0, 0.5, 4.0]])
    found = discourage(logits, torch.tensor([[0, 1, 1]]), 2.0)
    assert found.tolist() == [[1.0, -2.0, 0.5, 4.0]] and logits[0, 0] == 2.0
    told = Told(LETTERS.encode("a"))
    often = Writer(told, LETTERS).write("", Manner(most=10, temperature=0))[0].text
    rarely = Writer(told, LETTERS).write("", Manner(most=10, temperature=0, repetition=1e6))[0].text
    assert often == "a" * 10 and len(set(rarely)) > 5


def test_min_p_keeps_what_is_nearly_as_likely_as_the_likeliest():
    probabilities = torch.tensor([[0.5, 0.3, 0.15, 0.05]])
    kept, ids = narrow(probabilities, 0, 1.0, min_p=0.4)
    assert ids is None and kept.tolist() == [[0.5, 0.30000001192092896, 0.0, 0.0]]
    kept, ids = narrow(probabilities, 3, 0.7, min_p=0.2)
    assert ids.tolist() == [[0, 1, 2]] and (kept > 0).tolist() == [[True, True, False]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"most": 0}, "at least 1 token can be written, not 0"),
        ({"temperature": -1.0}, "the temperature (-1.0) must be 0"),
        ({"repetition": 0.0}, "the repetition penalty (0.0) must be above 0"),
        ({"stop": ("",)}, "a stop string cannot be empty"),
        ({"top_p": 0.0}, "decode.top_p (0.0)"),
        ({"min_p": 2.0}, "decode.min_p (2.0)"),
    ],
)
def test_a_manner_that_cannot_be_is_refused(values, message):
    with pytest.raises((UsageError, ConfigError)) as caught:
        Manner(**values)
    assert message in str(caught.value)


def test_a_prompt_is_read_as_text_that_goes_on():
    pen = writer()
    assert pen.ids("ab\nc") == [EOS, *LETTERS.encode("ab"), EOS, *LETTERS.encode("c")]
    assert encode_text(LETTERS, "ab\n") == [*LETTERS.encode("ab"), EOS]
