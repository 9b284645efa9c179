"""Mail that a program sends along: judged, explained, taught, forgotten.

What is judged counts and is kept as all mail that comes in; what is only taught is not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import Field

from spamd.admin.mail import Mail, judgement_of
from spamd.admin.ports import Place, ScanRow
from spamd.admin.roles import Role
from spamd.admin.teaching import Change, Source
from spamd.bayes.decision import Action, Verdict
from spamd.listeners.web.answers import Refusal
from spamd.listeners.web.api.for_whom import ForWhom, refusing, user_of
from spamd.listeners.web.api.operation import Asked, Operation, Operations, Text, Visit
from spamd.listeners.web.body import TOO_LARGE, Bodies, encoding_of
from spamd.listeners.web.envelope import envelope_of
from spamd.message.envelope import Envelope
from spamd.message.features import Features
from spamd.network.deadlines import TimeLimit
from spamd.network.shared import Shared
from spamd.network.spool import SpooledMessage
from spamd.report import ScanReport
from spamd.sample import Label

if TYPE_CHECKING:
    from spamd.listeners.web.peer import Peer

MAIL_TYPE = "message/rfc822"
NO_MAIL = "there is no message in the body"

GivenT = TypeVar("GivenT")


class Sent(Asked):
    """What SMTP said of the mail, as far as it is known."""

    sender: Annotated[Text, Field(description="MAIL FROM")] = ""
    recipients: Annotated[Text, Field(description="RCPT TO, with commas between several")] = ""
    client: Annotated[Text, Field(description="address of the client that sent it")] = ""
    helo: Text = ""
    user: Annotated[Text, Field(description="for whom it is judged, else the recipients")] = ""


class Unlabelled(Asked):
    """For whom, and nothing more."""

    user: ForWhom = ""


class Labelled(Unlabelled):
    """What the mail is, and for whom."""

    label: Label


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderField:
    """A field that goes on top of the mail."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What was found.

    id           names the mail from now on, a second later at all workers
    mail         its identity in hex
    required     the probability from which the verdict is spam
    user         whose verdict it is, "": the site's
    listed       the entry of a list that decided, "": none
    classifiers  the score of each: log-odds of spam
    fields       ours, in their order
    """

    id: str
    mail: str
    verdict: Verdict
    action: Action
    probability: float | None
    required: float
    reason: str
    user: str
    listed: str
    classifiers: Mapping[str, float]
    fields: tuple[HeaderField, ...]
    size_bytes: int
    tokens: int
    known: int


class MailOperations:
    """Answers with mail in hand.

    Args:
        shared: what all listeners share.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._bodies = Bodies(shared.options)
        self._large = asyncio.Semaphore(1)

    async def scan(self, visit: Visit, asked: Sent) -> Scanned:
        """Judge a mail."""
        report = await self._judged(visit, asked)
        return Scanned(
            id=report.id,
            mail=report.digest.hex(),
            verdict=report.verdict,
            action=report.action,
            probability=report.probability,
            required=report.required,
            reason=report.reason,
            user=report.user,
            listed=report.standing.listed.short(),
            classifiers=report.scores,
            fields=tuple(HeaderField(name=name, value=value) for name, value in report.fields()),
            size_bytes=report.size_bytes,
            tokens=report.tokens,
            known=report.known,
        )

    async def explain(self, visit: Visit, asked: Sent) -> Mail:
        """Judge a mail and say why."""
        report = await self._judged(visit, asked)
        if report.features is None:
            raise Refusal(503, "the mail could not be judged")
        scan = self._row(report, report.features)
        mails = visit.office.mails
        found = await mails.of(scan, report.features, words=visit.words, people=visit.people)
        return replace(found, own=judgement_of(report)) if report.user else found

    async def teach_mail(self, visit: Visit, asked: Labelled) -> Change:
        """Learn a mail."""

        async def learned(content: bytes) -> Change:
            teaching, name = visit.office.teaching, visit.visitor.name
            return await teaching.teach_mail(content, asked.label, Source.API, name, user)

        with refusing():
            user = await user_of(visit, asked.user)
            return await self._with_content(visit, learned)

    async def forget_mail(self, visit: Visit, asked: Unlabelled) -> Change:
        """Take back what a mail taught."""

        async def forgotten(content: bytes) -> Change:
            return await visit.office.teaching.forget_mail(content, user)

        with refusing():
            user = await user_of(visit, asked.user)
            return await self._with_content(visit, forgotten)

    async def _with_content(
        self, visit: Visit, work: Callable[[bytes], Awaitable[GivenT]]
    ) -> GivenT:
        limit = self._time_limit()
        try:
            message = await self._body(visit, limit)
            try:
                async with self._large:  # at most one of them lies in memory besides
                    with limit.of(self._shared.options.inspect_timeout_s):
                        content = await asyncio.to_thread(b"".join, message.again())
                        return await work(content)
            finally:
                message.close()
        finally:
            limit.stop()

    async def _judged(self, visit: Visit, asked: Sent) -> ScanReport:
        peer: Peer = visit.request.state.peer
        limit = self._time_limit()
        try:
            message = await self._body(visit, limit)
            try:
                envelope = _envelope(asked, peer.address)
                await self._shared.turns.wait(peer.network, first=True)
                verdicts = await self._shared.judge.message(message, envelope, limit)
            finally:
                message.close()
        finally:
            limit.stop()
        report = verdicts.for_all(envelope.readers)
        self._shared.scanned(
            report, listener="http", reply=b"200 OK", recipients=len(envelope.recipients)
        )
        return report

    def _time_limit(self) -> TimeLimit:
        return TimeLimit(asyncio.get_running_loop(), self._shared.deadline_timer)

    async def _body(self, visit: Visit, limit: TimeLimit) -> SpooledMessage:
        request = visit.request
        peer: Peer = request.state.peer
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != MAIL_TYPE:
            raise Refusal(415, f"the body is a mail, of the type {MAIL_TYPE}")
        if int(request.headers.get("content-length", "0")) > self._shared.options.max_message_bytes:
            raise Refusal(413, TOO_LARGE)
        encoding = encoding_of(*request.headers.getlist("content-encoding"))
        message = await self._bodies.received(request.receive, peer.share, limit, encoding)
        if not message.size_bytes:
            message.close()
            raise Refusal(400, NO_MAIL)
        return message

    def _row(self, report: ScanReport, features: Features) -> ScanRow:
        return ScanRow(
            id=report.id,
            mail=features.digest.hex(),
            time=self._shared.clock.now(),
            verdict=report.verdict,
            action=report.action,
            probability=report.probability,
            listener="http",
            queue_id="",
            label=None,
            place=Place(time=0, key=""),
        )

    def operations(self) -> Operations:
        """Return what can be done with a mail in hand."""
        return (
            Operation(
                method="POST", path="/api/scan", role=Role.READER, asks=Sent, gives=Scanned,
                do=self.scan, summary="Judge a mail", mail=True,
            ),
            Operation(
                method="POST", path="/api/explain", role=Role.READER, asks=Sent, gives=Mail,
                do=self.explain, summary="Judge a mail and say why; words for teachers", mail=True,
            ),
            Operation(
                method="POST", path="/api/teach", role=Role.TEACHER, asks=Labelled, gives=Change,
                do=self.teach_mail, mail=True,
                summary="Teach a mail, scanned or not: the verdict before and after",
            ),
            Operation(
                method="POST", path="/api/forget", role=Role.TEACHER, asks=Unlabelled, gives=Change,
                do=self.forget_mail, mail=True,
                summary="Forget what a mail taught: the verdict before and after",
            ),
        )  # fmt: skip


def _envelope(asked: Sent, peer: str) -> Envelope:
    said = {
        "from": asked.sender,
        "rcpt": asked.recipients,
        "ip": asked.client,
        "helo": asked.helo,
        "deliver-to": asked.user,
    }
    return envelope_of({name: [text.encode()] for name, text in said.items() if text}, peer)
