"""One session with a client: its transactions, mirrored at the next hop as they come.

MAIL and RCPT are asked at the next hop at once, verbatim, and its replies are the client's. The
message is collected here; what happens then stands in `handover.py`.

A recipient that is a report address is ours, not the next hop's: what is sent there is a lesson. It
needs a transaction of its own, so that there is one reply with one meaning. From a client that may
not teach (`relay.report_networks`) it is mail like any other, for the next hop to take or refuse.

Deliberately absent: BURL and BINARYMIME, since our next hops get DATA.
"""

import re
from typing import TYPE_CHECKING

from spamd.message.envelope import Envelope
from spamd.relay.content.data import BdatReader, DataReader, MessageReader
from spamd.relay.content.spool import Share
from spamd.relay.deadlines import Deadline
from spamd.relay.inbound.context import RelayContext
from spamd.relay.inbound.delivery import Delivery, final_replies
from spamd.relay.inbound.greeting import ARGUMENT, NESTED, OK, Greeting
from spamd.relay.inbound.receiving import Receiving
from spamd.relay.options import Mixed
from spamd.relay.outbound.router import NextHopSession
from spamd.relay.smtp.capabilities import size_limit
from spamd.relay.smtp.commands import Path, parse_path
from spamd.relay.smtp.replies import FramingError, NextHopLost, Reply, reply, reply_to
from spamd.relay.urls import Listener

if TYPE_CHECKING:
    from spamd.sample import Label

SMALL_CHUNK = 1024
"""Octets; a message in smaller chunks is rather work for us than mail, so these count."""

_SIZE = re.compile("[0-9]{1,20}")
_START = reply(354, "End data with <CR><LF>.<CR><LF>")
_HELLO_FIRST = reply(503, "5.5.1 Say hello first")
_NO_SENDER = reply(503, "5.5.1 MAIL first")
_NO_RECIPIENTS = reply(554, "5.5.1 No valid recipients")
_NO_RECIPIENTS_LMTP = reply(503, "5.5.1 No valid recipients")
_TLS_FIRST = reply(530, "5.7.0 Must issue a STARTTLS command first")
_TOO_LARGE = reply(552, "5.3.4 Message too large")
_NO_UTF8 = reply(553, "5.6.7 SMTPUTF8 is not possible on the way of this mail")
_NO_BINARY = reply(501, "5.5.4 BODY=BINARYMIME is not offered")
_TOO_MANY = reply(452, "4.5.3 Too many recipients")
_ONE_ONLY = reply(452, "4.5.3 This recipient in a transaction of its own, please")
_REPORT = reply(250, "2.1.5 Report address")
_FULL = reply(452, "4.3.1 Not enough room now, please try again later")


