"""What the server understands and answers, in OpenAPI 3.1. The only place where this is written down: /docs and /spec are made from it."""

from __future__ import annotations

from typing import Any

from kente import __version__
from kente.serve.asking import AUTO
from kente.serve.settings import Settings
from kente.serve.translators import Translators
from kente.serve.wording import FORMATS

Json = dict[str, Any]

METRICS, PAGE = "text/plain; version=0.0.4; charset=utf-8", "text/html; charset=utf-8"
JSON, FORM, MULTIPART, EVENTS = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "text/event-stream",
)


def openapi(translators: Translators, settings: Settings) -> Json:
    """The description for what is served now: its languages and limits are part of it."""
    writer = Writer(translators, settings)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Kente",
            "version": __version__,
            "summary": "Translation between the languages of the models served here.",
            "description": "The routes of LibreTranslate, for clients that speak to it already, and below /v1 routes that say more: sentences, "
            "words, how sure the model was, and where it looked. Places (start, end) count Unicode code points.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {**writer.libre(), **writer.own(), **writer.operators(), **writer.pages()},
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, or api_key in the body."}
            },
        },
        **({"security": [{"key": []}, {}]} if settings.keys else {}),
    }


# ---------------------------------------------------------------- shapes


def _object(required: str, **properties: Json) -> Json:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(items: Json, **more: Any) -> Json:
    return {"type": "array", "items": items, **more}


def _text(description: str = "", **more: Any) -> Json:
    return {"type": "string", **({"description": description} if description else {}), **more}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _events(names: list[str], description: str) -> Json:
    """Server-sent events, each an object."""
    data = _text("JSON; what it holds depends on the event.")
    return {**_object("event data", event=_text(enum=names), data=data), "description": description}


PLACE: Json = {"type": "integer", "minimum": 0}
SHARE: Json = {"type": "number", "minimum": 0, "maximum": 1}
LANGUAGE = _text("The language's code, as BCP 47 has it.", examples=["en"])

SCHEMAS: Json = {
    "Error": _object("error", error=_text("What went wrong, in a sentence.")),
    "Detection": _object(
        "language confidence", language=LANGUAGE, confidence={"type": "number", "minimum": 0, "maximum": 100}
    ),
    "Language": _object("code name targets", code=LANGUAGE, name=_text("In English."), targets=_list(LANGUAGE)),
    "Translated": _object(
        "translatedText",
        translatedText={"anyOf": [_text(), _list(_text())], "description": "A text for a text, a list for a list."},
        detectedLanguage={
            "anyOf": [_ref("Detection"), _list(_ref("Detection"))],
            "description": f"If the source was {AUTO}.",
        },
        alternatives={"anyOf": [_list(_text()), _list(_list(_text()))], "description": "If some were asked for."},
    ),
    "Word": _object(
        "text start end",
        text=_text(),
        start=PLACE,
        end=PLACE,
        confidence={**SHARE, "description": "How likely the model found the word, given those before it."},
        looks_at=_list(
            {"type": "array", "prefixItems": [PLACE, SHARE], "minItems": 2, "maxItems": 2},
            description="[number of a source word, share of attention], the largest first.",
        ),
    ),
    "Sentence": _object(
        "source_start source_end start end source_words words",
        source_start=PLACE,
        source_end=PLACE,
        start=PLACE,
        end=PLACE,
        source_words=_list(_ref("Word")),
        words=_list(_ref("Word")),
        attention=_list(_list(SHARE), description="A row for each word, a column for each source word."),
    ),
    "Warning": _object(
        "kind message start end",
        kind=_text("A word for it."),
        message=_text("A sentence for people."),
        start={**PLACE, "description": "Where in the translation."},
        end=PLACE,
    ),
    "Translation": _object(
        "text source detected alternatives warnings sentences",
        text=_text(),
        source=LANGUAGE,
        detected={"anyOf": [_ref("Detection"), {"type": "null"}]},
        alternatives=_list(_object("text score", text=_text(), score={"type": "number"})),
        warnings=_list(_ref("Warning")),
        sentences=_list(_ref("Sentence")),
    ),
    "Answer": _object(
        "translations engine milliseconds",
        translations=_list(_ref("Translation")),
        engine=_text("What translated."),
        milliseconds={"type": "number", "minimum": 0},
    ),
}

REFUSALS = {
    400: "Something is missing or not what it should be; the sentence says what.",
    403: "The API key is not known, or this is not done here.",
    404: "There is nothing here.",
    413: "More than one request may hold.",
    415: "The body is of a kind that is not read here.",
    429: "Too many requests from you; wait as Retry-After says.",
    503: "No room, or not ready; ask again as Retry-After says.",
    504: "Not done in time.",
}


