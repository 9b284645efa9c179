"""The listener for clients of SpamAssassin: spamc, Exim's `spam` condition and many others.

One connection is one request: read, answered, closed. A client that ends its side behind the mail
has not gone away; spamc does it. A mail that could not be judged follows `relay.on_fault`: it is
answered as unscanned, or with one line that makes the client go on without us. No reply to PROCESS
or HEADERS ever holds less than the whole mail, or its whole header section.
"""

import asyncio
import socket
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from spamd.bayes.decision import Verdict
from spamd.errors import DeadlineExceeded, MessageTooLarge, TemporaryError
from spamd.explanation import CLUES, as_text
from spamd.listeners.preface import PREFACE_BYTES, Preface
from spamd.listeners.spamc.mail import (
    body_start,
    client_of,
    first_bytes,
    header_of,
    marked,
)
from spamd.listeners.spamc.reply import PONG, opening, told
from spamd.listeners.spamc.request import Code, Head, Refused, RequestReader, Verb
from spamd.listeners.spamc.teaching import Teaching
from spamd.listeners.symbols import symbols
from spamd.message.envelope import Envelope
from spamd.message.identity import rest_of
from spamd.network.addresses import Listener
from spamd.network.judge import start_of
from spamd.network.shared import Shared
from spamd.network.spool import SpooledMessage
from spamd.network.stream_listener import READ_BYTES, Connection, StreamListener
from spamd.report import ScanReport

Found = TypeVar("Found")

LARGE_HEADER_BYTES = 64 * 1024
"""A larger header section is gone through in a thread."""

LINGER_S = 5.0
"""So long a client whose request is refused may go on sending, before it reads why."""

FULL = Refused(Code.TEMPORARY, "too many connections")


