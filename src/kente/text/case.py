"""Capitals: in which letters a model is asked, and how its answer is dressed again.

Few models have read sentences in capitals only, so those are asked in small letters and answered in capitals. A model that has read
small letters only is asked in them, and its answer gets a capital where the source had one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kente.text.kept import blanked
from kente.text.sentences import Span

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_FIRST = re.compile(r"[^\W_]")
SHOUTED_LETTERS = 6
"""Capitals that are more than an abbreviation."""


def is_shouted(text: str, kept: Iterable[Span] = ()) -> bool:
    """Whether a sentence is all capitals: several words of them, or a long one."""
    words = [word for word in _WORD.findall(blanked(text, kept)) if len(word) > 1]
    letters = "".join(words)
    return len(letters) >= SHOUTED_LETTERS and letters.isupper() and not any(map(_uncased, letters))


def lowered(text: str, kept: Sequence[Span] = (), *, capital: bool = False) -> str:
    """In small letters but for what is kept, character by character; `capital` leaves the first letter large."""
    small = text.lower()
    if len(small) != len(text):  # the small form of a few letters is two characters
        small = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    letters = list(small)
    for start, end in kept:
        letters[start:end] = text[start:end]
    first = _first_letter(text, kept)
    if capital and first is not None:
        letters[first] = text[first]
    return "".join(letters)


def dressed(
    text: str,
    kept: Sequence[Span],
    source: str,
    source_kept: Sequence[Span],
    *,
    shouted: bool,
    lowercase: bool,
    begins: bool = True,
) -> list[str]:
    """What to write for each character of a translation `text`, after the capitals of its source; `begins` says it begins a sentence."""
    letters = list(text)
    if shouted:
        letters = [c.upper() for c in text]
        for start, end in kept:
            letters[start:end] = text[start:end]
        return letters
    if lowercase:
        _dress_names(letters, text, source)
    first = _first_letter(text, kept)
    if begins and first is not None and _begins_large(source, source_kept, lowercase):
        word = _WORD.match(text, first)
        if word and word[0].islower():  # iPhone and eBay stay as they are
            letters[first] = letters[first].title()
    return letters


def _dress_names(letters: list[str], text: str, source: str) -> None:
    """Words that are the same on both sides get the source's capitals, in place; the capital of a first word says nothing."""
    names: dict[str, str] = {}
    for number, word in enumerate(_WORD.finditer(source)):
        if not word[0].islower() and not (number == 0 and word[0].istitle()):
            names.setdefault(word[0].lower(), word[0])
    for word in _WORD.finditer(text):
        name = names.get(word[0])
        if name is not None and len(name) == len(word[0]):
            letters[slice(*word.span())] = name


def _begins_large(text: str, kept: Sequence[Span], lowercase: bool) -> bool:
    """A sentence that begins with a capital; for a model without capitals, also one in a script that has none."""
    first = _first_letter(text, kept)
    return first is not None and (text[first].isupper() or (lowercase and _uncased(text[first])))


def _first_letter(text: str, kept: Sequence[Span]) -> int | None:
    """Where the first letter stands, if no digit and nothing kept comes before it."""
    first = _FIRST.search(text)
    if first is None or not first[0].isalpha() or (kept and kept[0][0] <= first.start()):
        return None
    return first.start()


def _uncased(letter: str) -> bool:
    return letter.lower() == letter.upper()
