"""Texts and pages translated without harm. Translations are made up here, so that every letter that comes back is accounted for."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kente.text.placing import Link, piece_links
from kente.text.reading import Reading, Written, read

Translate = Callable[[str], str]


def translated(text: str, translate: Translate, kind: str = "text", **how: bool) -> Written:
    """Both rounds."""
    reading = read(text, kind, **how)  # type: ignore[arg-type]
    first = [translate(sentence) for sentence in reading.sentences]
    return reading.put_together(first, [translate(part) for part in reading.again(first)])


def rot13(text: str) -> str:
    """A language whose words are as long as ours, and which no address or placeholder survives."""
    return codecs.encode(text, "rot13")


def dictionary(**words: str) -> Translate:
    """Word by word; punctuation stays."""
    return lambda text: re.sub(r"[^\W\d_]+", lambda found: words.get(found[0], found[0]), text)


# ---------------------------------------------------------------- nothing is lost

ODD = [
    "Hello there. ",
    "We stay",
    "STOP NOW RIGHT",
    "z.B. ",
    "“No.” ",
    "我们在家。",
    "हाँ।",
    "é",
    "😀",
    "3.14",
    "%s",
    "{name}",
]
ODD += [
    "https://example.org/a?b",
    "a@b.org",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\u00a0",
    "\u2028",
    "\u00ad",
    "&amp;",
    "<!-- c -->",
]
ODD += ["<b>", "</b>", "<p>", "<br>", "<code>x</code>", '<img alt="A dog. Two">', "<a title=Home>", "</a>"]


def texts() -> st.SearchStrategy[str]:
    return st.text() | st.lists(st.sampled_from(ODD), max_size=20).map("".join)


@given(texts(), st.sampled_from(["text", "html", "subtitle"]), st.booleans(), st.booleans())
def test_a_text_whose_sentences_stay_comes_back_letter_for_letter(
    text: str, kind: str, split: bool, lowercase: bool
) -> None:
    reading = read(text, kind, split=split, lowercase=lowercase)  # type: ignore[arg-type]
    assert reading.again(reading.sentences) == []
    written = reading.put_together(reading.sentences)
    assert written.text == text and written.warnings == ()
    for sentence, placed in zip(reading.sentences, written.sentences, strict=True):
        assert placed.source == placed.target
        assert placed.target_span(0, len(sentence)) is not None


@given(texts(), st.sampled_from(["text", "html", "subtitle"]))
def test_whatever_is_said_to_whatever_nothing_breaks_and_places_are_right(text: str, kind: str) -> None:
    written = translated(text, lambda sentence: f"<{sentence[::-1]}&", kind)
    assert all(0 <= one.start <= one.end <= len(written.text) for one in written.warnings)
    for placed in written.sentences:
        assert 0 <= placed.target[0] <= placed.target[1] <= len(written.text)


WORDS = ["one", "two.", "Three", "four,", "Bonnet", "of", "RIGHT"]
KEPT = ["https://example.org/x", "%s", "{name}", "${x}", "me@example.org", "😀", "<b>", "</i>", "42", "%(n)d", "#topic"]


SPACES = [" ", "  ", "\n", "\r\n\t"]


@given(st.lists(st.tuples(st.sampled_from(WORDS + KEPT), st.sampled_from(SPACES)), max_size=15))
def test_words_are_translated_and_all_else_stands_where_it_stood(bits: list[tuple[str, str]]) -> None:
    text = "".join(bit + space for bit, space in bits)
    expected = "".join((rot13(bit) if bit in WORDS else bit) + space for bit, space in bits)
    assert translated(text, rot13).text == expected


INLINE = ["b", "i", "a href='x'", 'span title="5"', "x-tag"]


@st.composite
def marked_up(draw: st.DrawFn, depth: int = 0) -> tuple[str, str]:
    """(page, page with its words in rot13): words one space apart, tags right at the words, entities, code."""
    pairs = []
    for _ in range(draw(st.integers(1, 4))):
        choice = draw(st.integers(0, 9 if depth < 2 else 5))
        if choice <= 3:
            word = draw(st.sampled_from(["one", "Two", "three", "gnu", "tree", "house", "Ben"]))
            pairs.append((word, rot13(word)))
        elif choice == 4:
            pairs.append(draw(st.sampled_from([("x &lt; y", "k &lt; l"), ("R&amp;D", "E&amp;Q"), ("42", "42")])))
        elif choice == 5:
            pairs.append(("<code>f(x)</code>",) * 2)
        else:
            tag = draw(st.sampled_from(INLINE))
            inside = draw(marked_up(depth + 1))
            pairs.append(tuple(f"<{tag}>{side}</{tag.split()[0]}>" for side in inside))
    return " ".join(pair[0] for pair in pairs), " ".join(pair[1] for pair in pairs)


@example([("one Two <b>Two Two</b>", "bar Gjb <b>Gjb Gjb</b>")])  # found twice, one place within the other
@example([("<b>one 42 one</b>", "<b>bar 42 bar</b>")])  # a number inside what is found as a whole
@given(st.lists(marked_up(), min_size=1, max_size=3))
def test_tags_entities_and_code_of_a_page_stand_where_they_stood(paragraphs: list[tuple[str, str]]) -> None:
    page, expected = ("".join(f"<p class=x>{side}.</p>\n" for side in sides) for sides in zip(*paragraphs, strict=True))
    assert translated(page, rot13, "html").text == expected


# ---------------------------------------------------------------- sentences


def test_sentences_are_asked_for_one_by_one_and_space_between_them_stays() -> None:
    reading = read("  Good day.   How are you?\r\n\r\n\tFine! ")
    assert reading.sentences == ["Good day.", "How are you?", "Fine!"]
    assert reading.put_together(["Eins.", "Zwei?", "Drei!"]).text == "  Eins.   Zwei?\r\n\r\n\tDrei! "


def test_models_that_learnt_whole_lines_are_asked_for_whole_lines() -> None:
    assert read("Good day. How are you?\nFine.", split=False).sentences == ["Good day. How are you?", "Fine."]


@pytest.mark.parametrize(
    "text", ["", " \n", "...", "3.14 €", "😀 👍", "https://example.org", "%s: {0}", "— * —", "١٢٣"]
)
def test_what_is_no_language_passes_through(text: str) -> None:
    reading = read(text)
    assert reading.sentences == [] and reading.again([]) == []
    assert reading.put_together([]) == Written(text)


def test_a_script_without_spaces_gets_them_in_one_that_has_them_and_not_the_other_way() -> None:
    assert translated(
        "今天下雨。我们在家。", {"今天下雨。": "It rains.", "我们在家。": "We stay in."}.__getitem__
    ).text == ("It rains. We stay in.")
    assert read("今天下雨。我们在家。").put_together(["雨だ。", "家にいる。"]).text == "雨だ。家にいる。"


def test_headings_get_no_full_stop_that_they_have_not() -> None:
    for translation in ("Das alte Haus.", "Das alte Haus ."):
        assert read("The old house").put_together([translation]).text == "Das alte Haus"
        assert read("The old house.").put_together([translation]).text == translation
    assert read("The old house and so on").put_together(["Das Haus usw."]).text == "Das Haus usw."
    assert read("An old house").put_together(["古い家。"]).text == "古い家"


def test_odd_spaces_are_plain_for_the_model() -> None:
    assert read("Quoi\u00a0? Une\tautre\u3000chose").sentences == ["Quoi ?", "Une autre chose"]


def test_places_count_letters_of_both_texts() -> None:
    written = read("Ab cd. Ef gh.").put_together(["Xyz.", "Q."])
    assert [placed.source for placed in written.sentences] == [(0, 6), (7, 13)]
    assert [written.text[slice(*placed.target)] for placed in written.sentences] == ["Xyz.", "Q."]
    assert written.sentences[1].source_span(3, 6) == (10, 13)
    assert written.sentences[1].target_span(0, 2) == (5, 7) and written.sentences[1].target_span(0, 3) is None


def test_words_of_a_page_are_found_again_among_tags_and_references() -> None:
    reading = read("<p>Caf&eacute; <b>noir</b></p>", "html")
    written = reading.put_together(["A&B black"], links=[[(0, 4, 0, 3), (5, 9, 4, 9)]])
    assert written.text == "<p>A&amp;B <b>black</b></p>"
    (placed,) = written.sentences
    assert reading.page[slice(*placed.source_span(0, 4))] == "Caf&eacute;"
    span = placed.target_span(0, 3)
    assert span is not None and written.text[slice(*span)] == "A&amp;B"
    span = placed.target_span(4, 9)
    assert span is not None and written.text[slice(*span)] == "black"


# ---------------------------------------------------------------- what must survive


def test_what_was_lost_is_translated_around_and_said() -> None:
    reading = read("Visit https://example.org for more.")
    first = ["Besuchen Sie die Seite."]
    assert reading.again(first) == ["Visit", "for more."]
    written = reading.put_together(first, ["Besuchen Sie.", "Für mehr."])
    assert written.text == "Besuchen Sie https://example.org für mehr."
    (notice,) = written.warnings
    assert notice.kind == "parts" and notice.message == "translated in parts, to keep https://example.org"
    assert (notice.start, notice.end) == (0, len(written.text))


def test_without_a_second_round_what_was_lost_is_named() -> None:
    written = read("Pay %s to {name}.").put_together(["Zahle {name} 7 an {x}."])
    assert written.text == "Zahle {name} 7 an {x}."
    assert [(one.kind, one.message) for one in written.warnings] == [
        ("lost", "%s is not in the translation"),
        ("added", "the translation has {x}, which the text has not"),
        ("number", "the translation has 7, which the text has not"),
    ]


def test_what_survived_is_left_in_peace() -> None:
    reading = read("Open {file} now.")
    assert reading.again(["Jetzt {file} öffnen."]) == []
    assert reading.put_together(["Jetzt {file} öffnen."]).warnings == ()


def test_a_word_keeps_its_capital_in_a_part_if_the_whole_sentence_gives_it_one() -> None:
    reading = read("See {x} house and {y} more.")
    second = ["Siehe", "Haus und.", "Mehr."]
    assert reading.put_together(["Siehe das Haus, mehr."], second).text == "Siehe {x} Haus und {y} mehr."


def test_parts_of_a_script_without_spaces_are_set_apart_from_what_they_surround() -> None:
    reading = read("访问https://example.org/了解更多。")
    assert reading.again(["x"]) == ["访问", "了解更多。"]
    assert reading.put_together(["x"], ["Visit", "to learn more."]).text == "Visit https://example.org/ to learn more."
    written = read("我<b>爱</b>你{x}家", "html").put_together(["x"], ["I", "love", "you", "home"])
    assert written.text == "I <b>love</b> you {x} home"


def test_a_part_without_an_answer_stays_and_is_said() -> None:
    written = read("Visit https://example.org today.").put_together(["x"], ["", "heute."])
    assert written.text == "Visit https://example.org heute."
    assert [one.kind for one in written.warnings] == ["parts", "untranslated"]


def test_no_answer_leaves_the_text_and_is_said() -> None:
    written = read("One. Two.").put_together(["", "Zwei."])
    assert written.text == "One. Zwei."
    assert [(one.kind, one.start, one.end) for one in written.warnings] == [("untranslated", 0, 4)]


def test_numbers_that_changed_are_said_where_they_stand() -> None:
    written = read("All fine! 20 men came.").put_together(["Gut!", "30 Männer kamen."])
    (notice,) = written.warnings
    assert (notice.kind, notice.message) == ("number", "20 became 30")
    assert written.text[notice.start : notice.end] == "30 Männer kamen."


# ---------------------------------------------------------------- capitals


def test_a_shout_is_asked_for_in_small_letters_and_answered_in_capitals() -> None:
    reading = read("DO NOT OPEN {x}! Thanks.")
    assert reading.sentences == ["Do not open {x}!", "Thanks."]
    assert reading.put_together(["{x} nicht öffnen!", "danke."]).text == "{x} NICHT ÖFFNEN! Danke."


def test_models_without_capitals_are_asked_without_and_get_them_back() -> None:
    reading = read("Kofi lives in Accra. he sleeps.", lowercase=True)
    assert reading.sentences == ["kofi lives in accra. he sleeps."]  # a small letter begins no sentence
    assert reading.put_together(["kofi wohnt in accra. er schläft."]).text == "Kofi wohnt in Accra. er schläft."


# ---------------------------------------------------------------- tags


def words_of(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in re.finditer(r"\w+", text)]


def linked(source: str, target: str, pairs: Sequence[tuple[int, int]]) -> list[Link]:
    sources, targets = words_of(source), words_of(target)
    return [(*sources[s], *targets[t]) for s, t in pairs]


def with_links(page: str, translation: str, pairs: Sequence[tuple[int, int]]) -> Written:
    reading = read(page, "html")
    (sentence,) = reading.sentences
    links = [linked(sentence, translation, pairs)]
    assert reading.again([translation], links) == []
    return reading.put_together([translation], [], links)


@pytest.mark.parametrize(
    ("page", "translation", "pairs", "written"),
    [
        ("The <b>white</b> house", "La maison blanche", [(0, 0), (2, 1), (1, 2)], "La maison <b>blanche</b>"),
        ("<b>White</b> house", "Maison blanche", [(1, 0), (0, 1)], "Maison <b>blanche</b>"),
        ("The house is <b>white</b>", "Blanche est la maison", [(3, 0), (2, 1), (0, 2), (1, 3)], "<b>Blanche</b> est la maison"),
        ("<i><b>White</b> house</i>", "Maison blanche", [(1, 0), (0, 1)], "<i>Maison <b>blanche</b></i>"),
        ("<b>The white</b> house", "La maison blanche", [(0, 0), (2, 1), (1, 2)], "<b>La maison blanche</b>"),
        ("I see <a href='x'>the <i>red</i> car</a> now", "maintenant je vois la voiture rouge",
         [(5, 0), (0, 1), (1, 2), (2, 3), (4, 4), (3, 5)], "Maintenant je vois <a href='x'>la voiture <i>rouge</i></a>"),
        ("a <b>b</b> <i>c</i> d", "w z y x", [(0, 0), (3, 1), (2, 2), (1, 3)], "w z <i>y</i> <b>x</b>"),
        ("one <img src=a> two", "zwei eins", [(0, 1), (1, 0)], "<img src=a>zwei eins"),
        ("go <b></b> home", "nach hause gehen", [(1, 0), (1, 1), (0, 2)], "<b></b>nach hause gehen"),
        ("x <!-- note --> y", "u v", [(0, 0), (1, 1)], "u <!-- note -->v"),
    ],
)  # fmt: skip
def test_tags_go_with_their_words(page: str, translation: str, pairs: list[tuple[int, int]], written: str) -> None:
    assert with_links(page, translation, pairs).text == written


def test_stray_links_do_not_tear_an_element_apart() -> None:
    page, translation = "see <b>the big red dog</b> run there now", "a b c d e f g h i"
    pairs = [(0, 0), (1, 1), (2, 2), (5, 3), (3, 4), (4, 5), (6, 6), (7, 7), (1, 8)]
    assert with_links(page, translation, pairs).text == "a <b>b c d e f</b> g h i"


def test_without_links_the_parts_are_looked_for_in_the_whole() -> None:
    reading = read("The <b>white</b> house.", "html")
    assert reading.again(["La maison blanche."]) == ["The", "white", "house."]
    written = reading.put_together(["La maison blanche."], ["Le.", "Blanche.", "Maison."])
    assert written.text == "La maison <b>blanche</b>." and written.warnings == ()


def test_parts_that_are_not_found_in_the_whole_are_put_side_by_side() -> None:
    written = read("The <b>white</b> house.", "html").put_together(["La maison blanche."], ["la", "pâle", "case."])
    assert written.text == "La <b>pâle</b> case."
    assert [one.message for one in written.warnings] == ["translated in parts, to keep tags in their places"]


def test_without_a_second_round_the_place_of_tags_is_a_guess_and_said() -> None:
    written = read("The <b>white</b> house.", "html").put_together(["La maison blanche."])
    assert sorted(re.findall("<[^>]*>", written.text)) == ["</b>", "<b>"]
    assert re.sub("<[^>]*>", "", written.text) == "La maison blanche."
    assert [one.kind for one in written.warnings] == ["tags"]


def test_what_is_the_same_on_both_sides_needs_no_second_round() -> None:
    reading = read("Ask <b>Kofi 7</b> at <a href='u'>https://example.org</a>.", "html")
    translation = "Auf https://example.org frag Kofi 7."
    assert reading.again([translation]) == []
    assert reading.put_together([translation]).text == "Auf <a href='u'>https://example.org</a> frag <b>Kofi 7</b>."


def test_code_is_found_in_the_translation_or_put_back() -> None:
    reading = read("Call <code>f(&lt;x&gt;)</code> first.", "html")
    assert reading.sentences == ["Call f(<x>) first."]
    assert reading.put_together(["Zuerst f(<x>) rufen."]).text == "Zuerst <code>f(&lt;x&gt;)</code> rufen."
    assert reading.again(["Zuerst das rufen."]) == ["Call", "first."]
    assert reading.put_together(["Zuerst das."], ["Rufe", "zuerst."]).text == "Rufe <code>f(&lt;x&gt;)</code> zuerst."


def test_tags_that_open_in_one_sentence_and_close_in_another_stay_in_order() -> None:
    written = translated("<p>One <b>two. Three</b> four.</p>", rot13, "html")
    assert written.text == "<p>Bar <b>gjb. Guerr</b> sbhe.</p>"


def test_attributes_are_translated_with_their_own_quotes_and_escapes() -> None:
    page = """<img alt="A dog" src="A dog"><a title='big'>go</a><input placeholder=Name>"""
    words = dictionary(A="Ein", dog='"Hund"', big="it's", go="geh", Name="Dein Name")
    assert translated(page, words, "html").text == (
        """<img alt="Ein &quot;Hund&quot;" src="A dog"><a title='it&#39;s'>geh</a><input placeholder=Dein&#32;Name>"""
    )