class RelaySession(Greeting):
    """The dialogue with one client."""

    def __init__(self, context: RelayContext, listener: Listener) -> None:
        super().__init__(context, listener)
        self._mail: Path | None = None
        self._recipients: list[bytes] = []
        self._report: Label | None = None
        self._chunks: BdatReader | None = None
        self._keepalive = Deadline(self.loop, context.deadline_timer, self._keep_next_hop_alive)

    # Envelope

    async def smtp_MAIL(self, argument: str | None) -> None:  # noqa: N802
        """Begin a transaction, if the next hop does."""
        if self.helo is None:
            self.say(_HELLO_FIRST)
            return
        if self._mail is not None:
            self.say(NESTED)
            return
        if self._context.tls.required and not self.encrypted:
            self.say(_TLS_FIRST)
            return
        wire = (argument or "").encode("utf-8", "surrogateescape")
        path = parse_path(wire)
        if path is None:
            self.say(ARGUMENT)
            return
        next_hop = self.next_hop
        if next_hop is None or not next_hop.usable:
            next_hop = await self.new_next_hop()
        refusal = self._refusal(path, next_hop)
        if refusal is not None:
            self.say(refusal)
            return
        answer = await next_hop.mail(wire, self.client())
        if answer.accepted:
            self._mail = path
            self.limits.useful()
        self.say(answer)

    def _refusal(self, path: Path, next_hop: NextHopSession) -> Reply | None:
        """Return why we refuse a sender ourselves, which is seldom."""
        parameters = path.parameters
        offered = next_hop.capabilities
        if parameters:
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

    async def smtp_RCPT(self, argument: str | None) -> None:  # noqa: N802
        """Ask the next hop for a recipient."""
        if self._mail is None or self.next_hop is None:
            self.say(_NO_SENDER if self.helo else _HELLO_FIRST)
            return
        wire = (argument or "").encode("utf-8", "surrogateescape")
        if not wire:
            self.say(ARGUMENT)
            return
        answer = await self._recipient(wire, self.next_hop)
        self.limits.useful()
        self.limits.recipient()
        self.say(answer)

    async def _recipient(self, wire: bytes, next_hop: NextHopSession) -> Reply:
        """Return the answer to a recipient, who is taken with it."""
        if len(self._recipients) >= self._context.relay.max_recipients:
            return _TOO_MANY
        if self._recipients and self._one_only:
            return _ONE_ONLY
        path = parse_path(wire)
        address = path.address if path else wire
        report = self._reported(address)
        if self._recipients and report is not self._report:
            return _ONE_ONLY
        answer = _REPORT if report is not None else await next_hop.rcpt(wire, path)
        if answer.accepted:
            self._recipients.append(address)
            self._report = report
        return answer

    def _reported(self, address: bytes) -> "Label | None":
        """Return what mail to a report address teaches; None where this client may not teach."""
        report_handler = self._context.report_handler
        label = report_handler.label_for(address) if report_handler is not None else None
        return label if label and self._context.limiter.may_report(self.client()) else None

    @property
    def _one_only(self) -> bool:
        """Tell whether several recipients could end in replies that SMTP can't give."""
        return (
            self._context.next_hop.mixed_replies is Mixed.SINGLE
            and not self._listener.lmtp
            and self.next_hop is not None
            and self.next_hop.lmtp
        )

    async def smtp_RSET(self, argument: str | None) -> None:  # noqa: N802
        """End the transaction."""
        if argument:
            self.say(ARGUMENT)
            return
        if self._mail is not None and self.next_hop is not None:
            self.forget()
            await self.next_hop.reset()
        self.forget()
        self.say(OK)

    # Content

    async def smtp_DATA(self, argument: str | None) -> None:  # noqa: N802
        """Take a message and answer for it."""
        if argument:
            self.say(ARGUMENT)
        elif self._mail is None or self._chunks is not None:
            self.say(_NO_SENDER if self._chunks is None else NESTED)
        elif not self._recipients:
            self.say(self._no_recipients)
        else:
            self.say(_START)
            if self.unsent:
                await self.flush()
            reader = DataReader(self._share, self.options.max_message_bytes)
            self._keepalive.set(self._context.next_hop.keepalive_s)
            try:
                await Receiving(self).data(reader)
                await self._deliver(reader)
            finally:
                self._keepalive.clear()
                reader.close()

    @property
    def _share(self) -> Share:
        return self._context.budget.share(self.network)

    @property
    def _no_recipients(self) -> Reply:
        return _NO_RECIPIENTS_LMTP if self._listener.lmtp else _NO_RECIPIENTS

    async def smtp_BDAT(self, argument: str | None) -> None:  # noqa: N802
        """Take a chunk of a message (RFC 3030)."""
        words = (argument or "").upper().split()
        last = words[1:] == ["LAST"]
        if not words or not _SIZE.fullmatch(words[0]) or len(words) > 1 + last:
            # How much follows is unknown, so nothing after this can be understood.
            self.say(reply_to(FramingError(), in_hand=False))
            await self.end_session()
            return
        size = int(words[0])
        if not self._recipients:
            await Receiving(self).chunk(size, lambda _: None)
            self.say(_NO_SENDER if self._mail is None else self._no_recipients)
            return
        if self._chunks is None:
            self._chunks = BdatReader(self._share, self.options.max_message_bytes)
            self._keepalive.set(self._context.next_hop.keepalive_s)
        chunks = self._chunks
        await Receiving(self).chunk(size, chunks.feed, chunks)
        if size >= SMALL_CHUNK:
            self.limits.useful()
        if chunks.fault is not None:
            # RFC 3030 §2: the transaction has failed; what follows is swallowed
            await self._refuse(chunks.fault)
        elif last:
            chunks.last()
            try:
                await self._deliver(chunks)
            finally:
                self._keepalive.clear()
                chunks.close()
        else:
            self.say(reply(250, f"2.0.0 {size} octets"))

    async def _refuse(self, fault: Exception) -> None:
        """Answer a failed transaction before its end."""
        self.forget()
        if self.next_hop is not None and self.next_hop.usable:
            await self.next_hop.reset()
        self.say(reply_to(fault, in_hand=True))

    async def _deliver(self, reader: MessageReader) -> None:
        """Judge a complete message, hand it on and answer for it."""
        next_hop, sender, recipients = self.next_hop, self._mail, self._recipients
        if next_hop is None or sender is None:
            raise NextHopLost("no session at the next hop")
        client = self.client()
        envelope = Envelope(sender=sender.address, recipients=tuple(recipients), client=client)
        report = self._report
        self._chunks = None  # it is `reader` now
        self.forget()
        self.message_received()
        await self.turn()
        delivery = Delivery(self._context, self, next_hop, envelope)
        if report is None:
            replies = await delivery.run(reader)
        else:
            replies = [await delivery.learn(reader, report)]
        for answer in final_replies(replies, len(recipients), lmtp=self._listener.lmtp):
            self.say(answer)
        if not next_hop.usable:
            await self.end_session()

    def _keep_next_hop_alive(self) -> None:
        """Keep the next hop awake while a message arrives or is judged."""
        if self.next_hop is not None:
            self.next_hop.keep_alive()
        self._keepalive.set(self._context.next_hop.keepalive_s)

    # State

    def end(self) -> None:
        """Give back what the session held."""
        self.forget()
        self._keepalive.stop()
        super().end()

    @property
    def busy(self) -> bool:
        """Tell whether a transaction is under way."""
        return self._mail is not None

    def forget(self) -> None:
        """Forget the transaction, not the greeting."""
        super().forget()
        self._mail = None
        self._recipients = []
        self._report = None
        if self._chunks is not None:
            self._chunks.close()
            self._chunks = None
            self._keepalive.clear()
