"""One connection of a mail server: the messages of one client after another, each judged.

    O                  negotiation, once
    C H …              a client comes and greets; K: the next one, on the same connection
    M R R … L … N B …  a message; A drops it, at any time and as often as the server likes
    E                  all of it has come: judged and answered
    Q                  the end

Before a command may come its macros (D). What was negotiated to be silent is not answered. The
server waits for us at the end of a body, and at each piece of it as long as it can be told to skip
what remains.

A mail server is silent while its own client sends a message, maybe for an hour: we wait as long as
libmilter does. Only a packet that has begun must come in `relay.data_timeout_s`.
"""

import asyncio
from collections.abc import Callable

from spamd.errors import DeadlineExceeded, Overloaded, RemoteProtocolError, SpoolFull
from spamd.listeners.milter.answer import Answer, answer_to, answer_to_fault, needs_logging
from spamd.listeners.milter.client import Greeting, path
from spamd.listeners.milter.content import Content
from spamd.listeners.milter.negotiation import SILENT, Agreement
from spamd.listeners.milter.options import MilterOptions
from spamd.listeners.milter.packets import CONTINUE, PROGRESS, SKIP, PacketReader
from spamd.network.connection_limiter import network_of
from spamd.network.deadlines import Deadline
from spamd.network.shared import Shared
from spamd.network.spool import Share
from spamd.network.stream_listener import READ_BYTES, Connection
from spamd.report import ScanReport

IDLE_S = 7210.0
"""Wait for the next packet; libmilter's default (`smfi_settimeout`)."""

PROGRESS_S = 5.0
"""Between two signs of life while a message is judged; Sendmail waits 10 s for one."""

PACKETS_A_TURN = 32
"""Packets of one connection before others have their turn: half a usual message, 0.2 ms."""


ADDRESS_BYTES = 64
"""What an address takes in memory besides its own octets."""

FREE_BYTES = 64 * 1024
"""Of an envelope, and of a packet: any connection may hold so much (500 recipients)."""


class Mail:
    """A message that is on its way to us; the owner must `close` it."""

    def __init__(self, sender: bytes, content: Content, share: Share) -> None:
        self.sender = b""
        self.recipients: list[bytes] = []
        self.content = content
        self._share = share
        self._size = self._taken = 0
        if self._take(sender):
            self.sender = sender

    def recipient(self, address: bytes) -> None:
        """Take a recipient."""
        if self._take(address):
            self.recipients.append(address)

    def _take(self, address: bytes) -> bool:
        self._size += len(address) + ADDRESS_BYTES
        more = self._size - FREE_BYTES - self._taken
        if more > 0 and not self._share.take_memory(more):
            self.content.refuse(SpoolFull("no memory for the envelope"))
            return False
        self._taken += max(more, 0)
        return True

    def close(self) -> None:
        """Give back memory and disk."""
        self.content.close()
        self._share.take_memory(-self._taken)
        self._taken = 0


