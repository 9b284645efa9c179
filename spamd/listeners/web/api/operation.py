"""One operation of the API: where it is, who may call it, what it takes, what it gives.

Routes (`endpoint`) and the OpenAPI document (`openapi`) are both made of these, so neither can say
what the other does not.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema
from starlette.requests import Request

from spamd.admin.administration import Administration
from spamd.admin.roles import Role, Visitor

TEXT_CHARACTERS = 500
CURSOR_CHARACTERS = 220

Text = Annotated[str, Field(max_length=TEXT_CHARACTERS, pattern=r"^[^\x00]*$")]
"""What somebody may name; no database takes a NUL."""

Name = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS, pattern=r"^[^\x00]+$")]

Cursor = Annotated[
    str, Field(max_length=CURSOR_CHARACTERS, pattern=r"^[-+][0-9]{1,18}\.[^\x00]{0,200}$")
]
"""Where a part of a list begins, as `newer` and `older` of another part say it."""


def _time(value: object) -> datetime:
    """Return a time of RFC 3339; seconds since some year are none."""
    try:
        time = datetime.fromisoformat(str(value).upper())
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError("a time is a date with a time and a zone")
    return time


Time = Annotated[
    datetime, PlainValidator(_time), WithJsonSchema({"type": "string", "format": "date-time"})
]


class Asked(BaseModel):
    """What a request says: in its path, then in its query (GET, DELETE, mail) or its JSON body."""

    model_config = ConfigDict(extra="forbid", frozen=True)


AskedT = TypeVar("AskedT", bound=Asked)
GivenT = TypeVar("GivenT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Somebody who may do what they ask for.

    office   what stands behind the page and the API
    people   lists may name people
    """

    office: Administration
    visitor: Visitor
    people: bool
    request: Request

    @property
    def words(self) -> bool:
        """Whether the words of mail are shown."""
        return self.visitor.role.may(Role.TEACHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[AskedT, GivenT]):
    """It.

    path     names of `asks` in braces are read there
    summary  one sentence for the document
    gives    the type of what `do` returns
    do       does it; None for what is not known (any more): 404
    status   of an answer
    mail     the body is a mail (message/rfc822); what else it takes stands in the query
    """

    method: str
    path: str
    role: Role
    summary: str
    asks: type[AskedT]
    gives: Any
    do: Callable[[Visit, AskedT], Awaitable[GivenT | None]]
    status: int = HTTPStatus.OK
    mail: bool = False

    @property
    def in_path(self) -> tuple[str, ...]:
        """Return the names that are read in the path."""
        return tuple(name for name in self.asks.model_fields if f"{{{name}}}" in self.path)

    @property
    def takes_json(self) -> bool:
        """Whether there is a body of JSON."""
        rest = set(self.asks.model_fields) - set(self.in_path)
        return self.method in {"POST", "PUT"} and not self.mail and bool(rest)

    @property
    def name(self) -> str:
        """Return its name in the document."""
        return self.do.__name__


Operations = tuple[Operation[Any, Any], ...]
