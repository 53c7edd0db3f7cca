"""The same description in Swagger 2.0, which is what LibreTranslate's clients find at /spec: its routes alone."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

ROUTES = ("/translate", "/detect", "/languages", "/translate_file", "/suggest", "/frontend/settings", "/health")


def swagger(openapi: Json) -> Json:
    """OpenAPI 3.1 in, Swagger 2.0 out, as far as these routes go."""
    return {
        "swagger": "2.0",
        "info": openapi["info"],
        "basePath": "/",
        "paths": {
            path: {method: _operation(operation) for method, operation in openapi["paths"][path].items()}
            for path in ROUTES
        },
        "definitions": {name: _schema(schema) for name, schema in openapi["components"]["schemas"].items()},
    }


def _operation(operation: Json) -> Json:
    made = {"summary": operation["summary"], "responses": {}}
    content = operation.get("requestBody", {}).get("content", {})
    form = next((content[kind]["schema"] for kind in content if kind != "application/json"), None)
    if form is not None:
        files = "multipart/form-data" in content
        made["consumes"] = ["multipart/form-data" if files else "application/x-www-form-urlencoded"]
        required = form.get("required", [])
        made["parameters"] = [
            {"name": name, "in": "formData", "required": name in required, **_parameter(schema)}
            for name, schema in form["properties"].items()
        ]
    for status, response in operation["responses"].items():
        answer = {"description": response["description"]}
        described: Json = next(iter(response.get("content", {}).values()), {})
        if "schema" in described:
            answer["schema"] = _schema(described["schema"])
        made["responses"][status] = answer
    return made


def _parameter(schema: Json) -> Json:
    kind = "file" if schema.get("format") == "binary" else "string"
    return {"type": kind, "description": schema.get("description", "")}


def _schema(schema: Any) -> Any:
    """Without what Swagger 2 has no word for: several types become any, constants a list of one."""
    if isinstance(schema, list):
        return [_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made: Json = {}
    for name, value in schema.items():
        if name == "$ref":
            made[name] = value.replace("#/components/schemas/", "#/definitions/")
        elif name == "const":
            made["enum"] = [value]
        elif name in ("anyOf", "oneOf", "prefixItems") or (name == "type" and isinstance(value, list)):
            continue
        else:
            made[name] = _schema(value)
    return made
