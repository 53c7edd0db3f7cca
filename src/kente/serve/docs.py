"""The description as a page to be read: no script, no network, one style sheet from this server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

Json = dict[str, Any]


def docs_page(openapi: Json) -> str:
    """A whole HTML document made from an OpenAPI description."""
    info = openapi["info"]
    tags = list(dict.fromkeys(op["tags"][0] for methods in openapi["paths"].values() for op in methods.values()))
    contents = "".join(f'<li><a href="#{escape(tag)}">{escape(tag)}</a></li>' for tag in [*tags, "Shapes"])
    body = "".join(
        f'<section id="{escape(tag)}"><h2>{escape(tag)}</h2>{_routes(openapi, tag)}</section>' for tag in tags
    )
    return _document(
        f"{info['title']}: use it from a program",
        f"<header><h1>{escape(info['title'])}: use it from a program</h1><p>{escape(info['description'])}</p>"
        f'<p>Version {escape(info["version"])}. The same for programs: <a href="openapi.json">openapi.json</a>. <a href=".">The page</a>.</p>'
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav></header>\n<main>\n{body}\n'
        f'<section id="Shapes"><h2>Shapes</h2>{_shapes(openapi["components"]["schemas"])}</section>\n</main>',
    )


def refusal_page(message: str) -> str:
    """A refusal for someone who opened a page: the sentence, and the way back."""
    said = message[:1].upper() + message[1:]
    return _document(
        "Not shown", f'<main><h1>Not shown</h1><p>{escape(said)}.</p><p><a href=".">Back to the page</a></p></main>'
    )


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f'<title>{escape(title)}</title>\n<link rel="stylesheet" href="assets/docs.css">\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    )


def _routes(openapi: Json, tag: str) -> str:
    made = []
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            if operation["tags"][0] == tag:
                made.append(_route(path, method.upper(), operation))
    return "".join(made)


def _route(path: str, method: str, operation: Json) -> str:
    parts = [f"<article><h3><code>{method} {escape(path)}</code></h3><p>{escape(operation['summary'])}.</p>"]
    parameters = [{**p["schema"], "name": p["name"], "needed": True} for p in operation.get("parameters", [])]
    content = operation.get("requestBody", {}).get("content", {})
    if content:
        kinds = " or ".join(f"<code>{escape(kind)}</code>" for kind in content)
        parts.append(f"<p>Send {kinds}:</p>")
        schema = next(iter(content.values()))["schema"]
        required = schema.get("required", [])
        parameters += [
            {**field, "name": name, "needed": name in required} for name, field in schema["properties"].items()
        ]
        parts.append(f"<pre>{escape(example(path, next(iter(content)), schema))}</pre>")
    if parameters:
        parts.append(_table(("field", "what", "kind"), (_row(field) for field in parameters)))
    answers = ((_status(status), _answer(answer)) for status, answer in operation["responses"].items())
    parts.append(_table(("status", "answer"), answers))
    return "".join([*parts, "</article>"])


def example(path: str, kind: str, schema: Json) -> str:
    """A curl command that asks for this."""
    fields = {name: sample(schema["properties"][name]) for name in schema["required"]}
    address = f"http://127.0.0.1:5000{path}"
    if kind == "multipart/form-data":
        return f"curl {address} " + " ".join(
            f"-F {name}=@letter.txt" if name == "file" else f"-F {name}={value}" for name, value in fields.items()
        )
    return f"curl {address} -H 'Content-Type: application/json' \\\n  -d '{json.dumps(fields, ensure_ascii=False)}'"


def sample(schema: Json) -> Any:
    """A value that fits."""
    if "examples" in schema:
        return schema["examples"][0]
    if "enum" in schema:
        return next(value for value in schema["enum"] if value != "auto")
    if "anyOf" in schema:
        return sample(schema["anyOf"][0])
    return "Good morning."


def _row(field: Json) -> tuple[str, str, str]:
    kind = _kind(field)
    if "enum" in field:
        kind = ", ".join(f"<code>{escape(str(value))}</code>" for value in field["enum"])
    needed = "" if field["needed"] else " (may be left out)"
    return f"<code>{escape(field['name'])}</code>", escape(field.get("description", "")) + needed, kind


def _kind(schema: Json) -> str:
    """What a schema stands for, in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f'<a href="#{escape(name)}">{escape(name)}</a>'
    if "anyOf" in schema and "type" not in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "const" in schema:
        return f"<code>{escape(json.dumps(schema['const']))}</code>"
    kind = schema.get("type", "anything")
    if kind == "array" and "items" in schema:
        return f"list of {_kind(schema['items'])}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "null", "array": "list"}
    kinds = kind if isinstance(kind, list) else [kind]
    return " or ".join(words.get(one, str(one)) for one in kinds)


def _status(status: str) -> str:
    return f"<code>{escape(status)}</code>"


def _answer(answer: Json) -> str:
    content = next(iter(answer.get("content", {}).items()), None)
    if content is None:
        return escape(answer["description"])
    media, described = content
    shape = _kind(described["schema"]) if described["schema"] else f"<code>{escape(media)}</code>"
    if media == "text/event-stream":
        shape = escape(described["schema"]["description"])
    return f"{escape(answer['description'])} {shape}"


def _shapes(schemas: Json) -> str:
    made = []
    for name, schema in schemas.items():
        required = schema.get("required", [])
        rows = (_row({**field, "name": key, "needed": key in required}) for key, field in schema["properties"].items())
        made.append(
            f'<article id="{escape(name)}"><h3>{escape(name)}</h3>{_table(("field", "what", "kind"), rows)}</article>'
        )
    return "".join(made)


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Cells are HTML already."""
    top = "".join(f"<th scope='col'>{name}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
