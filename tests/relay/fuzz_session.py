"""Coverage-guided fuzzing of a client's session: `make fuzz FUZZ=session SECONDS=3600`.

The first octet says how what follows is cut into segments, whether LMTP is spoken, and whether
large mail goes to disk; the rest is what the client sends.
"""

import asyncio
import re
import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # installed only by who runs this

with atheris.instrument_imports(include=["spamd.relay"]):
    import spamd.relay.inbound.line_buffer
    from tests.relay.memory import MemoryRelay

REPLIES = re.compile(rb"(?:[2345][0-9][0-9](?:-[^\r\n]*\r\n|(?: [^\r\n]*)?\r\n))*")
MAIL = b"MAIL FROM:<a@x.test>\r\nRCPT TO:<b@y.test>\r\n"
SEEDS = (
    b"EHLO c.test\r\n" + MAIL + b"DATA\r\nSubject: x\r\n\r\n..\r\nwords\r\n.\r\nQUIT\r\n",
    b"HELO c.test\r\n" + MAIL + b"DATA\r\n.\r\n" + MAIL + b"DATA\r\nbare\nand\r.\r\n\n.\r\n.\r\n",
    b"LHLO c.test\r\n" + MAIL + b"RCPT TO:<c@y.test>\r\nDATA\r\nX-Spam-Flag: YES\r\n\r\n.\r\n",
    b"EHLO c.test\r\n" + MAIL + b"BDAT 4\r\n.\r\nxBDAT 3\r\n\r\n.BDAT 0 LAST\r\nRSET\r\n",
    b'EHLO c.test\r\nMAIL FROM:<"a>"@x.test> SIZE=9 BODY=8BITMIME RET=HDRS\r\nRSET\r\nVRFY a\r\n',
    b"XCLIENT ADDR=IPV6:::1\r\nXFORWARD NAME=+40\r\nSTARTTLS\r\nAUTH PLAIN =\r\nNOOP\r\nHELP\r\n",
)
spamd.relay.inbound.line_buffer.PAUSE_S = 0.0
LOOP = asyncio.new_event_loop()


async def dialogue(data: bytes) -> None:
    """Play one client to its end and check what must hold for any."""
    choice, text = data[0] if data else 0, data[1:]
    spool = 64 if choice & 1 else 2**20
    relay = MemoryRelay(lmtp=bool(choice & 2), command_delay_s=0, spool_above_bytes=spool)
    budget = relay.context.shared.budget
    before = budget.memory_bytes, budget.spool_bytes
    await relay.start()
    session, transport = relay.session()
    size = (choice >> 2) + 1 if choice >> 2 else len(text) or 1
    for at in range(0, len(text), size):
        while transport.paused and not transport.closed:  # noqa: ASYNC110 - as a loop would
            await asyncio.sleep(0)
        if transport.closed:
            break
        session.transport.data_received(text[at : at + size])
        await asyncio.sleep(0)
    if not transport.closed:
        session.transport.eof_received()
    async with asyncio.timeout(20):
        while relay.relay.sessions:  # noqa: ASYNC110 - it ends by itself
            await asyncio.sleep(0)
    said = bytes(transport.written)
    assert REPLIES.fullmatch(said), said[-300:]
    assert relay.observer.faults == [], relay.observer.faults
    assert (budget.memory_bytes, budget.spool_bytes) == before
    assert len(relay.hop.messages) == len(relay.inspector.seen)
    for message in relay.hop.messages:
        assert message.endswith(b"\r\n")
        assert b"\r\n.\r\n" not in message
        assert message.count(b"\r") == message.count(b"\n") == message.count(b"\r\n")
    await relay.relay.stop(1)


def one_input(data: bytes) -> None:
    """Play one client."""
    LOOP.run_until_complete(dialogue(data))


def main() -> None:
    """Run the fuzzer with the options of libFuzzer given on the command line."""
    for folder in (Path(word) for word in sys.argv[1:] if not word.startswith("-")):
        folder.mkdir(exist_ok=True, parents=True)
        for number, seed in enumerate(SEEDS):
            for choice in (0, 1, 2, 3, 4, 13):
                (folder / f"seed-{number}-{choice}").write_bytes(bytes([choice]) + seed)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
