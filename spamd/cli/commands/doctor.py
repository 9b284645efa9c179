"""`spamd doctor`: does the whole installation work, and if not, where does it break?"""

import os
import pwd
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from spamd import resources
from spamd.cli.arguments import JsonOption
from spamd.cli.exits import Exit
from spamd.cli.open_relay import PROBE_TIMEOUT_S, relaying_in_words
from spamd.cli.output import QuietObserver, json_line, line
from spamd.cli.session import Session, awaited, session
from spamd.errors import ConfigError, TemporaryError
from spamd.network.address_text import reached_at
from spamd.wording import printable

if TYPE_CHECKING:
    from spamd.feedback.doctor.mailboxes import DoctorMailbox
    from spamd.feedback.doctor.message import Setup
    from spamd.feedback.doctor.steps import Finding
    from spamd.feedback.options import AccountOptions
    from spamd.storage.store import Store

ROOT = 0

SIGNS = {"fine": "ok  ", "warning": "WARN", "broken": "FAIL"}


def doctor(
    context: typer.Context,
    *,
    recipient: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Recipient; default: the first account."),
    ] = None,
    sender: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Envelope sender; default: the recipient.")
    ] = None,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="Longest wait at each step.")
    ] = 15.0,
    as_json: JsonOption = False,
) -> int:
    """Send a test message through every step; name what fails.

    A test message is sent by SMTP, judged and delivered; it is moved as a user would move it, the
    move is learned, and the lesson is taken back. The message is removed at the end and the counts
    are as before. Run this as the daemon's user, or as root.
    """
    return awaited(_doctor(session(context), recipient, sender, wait, as_json=as_json))


async def _doctor(
    here: Session, recipient: str | None, sender: str | None, wait_s: float, *, as_json: bool
) -> int:
    findings: list[Finding] = []

    def tell(finding: "Finding") -> None:
        findings.append(finding)
        if not as_json:
            _print(finding)

    if not as_json:
        line(f"{SIGNS['fine']}  {'settings':<11} {here.configuration.read_from}")
    await _examine(here, recipient, sender, wait_s, tell)
    worst = {str(finding.state) for finding in findings}
    if as_json:
        settings = here.configuration.read_from
        json_line({"settings": settings, "findings": [_json(finding) for finding in findings]})
    elif worst == {"fine"}:
        line("all steps passed: what users do with their mail is learned")
    if "broken" in worst:
        return Exit.TROUBLE
    return Exit.PARTLY if "warning" in worst else Exit.DONE


async def _examine(
    here: Session,
    recipient: str | None,
    sender: str | None,
    wait_s: float,
    tell: "Callable[[Finding], None]",
) -> None:
    from spamd.clock import WallClock
    from spamd.feedback.doctor.steps import DATABASE_CURE, Doctor, Finding, Instruments, State

    for finding in _rights(here):
        tell(finding)
    async for finding in _open_relay(here):
        tell(finding)
    try:
        async with resources.open_store(here.settings) as store:
            mailboxes, watched = _mailboxes(here, store)
            setup = _setup(here, store, recipient, sender, wait_s)
            instruments = Instruments(
                mailboxes=store.mailboxes,
                window_s=here.settings.feedback.rule_window_s,
                history=store.scans,
                leases=store.leases,
                trainer=resources.trainer(store, here.settings),
                clock=WallClock(),
            )
            if not watched:
                tell(_unwatched())
            async for finding in Doctor(setup, instruments, mailboxes, watched=watched).examine():
                tell(finding)
    except ConfigError as error:
        cure = DATABASE_CURE if str(error).startswith("database.") else ""
        tell(Finding(step="settings", state=State.BROKEN, seen=str(error), cure=cure))
    except TemporaryError as error:
        tell(Finding(step="database", state=State.BROKEN, seen=str(error), cure=DATABASE_CURE))


def _rights(here: Session) -> "Iterator[Finding]":
    """Say when the database's file belongs to somebody else than who runs this."""
    from spamd.feedback.doctor.steps import Finding, State

    path = here.settings.database.path
    if path is None or not os.access(path, os.F_OK):
        return
    owner, me = path.stat().st_uid, os.geteuid()
    if me in {owner, ROOT}:  # what root makes there is given to the owner (storage.engine)
        return
    can = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    yield Finding(
        step="rights",
        state=State.WARNING if can else State.BROKEN,
        seen=f"{path} belongs to {_name(owner)}, this runs as {_name(me)}",
        cure=f"run spamd as {_name(owner)}: sudo -u {_name(owner)} spamd doctor; files that another"
        " user makes beside the database lock the daemon out",
    )