def test_an_attribute_inside_a_sentence_moves_with_its_tag() -> None:
    reading = read('See <a title="Home page">home</a> now', "html")
    assert reading.sentences == ["See home now", "Home page"]
    links: list[list[Link]] = [linked("See home now", "jetzt heim sehen", [(2, 0), (1, 1), (0, 2)]), []]
    written = reading.put_together(["jetzt heim sehen", "Startseite"], links=links)
    assert written.text == 'Jetzt <a title="Startseite">heim</a> sehen'
    assert written.text[slice(*written.sentences[1].target)] == "Startseite"


def test_translations_cannot_bring_tags_into_a_page() -> None:
    written = translated("<p>hello world</p>", lambda _: "<script>alert(1)</script> & \u00a0", "html")
    assert written.text == "<p>&lt;script&gt;alert(1)&lt;/script&gt; &amp;</p>"
    assert html.unescape(written.text[3:-4]) == "<script>alert(1)</script> &"


def test_more_tags_than_a_sentence_has_are_kept_in_parts() -> None:
    page = " ".join(f"<b>word{chr(97 + n % 26)}</b>" for n in range(100))
    assert translated(page, rot13, "html").text == re.sub(r"(?<=>)\w+", lambda found: rot13(found[0]), page)


def test_subtitles_have_tags_but_no_references() -> None:
    reading = read("<i>Tom & Ann</i> {\\an8}&lt; go", "subtitle")
    assert reading.sentences == ["Tom & Ann {\\an8}&lt; go"]


