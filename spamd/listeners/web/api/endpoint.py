"""Operations as routes: who may, what is asked, what is answered, in one way for all of them.

    401, 403   who asks may not (`access.guard`)
    400        what is asked makes no sense; the text says which part
    404        what is named is not known, or not any more
    413, 415   the body is too large, or of another type
    503        the database does not answer, or too much is going on: try again later

Errors are `{"error": "a sentence", "error_domain": "request" | "spamd"}`, as everywhere by HTTP.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from pydantic import ValidationError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.administration import Administration
from spamd.errors import Overloaded, StorageUnavailable, TemporaryError
from spamd.listeners.web.access.guard import Guard
from spamd.listeners.web.access.headers import SecurityHeaders
from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.api.encoding import encoded
from spamd.listeners.web.api.operation import Asked, Operation, Visit
from spamd.wording import printable

BODY_BYTES = 64 * 1024
SENTENCE = 200

UNKNOWN = "there is nothing of that name, or not any more"
AWAY = "the database does not answer, try again later"
BUSY = "too much is going on, try again later"

_Operation = Operation[Any, Any]


def routes(
    operations: Sequence[_Operation], guard: Guard, office: Callable[[], Administration]
) -> list[Route]:
    """Return the routes of operations: one for each path, so that 405 names all its methods."""
    in_order = sorted(operations, key=lambda each: ("{" in each.path, each.path))
    return [
        _route(path, list(there), guard, office)
        for path, there in groupby(in_order, key=lambda each: each.path)
    ]


def _route(
    path: str, there: Iterable[_Operation], guard: Guard, office: Callable[[], Administration]
) -> Route:
    by_method = {each.method: each for each in there}

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await answered(by_method[method], request, guard, office)

    own = [Middleware(SecurityHeaders)]
    return Route(path, endpoint, methods=list(by_method), middleware=own)


async def answered(
    operation: _Operation, request: Request, guard: Guard, office: Callable[[], Administration]
) -> Response:
    """Carry an operation out.

    Raises:
        Refusal: it is not carried out.
    """
    visitor = await guard.require(request, operation.role)
    asked = await _asked(operation, request, guard)
    try:
        opened = office()
        people = opened.site.shows_people()
        visit = Visit(office=opened, visitor=visitor, people=people, request=request)
        given = await operation.do(visit, asked)
    except StorageUnavailable as error:
        raise Refusal(503, AWAY) from error
    except (Overloaded, TemporaryError) as error:
        raise Refusal(503, BUSY) from error
    if given is None:
        raise Refusal(404, UNKNOWN)
    body = await asyncio.to_thread(encoded, given)
    return Response(body, operation.status, media_type="application/json")


async def _asked(operation: _Operation, request: Request, guard: Guard) -> Asked:
    path = {name: str(value) for name, value in request.path_params.items()}
    query = _query(request)
    try:
        if not operation.takes_json:
            found: Asked = operation.asks.model_validate_strings(query | path, strict=True)
            return found
        if query:
            raise Refusal(400, "what is asked stands in the body, not in the query")
        body = await _json(request, guard)
        if wrong := set(body) & set(path):
            raise Refusal(400, f"{min(wrong)} stands in the path, not in the body")
        found = operation.asks.model_validate_json(json.dumps(body | path), strict=True)
    except ValidationError as error:
        raise Refusal(400, _sentence(error)) from None
    return found


def _query(request: Request) -> dict[str, str]:
    pairs = request.query_params.multi_items()
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refusal(400, "a name stands twice in the query")
    return found


async def _json(request: Request, guard: Guard) -> dict[str, object]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "the body has the type application/json")
    try:
        body = json.loads(await guard.body(request, BODY_BYTES), parse_float=_number)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal(400, "the body is no JSON object")
    if None in body.values():
        raise Refusal(400, "what is not meant is left out, not null")
    return body


def _number(text: str) -> float | int:
    """Return a number of JSON, which knows no difference between 1.0 and 1."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _sentence(error: ValidationError) -> str:
    """Return the first thing that is wrong, as one line of ASCII."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place, says = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    text = printable(f"{place}: {says}" if place else says, SENTENCE)
    return text.encode("ascii", "backslashreplace").decode()
