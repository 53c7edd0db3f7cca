"""What must survive a translation is found, and missed when it is gone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.text.case import dressed, is_shouted, lowered
from kente.text.kept import blanked, compare_kept, compare_numbers, kept_spans, places_of


def kept(text: str) -> list[str]:
    return [text[start:end] for start, end in kept_spans(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See https://example.org/a?b=c#d, please.", ["https://example.org/a?b=c#d"]),
        ("(at http://example.org/x_(y))", ["http://example.org/x_(y)"]),
        ("(at http://example.org/x).", ["http://example.org/x"]),
        ("访问https://example.org/了解更多", ["https://example.org/"]),
        ("详情见example.org。", ["example.org"]),
        ("Go to www.example.com/path. Now", ["www.example.com/path"]),
        ("It ended.Start again", []),
        ("Write to some.one+tag@mail.example.org!", ["some.one+tag@mail.example.org"]),
        ("联系me@example.org了", ["me@example.org"]),
        ("Ask @ama or @kofi@example.social about #Twi and #1", ["@ama", "@kofi@example.social", "#Twi"]),
        ("Nice :smile: at 10:30:45", [":smile:"]),
        ("Hello {name}, {0} of {{ total }} {% if x %}", ["{name}", "{0}", "{{ total }}", "{% if x %}"]),
        ("a {remark with spaces} stays language", []),
        ("${user} has %d items, %s, %(name)s, %1$s, %-5.2f, %{x}, %%", ["${user}", "%d", "%s", "%(name)s", "%1$s", "%-5.2f", "%{x}", "%%"]),
        ("%1 of %2", ["%1", "%2"]),
        ("100%sure, 50% of it, 5 % de plus", []),
        ("%dpx wide", ["%d"]),
        ("$HOME costs $5", ["$HOME"]),
        ("Press <b>here</b> or <br/> if 1 < 2 > 0", ["<b>", "</b>", "<br/>"]),
        ("AT&amp;T &#233; R&D", ["&amp;", "&#233;"]),
        ("I ❤️ it 👩‍💻 🇬🇭", ["❤️", "👩‍💻", "🇬🇭"]),
        ("__init__ and snake_case", ["__init__"]),
        ("Nothing to see here.", []),
    ],
)  # fmt: skip
def test_what_must_survive_is_found_and_nothing_else(text: str, found: list[str]) -> None:
    assert kept(text) == found


BITS = (
    "www.",
    "example",
    ".com",
    "http://",
    "@",
    "#",
    ":",
    "{",
    "}",
    "%",
    "$",
    "_",
    "__",
    "&amp;",
    "<b>",
    "a",
    "1",
    " ",
    ".",
    "/",
    "❤",
)


@given(st.lists(st.sampled_from(BITS), max_size=8).map("".join))
def test_a_sign_before_a_text_changes_nothing_in_it(text: str) -> None:
    """Texts without any sign are not searched; this one has one."""
    assert kept(f"# {text}") == kept(text)


def test_what_is_missing_and_what_was_made_up_are_told() -> None:
    assert compare_kept(["%s", "%s", "https://example.org"], "%s sur https://example.org") == (["%s"], [])
    assert compare_kept(["{a}"], "{b}") == (["{a}"], ["{b}"])
    assert compare_kept([], "rien") == ([], [])
    assert compare_kept(["example.org"], "example.organic") == (["example.org"], [])
    assert compare_kept(["https://example.org/a"], "https://example.org/ab") == (
        ["https://example.org/a"],
        ["https://example.org/ab"],
    )


def test_strings_of_any_kind_are_found_where_they_stand_alone() -> None:
    text = "six x or foo() by foo()"
    found = places_of(["x", "foo()", "foo()"], text)
    assert [(start, text[start:end]) for start, end in found] == [(4, "x"), (9, "foo()"), (18, "foo()")]
    assert places_of(["x"], "x x") == [(0, 1)]


@given(st.text() | st.text(alphabet=st.sampled_from("a{}%s$<>&;:@#./h tp1\n")))
def test_spans_are_in_order_and_hold_what_is_then_found_again(text: str) -> None:
    spans = kept_spans(text)
    assert all(start < end for start, end in spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert compare_kept(kept(text), text)[0] == []
    assert len(blanked(text, spans)) == len(text)


@pytest.mark.parametrize("bit", ["a@", "{", "<a", "a.", "%", "#1", "a", "www.", ":a", "&a", "_", "😀", "%(", "a-"])
@pytest.mark.timeout(60)  # quadratic would take minutes
def test_looking_takes_linear_time(bit: str) -> None:
    assert all(end <= 100_000 * len(bit) for _, end in kept_spans(bit * 100_000))


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        ("In 1999 and 3.5 and 1,000", "1999 et 3,5 et 1.000", []),
        ("1.234,50", "1,234.50", []),
        ("1 000", "1 000", []),
        ("1\u202f000", "1,000", []),
        ("١٢ و ३", "12 and 3", []),
        ("20 men", "30 hommes", ["20 became 30"]),
        ("20 men, 5 dogs", "des hommes", ["20 is not in the translation", "5 is not in the translation"]),
        ("men", "7 hommes", ["the translation has 7, which the text has not"]),
        ("3.14", "314", ["3.14 became 314"]),
        ("5 and 5", "5", ["5 is not in the translation"]),
    ],
)
def test_numbers_are_compared_by_what_they_say(source: str, target: str, said: list[str]) -> None:
    assert compare_numbers(source, target) == said


# ---------------------------------------------------------------- capitals


@pytest.mark.parametrize("text", ["STOP RIGHT THERE", "ATTENTION!", "ДОСТУП ЗАПРЕЩЁН", "I AM HERE, {name}"])
def test_sentences_in_capitals_are_recognised(text: str) -> None:
    assert is_shouted(text, kept_spans(text))


@pytest.mark.parametrize(
    "text", ["NATO", "The USA", "OK", "A B C D E F G H", "GDP UN", "日本語日本語", "42", "McDONALDS IS HERE"]
)
def test_abbreviations_and_scripts_without_capitals_are_not_shouted(text: str) -> None:
    assert not is_shouted(text)


def test_small_letters_leave_what_is_kept() -> None:
    text = "WRITE TO Me@Example.ORG NOW"
    assert lowered(text, kept_spans(text)) == "write to Me@Example.ORG now"
    assert lowered(text, kept_spans(text), capital=True) == "Write to Me@Example.ORG now"
    assert lowered("İSTANBUL ΟΔΟΣ") == "İstanbul οδοσ"  # as many letters as before, whatever they are


def dress(text: str, source: str, shouted: bool = False, lowercase: bool = False) -> str:
    return "".join(dressed(text, kept_spans(text), source, kept_spans(source), shouted=shouted, lowercase=lowercase))


@pytest.mark.parametrize(
    ("text", "source", "written"),
    [
        ("bonjour.", "Hello.", "Bonjour."),
        ("Haus", "house", "Haus"),
        ("maison", "house", "maison"),
        ("iPhone kaufen", "Buy iPhone", "iPhone kaufen"),
        ("« bonjour »", "“Hello”", "« Bonjour »"),
        ("3 hommes", "Three men", "3 hommes"),
        ("https://a.org ist da", "Here is https://a.org", "https://a.org ist da"),
        ("hello", "ሰላም", "hello"),
    ],
)  # fmt: skip
def test_a_sentence_that_began_with_a_capital_does_so_again(text: str, source: str, written: str) -> None:
    assert dress(text, source) == written


def test_a_shout_is_answered_with_a_shout_but_for_what_is_kept() -> None:
    assert dress("groß ist {name}", "BIG IS {name}", shouted=True) == "GROSS IST {name}"


def test_small_letters_get_the_capitals_of_their_source() -> None:
    assert dress("kofi kommt aus accra und nasa .", "kofi comes from Accra and NASA .", lowercase=True) == (
        "kofi kommt aus Accra und NASA ."
    )
    assert dress("the house", "The house of The Hague", lowercase=True) == "The house"
    assert dress("the rain", "ዝናብ", lowercase=True) == "The rain"
