"""Mails through a real daemon by SPAMC, held to `spamd scan` and to their own bytes."""

import json
import re
import socket
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from spamd.evaluation.index import read_index
from spamd.message.spam_fields import strip_and_prepend
from spamd.sample import Label
from tests.benchmarks.measure import corpora
from tests.e2e.test_spamc import Ours

OUR_FIELDS = re.compile(
    rb"X-Spam-Status: [^\n]*\n(?:[ \t][^\n]*\n)*(?:X-Spam-Flag: YES\r?\n)?"
    rb"X-Spam-Probability: ([0-9.]+)\r?\nX-Spam-Id: [0-9a-f-]+\r?\n"
)


def compared(count: int) -> tuple[int, list[str]]:
    """Send mails of the SpamAssassin corpus, taught its first half; return how many, what differs.

    Beside them go the same mails with CRLF, for every second.
    """
    with corpora() as folder, Ours() as daemon:
        index = read_index(folder / "spamassassin" / "index")
        half = len(index) // 2
        for label in Label:
            paths = [str(mail.path) for mail in index[:half] if mail.label is label]
            daemon.run("train", str(label), *paths, codes=(0, 1))
        chosen = [mail.path for mail in islice(index[half:], count)]
        daemon.stop()
        daemon.start()  # with all that was learned
        return len(chosen), differences(daemon, chosen)


def differences(daemon: Ours, paths: Sequence[Path]) -> list[str]:
    """Return what differs between SPAMC, `spamd scan` and the files."""
    said = daemon.run("scan", "--json", *map(str, paths), codes=(0, 1, 2))
    scanned = {found["path"]: found for found in map(json.loads, said.splitlines())}
    wrong = []
    for number, path in enumerate(paths):
        mail = path.read_bytes()
        if number % 2:
            mail = mail.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        wrong += [f"{path.name}: {what}" for what in _wrong(daemon, mail, scanned[str(path)])]
    return wrong


def _wrong(daemon: Ours, mail: bytes, scanned: dict[str, object]) -> list[str]:
    whole = _asked(daemon, b"PROCESS", mail)
    header = _asked(daemon, b"HEADERS", mail)
    checked = _asked(daemon, b"CHECK", mail)
    head, _, body = whole.partition(b"\r\n\r\n")
    found = OUR_FIELDS.search(body)
    if found is None:
        return [f"no fields of ours: {whole[:200]!r}"]
    wrong = []
    if f"{scanned['probability']:.6f}" != found[1].decode():
        wrong.append(f"{found[1]!r} by PROCESS, {scanned['probability']} by scan")
    if (b"Spam: True" in head) != (scanned["verdict"] == "spam"):
        wrong.append(f"{head!r}, {scanned['verdict']} by scan")
    if checked.split(b"\r\n")[1] != head.split(b"\r\n")[2]:
        wrong.append(f"{checked!r} by CHECK, {head!r} by PROCESS")
    if body[: found.start()] + body[found.end() :] != strip_and_prepend(mail, b""):
        wrong.append("the bytes below our fields are not those that came")
    ends = [at + len(mark) for mark in (b"\r\n\r\n", b"\n\n") if (at := mail.find(mark)) >= 0]
    joined = header.partition(b"\r\n\r\n")[2] + (mail[min(ends) :] if ends else b"")
    if OUR_FIELDS.sub(b"", joined, 1) != OUR_FIELDS.sub(b"", body, 1):
        wrong.append("HEADERS and the body are not the whole mail")
    return wrong


def _asked(daemon: Ours, verb: bytes, mail: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(daemon.socket))
        client.sendall(verb + b" SPAMC/1.5\r\nContent-length: %d\r\n\r\n" % len(mail) + mail)
        reply = b""
        while block := client.recv(65536):
            reply += block
        return reply
