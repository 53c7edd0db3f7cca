"""Messages of programs (gettext's .po files): empty msgstr are filled; everything else, comments, flags and order, stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from kente.errors import DocumentError
from kente.text.encodings import lines_of, newline_of, shown
from kente.text.layout import Layout
from kente.text.reading import Reading

_STRING = r'"((?:[^"\\]|\\.)*+)"\s*'
_KEYWORD = re.compile(rf"\s*(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s*{_STRING}")
_CONTINUED = re.compile(rf"\s*{_STRING}")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', **{letter: f"\\{name}" for name, letter in _PLAIN.items()}})
_COUNT = re.compile(r"nplurals\s*=\s*(\d+)")
_CHARSET = re.compile(r"charset=([\w.:-]+)", re.IGNORECASE)


@dataclass
class Field:
    """A keyword with its string: lines [first, last) of the file."""

    keyword: str
    number: int | None
    text: str
    first: int
    last: int


@dataclass
class Message:
    """The fields that belong together."""

    fields: list[Field] = field(default_factory=list)

    def text(self, keyword: str) -> str | None:
        return next((one.text for one in self.fields if one.keyword == keyword), None)

    @property
    def translations(self) -> list[Field]:
        return [one for one in self.fields if one.keyword.startswith("msgstr")]


def lay_out_po(name: str, text: str, reader: Callable[[str], Reading]) -> Layout:
    """The file with a slot for each translation that is missing."""
    lines = list(lines_of(text))
    messages = list(_messages(name, [line for line, _ in lines]))
    plurals = _plurals(name, messages)
    layout, line, newline = Layout(), 0, newline_of(text)
    for message in messages:
        if not message.text("msgid"):
            continue  # the heading
        first = message.fields[0].first + 1
        numbers: dict[str, int] = {}
        for one, source in _missing(message, plurals):
            if source not in numbers:
                numbers[source] = layout.add(reader(source), first)
            layout.keep("".join(content + ending for content, ending in lines[line : one.first]))
            if one.last == one.first and one.first and not lines[one.first - 1][1]:
                layout.keep(newline)  # the line before had no end
            layout.keep(f"{one.keyword} ")
            layout.slot(numbers[source], partial(quoted, newline=newline))
            layout.keep(lines[one.last - 1][1] if one.last > one.first else newline)
            line = one.last
    layout.keep("".join(content + ending for content, ending in lines[line:]))
    return layout


def _missing(message: Message, plurals: int | None) -> Iterator[tuple[Field, str]]:
    """(field, what to translate for it) for each translation that is not there; fields that are not there stand on no line."""
    singular, plural = message.text("msgid") or "", message.text("msgid_plural")
    there = message.translations
    if plural is not None:
        end = there[-1].last
        known = {one.number for one in there}
        there += [Field(f"msgstr[{n}]", n, "", end, end) for n in range(plurals or 0) if n not in known]
    for one in there:
        if not one.text:
            only_one = plural is not None and plurals == 1
            yield one, plural if plural is not None and (one.number or only_one) else singular


def _messages(name: str, lines: list[str]) -> Iterator[Message]:
    message = Message()
    for one in _fields(name, lines):
        begins = one.keyword in ("msgctxt", "msgid") and (message.translations or message.text(one.keyword) is not None)
        if begins and message.fields:
            yield _whole(name, message)
            message = Message()
        message.fields.append(one)
    if message.fields:
        yield _whole(name, message)


def _whole(name: str, message: Message) -> Message:
    for keyword, there in (("msgid", message.text("msgid") is not None), ("msgstr", bool(message.translations))):
        if not there:
            raise DocumentError(f"{name}:{message.fields[0].first + 1}: this message has no {keyword}")
    return message


def _fields(name: str, lines: list[str]) -> Iterator[Field]:
    current: Field | None = None
    for number, line in enumerate(lines):
        if not line.strip() or line.lstrip().startswith("#"):
            if current is not None:
                yield current
            current = None
            continue
        begun, continued = _KEYWORD.fullmatch(line), _CONTINUED.fullmatch(line)
        if begun:
            if current is not None:
                yield current
            count = int(begun[2]) if begun[2] else None
            current = Field(begun[1], count, unescaped(begun[3]), number, number + 1)
        elif continued and current is not None:
            current.text += unescaped(continued[1])
            current.last = number + 1
        else:
            raise DocumentError(
                f"{name}:{number + 1}: {shown(line)} is no line of a .po file; wanted are msgid, msgstr or a string in quotes"
            )
    if current is not None:
        yield current


def _plurals(name: str, messages: list[Message]) -> int | None:
    """How many forms the heading says the language has. A file without messages, or in an older encoding, is refused."""
    if not messages:
        raise DocumentError(f'{name} holds no messages: a .po file has lines such as msgid "Open" and msgstr ""')
    heading = next((m.translations[0].text for m in messages if m.text("msgid") == "" and not m.text("msgctxt")), "")
    charset = _CHARSET.search(heading)
    if charset and charset[1].lower() not in ("utf-8", "utf8", "ascii", "us-ascii", "charset", "utf-16"):
        raise DocumentError(f"{name} says that its charset is {charset[1]}; convert it: msgconv -t UTF-8 {name}")
    count = _COUNT.search(heading)
    return int(count[1]) if count else None


def unescaped(string: str) -> str:
    """What stands between quotes, as text."""

    def plain(found: re.Match[str]) -> str:
        octal, hexadecimal, letter = found.groups()
        if letter is not None:
            return _PLAIN.get(letter, letter)
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))

    return _ESCAPE.sub(plain, string)


def quoted(text: str, newline: str) -> str:
    """Text between quotes; a text of several lines has a string for each, under an empty one."""
    *whole, rest = text.split("\n")
    strings = [f'"{line.translate(_ESCAPED)}\\n"' for line in whole]
    strings += [f'"{rest.translate(_ESCAPED)}"'] if rest or not whole else []
    return strings[0] if len(strings) == 1 else newline.join(('""', *strings))
