"""The OpenAPI 3.1 document of the API, made from its operations.

Schemas are those of the types that are read and given; nothing is written here a second time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from spamd.admin.ports import Place
from spamd.listeners.web.api.operation import Operation

Json = dict[str, Any]

SCHEMAS = "#/components/schemas/"
MAIL = "message/rfc822"

ABOUT = (
    "What the page shows and does, for programs. Errors are one object with a sentence. Who may"
    " call what, and tokens for programs: docs/access.md."
)

REFUSALS = {
    400: "What is asked makes no sense",
    401: "Log in, or send a token",
    403: "Whoever asks may not",
    404: "It is not known, or not any more",
    413: "The body is too large",
    415: "The body is of another type",
    429: "Too many wrong passwords or tokens",
    503: "Try again later",
}

ERROR: Json = {
    "title": "Error",
    "type": "object",
    "required": ["error", "error_domain"],
    "properties": {
        "error": {"type": "string", "description": "One sentence"},
        "error_domain": {"type": "string", "enum": ["request", "spamd"]},
    },
}


def document(operations: Sequence[Operation[Any, Any]], version: str) -> Json:
    """Return the document."""
    adapters = [TypeAdapter(each.gives) for each in operations]
    given, schemas = TypeAdapter.json_schemas(
        [
            (number, "serialization", adapter)  # a name of a type may stand for two of them
            for number, adapter in enumerate(adapters)
        ],
        ref_template=f"{SCHEMAS}{{model}}",
    )
    components: Json = {**schemas.get("$defs", {}), "Error": ERROR}
    paths: dict[str, Json] = {}
    for number, each in enumerate(operations):
        there = paths.setdefault(each.path, {})
        there[each.method.lower()] = _operation(each, given[number, "serialization"])
    whole: Json = {
        "openapi": "3.1.0",
        "info": {"title": "spamd", "version": version, "description": ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}, {}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "__Host-spamd"},
            },
        },
    }
    _without_places(whole)
    return whole


def _operation(each: Operation[Any, Any], gives: Mapping[str, Any]) -> Json:
    asked = each.asks.model_json_schema(ref_template=f"{SCHEMAS}{{model}}")
    schemas = asked.get("$defs", {})
    properties: Json = {
        name: _without_null(_inlined(schema, schemas))
        for name, schema in asked.get("properties", {}).items()
    }
    required = set(asked.get("required", ()))
    found: Json = {
        "operationId": each.name,
        "summary": each.summary,
        "description": f"For the role {each.role}.",
        "parameters": [
            _parameter(each, name, schema, required=name in required)
            for name, schema in properties.items()
            if name in each.in_path or not each.takes_json
        ],
        "responses": _responses(each, gives),
    }
    if each.mail:
        found["requestBody"] = {"required": True, "content": {MAIL: {}}}
    elif each.takes_json:
        body: Json = {
            "type": "object",
            "additionalProperties": False,
            "required": [name for name in asked.get("required", ()) if name not in each.in_path],
            "properties": {
                name: schema for name, schema in properties.items() if name not in each.in_path
            },
            **{key: asked[key] for key in ("minProperties",) if key in asked},
        }
        found["requestBody"] = _body("application/json", body)
    return found


def _body(kind: str, schema: Json) -> Json:
    return {"required": True, "content": {kind: {"schema": schema}}}


def _parameter(
    each: Operation[Any, Any], name: str, schema: Mapping[str, Any], *, required: bool
) -> Json:
    in_path = name in each.in_path
    about = {"description": schema["description"]} if "description" in schema else {}
    return {
        "name": name,
        "in": "path" if in_path else "query",
        "required": in_path or required,
        "schema": dict(schema),
        **about,
    }


def _without_null(schema: Json) -> Json:
    """Return the schema of what is left out where it is not meant."""
    if "anyOf" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    kinds = [kind for kind in schema["anyOf"] if kind != {"type": "null"}]
    return {**kinds[0], **rest}


def _responses(each: Operation[Any, Any], gives: Mapping[str, Any]) -> Json:
    error = {"application/json": {"schema": {"$ref": f"{SCHEMAS}Error"}}}
    body = each.mail or each.takes_json
    codes = [code for code in REFUSALS if code not in {413, 415} or body]
    return {
        str(each.status): {
            "description": "Done",
            "content": {"application/json": {"schema": dict(gives)}},
        },
        **{str(code): {"description": REFUSALS[code], "content": error} for code in codes},
    }


def _inlined(schema: Any, schemas: Mapping[str, Any]) -> Any:
    """Return a schema with what it refers to in its place."""
    if isinstance(schema, list):
        return [_inlined(each, schemas) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(schemas[schema["$ref"].removeprefix(SCHEMAS)], schemas)
    return {key: _inlined(value, schemas) for key, value in schema.items()}


def _without_places(found: Any) -> None:
    """Remove from all schemas what `encoding` leaves out."""
    if isinstance(found, list):
        for each in found:
            _without_places(each)
        return
    if not isinstance(found, dict):
        return
    place = f"{SCHEMAS}{Place.__name__}"
    properties = found.get("properties")
    if isinstance(properties, dict):
        gone = [name for name, each in properties.items() if each == {"$ref": place}]
        for name in gone:
            del properties[name]
            found["required"] = [each for each in found.get("required", ()) if each != name]
    found.pop(Place.__name__, None)
    for each in found.values():
        _without_places(each)
