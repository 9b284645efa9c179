"""What the API changes: lessons given, taken back, released, dropped, rolled back."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from spamd.admin.evaluation import Evaluated
from spamd.admin.lessons import Reviewed, RolledBack
from spamd.admin.roles import Role
from spamd.admin.teaching import Change, Source
from spamd.listeners.web.api.for_whom import ForWhom, refusing, user_of
from spamd.listeners.web.api.operation import Asked, Operation, Operations, Visit
from spamd.listeners.web.api.reading import Chosen, Nothing, OneMail, selection
from spamd.sample import Label

MOST_NUMBERS = 1000
"""Held lessons that are released or dropped at a time."""


class Forgotten(OneMail):
    """A mail by our id or its identity in hex, and for whom."""

    user: ForWhom = ""


class Lesson(Forgotten):
    """A mail, what it is, and for whom."""

    label: Label


class Numbers(Asked):
    """Held lessons, by their numbers."""

    numbers: Annotated[
        list[Annotated[int, Field(ge=1, le=2**63 - 1)]],
        Field(min_length=1, max_length=MOST_NUMBERS),
    ]


class Rollback(Chosen):
    """Which lessons are taken back: at least one condition says it."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _any(self) -> Self:
        if all(value is None for _, value in self):
            raise ValueError("say which lessons: at least one condition is needed")
        return self


async def teach(visit: Visit, asked: Lesson) -> Change | None:
    """Learn a mail that was scanned."""
    teaching, name = visit.office.teaching, visit.visitor.name
    with refusing():
        user = await user_of(visit, asked.user)
        return await teaching.teach(asked.mail, asked.label, Source.API, name, user)


async def forget(visit: Visit, asked: Forgotten) -> Change | None:
    """Take back what a mail taught."""
    with refusing():
        user = await user_of(visit, asked.user)
        return await visit.office.teaching.forget(asked.mail, user)


async def release(visit: Visit, asked: Numbers) -> Reviewed:
    """Learn held lessons."""
    return await visit.office.lessons.release(asked.numbers)


async def drop(visit: Visit, asked: Numbers) -> Reviewed:
    """Forget about held lessons."""
    return await visit.office.lessons.drop(asked.numbers)


async def rollback(visit: Visit, asked: Rollback) -> RolledBack:
    """Take many lessons back."""
    return await visit.office.lessons.rollback(selection(visit, asked))


async def evaluate(visit: Visit, _: Nothing) -> Evaluated:
    """Have what was taught evaluated, unless that goes on already."""
    await visit.office.evaluation.ask()
    return await visit.office.evaluation.found()


def operations() -> Operations:
    """Return what can be changed."""
    teacher = Role.TEACHER
    return (
        Operation(
            method="PUT", path="/api/mails/{mail}/lesson", role=teacher, asks=Lesson, gives=Change,
            do=teach, summary="Teach a mail that was scanned: the verdict before and after",
        ),
        Operation(
            method="DELETE", path="/api/mails/{mail}/lesson", role=teacher, asks=Forgotten,
            gives=Change, do=forget, summary="Forget a lesson: the verdict before and after",
        ),
        Operation(
            method="POST", path="/api/lessons/release", role=teacher, asks=Numbers, gives=Reviewed,
            do=release, summary="Learn held lessons",
        ),
        Operation(
            method="POST", path="/api/lessons/drop", role=teacher, asks=Numbers, gives=Reviewed,
            do=drop, summary="Drop held lessons",
        ),
        Operation(
            method="POST", path="/api/lessons/rollback", role=teacher, asks=Rollback,
            gives=RolledBack, do=rollback,
            summary="Take back the newest 1,000 lessons that fit; again while some are left",
        ),
        Operation(
            method="POST", path="/api/evaluation", role=teacher, asks=Nothing, gives=Evaluated,
            do=evaluate, status=202, summary="Evaluate what was taught; it takes half a minute",
        ),
    )  # fmt: skip
