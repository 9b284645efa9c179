"""aiosmtpd as it comes, with a stream client behind it: what our relay is measured against.

`python -m tests.benchmarks.stock PORT NEXT_PORT`
"""

import asyncio
import sys

from aiosmtpd.smtp import SMTP, Envelope, Session


class Proxy:
    """Opens a session at the next hop for each client and passes everything on."""

    def __init__(self, next_port: int) -> None:
        self.next_port = next_port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def _reply(self) -> str:
        assert self.reader is not None
        while True:
            line = await self.reader.readline()
            if line[3:4] != b"-":
                return line.decode().rstrip("\r\n")

    async def _ask(self, line: str) -> str:
        assert self.writer is not None
        self.writer.write(line.encode() + b"\r\n")
        return await self._reply()

    async def handle_HELO(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str
    ) -> str:
        session.host_name = hostname
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.next_port)
        await self._reply()
        return await self._ask(f"HELO {hostname}")

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return await self._ask(f"MAIL FROM:<{address}>")

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.rcpt_tos.append(address)
        return await self._ask(f"RCPT TO:<{address}>")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert self.writer is not None
        await self._ask("DATA")
        assert isinstance(envelope.content, bytes)
        self.writer.write(envelope.content.replace(b"\r\n.", b"\r\n..") + b".\r\n")
        await self.writer.drain()
        return await self._reply()

    async def handle_QUIT(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.writer is not None:
            self.writer.close()
        return "221 Bye"


async def serve(port: int, next_port: int) -> None:
    """Relay from one port to the other until the process is ended."""
    loop = asyncio.get_running_loop()
    await loop.create_server(
        lambda: SMTP(Proxy(next_port), hostname="stock.test", loop=loop),
        "127.0.0.1",
        port,
        backlog=512,
    )
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
