"""In which script is a text written? The first word of a letter's Unicode name says it: LATIN, ETHIOPIC, ARABIC, ..."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

UNSPACED = frozenset({"Han or Kana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})
"""Scripts that put no spaces between words."""
_TOGETHER = dict.fromkeys(("Cjk", "Hiragana", "Katakana", "Bopomofo", "Ideographic"), "Han or Kana")
# what Unicode calls a letter, in one script or another
_LETTERS = frozenset({"Letter", "Syllable", "Syllabics", "Ideograph", "Character"})
# words that come before the script's name, or instead of it
_SKIPPED = frozenset({"Fullwidth", "Halfwidth", "Modifier", "Combining", "Superscript", "Subscript"})
_SEEN = 120  # characters looked at in a line: enough to know its script
# letters beyond the Latin blocks stand here (and some Latin ones): a plain set of ranges is searched twice as fast as \w
_BEYOND_LATIN = re.compile(
    "[\u0370-\u1dff\u1f00-\u1fff\u2c00-\u2c5f\u2c80-\ua71f\ua800-\uabff\uac00-\ud7ff\uf900-\uffff\U00010000-\U0010ffff]"
)


def script_of(character: str) -> str | None:
    """The script of a letter, None for everything else."""
    return _SCRIPTS[character]


class _Scripts(dict[str, str | None]):
    """Filled as characters are met."""

    def __missing__(self, character: str) -> str | None:
        words = unicodedata.name(character, "").replace("-", " ").split() if character.isalpha() else []
        words = [word.capitalize() for word in words if word.capitalize() not in _SKIPPED]
        named = bool(words) and words[0] not in _LETTERS and not _LETTERS.isdisjoint(words)
        script = _TOGETHER.get(words[0], words[0]) if named else None
        self[character] = script
        return script


_SCRIPTS = _Scripts()


def count_scripts(texts: Iterable[str]) -> Counter[str]:
    """Letters per script, over the beginnings of the texts."""
    characters: Counter[str] = Counter()
    for text in texts:
        characters.update(text[:_SEEN])
    scripts: Counter[str] = Counter()
    for character, number in characters.items():
        script = script_of(character)
        if script is not None:
            scripts[script] += number
    return scripts


def dominant_script(scripts: Counter[str], share: float = 0.8) -> str | None:
    """The script of at least `share` of the letters, if there is one."""
    total = scripts.total()
    if total == 0:
        return None
    script, number = scripts.most_common(1)[0]
    return script if number >= share * total else None


def mostly_in(text: str, script: str) -> bool:
    """At least half of the text's letters are of the script; true for a text without letters."""
    if script == "Latin" and (text.isascii() or not _BEYOND_LATIN.search(text)):
        return True
    found = list(map(_SCRIPTS.__getitem__, text[:_SEEN]))
    own, none = found.count(script), found.count(None)
    return 2 * own >= len(found) - none
