"""Pages cut into tags and text without losing a byte, as the standard library's parser would where it can."""

from __future__ import annotations

import html
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.text.markup import attributes, escaped, tokens
from kente.text.passages import Passage, page_passages

QUOTES = "\"'"
TAGS = ["<b>", "</b>", "<p>", "<script>", "</script>", "<title>", "</title>", "<code>", "</code>", "<x/>"]
SCRAPS = [*TAGS, "<a href='x>y'>", '<img alt="a b">', "<", ">", "</", "<!--", "-->", "<!", "<?", "=", '"', "'", "/"]
SCRAPS += ["a", "b ", " ", "\n", "&amp;", "&", "é", "我。"]


def pages() -> st.SearchStrategy[str]:
    """Anything at all, and the kind of rubbish that is nearly a page."""
    return st.text() | st.lists(st.sampled_from(SCRAPS), max_size=25).map("".join)


class Standard(HTMLParser):
    """What the standard library finds."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(("open", tag))
        self.found += [("value", f"{name}={value}") for name, value in attrs if value is not None]

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("close", tag))

    def handle_data(self, data: str) -> None:
        self.found.append(("text", data))


def ours(page: str) -> list[tuple[str, str]]:
    found = []
    for token in tokens(page):
        text = page[token.start : token.end]
        if token.kind == "text":
            found.append(("text", html.unescape(text)))
        elif token.kind in ("open", "close"):
            found.append((token.kind, token.name))
            for name, start, end in attributes(page, token) if token.kind == "open" else ():
                value = page[start + 1 : end - 1] if page[start] in QUOTES else page[start:end]
                found.append(("value", f"{name}={html.unescape(value)}"))
    return found


@st.composite
def proper_pages(draw: st.DrawFn) -> str:
    """Pages about whose meaning nobody can quarrel."""
    text = st.sampled_from(["a b", "x &lt; y", "caf&eacute;", "1 > 0", "&#233;&amp;", 'he said "no"'])
    value = st.sampled_from(["x", "a>b", "it's", "&quot;q&quot;", "a b", ""])
    bits = []
    for name in draw(st.lists(st.sampled_from(["p", "b", "A", "img", "x-y", "br"]), max_size=8)):
        bits.append(draw(text))
        quote = draw(st.sampled_from(['"', "'"]))
        chosen = draw(value)
        given_value = f" title={quote}{chosen}{quote}" if quote not in chosen else " hidden"
        bits.append(f"<{name}{given_value}>{draw(text)}</{name}>")
    return "".join(bits)


@given(proper_pages())
def test_tags_values_and_text_are_those_the_standard_library_finds(page: str) -> None:
    assert ours(page) == Standard(page).found


@given(pages())
def test_tokens_follow_one_another_and_leave_nothing_out(page: str) -> None:
    place = 0
    for token in tokens(page):
        assert token.start == place < token.end
        place = token.end
    assert place == len(page)


@given(pages())
def test_every_letter_of_a_passage_knows_where_it_stands(page: str) -> None:
    for passage in page_passages(page):
        assert len(passage.text) == len(passage.starts) == len(passage.ends)
        for letter, start, end in zip(passage.text, passage.starts, passage.ends, strict=True):
            assert start < end
            assert letter in html.unescape(page[start:end]) or (letter == " " and page[start:end].isspace())


@pytest.mark.parametrize(
    "bit",
    ["<a ", "</a ", '<a ="', "<!--", "<", "<script>", "<code>", "&amp", "<a b='", "<b>", " ", "<p>", "<a =\"'>'", "<?"],
)
@pytest.mark.timeout(60)  # quadratic would take minutes
def test_rubbish_takes_linear_time(bit: str) -> None:
    page = bit * 30_000
    assert sum(token.end - token.start for token in tokens(page)) == len(page)
    page_passages(page)


def passages(page: str) -> list[str]:
    return [passage.text.strip() for passage in page_passages(page) if passage.text.strip()]


def test_blocks_and_line_breaks_end_a_passage_and_other_tags_do_not() -> None:
    page = "<h1>One</h1><p>Two <b>and</b>\n  three<br>four</p>five <x-y>six</x-y><ul><li>seven<li>eight</ul>"
    assert passages(page) == ["One", "Two and three", "four", "five six", "seven", "eight"]


def test_what_is_not_language_is_left_alone() -> None:
    page = (
        "<style>p {}</style><script>var a = '<p>no</p>'</script><pre>no\nno</pre><textarea>no</textarea>"
        "<div translate=no>no <p>no</p></div><div class='a notranslate'>no</div><svg><text>no</text></svg>yes"
    )
    assert passages(page) == ["yes"]


def test_untranslated_elements_inside_a_sentence_are_part_of_it_but_fixed() -> None:
    (passage,) = page_passages("Call <code>f(&lt;x&gt;)</code> on <span translate=no>Kente <b>Hub</b></span> now")
    assert passage.text == "Call f(<x>) on Kente Hub now"
    assert [passage.text[one.start : one.end] for one in passage.fixed] == ["f(<x>)", "Kente Hub"]


def test_values_people_read_are_passages_of_their_own() -> None:
    page = """<img alt="A dog" src="a.png"><a title='It&#39;s'>go</a><input placeholder=Name value=x><p lang="en" aria-label="Top">"""
    assert sorted(passages(page)) == ["A dog", "It's", "Name", "Top", "go"]


def test_references_are_resolved_and_soft_hyphens_go() -> None:
    (passage,) = page_passages("Don&shy;au &amp; caf&eacute;&nbsp;&notathing; AT&T")
    assert passage.text == "Donau & café\xa0&notathing; AT&T".replace("&not", "¬")


@given(st.text(), st.sampled_from(["html", '"', "'", "bare"]))
def test_what_is_escaped_is_read_as_it_was(text: str, escape: str) -> None:
    written = escaped(text, escape)  # type: ignore[arg-type]
    assert html.unescape(written) == text
    assert not set(written) & {"html": set("<>"), '"': {'"'}, "'": {"'"}, "bare": set(" \t\n\r\f\"'`=<>")}[escape]


def test_plain_text_is_one_passage() -> None:
    passage = Passage.of_text("a b")
    assert (list(passage.starts), list(passage.ends)) == ([0, 1, 2], [1, 2, 3])