class SpamcListener:
    """Answers requests on its sockets until it is stopped.

    Args:
        shared: what all listeners share.
        addresses: of the settings.
        sockets: listening ones, one for each address.
    """

    def __init__(
        self, shared: Shared, addresses: Sequence[Listener], sockets: Sequence[socket.socket]
    ) -> None:
        self._shared = shared
        self._teaching = Teaching(shared)
        self._listener = StreamListener(
            "spamc", shared, self._serve, addresses, sockets, refusal=FULL.line
        )

    @property
    def connections(self) -> Collection[Connection]:
        """Return those that are open."""
        return self._listener.connections.values()

    async def start(self) -> None:
        """Listen; on return every address takes connections."""
        await self._listener.start()

    async def stop(self) -> None:
        """Take no more mail, finish what is in flight, and end."""
        await self._listener.stop()

    async def _serve(self, connection: Connection) -> None:
        """Answer one request, or say in one line why not."""
        options = self._shared.options
        request = RequestReader(options.max_message_bytes)
        message = SpooledMessage(self._shared.budget.share(connection.network))
        lingers = True
        try:
            try:
                head = await self._head(connection, request, message)
                if head.verb is Verb.TELL:
                    self._teaching.require(connection)
                connection.busy = head.has_mail
                lingers = not head.has_mail
                await self._body(connection, request, message)
                await self._answer(connection, request, message, head)
            except (Refused, TemporaryError, MessageTooLarge) as error:
                lingers = True
                connection.writer.write(refusal_of(error).line)
        except (OSError, asyncio.IncompleteReadError):
            raise
        except Exception:
            connection.writer.write(Refused(Code.INTERNAL, "please try again later").line)
            raise
        finally:
            message.close()
            connection.busy = False
        if lingers:
            await self._linger(connection)

    async def _head(
        self, connection: Connection, request: RequestReader, message: SpooledMessage
    ) -> Head:
        """Read as far as the end of the head; a piece of the mail may come with it."""
        timeout_s = self._shared.options.command_timeout_s
        try:
            with connection.time_limit.of(timeout_s):
                while request.head is None:
                    await self._read(connection, request, message)
        except DeadlineExceeded:
            raise _too_slow(timeout_s) from None
        return request.head

    async def _body(
        self, connection: Connection, request: RequestReader, message: SpooledMessage
    ) -> None:
        """Read as far as the end of the mail."""
        options = self._shared.options
        loop = asyncio.get_running_loop()
        started, received = loop.time(), 0
        while not request.complete:
            try:
                with connection.time_limit.of(options.data_timeout_s):
                    received += await self._read(connection, request, message)
            except DeadlineExceeded:
                raise _too_slow(options.data_timeout_s) from None
            elapsed_s = loop.time() - started
            if elapsed_s > options.data_grace_s and received < elapsed_s * options.data_rate:
                raise _too_slow(elapsed_s)
        await message.settled()

    async def _read(
        self, connection: Connection, request: RequestReader, message: SpooledMessage
    ) -> int:
        """Take what comes next; return how many bytes that were."""
        data = await connection.reader.read(READ_BYTES)
        if not data:
            request.end()
            return 0
        for piece in request.feed(data):
            message.append(piece)
            if message.behind:
                await message.settled()
            elif request.head is not None and request.head.compressed:
                await asyncio.sleep(0)  # a little that comes may be much, inflated
        return len(data)

    async def _answer(
        self,
        connection: Connection,
        request: RequestReader,
        message: SpooledMessage,
        head: Head,
    ) -> None:
        match head.verb:
            case Verb.PING:
                connection.writer.write(PONG)
            case Verb.SKIP:
                pass
            case Verb.TELL:
                await self._nothing_more(connection, request)
                preface = await preface_of(message)
                taught = await self._teaching.tell(connection, head, message, preface.length)
                connection.writer.write(told(taught))
            case _:
                await self._judged(connection, request, message, head)

    async def _judged(
        self,
        connection: Connection,
        request: RequestReader,
        message: SpooledMessage,
        head: Head,
    ) -> None:
        """Judge the mail and answer."""
        shared = self._shared
        preface = await preface_of(message)
        limit = shared.judge.reads_bytes
        report = await shared.judge.report(
            lambda: start_of(message, limit, bytes)[preface.length :],
            message.size_bytes - preface.length,
            Envelope(
                sender=preface.sender,
                recipients=preface.recipients,
                client=client_of(connection.address),
            ),
            lambda: rest_of(message.again()),
            connection.time_limit,
        )
        await self._nothing_more(connection, request)
        try:
            if head.verb in {Verb.PROCESS, Verb.HEADERS}:
                await self._send_mail(connection, message, head, report)
            else:
                text = self._text(head, report)
                connection.writer.write(opening(head, report, len(text)) + text)
        finally:
            recipients = len(preface.recipients)
            shared.scanned(report, listener="spamc", reply=b"0", recipients=recipients)

    def _text(self, head: Head, report: ScanReport) -> bytes:
        """Return what the reply holds of a mail that is not handed back."""
        spam = report.verdict is Verdict.SPAM
        match head.verb:
            case Verb.SYMBOLS:
                end = "" if head.version >= (1, 3) else "\r\n"
                return (",".join(symbols(report)) + end).encode()
            case Verb.REPORT | Verb.REPORT_IFSPAM if spam or head.verb is Verb.REPORT:
                found = self._shared.judge.inspector.explain(report, CLUES)
                if found is None or report.features is None:
                    return f"{report.verdict}\n  {report.reason}\n".encode()
                return as_text(found, report.features).encode()
            case _:
                return b""

    async def _nothing_more(self, connection: Connection, request: RequestReader) -> None:
        """See that the mail was as long as announced: what has come meanwhile is part of it."""
        while not connection.reader.at_eof():
            try:
                async with asyncio.timeout(0):
                    data = await connection.reader.read(READ_BYTES)
            except TimeoutError:
                return
            for _ in request.feed(data) if data else ():
                pass

    async def _send_mail(
        self, connection: Connection, message: SpooledMessage, head: Head, report: ScanReport
    ) -> None:
        """Hand the mail back, or its header section."""
        limit = self._shared.judge.reads_bytes
        header, start = await read_of(message, lambda: header_of(message, limit))
        if len(header) <= LARGE_HEADER_BYTES:
            top = marked(header, report)
        else:
            top = await asyncio.to_thread(marked, header, report)
        stop = message.size_bytes
        if head.verb is Verb.HEADERS:
            stop = await read_of(message, lambda: body_start(message.blocks()))
        connection.writer.write(opening(head, report, len(top) + stop - start) + top)
        async for block in message.read(start, stop):
            connection.writer.write(block)
            try:
                with connection.time_limit.of(self._shared.options.data_timeout_s):
                    await connection.writer.drain()
            except DeadlineExceeded:  # nothing may be said any more: half of the reply is out
                raise ConnectionAbortedError("the client does not read") from None

    async def _linger(self, connection: Connection) -> None:
        """Let a client send what nobody reads, so that it comes to read our line."""
        writer, reader = connection.writer, connection.reader
        if writer.can_write_eof():
            writer.write_eof()
        try:
            async with asyncio.timeout(LINGER_S):
                while await reader.read(READ_BYTES):
                    pass
        except TimeoutError:
            pass


async def preface_of(message: SpooledMessage) -> Preface:
    """Return what stands in front of the mail in a message."""
    return Preface.of(await read_of(message, lambda: first_bytes(message, PREFACE_BYTES)))


async def read_of(message: SpooledMessage, read: Callable[[], Found]) -> Found:
    """Return what `read` finds in a message; of a spooled one a thread reads it."""
    return await asyncio.to_thread(read) if message.spooled else read()


def refusal_of(error: Exception) -> Refused:
    """Return what a client reads about a fault; never how we are built."""
    match error:
        case Refused():
            return error
        case MessageTooLarge():
            return Refused(Code.TOO_LARGE, "the header section is too large")
        case _:
            return Refused(Code.TEMPORARY, "please try again later")


def _too_slow(seconds: float) -> Refused:
    text = f"({seconds:.0f} second socket timeout reading input from client)"
    return Refused(Code.TIMEOUT, text)
