"""Mails through a real server and this milter, and what has become of each of them.

`compared` sends mails through one server twice, with the milter and without it, and holds what is
delivered to three things: the bytes below our fields are those that the server delivers by itself,
signatures (DKIM) made before are as good as there, and the verdict is the one of `spamd scan` on
the same file. A line that is no field ends the header section for these servers, which put an empty
line in front of it; such a mail is judged as they read it.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

import dkim
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from spamd.message.spam_fields import strip_and_prepend
from tests.e2e.relay_daemon import Spamd
from tests.e2e.test_relay_corpus import send_all
from tests.servers.base import Server
from tests.servers.postfix import Postfix, PostfixOptions, SmtpSink, SunkMail
from tests.servers.sendmail import Sendmail

RECEIVED = re.compile(rb"Received: [^\n]*\n(?:\s[^\n]*\n)*")
OUR_FIELD = re.compile(rb"X-Spam-(?:Status|Flag|Probability|Id): [^\n]*\n(?:[ \t][^\n]*\n)*")
_DELIVERED = re.compile(
    rb"\A>?From [^\n]*\n|^(?:Return-Path|Bcc|Content-Length):[^\n]*\n(?:[ \t][^\n]*\n)*",
    re.MULTILINE | re.IGNORECASE,
)
ADDED = re.compile(rb"\A(?:Date: [^\n]* GMT\n)?(?:Message-Id: <[\w.]+@mx\.test>\n)?")
"""What Sendmail puts on top of a mail that lacks it, another one each time."""

FIELD_LINE = re.compile(rb"[!-9;-~]+[ \t]*:|[ \t]")
SIGNED = [b"from", b"to", b"subject", b"date", b"message-id"]

AS_IT_IS = {
    "smtp_line_length_limit": "0",
    "disable_mime_output_conversion": "yes",
    "local_header_rewrite_clients": "",
    "message_size_limit": "0",
    "milter_default_action": "tempfail",
}
"""Settings by which Postfix changes as little of a mail as it can."""


class MailServer(Protocol):
    """Starts a server that hands mail on to a port, with a milter or without (0)."""

    def __call__(self, next_hop_port: int, milter_port: int) -> Server: ...


def postfix_with(next_hop_port: int, milter_port: int) -> Postfix:
    """Return a Postfix."""
    milter = f"inet:127.0.0.1:{milter_port}" if milter_port else ""
    main = {"relayhost": f"[127.0.0.1]:{next_hop_port}", "smtpd_milters": milter, **AS_IT_IS}
    return Postfix(PostfixOptions(main=main))


def sendmail_with(next_hop_port: int, milter_port: int) -> Sendmail:
    """Return a Sendmail."""
    filter_ = f"INPUT_MAIL_FILTER(`spamd', `S=inet:{milter_port}@127.0.0.1, F=T')dnl"
    return Sendmail(next_hop_port, filter_ if milter_port else "")


@dataclass
class Comparison:
    """What was seen how often, and what must not be."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Scan:
    """What `spamd scan` says."""

    verdict: str
    probability: float

    def agrees(self, content: bytes) -> bool:
        """Tell whether the fields of a mail say the same."""
        (probability,) = re.findall(rb"^X-Spam-Probability: (\S+)$", content, re.MULTILINE)
        flat = re.sub(rb"\s+", b" ", content[: content.index(b"X-Spam-Probability")])
        same = abs(float(probability) - self.probability) < 2e-6
        flag = b" X-Spam-Flag: YES" in flat
        named = b" verdict=%b " % self.verdict.encode() in flat
        return same and named and flag == (self.verdict == "spam")


def compared(
    server: MailServer, spamd: Spamd, milter_port: int, paths: Sequence[Path]
) -> Comparison:
    """Send files through a server with the milter and without it; compare."""
    found = Comparison()
    with_milter = delivered(server, milter_port, paths)
    without = delivered(server, 0, paths)
    folder = spamd.directory / "delivered"
    folder.mkdir(exist_ok=True)
    for number, path in enumerate(paths):
        marked, plain = with_milter.get(number), without.get(number)
        if marked is None or plain is None:
            found.faults.append(f"{path}: not delivered")
            continue
        bare = below(plain.content)
        _bytes_alike(found, path, marked.content, bare)
        if marked.recipients != plain.recipients:
            found.faults.append(f"{path}: {marked.recipients} instead of {plain.recipients}")
        (folder / str(number)).write_bytes(as_read(path.read_bytes()))
    files, mails = scanned(spamd, paths), scanned(spamd, sorted(folder.iterdir()))
    for number, mail in with_milter.items():
        file, shown = files[str(paths[number])], mails[str(folder / str(number))]
        if file.agrees(mail.content):
            found.counts["judged as `spamd scan` judges the file"] += 1
        elif shown.agrees(mail.content):
            found.counts["judged as it is with an empty line behind its header section"] += 1
        else:
            found.faults.append(f"{paths[number]}: {mail.content[:300]!r}, not {file}, {shown}")
    return found