async def _open_relay(here: Session) -> "AsyncIterator[Finding]":
    """Check whether a next hop is an open relay, where unknown clients can reach us."""
    from spamd.feedback.doctor.steps import Finding, State
    from spamd.relay.outbound.open_relay import (
        Relaying,
        probe_all,
        reachable_from_outside,
        trusts_everybody,
    )

    relay = here.settings.relay
    if reachable_from_outside(relay) and trusts_everybody(relay):
        yield Finding(
            step="open relay",
            state=State.WARNING,
            seen="relay.trusted_networks holds all addresses:"
            " any client may claim another's address",
            cure="name only the addresses of your proxies",
        )
    states = {Relaying.CLOSED: State.FINE, Relaying.NOT_IDENTIFIED: State.BROKEN}
    async for seen in probe_all(relay, here.settings.next_hop, within_s=PROBE_TIMEOUT_S):
        said, cure = relaying_in_words(seen)
        state = states.get(seen.relaying, State.WARNING)
        yield Finding(step="open relay", state=state, seen=said, cure=cure)


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _unwatched() -> "Finding":
    from spamd.feedback.doctor.steps import Finding, State

    return Finding(
        step="account",
        state=State.WARNING,
        seen="no account is set, so nothing is learned from moved messages",
        cure="set feedback.accounts; spamd doctor now teaches the test message itself",
    )


def _mailboxes(here: Session, store: "Store") -> "tuple[Sequence[DoctorMailbox], bool]":
    """Return the mailboxes of all accounts, or the Maildir that is the next hop."""
    from spamd.feedback.doctor.mailboxes import doctor_mailbox
    from spamd.feedback.options import AccountOptions
    from spamd.feedback.service import mailboxes
    from spamd.relay.urls import Scheme, parse_next_hop

    options = here.settings.feedback
    watched = bool(options.accounts)
    url = parse_next_hop(here.settings.next_hop.url, key="next_hop.url")
    if not watched and url.scheme is Scheme.MAILDIR:
        from pathlib import Path

        root = Path(url.path)
        options = replace(options, accounts=(AccountOptions(maildir=root, user="you"),))
    context = resources.watcher_context(store, here.settings, QuietObserver())
    return [doctor_mailbox(mailbox, options) for mailbox in mailboxes(options, context)], watched


def somebody(account: "AccountOptions") -> str:
    """Return whose mail comes into an account: a master user has none of his own.

    Raises:
        ConfigError: the file with the users can't be read, or names nobody.
    """
    from spamd.feedback.account_list import users_of

    if not (account.users or account.users_file):
        return account.user
    users = users_of(account)
    if not users:
        raise ConfigError(
            f"feedback.accounts: {account.users_file} names nobody whom the master user"
            f" {account.user} could watch; write one user a line"
        )
    return users[0]


def _setup(
    here: Session,
    store: "Store",
    recipient: str | None,
    sender: str | None,
    wait_s: float,
) -> "Setup":
    from secrets import token_hex

    from spamd.feedback.doctor.message import Setup

    settings = here.settings
    open_to_us = [each for each in settings.relay.listeners if not each.path and not each.tls]
    if not open_to_us:
        raise ConfigError(
            "neither relay.listen nor relay.listen_lmtp has an address of TCP, so no test mail can"
            " be sent"
        )
    listener = min(open_to_us, key=lambda each: each.lmtp)
    accounts = settings.feedback.accounts
    user = somebody(accounts[0]) if accounts else "postmaster"
    address = recipient or (user if "@" in user else f"{user or 'postmaster'}@localhost")
    return Setup(
        host=reached_at(listener.host),
        port=listener.port,
        next_hop=settings.next_hop.url,
        database=store.database.shown,
        recipient=address,
        sender=sender or address,
        mark=f"doctor{token_hex(6)}",
        wait_s=wait_s,
        lmtp=listener.lmtp,
    )


def _print(finding: "Finding") -> None:
    line(f"{SIGNS[finding.state]}  {finding.step:<11} {printable(finding.seen, limit=500)}")
    if finding.cure:
        line(f"                  → {printable(finding.cure, limit=500)}")


def _json(finding: "Finding") -> dict[str, str]:
    return {
        "step": finding.step,
        "state": str(finding.state),
        "seen": finding.seen,
        "cure": finding.cure,
    }
