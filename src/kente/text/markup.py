"""HTML read without losing a byte: tags, comments and text by their places.

The tokens follow the HTML standard as far as telling tags from text goes. `html.parser` needs quadratic time for some pages, gives no
places, and differs between versions of Python.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Literal


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


BLOCKS = _names(
    """address applet area article aside audio base basefont blockquote body br canvas caption center col colgroup dd details dialog dir div
    dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link
    main map menu meta nav noembed noframes noscript object ol optgroup option p param plaintext pre script search section select slot
    style summary table tbody td template textarea tfoot th thead title tr track ul video xmp"""
)
"""Elements that end a passage; all others, and those that HTML does not know, stand inside a sentence."""
VOID = _names("area base br col embed hr img input link meta param source track wbr")
RAW = _names("script style textarea title xmp iframe noembed noframes plaintext")
"""Elements whose content holds no tags."""
LEFT_ALONE = _names(
    "script style textarea xmp iframe noembed noframes plaintext code pre kbd samp var svg math tt template"
)
"""Elements whose content is not language."""

_TAG = re.compile(
    r"""<(/?)([A-Za-z][^\s/>]*+)((?:[^"'>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+|["'])*+)>"""  # quotes hide ">" only after "="
)
_BEGINNING = re.compile(r"</?[A-Za-z]")
_SHORT_TAG = re.compile(r"""<(/?)([A-Za-z][^\s/<>"']*+)([^<>"']*+)>""")
_OTHER = re.compile(r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?=[^A-Za-z]))[^>]*+(?:>|\Z)", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([^\s"'>/=][^\s>/=]*+)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+))?+""")
SPACES = " \t\n\r\f"

Kind = Literal["text", "open", "close", "other"]
Escape = Literal["text", "html", '"', "'", "bare"]


@dataclass(frozen=True, slots=True)
class Token:
    """A stretch of a page: text, a tag, or something else (a comment, a declaration, the content of a script)."""

    kind: Kind
    start: int
    end: int
    name: str = ""
    attributes: tuple[int, int] = (0, 0)
    """Where in the page a tag's attributes stand."""


def tokens(page: str) -> Iterator[Token]:
    """The page in stretches, one after the other, nothing left out."""
    place, text_from, pattern = 0, 0, _TAG
    while (place := page.find("<", place)) >= 0:
        found = _OTHER.match(page, place) or pattern.match(page, place)
        if found is None and pattern is _TAG and _BEGINNING.match(page, place):
            pattern = _SHORT_TAG  # a quote is never closed; looking for its end again from every tag would take quadratic time
            continue
        if found is None:
            place += 1  # a "<" that is text
            continue
        if text_from < place:
            yield Token("text", text_from, place)
        place = text_from = found.end()
        if found.re is _OTHER:
            yield Token("other", found.start(), place)
            continue
        token = Token("close" if found[1] else "open", found.start(), place, found[2].lower(), found.span(3))
        yield token
        if token.kind == "open" and token.name in RAW:
            place = text_from = yield from _raw_content(page, token)
    if text_from < len(page):
        yield Token("text", text_from, len(page))


def _raw_content(page: str, opening: Token) -> Generator[Token, None, int]:
    """What stands up to the end tag of an element without tags inside; returns where that is."""
    ending = re.compile(rf"</{re.escape(opening.name)}(?=[\s/>])", re.IGNORECASE).search(page, opening.end)
    end = ending.start() if ending and opening.name != "plaintext" else len(page)
    if opening.end < end:
        yield Token("text" if opening.name == "title" else "other", opening.end, end)
    return end


def attributes(page: str, token: Token) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of each attribute with a value; the quotes are part of the value."""
    for found in _ATTRIBUTE.finditer(page, *token.attributes):
        if found[2] is not None:
            yield found[1].lower(), *found.span(2)


def is_left_alone(page: str, token: Token) -> bool:
    if token.name in LEFT_ALONE:
        return True
    for name, start, end in attributes(page, token):
        value = page[start:end].strip("\"'").lower()
        if (name == "translate" and value == "no") or (name == "class" and "notranslate" in value.split()):
            return True
    return False


_ESCAPES: dict[Escape, dict[int, str]] = {
    "text": {},
    "html": str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\xa0": "&nbsp;"}),
    '"': str.maketrans({"&": "&amp;", '"': "&quot;", "<": "&lt;", "\xa0": "&nbsp;"}),
    "'": str.maketrans({"&": "&amp;", "'": "&#39;", "<": "&lt;", "\xa0": "&nbsp;"}),
}
_ESCAPES["bare"] = {**_ESCAPES["html"], **{ord(c): f"&#{ord(c)};" for c in SPACES + "\"'`="}}  # a value without quotes


def escaped(text: str, escape: Escape) -> str:
    """Text as it is written where `escape` says."""
    return text.translate(_ESCAPES[escape])
