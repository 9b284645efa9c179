"""Every operation of the table: who may call it, and that the document says what it does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from spamd.admin.roles import Role
from spamd.listeners.web.access.headers import SECURITY
from spamd.listeners.web.api.operation import Operation
from spamd.listeners.web.api.table import operations
from spamd.network.shared import Shared
from spamd.relay.options import RelayOptions
from tests.fakes import FakeClock, FakeInspector, FakeObserver, FakeTeacher
from tests.listeners.web.api.asking import ELSEWHERE, TOKENS, Api, api
from tests.listeners.web.clients import BOUNDS, Answer, answers, request

TABLE = operations(
    Shared.of(RelayOptions(), FakeInspector(), FakeTeacher(), FakeObserver(), FakeClock()), BOUNDS
)


def named(operation: Operation[Any, Any]) -> str:
    return f"{operation.method} {operation.path}"


def path_of(operation: Operation[Any, Any]) -> str:
    path = operation.path
    for name in operation.in_path:
        path = path.replace(f"{{{name}}}", "x")
    return path


async def sent(there: Api, operation: Operation[Any, Any], *fields: str) -> Answer:
    """Send the least that the operation could mean."""
    body = b"{}" if operation.takes_json else b"x" if operation.mail else None
    raw = request(path_of(operation), body, fields, method=operation.method)
    (answer,) = answers(await there.here.ask(raw))
    return answer


async def test_every_operation_refuses_whoever_has_no_token_a_wrong_one_or_is_another_site(
    tmp_path: Path,
) -> None:
    right = f"Authorization: Bearer {TOKENS[Role.TEACHER]}"
    async with api(tmp_path) as there:
        for each in TABLE:
            there.here.listener.reload()
            assert (await sent(there, each, ELSEWHERE)).status == 401, named(each)
            evil = await sent(there, each, ELSEWHERE, right, "Origin: https://evil.example")
            assert evil.status == 403, named(each)
            cross = await sent(there, each, ELSEWHERE, right, "Sec-Fetch-Site: cross-site")
            assert cross.status == 403, named(each)
            assert {name: cross.fields[name] for name in SECURITY} == dict(SECURITY)
        assert (await sent(there, TABLE[0], ELSEWHERE, "Authorization: Bearer x")).status == 401


async def test_what_is_for_teachers_is_refused_to_readers_and_nothing_else_is(
    tmp_path: Path,
) -> None:
    reader = f"Authorization: Bearer {TOKENS[Role.READER]}"
    async with api(tmp_path) as there:
        refused = {
            named(each)
            for each in TABLE
            if (await sent(there, each, ELSEWHERE, reader)).status == 403
        }
    assert refused == {named(each) for each in TABLE if each.role is Role.TEACHER}
    assert len(TABLE) > len(refused) > 0


async def test_every_operation_stands_in_the_document_which_describes_itself(
    tmp_path: Path,
) -> None:
    async with api(tmp_path) as there:
        found = await there.get("/api/openapi.json")
    assert found["openapi"] == "3.1.0"
    there_are = {
        f"{method.upper()} {path}" for path, each in found["paths"].items() for method in each
    }
    assert there_are == {named(each) for each in TABLE}
    names = [each["operationId"] for path in found["paths"].values() for each in path.values()]
    assert len(names) == len(set(names))
    for reference in references(found):
        assert reference.removeprefix("#/components/schemas/") in found["components"]["schemas"]


def references(found: object) -> Iterator[str]:
    match found:
        case {"$ref": str(reference)}:
            yield reference
        case dict():
            for each in found.values():
                yield from references(each)
        case list():
            for each in found:
                yield from references(each)
        case _:
            pass


READS: dict[str, dict[str, object]] = {
    "status": {"hours": 48},
    "mails": {},
    "lessons": {"limit": 5},
    "held": {},
    "preview": {"label": "spam"},
    "word": {"word": "pills"},
    "accounts": {},
    "evaluation": {},
    "settings": {},
    "openapi": {},
}


@pytest.mark.parametrize("full", [False, True])
async def test_what_is_read_is_as_the_document_says(tmp_path: Path, *, full: bool) -> None:
    async with api(tmp_path, full=full) as there:
        document = await there.get("/api/openapi.json")
        by_name = {each.name: each for each in TABLE if each.name in READS}
        assert set(by_name) == set(READS)
        for name, query in READS.items():
            path = by_name[name].path
            answer = await there.get(path, **query)
            check(document, path, answer)


def check(document: Any, path: str, answer: object, method: str = "get", status: int = 200) -> None:
    """Fail unless the answer is as the document says, without a name that it doesn't know."""
    described = document["paths"][path][method]["responses"][str(status)]
    schema = described["content"]["application/json"]["schema"]
    whole = {**schema, "components": document["components"]}
    Draft202012Validator(closed(whole)).validate(answer)


def closed(schema: Any) -> Any:
    """Return a schema that takes no other properties than those it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(value) for key, value in schema.items()}
    if "required" in schema and isinstance(schema["required"], list):
        found.setdefault("additionalProperties", False)
    return found
