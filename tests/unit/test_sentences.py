"""Where sentences end, in many scripts, and where they only seem to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.text.sentences import (
    Sentence,
    cut_in_two,
    glue,
    is_blank,
    line_spans,
    sentence_spans,
    split_sentences,
)

TWO_OR_MORE = [
    ["It rains.", "We stay in."],
    ["Stop!", "Who goes there?", "A friend."],
    ["He said “no.”", "She left."],
    ["(It was late.)", "Nobody came."],
    ["Was it true?!", "Yes."],
    ["Es war 1989.", "Die Mauer fiel."],
    ["¡Hola!", "¿Qué tal?"],
    ["Il part.", "« Adieu », dit-il."],
    ["It rains.", "- So what?"],
    ["a man sleeps .", "a dog runs ."],
    ["A man sleeps .", "A dog runs !", "Good ."],
    ["今天下雨。", "我们在家。"],
    ["行くの？", "はい！", "行こう。"],
    ["बारिश हो रही है।", "हम घर पर हैं।"],
    ["ዛሬ ዝናብ ነው።", "ቤት ነን።"],
    ["هل تمطر؟", "نعم."],
    ["Идёт дождь.", "Мы дома."],
    ["Ɛyɛ anwonwa.", "Ɔbɛba."],
    ["ዛሬ ዝናብ ነው፡፡", "ቤት ነን፡፡"],
    ["بارش ہو رہی ہے۔", "ہم گھر پر ہیں۔"],
    ["မိုးရွာနေတယ်။", "အိမ်မှာနေတယ်။"],
    ["Անձրև է։", "Տանն ենք։"],
    ["See www.example.org.", "Then write to me@example.org.", "Bye."],
    ["She asked: “Why?”", "Nobody knew."],
]

ONE = [
    "It rains.",
    "Mr. Smith met Dr. Jones and Mrs. Brown.",
    "Wir essen z.B. Äpfel und d.h. Obst.",
    "Take fruit, e.g. Apples or i.e. Pears.",
    "J. S. Bach and J.R.R. Tolkien never met.",
    "The U.S. Army left.",
    "Pi is 3.14 and 1.000 is a thousand.",
    "Am 3. Oktober feiern wir.",
    "Ludwig XIV. König von Frankreich",
    "See Fig. 3 and No. 5 on pp. 40.",
    "Well... I do not know.",
    "Well… I do not know.",
    "Wait . . . What ?",
    "“Stop!” she cried.",
    "« Vraiment ? » dit-il.",
    "Write to someone.else@example.org or see www.example.org today",
    "「行く。」と言った",
    "no end mark at all",
    "...",
    "?!",
    ".",
    "e . g . apples",
    "He won 3-2. 40 people watched",
    "Bw. Otieno na Mhe. Mutua walikutana.",
    "Version 2.0.1 of example.org/a.b?c=d.e is out",
    "Mme. Curie et Mlle. Dupont",
]


@pytest.mark.parametrize("sentences", TWO_OR_MORE, ids=lambda s: s[0])
def test_sentences_are_told_apart(sentences: list[str]) -> None:
    spaced = "" if any(mark in sentences[0] for mark in "。？") and "هل" not in sentences[0] else " "
    found = split_sentences(spaced.join(sentences))
    assert [s.text for s in found] == sentences
    assert [s.gap for s in found] == [spaced] * (len(sentences) - 1) + [""]


@pytest.mark.parametrize("text", ONE)
def test_what_only_looks_like_an_end_does_not_split(text: str) -> None:
    assert split_sentences(text) == [Sentence(text)]


@pytest.mark.parametrize("left", [s[0] for s in TWO_OR_MORE])
@pytest.mark.parametrize("between", ["  ", "\t", "\u00a0", " \u3000"])
def test_any_space_between_sentences_becomes_one(left: str, between: str) -> None:
    assert split_sentences(f" {left}{between}Then more. ") == [Sentence(left, " "), Sentence("Then more.")]


def test_line_breaks_always_split_and_are_kept() -> None:
    assert split_sentences("a title\n\nThe text. It ends.\r\nand more\n") == [
        Sentence("a title", "\n\n"),
        Sentence("The text.", " "),
        Sentence("It ends.", "\n"),
        Sentence("and more"),
    ]
    assert split_sentences("\n one \n") == [Sentence("one")]


def test_blank_text_has_no_sentences() -> None:
    for text in ("", " ", "\n\n", "\t \u00a0\u3000"):
        assert split_sentences(text) == [] and is_blank(text)
    assert is_blank("\u200b\ufeff\x00 \u200e") and not is_blank(" .\u200b") and not is_blank("\ue000")


@given(st.text(alphabet=st.sampled_from("aB .!?…。？।\"”)(«»\n\t\u00a0३1é我-'"), max_size=60))
def test_nothing_but_space_is_ever_lost(text: str) -> None:
    found = split_sentences(text)
    assert "".join("".join(s.text for s in found).split()) == "".join(text.split())
    assert all(s.text and s.text == s.text.strip() for s in found)


@given(st.text() | st.text(alphabet=st.sampled_from("aB .!?…。？।\"”)(«»\n\r\t\u00a0\u2028३1é我-'"), max_size=60))
def test_spans_are_in_order_and_only_space_stands_outside_them(text: str) -> None:
    for spans in (sentence_spans(text), line_spans(text)):
        outside, place = "", 0
        for start, end in spans:
            assert place <= start < end and not text[start].isspace() and not text[end - 1].isspace()
            outside += text[place:start]
            place = end
        assert not (outside + text[place:]).strip()


def test_lines_end_at_every_kind_of_line_break() -> None:
    text = " one. Two\r\nthree\rfour\u2028five\x85\n \nsix "
    assert [text[start:end] for start, end in line_spans(text)] == ["one. Two", "three", "four", "five", "six"]


@pytest.mark.parametrize(
    "text",
    [
        ". " * 100_000,
        "!" * 200_000,
        "A. " * 60_000,
        "a\n" * 200_000,
        "a" + "\n" * 200_000 + "b",
        "。" * 100_000,
        "(" * 200_000,
        " " * 200_000 + "x",
    ],
)
@pytest.mark.timeout(60)  # quadratic would take minutes
def test_nothing_is_lost_of_very_long_texts(text: str) -> None:
    parts = split_sentences(text)
    assert "".join("".join(part.text.split()) for part in parts) == "".join(text.split())


def test_long_sentences_are_cut_at_a_clause_near_the_middle() -> None:
    first, second = cut_in_two(Sentence("one two, three four five, six seven eight", "\n"))
    assert (first, second) == (Sentence("one two, three four five,", " "), Sentence("six seven eight", "\n"))
    assert cut_in_two(Sentence("我们今天在家，明天出去")) == [Sentence("我们今天在家，", ""), Sentence("明天出去")]


def test_without_clauses_between_words_and_without_words_in_scripts_that_have_no_spaces() -> None:
    assert [s.text for s in cut_in_two(Sentence("x, bbb cc dd ee ffff"))] == ["x, bbb cc", "dd ee ffff"]
    assert [s.text for s in cut_in_two(Sentence("我们今天在家"))] == ["我们今", "天在家"]
    assert cut_in_two(Sentence("unbreakable")) == []


def test_spaces_are_put_where_the_target_needs_them() -> None:
    assert glue("It rains.", "") == " "
    assert glue("下雨。", "") == ""
    assert glue("下雨。", " ") == " "
    assert glue("It rains.", "\n") == "\n"