def as_read(content: bytes) -> bytes:
    """Return a mail with an empty line behind its header section, where none is."""
    at = 0
    while at < len(content) and FIELD_LINE.match(content, at):
        at = content.find(b"\n", at) + 1 or len(content)
    return content[:at] + (b"" if content[at : at + 1] == b"\n" else b"\n") + content[at:]


def _bytes_alike(found: Comparison, path: Path, marked: bytes, bare: bytes) -> None:
    """Compare a mail with what the server delivers by itself."""
    found.counts["mails"] += 1
    found.counts["changed by the server itself"] += bare != path.read_bytes()
    if ADDED.sub(b"", below(marked)) != ADDED.sub(b"", strip_and_prepend(bare, b"")):
        found.faults.append(f"{path}: other bytes below our fields")
    good = verified(bare)
    found.counts["signatures that are good without us"] += good
    found.counts["signatures that are good with us"] += verified(marked)
    if good and not verified(marked):
        found.faults.append(f"{path}: its signature is broken")


def scanned(spamd: Spamd, paths: Sequence[Path]) -> dict[str, Scan]:
    """Return what `spamd scan` says of files."""
    lines = spamd.run("scan", "--json", *map(str, paths), codes=(0, 1, 2)).splitlines()
    return {
        scan["path"]: Scan(scan["verdict"], scan["probability"]) for scan in map(json.loads, lines)
    }


def delivered(server: MailServer, milter_port: int, paths: Sequence[Path]) -> dict[int, SunkMail]:
    """Send each file in a transaction of its own; return what arrives, by number."""
    with ExitStack() as stack:
        sink = stack.enter_context(SmtpSink())
        running = stack.enter_context(server(sink.port, milter_port))
        asyncio.run(send_all(running.port, paths))
        mails = sink.mails(at_least=len(paths), deadline_s=300)
    return {int(re.sub(r"\D", "", mail.sender.split("@")[0])): mail for mail in mails}


def below(content: bytes) -> bytes:
    """Return a mail without the server's Received field and without ours below it."""
    received = RECEIVED.match(content)
    assert received is not None, content[:200]
    assert b"by mx.test (" in received[0]
    start = received.end()
    return content[start + sum(map(len, our_fields(content, start))) :]


def our_fields(content: bytes, start: int) -> Iterator[bytes]:
    """Yield the fields of ours that stand at a place."""
    while (found := OUR_FIELD.match(content, start)) is not None:
        yield found[0]
        start = found.end()


@cache
def _key() -> tuple[bytes, bytes]:
    """Return a private key and its record in the DNS."""
    key = generate_private_key(65537, 1024)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private, b"v=DKIM1; k=rsa; p=" + b"".join(public.splitlines()[1:-1])


def signed(content: bytes) -> bytes:
    """Return a mail of a mailbox as it was sent, with a signature where one can be made.

    Fields that are written at delivery go, and bare CR, which Sendmail takes from nobody.
    """
    text = _DELIVERED.sub(b"", re.sub(rb"\r\n|\r", b"\n", content)).replace(b"\0", b" ")
    text = text.removesuffix(b"\n") + b"\n"
    try:
        signature = dkim.sign(
            text.replace(b"\n", b"\r\n"), b"s1", b"x.test", _key()[0], include_headers=SIGNED,
            canonicalize=(b"relaxed", b"relaxed"),
        )  # fmt: skip
    except (dkim.DKIMException, ValueError, IndexError):
        return text
    return bytes(signature).replace(b"\r\n", b"\n") + text


def verified(content: bytes) -> bool:
    """Tell whether the signature of a mail is good."""
    text = re.sub(rb"\r?\n", b"\r\n", content)

    def record(*_: object, **__: object) -> bytes:
        return _key()[1]

    lookup: Callable[..., bytes] = record
    try:
        return bool(dkim.verify(text, dnsfunc=lookup))
    except (dkim.DKIMException, ValueError, IndexError):
        return False
