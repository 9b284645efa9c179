"""A complete message: judged, marked, delivered to the next hop, answered for.

    message → inspector → report → reject, or our fields on top → next hop → its reply

A fault before DATA is sent to the next hop costs only this message: it is answered by the table of
`replies.py` and the next hop's transaction is reset. From DATA on (`committing`) the loss of the
client no longer stops the delivery, so that the outcome is known. The client reads 250 only when
the next hop said so; an unknown outcome is 451: a repeat is possible, a loss is not (RFC 1047).
"""

import asyncio
from collections.abc import Sequence

from spamd.bayes.decision import Action, Verdict
from spamd.errors import (
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
from spamd.relay.content.data import MessageReader, stuffed, unstuffed, unstuffed_blocks
from spamd.relay.content.outgoing import Outgoing
from spamd.relay.content.received_field import MAX_RECEIVED, received_count, received_field
from spamd.relay.inbound.context import RelayContext
from spamd.relay.inbound.report_receipt import send_receipt
from spamd.relay.options import Received
from spamd.relay.outbound.router import NextHopSession
from spamd.relay.smtp.replies import Reply, needs_logging, reply, reply_to
from spamd.report import ScanReport
from spamd.sample import Label

_MIXED = reply(451, "4.3.0 Delivery to some recipients failed, please try again later")


class Delivery:
    """One message on its way from the client to the next hop.

    Args:
        context: what all sessions share.
        next_hop: the session that the transaction began on.
        envelope: of the message.
        time_limit: for the inspection.

    Attributes:
        committing: DATA is sent to the next hop, so the outcome must be known.
    """

    def __init__(
        self,
        context: RelayContext,
        next_hop: NextHopSession,
        envelope: Envelope,
        time_limit: TimeLimit,
    ) -> None:
        self.committing = False
        self._context = context
        self._next_hop = next_hop
        self._envelope = envelope
        self._time_limit = time_limit
        self._loop = asyncio.get_running_loop()

    async def deliver(self, reader: MessageReader) -> list[Reply]:
        """Return the final replies: one, or over LMTP one per recipient."""
        deadline = self._loop.time() + self._context.relay.content_timeout_s
        report: ScanReport | None = None
        try:
            message = await reader.finish(self._context.relay.bare_newline)
            header, start = await self._header(message)
            if large := is_large(header):
                header = b""  # not kept in memory while its turn to be judged comes
            verdicts = await self._context.shared.judge.message(
                message, self._envelope, self._time_limit, unstuffed, unstuffed_blocks
            )
            report = verdicts.for_all(self._envelope.readers)
            raise_if_rejected(report)
            if large:
                header, start = await self._header(message)
            fields = self._trace() + render(report.fields(), b"\r\n")
            marked = await marked_header(header, fields)
            outgoing = Outgoing(
                header=stuffed(marked) if message.dotted else marked,
                message=message,
                start=start,
                sender=self._envelope.sender,
                junk=report.verdict is Verdict.SPAM and report.action is Action.TAG,
            )
            self.committing = True
            replies = await self._next_hop.deliver(
                outgoing, self._envelope.recipients, deadline - self._loop.time()
            )
        except Exception as error:  # noqa: BLE001 - the border around one message
            replies = [await self._refused(error)]
        finally:
            self.committing = False
        if report is not None:
            client = self._envelope.client
            self._context.shared.scanned(
                report,
                listener="lmtp" if client.protocol.startswith("LMTP") else "smtp",
                reply=replies[0].raw,
                recipients=len(self._envelope.recipients),
            )
        return replies

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
        answer = reply_to(error, in_hand=True)
        if needs_logging(error):
            self._context.shared.observer.failed("message.failed", error)
        if self._next_hop.usable and not self.committing:
            try:
                await self._next_hop.reset()
            except SpamdError:
                self._next_hop.abort()
        elif self.committing:
            self._next_hop.abort()
        return answer


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


def final_replies(replies: Sequence[Reply], recipients: int, *, lmtp: bool) -> list[Reply]:
    """Return the replies for the client's protocol.

    LMTP wants one per recipient, SMTP one in all: several that agree become the first of them,
    others 451, since neither 2yz nor 5yz would be true for everybody (RFC 2033 §4.2).
    """
    if lmtp:
        return list(replies) if len(replies) == recipients else [replies[0]] * recipients
    if len(replies) == 1:
        return list(replies)
    first = replies[0]
    same = all(
        other.accepted == first.accepted and other.permanent == first.permanent
        for other in replies[1:]
    )
    return [first if same else _MIXED]
