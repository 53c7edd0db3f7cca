"""What a translation must hold exactly as its source does: addresses, placeholders, tags, emoji; and numbers, however they are written."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from kente.text.sentences import Span

MOST_LOOKED_FOR = 200
"""Different strings looked for one by one, where a text does not show them as addresses or placeholders anyway."""

_ADDRESS = r"[^\s<>\"'`{}|\\^\[\]\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]"  # what a web address may be made of
_PICTURE = r"[\u2600-\u27bf\U0001f000-\U0001faff]"
# Every alternative begins with a rare character or is fenced off on the left, and is bounded or possessive: linear in the text.
# Fences are ASCII, because scripts without spaces write words right up to an address.
_KEPT = re.compile(
    rf"""
    (?P<address> (?<![A-Za-z0-9_])(?:(?:https?|ftp)://|www\.){_ADDRESS}++
      | (?<![A-Za-z0-9_.@/-])(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:com|org|net|edu|gov|info|io)(?![A-Za-z0-9_-])(?:/{_ADDRESS}*+)? )
    | (?<![A-Za-z0-9_.+%@-])[A-Za-z0-9_.+%-]++@[A-Za-z0-9-]++(?:\.[A-Za-z0-9-]++)++    # someone@example.org
    | (?<![A-Za-z0-9_])@[A-Za-z0-9_-]++(?:[.@][A-Za-z0-9_-]++)*+                       # @someone, @someone@example.org
    | (?<!\w)\#(?=\w*[^\W\d])\w++                                                      # #topic
    | (?<![A-Za-z0-9_:]):[a-z][a-z0-9_+-]*+:(?![A-Za-z0-9_])                           # :smile:
    | \{{\{{[^{{}}]{{0,200}}\}}\}} | \{{%[^{{}}]{{0,200}}%\}}                          # {{{{ name }}}}, {{% block %}}
    | [$%\#]?\{{[^{{}}\s]{{0,200}}\}} | \$\{{[^{{}}]{{0,200}}\}}                       # {{name}}, ${{x}}, %{{x}}, #{{x}}
    | %\([^()\s]{{1,80}}\)[-+\#0]?\d{{0,3}}[a-zA-Z]                                    # %(name)s
    | (?<!\d)%(?:\d{{1,2}}\$)?[-+\#0]{{0,3}}(?:\d{{1,3}}|\*)?(?:\.(?:\d{{1,3}}|\*))?(?:hh|h|ll|l|z|j|t|L)?[diouxXeEfFgGaAcspn@]
    | (?<=\d)%(?:l{{0,2}}[du]|s)(?!\w)                                                 # 100%d, but not 100%sure
    | %% | (?<![\d%])%\d{{1,2}}(?![\d%])                                               # %1 as Qt has it
    | (?<![\w$])\$[A-Za-z_][A-Za-z0-9_]*+                                              # $name
    | (?<!\w)__\w{{1,80}}?__(?!\w)
    | &(?:\#\d{{1,7}}|\#[xX][0-9a-fA-F]{{1,6}}|[A-Za-z][A-Za-z0-9]{{1,31}});
    | </?[A-Za-z][^<>]{{0,1000}}>
    | {_PICTURE}(?:{_PICTURE}|[\ufe0f\u200d])*+
    """,
    re.VERBOSE,
)
_SIGN = re.compile(rf"[@#:{{}}%$&<]|__|www\.|\.(?:com|org|net|edu|gov|info|io)|{_PICTURE}")
"""Something that every alternative of _KEPT has; most sentences have none of it, and looking for it is many times cheaper."""
_TAIL = ".,;:!?'\"…”’»·،؛؟።।۔"  # belongs to the sentence, not to the address before it

_NUMBER = re.compile(r"(?<!\d)\d++(?:[.,'’٫٬\u00a0\u202f\u2009]\d++)*+")
_SEPARATOR = re.compile(r"\D")


def kept_spans(text: str) -> list[Span]:
    """(start, end) of everything that must survive, in order, none overlapping."""
    if not _SIGN.search(text):
        return []
    found = ((m.start(), _end_of_address(m) if m["address"] else m.end()) for m in _KEPT.finditer(text))
    return [(start, end) for start, end in found if end > start]


def _end_of_address(found: re.Match[str]) -> int:
    """An address does not end with the sentence's punctuation, nor with a bracket that was opened before it."""
    address, end = found[0], len(found[0])
    unopened = address.count(")") - address.count("(")
    while end and (address[end - 1] in _TAIL or (address[end - 1] == ")" and unopened > 0)):
        unopened -= address[end - 1] == ")"
        end -= 1
    return found.start() + end


def compare_kept(wanted: Sequence[str], text: str) -> tuple[list[str], list[str]]:
    """(lost, added): what of `wanted` the text lacks, and what it has that is not wanted."""
    found = places_of(wanted, text)
    lost = list((Counter(wanted) - Counter(text[start:end] for start, end in found)).elements())
    return lost, [text[start:end] for start, end in kept_spans(blanked(text, found))]


def places_of(wanted: Iterable[str], text: str) -> list[Span]:
    """Where the text holds the wanted strings, in order: each as often as it is wanted, if it is there so often."""
    left, found = Counter(wanted), []
    for span in kept_spans(text):
        if left[text[slice(*span)]] > 0:
            left[text[slice(*span)]] -= 1
            found.append(span)
    missing = [item for item, number in left.items() if number > 0]
    if missing and len(missing) <= MOST_LOOKED_FOR:
        longest_first = sorted(missing, key=lambda item: (-len(item), item))
        for match in re.finditer("|".join(map(_whole, longest_first)), blanked(text, found)):
            if left[match[0]] > 0:
                left[match[0]] -= 1
                found.append(match.span())
    return sorted(found)


def _whole(item: str) -> str:
    """Found only where it begins and ends as well: example.org is not in example.organic, nor x in six."""
    left, right = (letter.isascii() and letter.isalnum() for letter in (item[0], item[-1]))
    return (r"(?<![A-Za-z0-9_])" if left else "") + re.escape(item) + (r"(?![A-Za-z0-9_/-])" if right else "")


def blanked(text: str, spans: Iterable[Span]) -> str:
    """The text with a space for each character of the spans."""
    letters = list(text)
    for start, end in spans:
        letters[start:end] = " " * (end - start)
    return "".join(letters)


# ---------------------------------------------------------------- numbers


def compare_numbers(source: str, target: str) -> list[str]:
    """What happened to the numbers, a sentence each; nothing if the same ones stand on both sides."""
    before, after = _numbers(source), _numbers(target)
    lost = _surplus(before, after)
    added = _surplus(after, before)
    changed = list(zip(lost, added, strict=False))
    return [
        *(f"{old} became {new}" for old, new in changed),
        *(f"{number} is not in the translation" for number in lost[len(changed) :]),
        *(f"the translation has {number}, which the text has not" for number in added[len(changed) :]),
    ]


def _numbers(text: str) -> list[tuple[str, str]]:
    """(plain, as written) for each number."""
    return [(_plain(found[0]), found[0]) for found in _NUMBER.finditer(text)]


def _surplus(numbers: list[tuple[str, str]], others: list[tuple[str, str]]) -> list[str]:
    """The numbers, as written, that `others` has not, or not as often."""
    left, surplus = Counter(plain for plain, _ in others), []
    for plain, written in numbers:
        left[plain] -= 1
        if left[plain] < 0:
            surplus.append(written)
    return surplus


def _plain(number: str) -> str:
    """1.234,50 and 1,234.50 are 1234.50, ١٢ is 12: digits of any script, and a point only before decimals.

    A separator with three digits behind it parts thousands; so 3.141 and 3,141 are one, and no change is claimed that is none.
    """
    digits = "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in number)
    *groups, last = _SEPARATOR.split(digits)
    return f"{''.join(groups)}.{last}" if groups and len(last) != 3 else "".join((*groups, last))