def test_pieces_of_words_are_found_in_their_sentences() -> None:
    links = piece_links(
        "The house", "La maison", ["▁The", "▁ho", "use"], ["▁La", "▁mai", "son"], [(0, 0), (1, 1), (2, 2)]
    )
    assert links == [(0, 3, 0, 2), (4, 6, 3, 6), (6, 9, 6, 9)]
    assert piece_links("The x", "y", ["▁The", "<0xE2>"], ["y"], [(1, 0)]) == []


def test_a_reading_wants_as_many_translations_as_it_has_sentences() -> None:
    reading: Reading = read("One. Two.")
    with pytest.raises(ValueError, match="shorter"):
        reading.put_together(["Eins."])
    with pytest.raises(AssertionError, match="2 parts were asked for, 1 came back"):
        read("go {x} now").put_together(["los"], ["los"])


@pytest.mark.parametrize("kind", ["text", "html"])
@pytest.mark.timeout(60)  # quadratic would take minutes
def test_long_texts_take_linear_time(kind: str) -> None:
    for bit in (
        "Go {x} on. ",
        "go <b>on</b> ",
        "word ",
        "我们在家。",
        "x@y.org ",
        '<img alt="A b">',
        "https://a.org ",
        "A" + " " * 50,
    ):
        written = translated(bit * 3000, rot13, kind)
        assert len(written.text) >= 3000
