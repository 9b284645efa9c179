"""`/mail/…`: one mail, why it was judged so, what it rests on; and teaching it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from spamd.admin.mail import Basis, Mail, Word
from spamd.admin.ports import WordLesson
from spamd.admin.roles import Role, Visitor
from spamd.admin.teaching import Change, Source
from spamd.listeners.web.pages import fields, links
from spamd.listeners.web.pages.frame import BY_HTMX, Frame, back_to, route
from spamd.ports import Taught

FORGET = "forget"

LESSONS = 4
"""Named for a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a person has just done to a mail; `before` and `after` are probabilities of spam."""

    what: Taught
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Words that rest on the same lessons."""

    words: tuple[Word, ...]
    lessons: tuple[WordLesson, ...]


class MailPage:
    """Answers there."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        frame = self._frame
        return [
            route("/mail/{name}", frame.reading(self.show)),
            route("/mail/{name}/basis", frame.reading(self.basis, Role.TEACHER)),
            route("/mail/{name}/teach", frame.changing(self.teach), "POST"),
        ]

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """Show a mail, and what was just done to it."""
        return await self._page(visitor, request.path_params["name"], _done(request.query_params))

    async def basis(self, request: Request, visitor: Visitor) -> Response:
        """Show which lessons its strongest words rest on."""
        name = request.path_params["name"]
        here = self._frame.administration()
        found = await here.mails.basis(name, people=here.site.shows_people())
        return await self._frame.page(visitor, "basis", "history", found=_grounds(found), name=name)

    async def teach(self, request: Request, visitor: Visitor, given: Mapping[str, str]) -> Response:
        """Teach a mail or forget its lesson, then show it."""
        name = request.path_params["name"]
        teaching = self._frame.administration().teaching
        label = fields.label(given)
        change: Change | None
        if label is not None:
            change = await teaching.teach(name, label, Source.PAGE, visitor.name)
        elif given.get("label") == FORGET:
            change = await teaching.forget(name)
        else:
            return await self._frame.problem(visitor, "form", HTTPStatus.BAD_REQUEST)
        if change is None:
            return await self._frame.problem(visitor, "gone", HTTPStatus.NOT_FOUND)
        before, after = change.before.probability, change.after.probability
        if BY_HTMX in request.headers:
            done = Done(what=change.outcome, before=before, after=after)
            return await self._page(visitor, name, done)
        said = {"done": change.outcome.value, "before": f"{before:.6f}", "after": f"{after:.6f}"}
        return back_to(links.asked(links.mail(name), **said))

    async def _page(self, visitor: Visitor, name: str, done: Done | None) -> Response:
        here = self._frame.administration()
        words, people = visitor.role.may(Role.TEACHER), here.site.shows_people()
        found = await here.mails.show(name, words=words, people=people)
        if found is None:
            return await self._frame.problem(visitor, "gone", HTTPStatus.NOT_FOUND)
        sides = _sides(found)
        read = [(word, sides.get(word, "")) for word in found.sight.read]
        return await self._frame.page(
            visitor, "mail", "history", found=found, done=done, read=read, name=name
        )


def _sides(found: Mail) -> dict[str, str]:
    """Return for which side the words speak that moved the verdict."""
    return {word.token: "spam" if word.effect > 0 else "ham" for word in found.words}


def _grounds(found: Sequence[Basis]) -> list[Ground]:
    """Return words with the newest lessons that taught them, each lessons once."""
    words: dict[tuple[str, ...], list[Word]] = {}
    lessons: dict[tuple[str, ...], tuple[WordLesson, ...]] = {}
    for each in found:
        shown = each.lessons.found[:LESSONS]
        key = tuple(one.lesson.id for one in shown)
        words.setdefault(key, []).append(each.word)
        lessons[key] = shown
    return [Ground(words=tuple(of), lessons=lessons[key]) for key, of in words.items()]


def _done(given: Mapping[str, str]) -> Done | None:
    what = fields.choice(given, "done", Taught)
    before, after = fields.share(given, "before"), fields.share(given, "after")
    if what is None or before is None or after is None:
        return None
    return Done(what=what, before=before, after=after)
