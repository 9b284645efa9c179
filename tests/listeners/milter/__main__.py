"""`make listeners WAY=milter`: 1,000 mails by each server, 10,000 broken streams, a crowd.

    python -m tests.listeners.milter [mails [streams [connections]]]

The mails are of the SpamAssassin corpus, whose first half is learned before; each is signed (DKIM).
What must not be is printed, and ends it with 1.
"""

import asyncio
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

from spamd.evaluation.index import read_index
from spamd.sample import Label
from tests.benchmarks.measure import corpora, resident_mib, tree
from tests.e2e.relay_daemon import Spamd
from tests.listeners.milter.hostile import fuzz, stream
from tests.listeners.milter.mta import Mta, Outcome
from tests.listeners.milter.trip import compared, postfix_with, sendmail_with, signed
from tests.servers.base import free_port


def trips(folder: Path, mails: int) -> int:
    """Send mails by each server; return how many things are wrong."""
    port, faults = free_port(), 0
    spamd = Spamd("maildir://./unused", f'milter.listen = "127.0.0.1:{port}"')
    with corpora() as corpus:
        entries = read_index(corpus / "spamassassin" / "index")
        half = len(entries) // 2
        for label in Label:
            (folder / label).mkdir()
            for entry in entries[:half]:
                if entry.label is label:
                    (folder / label / entry.path.name).symlink_to(entry.path)
            spamd.run("train", label, str(folder / label))
        step = max((len(entries) - half) // mails, 1)
        paths = []
        for number, entry in enumerate(entries[half::step][:mails]):
            paths.append(folder / f"{number}.eml")
            paths[-1].write_bytes(signed(entry.path.read_bytes()))
        with spamd:
            for server in (postfix_with, sendmail_with):
                started = time.monotonic()
                found = compared(server, spamd, port, paths)
                print(f"{server.__name__}: {time.monotonic() - started:.0f} s")
                for what, count in found.counts.items():
                    print(f"  {count:5} {what}")
                print(f"  {len(found.faults):5} faults", *found.faults, sep="\n  ")
                faults += len(found.faults)
            print("log:", *[e["event"] for e in spamd.events("session.failed")][:3])
    return faults


async def crowd(port: int, pid: int, connections: int) -> int:
    """Hold connections that are silent, slow or broken while honest mail comes."""
    before = resident_mib(tree(pid))
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    for number, sock in enumerate(held):
        data = stream(number)
        sock.sendall(data[: number % len(data)])
        if number % 3 == 0:  # a long packet that does not end
            sock.sendall(data[:17] + struct.pack("!I", 2**20) + b"B" + b"x" * 50_000)
    wrong, took = 0, []
    for _ in range(100):
        started = time.monotonic()
        mta = Mta(*await asyncio.open_connection("127.0.0.1", port))
        await mta.negotiate()
        await mta.client()
        await mta.envelope()
        outcome: Outcome = await mta.content([(b"Subject", b" x")], b"words\r\n" * 100)
        took.append((time.monotonic() - started) * 1e3)
        wrong += outcome.verdict != b"c" or len(outcome.ours) < 3
        mta.writer.close()
    took.sort()
    print(
        f"{connections} connections: 100 mails beside them, p50 {took[50]:.1f} ms,"
        f" p99 {took[98]:.1f} ms, {wrong} wrong;"
        f" resident {before:.0f} MiB before, {resident_mib(tree(pid)):.0f} MiB with them"
    )
    for sock in held:
        sock.close()
    return wrong


def main(arguments: list[str]) -> int:
    """Run all; return the exit code."""
    mails, streams, connections = (*map(int, arguments), *(1000, 10_000, 500)[len(arguments) :])
    started = time.monotonic()
    answers = asyncio.run(fuzz(range(streams)))
    print(
        f"{streams} streams, each cut twice: {answers} answers, {time.monotonic() - started:.0f} s"
    )
    port = free_port()
    with Spamd("maildir://./unused", f'milter.listen = "127.0.0.1:{port}"') as spamd:
        wrong = asyncio.run(crowd(port, spamd.pid, connections))
    with tempfile.TemporaryDirectory() as folder:
        wrong += trips(Path(folder), mails) if mails else 0
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
