"""What is asked for: fields from JSON, a form or the address, each checked, each complaint naming the field and what it should be."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from kente.serve.refusals import ClientLeft, Refusal, bad_request, too_large
from kente.serve.settings import Settings

AUTO = "auto"
FIELDS = 100
"""Of a form at most."""
THROWN_AWAY = 10_000_000
"""Bytes of a body beyond its limit that are read for politeness."""
FIELD_BYTES = 200_000
"""Of one field of a form with a file."""
_FORM, _MULTIPART, _JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"


@dataclass(frozen=True)
class Fields:
    """What came with a request, by name. `typed`: numbers and truth values are themselves, as in JSON, and not spelt out."""

    values: dict[str, Any]
    typed: bool

    def text(self, name: str, meaning: str, *, default: str | None = None) -> str:
        """A piece of text; required unless there is a default."""
        value = self.values.get(name, default)
        if value is None and name not in self.values:
            raise bad_request(f"{name} is missing: {meaning}")
        if not isinstance(value, str):
            raise bad_request(f"{name} must be text: {meaning}; it was {_kind(value)}")
        return _whole(name, value)

    def texts(self, name: str, meaning: str) -> list[str] | str:
        """A text, or a list of them."""
        value = self.values.get(name)
        if not isinstance(value, list):
            return self.text(name, meaning)
        for item in value:
            if not isinstance(item, str):
                raise bad_request(f"{name} must be text or a list of texts, but the list holds {_kind(item)}")
            _whole(name, item)
        return value

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        value = self.text(name, f"one of {', '.join(choices)}", default=default)
        if value not in choices:
            raise bad_request(f"{name} must be one of {', '.join(choices)}, not {value[:40]!r}")
        return value

    def number(self, name: str, most: int) -> int:
        """A whole number from 0 to `most`; 0 if there is none."""
        value = self.values.get(name, 0)
        if not self.typed and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON has one kind of numbers
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            raise bad_request(f"{name} must be a whole number from 0 to {most}, not {_seen(value)}")
        return value

    def truth(self, name: str) -> bool:
        """True or false; false if nothing was said."""
        value = self.values.get(name, False)
        if not self.typed and value in ("true", "false"):
            value = value == "true"
        if not isinstance(value, bool):
            raise bad_request(f"{name} must be true or false, not {_seen(value)}")
        return value

    @property
    def key(self) -> str | None:
        value = self.values.get("api_key")
        if value is not None and not isinstance(value, str):
            raise bad_request(f"api_key must be text; it was {_kind(value)}")
        return value or None


@dataclass(frozen=True)
class Asked:
    """Texts to be translated, and how."""

    texts: list[str]
    source: str
    target: str
    html: bool = False
    alternatives: int = 0
    words: bool = False
    attention: bool = False
    listed: bool = False
    """Whether the texts came as a list, and so the answer is one."""

    @property
    def characters(self) -> int:
        return sum(map(len, self.texts))


def asked(fields: Fields, settings: Settings, *, rich: bool = False) -> Asked:
    """What a request for translation says. `rich`: our own interface, which knows more fields."""
    q = fields.texts("q", "the text to translate")
    source = fields.text("source", f"the code of the language it is in, or {AUTO}")
    target = fields.text("target", "the code of the language it should be in")
    wanted = Asked(
        q if isinstance(q, list) else [q],
        source,
        target,
        html=fields.choice("format", ("text", "html"), "text") == "html",
        alternatives=fields.number("alternatives", settings.alternatives),
        listed=isinstance(q, list),
    )
    if rich:
        attention = fields.truth("attention")
        wanted = replace(wanted, words=fields.truth("words") or attention, attention=attention)
    if len(wanted.texts) > settings.texts:
        raise too_large(
            f"{len(wanted.texts):,} texts, but {settings.texts:,} is the most for one request; send fewer at once"
        )
    check_length(wanted.characters, settings)
    return wanted


def check_length(characters: int, settings: Settings) -> None:
    if characters > settings.characters:
        raise too_large(
            f"{characters:,} characters, but {settings.characters:,} is the most for one request; send it in parts"
        )


# ---------------------------------------------------------------- from bytes to fields


async def body_of(request: Request, most: int) -> bytes:
    """The body, as it arrives. What is too long is read on for a while, and thrown away: a client that is still sending hears no refusal."""
    said = request.headers.get("content-length", "")
    refusal = too_large(f"the request has more than {most:,} bytes; send less at once")
    if said.isdigit() and int(said) > most + THROWN_AWAY:
        raise refusal
    body, size = bytearray(), 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most + THROWN_AWAY:
                break
            if size <= most:
                body += part
    except ClientDisconnect:
        raise ClientLeft from None
    if size > most:
        raise refusal
    return bytes(body)


async def fields_of(request: Request, settings: Settings) -> Fields:
    """The fields of a request: its body as JSON or a form, or the address where there is no body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _MULTIPART:
        return (await form_with_file(request, settings))[0]
    body = await body_of(request, settings.body_bytes)
    if kind == _JSON or kind.endswith("+json"):
        return Fields(_from_json(body), typed=True)
    if not body:
        return Fields(_once(request.url.query), typed=False)
    if kind == _FORM or not kind:
        try:
            return Fields(_once(body.decode("ascii")), typed=False)
        except UnicodeDecodeError:
            raise bad_request("the form is not encoded: other letters than ASCII are written as %XX") from None
    raise Refusal(415, f"{kind} is not read here; send {_JSON} or {_FORM}", why="media type")


def _from_json(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise bad_request("the body is not JSON") from None
    if not isinstance(values, dict):
        raise bad_request(f"the body must be a JSON object; it was {_kind(values)}")
    return values


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _once(query: str) -> dict[str, Any]:
    """Fields of a form or an address, the first of each name."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=FIELDS, errors="strict")
    except ValueError:
        raise bad_request(f"the form cannot be read: it is not UTF-8, or has more than {FIELDS} fields") from None
    return dict(reversed(pairs))


async def form_with_file(request: Request, settings: Settings) -> tuple[Fields, tuple[str, bytes] | None]:
    """The fields of a multipart form, and the name and bytes of the file in it."""
    if not request.headers.get("content-type", "").lower().startswith(_MULTIPART):
        raise Refusal(415, f"a file comes in a form, as {_MULTIPART}", why="media type")
    body = await body_of(request, settings.file_bytes + FIELD_BYTES)

    async def stream() -> AsyncIterator[bytes]:
        yield body

    try:
        form = await MultiPartParser(
            request.headers,
            stream(),  # type: ignore[arg-type]  # any iterator will do
            max_files=1,
            max_fields=FIELDS,
            max_part_size=FIELD_BYTES,
        ).parse()
    except (MultiPartException, FormParserError) as error:
        raise bad_request(f"the form cannot be read: {error}") from None
    values: dict[str, Any] = {}
    file: tuple[str, bytes] | None = None
    for name, value in form.multi_items():
        if not isinstance(value, UploadFile):
            values.setdefault(name, value)
        elif name == "file":
            file = value.filename or "", await value.read()
    await form.close()
    if file is not None and len(file[1]) > settings.file_bytes:
        raise too_large(f"the file has {len(file[1]):,} bytes, but {settings.file_bytes:,} is the most")
    return Fields(values, typed=False), file


def _whole(name: str, text: str) -> str:
    """The text, unless it holds half of a character, which nothing can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_request(f"{name} holds half of a character (a lone surrogate)") from None
    return text


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _seen(value: object) -> str:
    return repr(value[:40]) if isinstance(value, str) else _kind(value)