def _answers(description: str, schema: Json | None, *refusals: int, kind: str = JSON) -> Json:
    answers: Json = {"200": {"description": description, "content": {kind: {"schema": schema or {}}}}}
    wait = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}
    for status in refusals:
        answers[str(status)] = {
            "description": REFUSALS[status],
            "content": {JSON: {"schema": _ref("Error")}},
            **({"headers": wait} if status in (429, 503) else {}),
        }
    return answers


def _operation(tag: str, summary: str, answers: Json, body: Json | None = None, **more: Any) -> Json:
    asks = {"requestBody": {"required": True, "content": body}} if body else {}
    return {"tags": [tag], "summary": summary, **more, **asks, "responses": answers}


class Writer:
    """Writes the paths for the languages and limits of a server."""

    def __init__(self, translators: Translators, settings: Settings) -> None:
        self.settings = settings
        pairs = list(translators.pairs)
        self.source = _text(f"The code of the language it is in; {AUTO} finds out.", enum=[AUTO, *translators.sources])
        self.known_source = _text("The code of the language it is in.", enum=translators.sources)
        self.target = _text("The code of the language it should be in.", enum=translators.targets)
        self.pairs = [{"properties": {"source": {"const": s}, "target": {"const": t}}} for s, t in pairs]
        self.auto = [{"properties": {"source": {"const": AUTO}}}]
        self.key: Json = {"type": ["string", "null"], "description": "An API key, where keys are wanted."}
        most = f"{settings.characters:,} characters are the most for one request."  # refused with 413: a limit, not a shape
        self.q = _text(f"The text. {most}", examples=["Good morning."])

    def _asked(self, spelt: bool, rich: bool = False, several: bool = True) -> Json:
        """Fields of a request for translation; `spelt` out in a form, or as they are in JSON."""
        most = self.settings.alternatives
        number: Json = {"type": "integer", "minimum": 0, "maximum": most, "default": 0}
        if spelt:
            number = _text(pattern="^[0-9]$" if most < 10 else "^([0-9]|10)$")
        list_too = {
            "anyOf": [self.q, _list(self.q)],
            "description": f"A text, or a list of up to {self.settings.texts:,}. {self.q['description']}",
        }
        fields = {
            "q": self.q if spelt or not several else list_too,
            "source": self.source,
            "target": self.target,
            "format": _text("How the text is written.", enum=["text", "html"], default="text"),
            "alternatives": {**number, "description": "How many other translations to give, at most."},
        }
        if rich:
            fields["words"] = {
                "type": "boolean",
                "default": False,
                "description": "Say how sure the model was, and where it looked.",
            }
            fields["attention"] = {"type": "boolean", "default": False, "description": "Give all of the attention too."}
        key = _text(self.key["description"]) if spelt else self.key
        return {**_object("q source target", **fields, api_key=key), "anyOf": [*self.auto, *self.pairs]}

    def _both(self, **fields: Json) -> Json:
        """A body of plain fields, as JSON or as a form."""
        required = " ".join(fields)
        return {
            JSON: {"schema": _object(required, **fields, api_key=self.key)},
            FORM: {"schema": _object(required, **fields, api_key=_text(self.key["description"]))},
        }

    def _file(self) -> Json:
        file = _text(f"The file: {', '.join(FORMATS)}.", format="binary", contentMediaType="application/octet-stream")
        fields = _object(
            "file source target",
            file=file,
            source=self.source,
            target=self.target,
            api_key=_text(self.key["description"]),
        )
        return {MULTIPART: {"schema": {**fields, "anyOf": [*self.auto, *self.pairs]}}}

    def libre(self) -> Json:
        tag = "LibreTranslate"
        asked = {JSON: {"schema": self._asked(spelt=False)}, FORM: {"schema": self._asked(spelt=True)}}
        fetched = _object("translatedFileUrl", translatedFileUrl=_text())
        some = _text("A text of at least one letter.", minLength=1, pattern=r"\S", examples=["Good morning."])
        taught = {
            "q": some,
            "s": {**some, "description": "Its better translation."},
            "source": self.known_source,
            "target": self.target,
        }
        return {
            "/translate": {
                "post": _operation(
                    tag, "Translate a text, or a list of texts",
                    _answers("The translation.", _ref("Translated"), 400, 403, 413, 415, 429, 503, 504), asked,
                )
            },
            "/detect": {
                "post": _operation(
                    tag, "Which language is a text in?",
                    _answers("Languages it may be in, the likeliest first.", _list(_ref("Detection")), 400, 403, 413, 415, 429, 503),
                    self._both(q=self.q),
                )
            },
            "/languages": {"get": _operation(tag, "The languages", _answers("All of them.", _list(_ref("Language"))))},
            "/translate_file": {
                "post": _operation(
                    tag, "Translate a file",
                    _answers("Where the translation can be fetched for some minutes.", fetched, 400, 403, 413, 415, 429, 503, 504),
                    self._file(),
                )
            },
            "/download_file/{name}": {
                "get": _operation(
                    tag, "Fetch a translated file",
                    _answers("The file.", None, 404, kind="application/octet-stream"),
                    parameters=[{"name": "name", "in": "path", "required": True, "schema": _text()}],
                )
            },
            "/suggest": {
                "post": _operation(
                    tag, "Teach a better translation; it is kept for the next training",
                    _answers("Kept.", _object("success", success={"const": True}), 400, 403, 413, 415, 429, 503),
                    {kind: {"schema": {**body["schema"], "anyOf": self.pairs}} for kind, body in self._both(**taught).items()},
                )
            },
            "/frontend/settings": {"get": _operation(tag, "What a page should know", _answers("The settings.", {"type": "object"}))},
            "/health": {"get": _operation(tag, "Is the server alive?", _answers("It is.", _object("status", status={"const": "ok"})))},
        }  # fmt: skip

    def own(self) -> Json:
        tag = "Kente"
        events = _events(
            ["sentence", "done", "error"],
            "For each sentence, sentence {number, of, text, ...a Sentence}; then done {...an Answer}, or error {error}.",
        )
        steps = _events(["progress", "done", "error"], "progress {done, of}, done {url, name}, or error {error}.")
        sentence = {**self.q, "pattern": r"\S", "maxLength": self.settings.looked_at, "description": "The sentence."}
        looked = {"source": self.known_source, "target": self.target, "q": sentence}
        page = _answers("A page.", _text(), 400, 403, 404, 413, 415, 429, 503, 504, kind=PAGE)
        return {
            "/v1/translate": {
                "post": _operation(
                    tag, "Translate, with sentences, words and warnings",
                    _answers("The translations.", _ref("Answer"), 400, 403, 413, 415, 429, 503, 504),
                    {JSON: {"schema": self._asked(spelt=False, rich=True)}},
                )
            },
            "/v1/stream": {
                "post": _operation(
                    tag, "Translate one text, sentence by sentence as they are done",
                    _answers("Server-sent events.", events, 400, 403, 413, 415, 429, 503, 504, kind=EVENTS),
                    {JSON: {"schema": self._asked(spelt=False, rich=True, several=False)}},
                )
            },
            "/v1/file": {
                "post": _operation(
                    tag, "Translate a file, with progress",
                    _answers("Server-sent events.", steps, 400, 403, 413, 415, 429, 503, kind=EVENTS),
                    self._file(),
                )
            },
            "/look": {
                "get": _operation(
                    tag, "The explorer: where the model looks when it translates a sentence", page,
                    parameters=[
                        {"name": name, "in": "query", "required": True, "schema": schema}
                        for name, schema in looked.items()
                    ],
                ),
                "post": _operation(
                    tag, "The same, asked for by a form, so that no key stands in an address", page,
                    {FORM: {"schema": _object("source target q", **looked, api_key=_text(self.key["description"]))}},
                ),
            },
        }  # fmt: skip

    def operators(self) -> Json:
        tag = "Operators"
        ready = _object("status pairs", status={"const": "ready"}, pairs=_list(_text()))
        return {
            "/ready": {"get": _operation(tag, "Are the models loaded, and does the server take work?", _answers("They are.", ready, 503))},
            "/metrics": {
                "get": _operation(tag, "Counters for Prometheus", _answers("Its text format.", _text(), 400, 403, kind=METRICS))
            },
            "/openapi.json": {"get": _operation(tag, "This description", _answers("OpenAPI 3.1.", {"type": "object"}))},
            "/spec": {"get": _operation(tag, "LibreTranslate's routes in Swagger 2.0", _answers("The description.", {"type": "object"}))},
        }  # fmt: skip

    def pages(self) -> Json:
        return {
            "/": {"get": _operation("Pages", "The page", _answers("The page.", _text(), 404, kind=PAGE))},
            "/docs": {"get": _operation("Pages", "This description, to be read", _answers("A page.", _text(), kind=PAGE))},
            "/assets/{name}": {
                "get": _operation(
                    "Pages", "A file of the page",
                    _answers("The file.", None, 404, kind="*/*"),
                    parameters=[{"name": "name", "in": "path", "required": True, "schema": _text()}],
                )
            },
        }  # fmt: skip
