"""One request and its reply: read, judged or taught, answered.

A client that ends its side behind the mail has not gone away; spamc does it. A mail that could not
be judged follows `relay.on_fault`: it is answered as unscanned, or with one line that makes the
client go on without us. No reply to PROCESS or HEADERS ever holds less than the whole mail, or its
whole header section: once it has begun nothing but the end of the connection may stand for a fault.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from spamd.bayes.decision import Verdict
from spamd.errors import DeadlineExceeded, MessageTooLarge, TemporaryError
from spamd.explanation import CLUES, as_text, own_line
from spamd.listeners.preface import Preface, judged_behind
from spamd.listeners.spamc.mail import (
    body_start,
    envelope_of,
    fields_for,
    header_of,
)
from spamd.listeners.spamc.reply import PONG, opening, told
from spamd.listeners.spamc.request import Code, Head, Refused, RequestReader, Verb
from spamd.listeners.spamc.teaching import Teaching
from spamd.listeners.symbols import symbols
from spamd.network.marking import marked_header
from spamd.network.shared import Shared
from spamd.network.spool import SpooledMessage
from spamd.network.stream_listener import READ_BYTES, Connection
from spamd.report import ScanReport

Found = TypeVar("Found")

LINGER_S = 30.0
"""So long a client whose request is refused may go on sending, before it reads why."""


class Exchange:
    """Answers the one request of a connection.

    Args:
        shared: what all listeners share.
        teaching: learns and forgets.
        connection: of the client.
    """

    def __init__(self, shared: Shared, teaching: Teaching, connection: Connection) -> None:
        self._shared = shared
        self._teaching = teaching
        self._connection = connection
        self._request = RequestReader(shared.options.max_message_bytes)
        self._message = SpooledMessage(shared.budget.share(connection.network))

    async def run(self) -> None:
        """Answer, or say in one line why not."""
        connection, lingers = self._connection, False
        try:
            head = await self._head()
            lingers = not head.has_mail  # older clients of PING may send an empty line
            await self._answer(head)
        except (Refused, TemporaryError, MessageTooLarge) as error:
            connection.writer.write(refusal_of(error).line)
            lingers = True
        except (OSError, asyncio.IncompleteReadError):
            raise
        except Exception:
            connection.writer.write(Refused(Code.INTERNAL, "please try again later").line)
            raise
        finally:
            self._message.close()
            connection.busy = False
        if lingers:
            await self._linger()

    async def _head(self) -> Head:
        """Read as far as the end of the head; a piece of the mail may come with it."""
        timeout_s = self._shared.options.command_timeout_s
        try:
            with self._connection.time_limit.of(timeout_s):
                while self._request.head is None:
                    await self._read()
        except DeadlineExceeded:
            raise _too_slow(timeout_s) from None
        return self._request.head

    async def _body(self) -> None:
        """Read as far as the end of the mail."""
        options = self._shared.options
        loop = asyncio.get_running_loop()
        started, received = loop.time(), 0
        while not self._request.complete:
            try:
                with self._connection.time_limit.of(options.data_timeout_s):
                    received += await self._read()
            except DeadlineExceeded:
                raise _too_slow(options.data_timeout_s) from None
            elapsed_s = loop.time() - started
            if elapsed_s > options.data_grace_s and received < elapsed_s * options.data_rate:
                raise _too_slow(elapsed_s)
        await self._message.settled()

    async def _read(self) -> int:
        """Take what comes next; return how many bytes that were."""
        data = await self._connection.reader.read(READ_BYTES)
        if not data:
            self._request.end()
            return 0
        for piece in self._request.feed(data):
            self._message.append(piece)
            if self._message.behind:
                await self._message.settled()
            elif self._request.head is not None and self._request.head.compressed:
                await asyncio.sleep(0)  # a little that comes may be much, inflated
        return len(data)

    async def _answer(self, head: Head) -> None:
        if head.verb is Verb.TELL:
            self._teaching.require(self._connection)
        if head.has_mail:
            self._connection.busy = True
            await self._body()
        match head.verb:
            case Verb.PING:
                self._connection.writer.write(PONG)
            case Verb.SKIP:
                pass
            case Verb.TELL:
                await self._taught(head)
            case _:
                await self._judged(head)

    async def _taught(self, head: Head) -> None:
        """Learn or forget the mail and answer."""
        await self._nothing_more()
        preface = await Preface.in_front_of(self._message)
        taught = await self._teaching.tell(self._connection, head, self._message, preface.length)
        self._connection.writer.write(told(head, taught))

    async def _judged(self, head: Head) -> None:
        """Judge the mail and answer."""
        shared = self._shared
        preface = await Preface.in_front_of(self._message)
        envelope = envelope_of(head, preface, self._connection.address)
        limit = self._connection.time_limit
        verdicts = await judged_behind(preface, self._message, shared.judge, envelope, limit)
        report = verdicts.for_all(envelope.readers)
        reply = b"0"
        try:
            await self._nothing_more()
            if head.verb in {Verb.PROCESS, Verb.HEADERS}:
                await self._send_mail(head, report)
            else:
                text = self._text(head, report)
                self._connection.writer.write(opening(head, report, len(text)) + text)
        except (Refused, MessageTooLarge) as error:
            reply = refusal_of(error).code.encode()[:2]
            raise
        finally:
            recipients = len(envelope.recipients)
            shared.scanned(report, listener="spamc", reply=reply, recipients=recipients)

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
                own = f"{own_line(report.user, report)}\n" if report.user else ""
                return (own + as_text(found, report.features, report.standing)).encode()
            case _:
                return b""

    async def _send_mail(self, head: Head, report: ScanReport) -> None:
        """Hand the mail back, or its header section."""
        message, limit = self._message, self._shared.judge.reads_bytes
        header, start = await self._found(lambda: header_of(message, limit))
        top = await marked_header(header, fields_for(header, report))
        stop = message.size_bytes
        if head.verb is Verb.HEADERS:
            stop = await self._found(lambda: body_start(message.blocks()))
        writer = self._connection.writer
        writer.write(opening(head, report, len(top) + stop - start) + top)
        async for block in message.read(start, stop):
            writer.write(block)
            try:
                with self._connection.time_limit.of(self._shared.options.data_timeout_s):
                    await writer.drain()
            except DeadlineExceeded:
                raise ConnectionAbortedError("the client does not read") from None

    async def _found(self, read: Callable[[], Found]) -> Found:
        """Return what `read` finds in the message; of a spooled one a thread reads it."""
        return await asyncio.to_thread(read) if self._message.spooled else read()

    async def _nothing_more(self) -> None:
        """See that the mail was as long as announced: what has come meanwhile is part of it."""
        reader = self._connection.reader
        while not reader.at_eof():
            try:
                async with asyncio.timeout(0):
                    data = await reader.read(READ_BYTES)
            except TimeoutError:
                return
            for _ in self._request.feed(data) if data else ():
                pass

    async def _linger(self) -> None:
        """Let a client send what nobody reads, so that it comes to read our line."""
        writer, reader = self._connection.writer, self._connection.reader
        if writer.can_write_eof():
            writer.write_eof()
        try:
            async with asyncio.timeout(LINGER_S):
                while await reader.read(READ_BYTES):
                    pass
        except TimeoutError:
            pass


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
