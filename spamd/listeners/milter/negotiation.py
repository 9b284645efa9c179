"""What we and the mail server agree on: what we may change, and what it sends and waits for.

We ask for nothing that was not offered. What stays out is done without: an answer to each step
where the server wants one, no mark where no field may be added.
"""

from dataclasses import dataclass
from typing import Self

from spamd.errors import RemoteProtocolError
from spamd.listeners.milter.packets import agreement, numbers

OLDEST, NEWEST = 2, 6
"""Versions of the protocol: Sendmail 8.12 and, since 8.14, all that speak it now."""

ADD, CHANGE, QUARANTINE, CHOOSE_MACROS = 0x1, 0x10, 0x20, 0x100
"""Actions: add and insert header fields, change them, quarantine, say which macros are wanted."""

NOT_UNKNOWN, NOT_DATA = 0x100, 0x200
"""Steps that are not sent to us: unknown commands, and DATA before there are data."""

MAY_SKIP, LEADING_SPACE = 0x400, 0x100000
"""The rest of a body may be skipped; values of fields come and go with their leading space."""

SILENT = {
    b"C": 0x1000,
    b"H": 0x2000,
    b"M": 0x4000,
    b"R": 0x8000,
    b"T": 0x10000,
    b"U": 0x20000,
    b"L": 0x80,
    b"N": 0x40000,
    b"B": 0x80000,
}
"""Steps that are answered, and the bit that says that they are not."""

MACROS = (
    (0, b"{client_addr}"),
    (1, b"{tls_version}"),
    (2, b"i {auth_authen} {tls_version}"),
    (3, b"{rcpt_mailer}"),
    (5, b"i"),
)
"""What we read, by stage: connect, HELO, MAIL, RCPT, end of message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What was agreed on, for all that comes on one connection.

    silent          commands that are not answered
    may_skip        the rest of a body may be skipped
    leading_space   values of fields come and go with their leading space
    may_add, may_change, may_quarantine   what may become of a mail
    """

    version: int
    actions: int
    steps: int
    silent: frozenset[bytes]
    may_skip: bool
    leading_space: bool
    may_add: bool
    may_change: bool
    may_quarantine: bool

    @classmethod
    def on(cls, offer: bytes, *, quarantine: bool) -> Self:
        """Return what follows from an offer.

        Raises:
            RemoteProtocolError: it is none, or of a version before ours.
        """
        version, actions, steps = numbers(offer)
        if version < OLDEST:
            raise RemoteProtocolError(f"milter protocol {version} is older than {OLDEST}")
        actions &= ADD | CHANGE | CHOOSE_MACROS | (QUARANTINE if quarantine else 0)
        wanted = NOT_UNKNOWN | NOT_DATA | MAY_SKIP | LEADING_SPACE | sum(SILENT.values())
        if steps & MAY_SKIP:
            wanted &= ~SILENT[b"B"]  # what is not answered can't be skipped
        steps &= wanted
        return cls(
            version=min(version, NEWEST),
            actions=actions,
            steps=steps,
            silent=frozenset(command for command, bit in SILENT.items() if steps & bit),
            may_skip=bool(steps & MAY_SKIP),
            leading_space=bool(steps & LEADING_SPACE),
            may_add=bool(actions & ADD),
            may_change=bool(actions & CHANGE),
            may_quarantine=bool(actions & QUARANTINE),
        )

    @property
    def answer(self) -> bytes:
        """Return the packet that says so."""
        lists = MACROS if self.actions & CHOOSE_MACROS else ()
        return agreement(self.version, self.actions, self.steps, lists)
