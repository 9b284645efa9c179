"""One transaction after another: MAIL, RCPT, DATA and BDAT, mirrored at the next hop as they come.

MAIL and RCPT are asked at the next hop at once, verbatim, and its replies are the client's. The
message is collected here; what happens then stands in `delivery.py`.

A recipient that is a report address is ours, not the next hop's: what is sent there is a lesson. It
needs a transaction of its own, so that there is one reply with one meaning. From a client that may
not teach (`relay.report_networks`) it is mail like any other, for the next hop to take or refuse.

Deliberately absent: BURL and BINARYMIME, since our next hops get DATA.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spamd.message.envelope import Envelope
from spamd.network.addresses import Listener
from spamd.network.deadlines import Deadline, TimeLimit
from spamd.network.spool import Share
from spamd.person import SITE
from spamd.relay.content.data import BdatReader, DataReader, MessageReader
from spamd.relay.inbound.body_receiver import BodyReceiver
from spamd.relay.inbound.command_limits import ClientLimits
from spamd.relay.inbound.context import RelayContext
from spamd.relay.inbound.delivery import Asked, Delivery
from spamd.relay.inbound.greeting import Greeting
from spamd.relay.inbound.groups import final_replies
from spamd.relay.inbound.transport import Transport
from spamd.relay.options import Mixed, SeveralVerdicts
from spamd.relay.outbound.router import NextHopSession
from spamd.relay.smtp.capabilities import size_limit
from spamd.relay.smtp.commands import Path, parse_path
from spamd.relay.smtp.replies import (
    OK,
    SYNTAX,
    TRANSACTION_OPEN,
    FramingError,
    NextHopLost,
    Reply,
    reply,
    reply_to,
)

if TYPE_CHECKING:
    from spamd.sample import Label

SMALL_CHUNK = 1024
"""Octets; a message in smaller chunks is rather work for us than mail, so these count."""

_SIZE = re.compile("[0-9]{1,20}")
_START = reply(354, "End data with <CR><LF>.<CR><LF>")
_HELLO_FIRST = reply(503, "5.5.1 Send EHLO or HELO first")
_NO_SENDER = reply(503, "5.5.1 Send MAIL first")
_NO_RECIPIENTS = reply(554, "5.5.1 No valid recipients")
_NO_RECIPIENTS_LMTP = reply(503, "5.5.1 No valid recipients")
_TLS_FIRST = reply(530, "5.7.0 Must issue a STARTTLS command first")
_TOO_LARGE = reply(552, "5.3.4 Message too large")
_NO_UTF8 = reply(553, "5.6.7 SMTPUTF8 is not supported by the receiving server")
_NO_BINARY = reply(501, "5.5.4 BODY=BINARYMIME is not offered")
_TOO_MANY = reply(452, "4.5.3 Too many recipients")
_ONE_ONLY = reply(452, "4.5.3 Send this recipient in a separate transaction")
_REPORT = reply(250, "2.1.5 Report address OK")
_FULL = reply(452, "4.3.1 Insufficient storage, please try again later")


class Transaction:
    """The transaction of one session, if one is open.

    Attributes:
        keepalive: when the next hop gets a NOOP, while a message arrives or is judged.
    """

    def __init__(
        self,
        context: RelayContext,
        listener: Listener,
        transport: Transport,
        greeting: Greeting,
        limits: ClientLimits,
    ) -> None:
        self._context = context
        self._lmtp = listener.lmtp
        self._transport = transport
        self._greeting = greeting
        self._limits = limits
        self._sender: Path | None = None
        self._mail = b""  # the argument as it came
        self._recipients: list[bytes] = []
        self._asked: list[tuple[bytes, Path | None]] = []
        self._report: Label | None = None
        self._chunks: BdatReader | None = None
        self._delivery: Delivery | None = None
        self.keepalive = Deadline(transport.loop, context.shared.deadline_timer, self._keep_alive)
        self._time_limit = TimeLimit(transport.loop, context.shared.deadline_timer)

    @property
    def open(self) -> bool:
        """Tell whether there is a transaction."""
        return self._sender is not None

    @property
    def committing(self) -> bool:
        """Tell whether a message is being delivered: its outcome must be known."""
        return self._delivery is not None and self._delivery.committing

    # Envelope

    async def mail(self, argument: str | None) -> None:
        """Begin a transaction, if the next hop does."""
        greeting, transport = self._greeting, self._transport
        if greeting.helo is None:
            transport.reply(_HELLO_FIRST)
            return
        if self._sender is not None:
            transport.reply(TRANSACTION_OPEN)
            return
        if self._context.tls.required and not transport.encrypted:
            transport.reply(_TLS_FIRST)
            return
        verbatim = (argument or "").encode("utf-8", "surrogateescape")
        path = parse_path(verbatim)
        if path is None:
            transport.reply(SYNTAX)
            return
        next_hop = greeting.next_hop
        if next_hop is None or not next_hop.usable:
            next_hop = await greeting.new_next_hop()
        answer = self._refusal(path, next_hop)
        if answer is None:
            answer = await next_hop.mail(verbatim, greeting.client())
            if answer.accepted:
                self._sender, self._mail = path, verbatim
                self._limits.useful()
        transport.reply(answer)

    def _refusal(self, path: Path, next_hop: NextHopSession) -> Reply | None:
        """Return why we refuse a sender ourselves, which is seldom."""
        parameters = path.parameters
        if parameters:
            offered = next_hop.capabilities
            size = parameters.get(b"SIZE", b"")
            limit = size_limit(self._context.relay.max_message_bytes, offered or {})
            if size.isdigit() and int(size[:20]) > limit:  # RFC 1870 §5: at most 20 digits
                return _TOO_LARGE
            if parameters.get(b"BODY", b"").upper() == b"BINARYMIME":
                return _NO_BINARY
            # RFC 6531 §3.5: never to a next hop that can't take it
            if b"SMTPUTF8" in parameters and offered is not None and b"SMTPUTF8" not in offered:
                return _NO_UTF8
        return _FULL if self._share.exhausted else None

    async def rcpt(self, argument: str | None) -> None:
        """Ask the next hop for a recipient."""
        next_hop = self._greeting.next_hop
        if self._sender is None or next_hop is None:
            self._transport.reply(_NO_SENDER if self._greeting.helo else _HELLO_FIRST)
            return
        verbatim = (argument or "").encode("utf-8", "surrogateescape")
        if not verbatim:
            self._transport.reply(SYNTAX)
            return
        answer = await self._recipient(verbatim, next_hop)
        self._limits.useful()
        self._limits.recipient()
        self._transport.reply(answer)

    async def _recipient(self, verbatim: bytes, next_hop: NextHopSession) -> Reply:
        """Return the answer to a recipient; one that is accepted belongs to the envelope."""
        recipients = self._recipients
        if len(recipients) >= self._context.relay.max_recipients:
            return _TOO_MANY
        if recipients and self._one_only(next_hop):
            return _ONE_ONLY
        path = parse_path(verbatim)
        address = path.address if path else verbatim
        report = self._reported(address)
        if recipients and (report is not self._report or await self._apart(address)):
            return _ONE_ONLY
        answer = _REPORT if report is not None else await next_hop.rcpt(verbatim, path)
        if answer.accepted:
            recipients.append(address)
            self._asked.append((verbatim, path))
            self._report = report
        return answer

    def _reported(self, address: bytes) -> "Label | None":
        """Return what mail to a report address teaches; None where this client may not teach."""
        context = self._context
        handler = context.report_handler
        label = handler.label_for(address) if handler is not None else None
        return (
            label if label and context.shared.limiter.may_report(self._greeting.client()) else None
        )

    async def _apart(self, address: bytes) -> bool:
        """Tell whether one reply could not be true for a recipient and for those before."""
        shared, recipients = self._context.shared, self._recipients
        if self._lmtp or self._sender is None:
            return False
        if self._context.taken.apart(self._sender.address, recipients, address):
            return True
        rule = self._context.relay.several_verdicts
        if shared.people is None or rule is not SeveralVerdicts.SINGLE:
            return False
        found = await shared.people.of((recipients[0], address))
        first, other = found.get(recipients[0], SITE), found.get(address, SITE)
        alike = replace(first, user="") == replace(other, user="")
        return not alike and (first.differs or other.differs)

    def _one_only(self, next_hop: NextHopSession) -> bool:
        """Tell whether several recipients could end in replies that SMTP can't give."""
        single = self._context.next_hop.mixed_replies is Mixed.SINGLE
        return single and not self._lmtp and next_hop.lmtp

    async def rset(self, argument: str | None) -> None:
        """End the transaction."""
        if argument:
            self._transport.reply(SYNTAX)
            return
        next_hop = self._greeting.next_hop if self._sender is not None else None
        self.reset()
        if next_hop is not None:
            await next_hop.reset()
        self._transport.reply(OK)

    # Content

    async def data(self, argument: str | None) -> None:
        """Take a message and answer for it."""
        transport = self._transport
        if argument:
            transport.reply(SYNTAX)
        elif self._sender is None or self._chunks is not None:
            transport.reply(_NO_SENDER if self._chunks is None else TRANSACTION_OPEN)
        elif not self._recipients:
            transport.reply(self._no_recipients)
        else:
            transport.reply(_START)
            if transport.unsent:
                await transport.flush()
            options = self._context.relay
            reader = DataReader(self._share, options.max_message_bytes)
            self.keepalive.set(self._context.next_hop.keepalive_s)
            try:
                await BodyReceiver(transport, options).receive_data(reader)
                await self._deliver(reader)
            finally:
                self.keepalive.clear()
                reader.close()

    @property
    def _share(self) -> Share:
        return self._context.shared.budget.share(self._transport.network)

    @property
    def _no_recipients(self) -> Reply:
        return _NO_RECIPIENTS_LMTP if self._lmtp else _NO_RECIPIENTS

    async def bdat(self, argument: str | None) -> None:
        """Take a chunk of a message (RFC 3030)."""
        transport, options = self._transport, self._context.relay
        words = (argument or "").upper().split()
        last = words[1:] == ["LAST"]
        if not words or not _SIZE.fullmatch(words[0]) or len(words) > 1 + last:
            # How much follows is unknown, so nothing after this can be understood.
            transport.reply(reply_to(FramingError(), in_hand=False))
            await transport.end_session()
            return
        size = int(words[0])
        receiver = BodyReceiver(transport, options)
        if not self._recipients:
            await receiver.receive_chunk(size, lambda _: None)
            transport.reply(_NO_SENDER if self._sender is None else self._no_recipients)
            return
        if self._chunks is None:
            self._chunks = BdatReader(self._share, options.max_message_bytes)
            self.keepalive.set(self._context.next_hop.keepalive_s)
        chunks = self._chunks
        await receiver.receive_chunk(size, chunks.feed, chunks)
        if size >= SMALL_CHUNK:
            self._limits.useful()
        if chunks.fault is not None:
            # RFC 3030 §2: the transaction has failed; what follows is swallowed
            await self._refuse(chunks.fault)
        elif last:
            chunks.last()
            try:
                await self._deliver(chunks)
            finally:
                self.keepalive.clear()
                chunks.close()
        else:
            transport.reply(reply(250, f"2.0.0 {size} octets"))

    async def _refuse(self, fault: Exception) -> None:
        """Answer a failed transaction before its end."""
        self.reset()
        next_hop = self._greeting.next_hop
        if next_hop is not None and next_hop.usable:
            await next_hop.reset()
        self._transport.reply(reply_to(fault, in_hand=True))

    async def _deliver(self, reader: MessageReader) -> None:
        """Deliver a complete message and answer for it."""
        context, transport, greeting = self._context, self._transport, self._greeting
        next_hop, sender, recipients = greeting.next_hop, self._sender, self._recipients
        if next_hop is None or sender is None:
            raise NextHopLost("no session at the next hop")
        client = greeting.client()
        envelope = Envelope(sender=sender.address, recipients=tuple(recipients), client=client)
        report = self._report
        asked = Asked(mail=self._mail, rcpt=self._asked)
        self._chunks = None  # it is `reader` now
        self.reset()
        transport.message_received()
        await context.shared.turns.wait(transport.network, first=True)
        context.shared.turns.take_all()
        delivery = Delivery(context, next_hop, envelope, asked, self._time_limit)
        self._delivery = delivery
        replies: Sequence[Reply]
        if report is None:
            replies = await delivery.deliver(reader)
        else:
            replies = (await delivery.learn(reader, report),)
        self._delivery = None
        for answer in final_replies(replies, len(recipients), lmtp=self._lmtp):
            transport.reply(answer)
        if not next_hop.usable:
            await transport.end_session()

    def _keep_alive(self) -> None:
        """Keep the next hop from ending the session while a message arrives or is judged."""
        if self._greeting.next_hop is not None:
            self._greeting.next_hop.keep_alive()
        self.keepalive.set(self._context.next_hop.keepalive_s)

    # State

    def reset(self) -> None:
        """Forget the transaction, not the greeting."""
        self._greeting.forwarded = {}
        self._sender = None
        self._recipients = []
        self._asked = []
        self._report = None
        if self._chunks is not None:
            self._chunks.close()
            self._chunks = None
            self.keepalive.clear()

    def close(self) -> None:
        """Give back what the transaction held."""
        self.reset()
        self.keepalive.stop()
        self._time_limit.stop()
