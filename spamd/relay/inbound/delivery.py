"""A complete message: judged, marked, delivered to the next hop, answered for.

    message → inspector → verdicts → reject, or our fields on top → next hop → its reply

Recipients who get the same go in one transaction; where their own verdicts differ there is one for
each verdict, and for the client one reply (`groups.py`, `relay/taken.py`).

A fault before DATA is sent to the next hop costs only this message: it is answered by the table of
`replies.py` and the next hop's transaction is reset. From DATA on (`committing`) the loss of the
client no longer stops the delivery, so that the outcome is known. The client reads 250 only when
the next hop said so; an unknown outcome is 451: a repeat is possible, a loss is not (RFC 1047).
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spamd.bayes.decision import Action, Verdict
from spamd.errors import (
    DeadlineExceeded,
    MessageRejected,
    MessageTooLarge,
    RoutingLoop,
    SpamdError,
)
from spamd.message.envelope import Envelope
from spamd.message.spam_fields import holds_fields, render
from spamd.network.deadlines import TimeLimit
from spamd.network.marking import LARGE_HEADER_BYTES, is_large, marked_header
from spamd.network.spool import SpooledMessage
from spamd.ports import Outcome
from spamd.relay.content.data import MessageReader, stuffed, unstuffed, unstuffed_blocks
from spamd.relay.content.outgoing import Outgoing
from spamd.relay.content.received_field import MAX_RECEIVED, received_count, received_field
from spamd.relay.inbound.context import RelayContext
from spamd.relay.inbound.groups import Group, differ, grouped, outcome_of, without
from spamd.relay.inbound.report_receipt import send_receipt
from spamd.relay.options import Received, SeveralVerdicts
from spamd.relay.outbound.router import NextHopSession
from spamd.relay.smtp.commands import Path
from spamd.relay.smtp.replies import NextHopLost, Reply, needs_logging, reply, reply_to
from spamd.relay.taken import message_key
from spamd.report import ScanReport
from spamd.sample import Label

_HAD = reply(250, "2.0.0 OK, delivered before")
"""For a recipient who took the message when others could not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """MAIL and RCPT as the client said them, so that its transaction can be begun anew."""

    mail: bytes
    rcpt: Sequence[tuple[bytes, Path | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A message that was judged: its header section, and where in the wire form the rest begins.

    header  None for a large one, which is not kept in memory
    """

    message: SpooledMessage
    header: bytes | None
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What became of a message before: its key, the places of those who have it, all outcomes."""

    key: bytes
    had: frozenset[int]
    outcomes: Mapping[bytes, Outcome]


class Delivery:
    """One message on its way from the client to the next hop.

    Args:
        context: what all sessions share.
        next_hop: the session that the transaction began on.
        envelope: of the message.
        asked: the commands of its transaction.
        time_limit: for the inspection.

    Attributes:
        committing: DATA is sent to the next hop, so the outcome must be known.
    """

    def __init__(
        self,
        context: RelayContext,
        next_hop: NextHopSession,
        envelope: Envelope,
        asked: Asked,
        time_limit: TimeLimit,
    ) -> None:
        self.committing = False
        self._context = context
        self._next_hop = next_hop
        self._envelope = envelope
        self._asked = asked
        self._time_limit = time_limit
        self._loop = asyncio.get_running_loop()
        self._deadline = 0.0
        self._lmtp = envelope.client.protocol.startswith("LMTP")

    async def deliver(self, reader: MessageReader) -> list[Reply]:
        """Return the final replies: one, or one per recipient."""
        self._deadline = self._loop.time() + self._context.relay.content_timeout_s
        known: Known | None = None
        try:
            message = await reader.finish(self._context.relay.bare_newline)
            if self._context.taken:
                known = await self._known(message, asked=False)
            content, groups = await self._judged(message, known)
            if len(groups) > 1 and known is None and not self._lmtp:
                known = await self._known(message, asked=True)
                groups = without(groups, known.had)
        except Exception as error:  # noqa: BLE001 - the border around one message
            return [await self._refused(error)]
        if len(groups) == 1 and len(groups[0].places) == len(self._envelope.recipients):
            replies = await self._whole(content, groups[0].report)
        else:
            replies = await self._in_parts(content, groups, known.had if known else ())
        if not self._lmtp and (known is not None or differ(replies)):
            await self._remember(message, known, replies)
        return replies

    async def _judged(
        self, message: SpooledMessage, known: Known | None
    ) -> tuple[Content, list[Group]]:
        """Return the message as judged, and who gets which verdict."""
        context, envelope = self._context, self._envelope
        header, start = await self._header(message)
        # A large one is not kept in memory while its turn to be judged comes.
        content = Content(message=message, header=None if is_large(header) else header, start=start)
        del header
        had = known.had if known else ()
        if len(had) == len(envelope.recipients):
            return content, []
        verdicts = await context.shared.judge.message(
            message, envelope, self._time_limit, unstuffed, unstuffed_blocks
        )
        groups = grouped(
            verdicts,
            envelope.recipients,
            SeveralVerdicts.SITE if self._next_hop.one_mailbox else context.relay.several_verdicts,
            context.relay.most_transactions,
            lmtp=self._lmtp and not self._next_hop.one_mailbox,
            without=had,
        )
        return content, groups

    # One transaction

    async def _whole(self, content: Content, report: ScanReport) -> list[Reply]:
        """Deliver the message to all recipients at once, in the transaction that is open."""
        recipients = self._envelope.recipients
        try:
            raise_if_rejected(report)
            outgoing = await self._outgoing(content, report)
            self.committing = True
            replies = await self._next_hop.deliver(
                outgoing, recipients, self._deadline - self._loop.time()
            )
        except Exception as error:  # noqa: BLE001 - the border around one message
            replies = [await self._refused(error)]
        finally:
            self.committing = False
        self._tell(report, replies[0], len(recipients))
        return replies

    async def _outgoing(self, content: Content, report: ScanReport) -> Outgoing:
        message, header = content.message, content.header
        if header is None:
            header, _ = await self._header(message)
        marked = await marked_header(header, self._trace() + render(report.fields(), b"\r\n"))
        return Outgoing(
            header=stuffed(marked) if message.dotted else marked,
            message=message,
            start=content.start,
            sender=self._envelope.sender,
            junk=report.verdict is Verdict.SPAM and report.action is Action.TAG,
        )

    # A transaction for each verdict

    async def _in_parts(
        self, content: Content, groups: Sequence[Group], had: Collection[int]
    ) -> list[Reply]:
        """Deliver the message to one group after another; return the reply for each recipient."""
        replies = dict.fromkeys(had, _HAD)
        lost: Reply | None = None
        # Once a part is taken, the loss of the client must not leave the rest undone.
        self.committing = True
        try:
            if not groups:
                await self._reset()
            for group in groups:
                if lost is None:
                    answers = await self._part(content, group)
                    lost = None if self._next_hop.usable else reply_to(NextHopLost(), in_hand=True)
                else:
                    answers = [lost] * len(group.places)
                replies |= zip(group.places, answers, strict=True)
                self._tell(group.report, answers[0], len(group.places))
        finally:
            self.committing = False
        return [replies[place] for place in range(len(self._envelope.recipients))]

    async def _part(self, content: Content, group: Group) -> list[Reply]:
        """Deliver the message to a group in a transaction of its own; return all their replies."""
        answers: dict[int, Reply] = {}
        try:
            raise_if_rejected(group.report)
            if self._loop.time() >= self._deadline:
                raise DeadlineExceeded("no time left for the other recipients")  # noqa: TRY301 - answered like all faults
            outgoing = await self._outgoing(content, group.report)
            answers = await self._begun_anew(group.places)
            taken = [place for place in group.places if answers[place].accepted]
            if taken:
                recipients = [self._envelope.recipients[place] for place in taken]
                found = await self._next_hop.deliver(
                    outgoing, recipients, self._deadline - self._loop.time()
                )
                found = found if len(found) == len(taken) else found[:1] * len(taken)
                answers |= zip(taken, found, strict=True)
        except Exception as error:  # noqa: BLE001 - the border around one message
            answer = self._answer(error)
            answers = {
                place: answers[place]
                if place in answers and not answers[place].accepted
                else answer
                for place in group.places
            }
            await self._reset()
        return [answers[place] for place in group.places]

    async def _begun_anew(self, places: Sequence[int]) -> dict[int, Reply]:
        """Begin a transaction with these recipients; return the answer to each."""
        next_hop, asked = self._next_hop, self._asked
        await next_hop.reset()
        answer = await next_hop.mail(asked.mail, self._envelope.client)
        if not answer.accepted:
            return dict.fromkeys(places, answer)
        return {place: await next_hop.rcpt(*asked.rcpt[place]) for place in places}

    # What others of the recipients got before

    async def _known(self, message: SpooledMessage, *, asked: bool) -> Known:
        """Return what became of this message when it came before."""
        key = await message_key(message, self._envelope.sender)
        recipients = self._envelope.recipients
        found = await self._context.taken.of(key, recipients, asked=asked)
        had = [
            place
            for place, recipient in enumerate(recipients)
            if found.get(recipient) is Outcome.TAKEN
        ]
        return Known(key=key, had=frozenset(had), outcomes=found)

    async def _remember(
        self, message: SpooledMessage, known: Known | None, replies: Sequence[Reply]
    ) -> None:
        """Keep what one reply can't say, for the client's next try."""
        if not differ(replies) and not (known and known.outcomes):
            return
        recipients = self._envelope.recipients
        key = known.key if known else await message_key(message, self._envelope.sender)
        each = replies if len(replies) == len(recipients) else [replies[0]] * len(recipients)
        outcomes = {
            recipient: outcome_of(answer)
            for recipient, answer in zip(recipients, each, strict=True)
        }
        await self._context.taken.keep(key, self._envelope.sender, outcomes)

    def _tell(self, report: ScanReport, answer: Reply, recipients: int) -> None:
        self._context.shared.scanned(
            report,
            listener="lmtp" if self._lmtp else "smtp",
            reply=answer.raw,
            recipients=recipients,
        )

    async def learn(self, reader: MessageReader, label: Label) -> Reply:
        """Return the reply to a report: mail that teaches and goes no further."""
        context, envelope = self._context, self._envelope
        handler, limit = context.report_handler, context.shared.judge.reads_bytes
        try:
            message = await reader.finish(context.relay.bare_newline)
            if handler is None or message.size_bytes > limit:
                raise MessageTooLarge("the report is larger than tokenizer.limits allows")  # noqa: TRY301 - answered like all faults
            client = envelope.client  # MAIL FROM is whatever its sender writes
            content = unstuffed(await asyncio.to_thread(message.first, limit))
            with self._time_limit.of(context.relay.inspect_timeout_s):
                receipt = await handler.take(content, label, client.login or client.address)
            await self._next_hop.reset()
            header = content[: content.find(b"\r\n\r\n", 0, LARGE_HEADER_BYTES) + 4]
            await send_receipt(context, self._next_hop, envelope, header, receipt)
            return reply(250, f"2.0.0 {receipt}")
        except Exception as error:  # noqa: BLE001 - the border around one message
            return await self._refused(error)

    async def _header(self, message: SpooledMessage) -> tuple[bytes, int]:
        """Return the header section and where the rest begins, as `header_of`."""
        limit = self._context.shared.judge.reads_bytes
        if message.spooled:
            return await asyncio.to_thread(header_of, message, limit)
        return header_of(message, limit)

    def _trace(self) -> bytes:
        """Return our Received field, empty where the next hop makes one of the real client."""
        setting = self._context.relay.received
        hidden = setting is Received.AUTO and self._next_hop.knows_client
        if setting is Received.OFF or hidden:
            return b""
        client = self._envelope.client
        protocol = client.protocol
        if protocol != "SMTP":  # RFC 3848
            protocol += ("S" if client.tls else "") + ("A" if client.login is not None else "")
        now = self._context.shared.clock.now()
        return received_field(client, self._context.hostname, now, protocol)

    async def _refused(self, error: Exception) -> Reply:
        """Return what the client reads about a fault, with the next hop ready for another mail."""
        answer = self._answer(error)
        if self._next_hop.usable and not self.committing:
            await self._reset()
        elif self.committing:
            self._next_hop.abort()
        return answer

    def _answer(self, error: Exception) -> Reply:
        if needs_logging(error):
            self._context.shared.observer.failed("message.failed", error)
        return reply_to(error, in_hand=True)

    async def _reset(self) -> None:
        """Make the next hop ready for another mail, if it is still there."""
        if self._next_hop.usable:
            try:
                await self._next_hop.reset()
            except SpamdError:
                self._next_hop.abort()


def header_of(message: SpooledMessage, limit: int) -> tuple[bytes, int]:
    """Return the header section as it was meant, and where in the wire form the rest begins.

    Raises:
        RoutingLoop: the message has been on its way too long.
        MessageTooLarge: the header section alone is larger than `limit`.
    """
    text = message.first(limit) if message.spooled else message.whole()
    # As far as the first empty line: where the header ends before one, readers don't agree.
    blank = text.find(b"\r\n\r\n")
    end = blank + 4 if blank >= 0 else text.rfind(b"\n") + 1 or len(text)
    # A dot that only the wire needs must not hide a field of ours, or the next line of a field.
    header = unstuffed(text[:end]) if message.dotted else text[:end]
    if blank < 0 and end < message.size_bytes and holds_fields(header):
        raise MessageTooLarge("the header section is larger than tokenizer.limits allows")
    if received_count(header) >= MAX_RECEIVED:
        raise RoutingLoop(f"{MAX_RECEIVED} Received fields")
    return header, end


def raise_if_rejected(report: ScanReport) -> None:
    """Stop a message that the decision does not let pass."""
    if report.action is Action.REJECT:
        raise MessageRejected(report.reason)
