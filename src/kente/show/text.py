"""Text from anywhere, made safe to put on a page: escaped, cut to a length, and never able to disturb what stands beside it."""

from __future__ import annotations

import html
import json
import unicodedata
from typing import Any

DOTTED_CIRCLE = "\u25cc"  # what Unicode lets a lonely combining mark stand on


def visible(text: str) -> str:
    """The same text with control characters drawn as pictures, and a leading combining mark set on a dotted circle."""
    shown = "".join(_picture(letter) for letter in text)
    return DOTTED_CIRCLE + shown if shown and unicodedata.combining(shown[0]) else shown


def _picture(letter: str) -> str:
    if letter < " ":
        return chr(0x2400 + ord(letter))
    unwritable = letter in "\ufffe\uffff" or unicodedata.category(letter) in ("Cc", "Cs")
    return "\ufffd" if unwritable else letter


def escaped(text: object) -> str:
    """For an element or for an attribute in double quotes."""
    return html.escape(visible(str(text)))


def isolated(text: object) -> str:
    """For running text of any language: a right-to-left word keeps its own order and leaves its neighbours theirs."""
    return f"<bdi>{escaped(text)}</bdi>"


def breadth(text: str) -> int:
    """How many narrow letters wide `text` is drawn: marks take no room, East Asian letters take two."""
    return sum(_breadth(letter) for letter in text)


def _breadth(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, most: int) -> str:
    """At most `most` letters of `text`, with an ellipsis where something is missing; marks stay with their letter."""
    if breadth(text) <= most:
        return text
    used = 0
    for place, letter in enumerate(text):
        used += _breadth(letter)
        if used > most - 1:
            return text[:place] + "…"
    return text


def embedded_json(value: Any) -> str:
    """JSON that may stand inside <script>: no `<` in it, so nothing in a text can close the element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