class Session:
    """The dialogue with one mail server, over one connection.

    Args:
        connection: to it.
        shared: what all listeners share.
        options: of this listener.
        draining: tells whether the daemon stops.
    """

    def __init__(
        self,
        connection: Connection,
        shared: Shared,
        options: MilterOptions,
        draining: Callable[[], bool],
    ) -> None:
        self._connection = connection
        self._shared = shared
        self._options = options
        self._draining = draining
        self._loop = asyncio.get_running_loop()
        self._packets = PacketReader()
        self._count = 0  # of packets
        self._share = shared.budget.share(connection.network)  # of the server, not of its client
        self._reserved = 0
        self._begun = 0.0  # when the first octet of a packet came
        self._agreement: Agreement | None = None
        self._greeting = Greeting()
        self._network = ""
        self._mail: Mail | None = None
        self._served = False  # there was one
        self._progress = Deadline(self._loop, shared.deadline_timer, self._tell_progress)

    async def run(self) -> None:
        """Talk until the mail server ends it, or is silent for too long.

        Raises:
            RemoteProtocolError: it does not keep to the protocol.
            Overloaded: no room for so long a packet.
        """
        try:
            while (found := self._packets.next()) is not None or await self._more():
                if found is None:
                    continue
                command, data = found
                if command == b"Q":
                    return
                self._begun = 0.0
                self._count += 1
                if self._count % PACKETS_A_TURN == 0:
                    await self._shared.turns.wait(self._network)
                await self._take(command, data)
                if self._draining() and self._served and self._mail is None:
                    return
        except DeadlineExceeded:
            pass
        finally:
            self._drop()
            self._progress.stop()
            self._reserve(0)

    # Packets

    async def _more(self) -> bool:
        """Take more from the network; False at the end."""
        self._reserve(self._packets.wanted)
        data = await self._read()
        self._packets.feed(data)
        return bool(data)

    async def _read(self) -> bytes:
        options = self._shared.options
        if self._packets.wanted:
            now = self._loop.time()
            self._begun = self._begun or now
            wait_s = max(self._begun + options.data_timeout_s - now, 1e-3)
        else:
            wait_s = IDLE_S if self._agreement else options.command_timeout_s
        with self._connection.time_limit.of(wait_s):
            return await self._connection.reader.read(READ_BYTES)

    def _reserve(self, wanted: int) -> None:
        """Take memory for a packet that is longer than what any connection may hold."""
        more = max(wanted - FREE_BYTES, 0) - self._reserved
        if more and not self._share.take_memory(more):
            raise Overloaded("no memory for a long packet")
        self._reserved += more

    async def _send(self, packets: bytes) -> None:
        self._connection.writer.write(packets)
        with self._connection.time_limit.of(self._shared.options.data_timeout_s):
            await self._connection.writer.drain()

    # Commands

    async def _take(self, command: bytes, data: bytes) -> None:
        """Carry out a command and answer it."""
        if command == b"O":
            self._drop()
            self._greeting = Greeting()
            self._agreement = Agreement.on(data, quarantine=self._options.quarantine)
            await self._send(self._agreement.answer)
            return
        agreement = self._agreement
        if agreement is None:
            raise RemoteProtocolError("this is not the milter protocol: no negotiation")
        match command:
            case b"D":
                self._greeting.macros(data)
            case b"A":
                self._drop()
            case b"K":
                self._drop()
                self._greeting = Greeting()
            case b"E":
                await self._end(agreement, data)
            case _ if command in SILENT:
                answer = self._step(command, data, agreement)
                if self._mail is not None and self._mail.content.behind:
                    await self._mail.content.settled()
                if command not in agreement.silent:
                    await self._send(answer)
            case _:
                raise RemoteProtocolError("a command that the milter protocol does not have")

    def _step(self, command: bytes, data: bytes, agreement: Agreement) -> bytes:
        """Carry out a command that is answered, unless it is silent; return the answer."""
        match command:
            case b"C":
                self._greeting.connected(data)
                limiter = self._shared.limiter
                self._network = network_of(limiter.slot_of(self._greeting.address))
            case b"H":
                self._greeting.greeted(data)
            case b"M":
                self._drop(keep_macros=True)
                self._begin(path(data), agreement)
            case b"R":
                if not self._greeting.refused():
                    self._current(agreement).recipient(path(data))
            case b"L":
                name, value = (*data.split(b"\0", 2), b"")[:2]
                self._current(agreement).content.field(name, value)
            case b"N":
                self._current(agreement).content.end_of_header()
            case b"B":
                content = self._current(agreement).content
                content.body(data)
                return SKIP if content.full and agreement.may_skip else CONTINUE
            case _:  # DATA, or a command that the mail server does not know
                pass
        return CONTINUE

    def _current(self, agreement: Agreement) -> Mail:
        return self._mail or self._begin(b"", agreement)

    def _begin(self, sender: bytes, agreement: Agreement) -> Mail:
        share = self._shared.budget.share(self._network)
        limit = self._shared.judge.reads_bytes
        content = Content(share, limit, leading_space=agreement.leading_space)
        self._mail = mail = Mail(sender, content, share)
        self._served = True
        self._connection.busy = True
        return mail

    def _drop(self, *, keep_macros: bool = False) -> None:
        """Forget the message, not the client."""
        if self._mail is not None:
            self._mail.close()
            self._mail = None
        if not keep_macros:
            self._greeting.forget_message()
        self._connection.busy = False

    # The end of a message

    async def _end(self, agreement: Agreement, data: bytes) -> None:
        """Judge the message and answer for it."""
        mail = self._current(agreement)
        mail.content.body(data)
        self._progress.set(PROGRESS_S)
        report: ScanReport | None = None
        try:
            report = await self._judged(mail)
            answer = answer_to(report, await mail.content.removals(), agreement)
        except Exception as error:  # noqa: BLE001 - the border around one message
            answer = answer_to_fault(error)
            if needs_logging(error):
                self._shared.observer.failed("message.failed", error, listener="milter")
        finally:
            self._progress.clear()
        self._tell(report, answer, mail)
        self._drop()
        await self._send(answer.packets)

    async def _judged(self, mail: Mail) -> ScanReport:
        content, shared = mail.content, self._shared
        await content.settled()
        if content.fault is not None:
            raise content.fault
        await shared.turns.wait(self._network, first=True)
        shared.turns.take_all()
        envelope = self._greeting.envelope(mail.sender, mail.recipients)
        verdicts = await shared.judge.verdicts(
            content.start,
            content.size_bytes,
            envelope,
            content.rest,
            self._connection.time_limit,
        )
        return verdicts.for_all(envelope.readers)

    def _tell(self, report: ScanReport | None, answer: Answer, mail: Mail) -> None:
        """Tell of a message that was judged, with the id that the mail server's log has."""
        if report is None:
            return
        reply = f"{answer.reply} id={self._greeting.queue_id}"
        recipients = len(mail.recipients)
        self._shared.scanned(
            report, listener="milter", reply=reply.encode("ascii", "replace"), recipients=recipients
        )

    def _tell_progress(self) -> None:
        self._connection.writer.write(PROGRESS)
        self._progress.set(PROGRESS_S)
