"""The doctor's test mail: what it is, how it goes in, and what a refusal means."""

import smtplib
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is examined.

    host, port   where the daemon takes mail; lmtp: by that protocol
    next_hop     as the settings say it, for people
    database     likewise
    recipient    whom the test mail goes to; sender: and whom it comes from
    mark         a word that only this test mail holds
    wait_s       how long a step may take
    """

    host: str
    port: int
    next_hop: str
    database: str
    recipient: str
    sender: str
    mark: str
    wait_s: float = 15.0
    lmtp: bool = False


def send(setup: Setup, now: datetime) -> str:
    """Send the test mail; return the reply to its end.

    Raises:
        smtplib.SMTPException: it was refused.
        OSError: nobody answers.
    """
    words = " ".join(f"{setup.mark}{number}" for number in range(12))
    content = (
        f"Message-ID: <{setup.mark}@spamd.doctor>\r\nDate: {format_datetime(now)}\r\n"
        f"From: <{setup.sender}>\r\nTo: <{setup.recipient}>\r\n"
        "Subject: test mail of spamd doctor\r\n\r\n"
        f"This mail is removed in a moment. {words}\r\n"
    ).encode()
    client = smtplib.LMTP if setup.lmtp else smtplib.SMTP
    with client(setup.host, setup.port, timeout=setup.wait_s) as session:
        code, text = session.ehlo()
        if code >= 400:
            raise smtplib.SMTPHeloError(code, text)
        code, text = session.mail(setup.sender)
        if code >= 400:
            raise smtplib.SMTPSenderRefused(code, text, setup.sender)
        code, text = session.rcpt(setup.recipient)
        if code >= 400:
            raise smtplib.SMTPRecipientsRefused({setup.recipient: (code, text)})
        code, text = session.data(content)
        if code >= 400:
            raise smtplib.SMTPDataError(code, text)
    return f"{code} {plain(text)}"


def plain(said: bytes | str) -> str:
    """Return a reply as one line."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return " ".join(text.split())


def smtp_cure(setup: Setup, said: str) -> str:
    """Return what to do about a refusal."""
    if "4.4.1" in said:
        return f"the next hop is down: start it, or check next_hop.url ({setup.next_hop})"
    if said.startswith("4"):
        return "try again in a moment; the reason is in the daemon's log"
    return "check the relay rules of the next hop: it must accept mail from this machine"
