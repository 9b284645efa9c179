"""The doctor: sends a mail through the whole installation and says at which step it breaks.

    database → accounts → sending → delivery → fields → same database → clock
             → a person moves it → lesson → probability changed → lesson taken back

Each step is a `Finding`: what was seen, and if it is broken, what to do. The first broken step ends
the examination, because the later ones stand on it. Whatever happens, the test mail is removed and
its lesson taken back: the counts are afterwards what they were.
"""

import asyncio
import smtplib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from email import message_from_bytes
from enum import StrEnum
from typing import TypeVar

from spamd.bayes.decision import Verdict
from spamd.errors import TemporaryError
from spamd.feedback.account_states import LEASE
from spamd.feedback.doctor.mailboxes import DoctorMailbox, Found
from spamd.feedback.doctor.message import Setup, plain, send, smtp_cure
from spamd.feedback.mailboxes.mailbox import MailboxError, Place, header_fields, trace
from spamd.feedback.ports import History, Known, Leases, Mailboxes
from spamd.feedback.watching.move_verifier import DATE_S
from spamd.ports import Clock
from spamd.sample import Label
from spamd.training import Result
from spamd.training.trainer import Trainer
from spamd.wording import reason

T = TypeVar("T")

CLOCK_S = 120
"""Clocks further apart than this confuse people, leases and logs."""

CHECK_S = 0.2
"""Pause between two checks while waiting for something."""


class State(StrEnum):
    """How a step ended."""

    FINE = "fine"
    WARNING = "warning"  # works, but not as it should
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One step: what was seen, and what to do about it (empty when it is fine)."""

    step: str
    state: State
    seen: str
    cure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    """What the doctor looks with.

    window_s  `feedback.rule_window_s`: what leaves its folder sooner was not moved by a person
    """

    mailboxes: Mailboxes
    window_s: float
    history: History
    leases: Leases
    trainer: Trainer
    clock: Clock


class BrokenError(Exception):
    """A step is broken; `finding` says how."""

    def __init__(self, step: str, seen: str, cure: str) -> None:
        super().__init__(seen)
        self.finding = Finding(step=step, state=State.BROKEN, seen=seen, cure=cure)


class Doctor:
    """Examines one installation.

    Args:
        mailboxes: in all accounts where the test mail may turn up.
        watched: whether those accounts are watched; else the doctor teaches by itself.
    """

    def __init__(
        self,
        setup: Setup,
        instruments: Instruments,
        mailboxes: Sequence[DoctorMailbox],
        *,
        watched: bool,
    ) -> None:
        self._setup = setup
        self._with = instruments
        self._mailboxes = mailboxes
        self._watched = watched
        self._mailbox: DoctorMailbox | None = None
        self._known: Known | None = None

    async def examine(self) -> AsyncIterator[Finding]:
        """Yield the findings in order; the last one is the first that is broken, or the cure."""
        try:
            async for finding in self._steps():
                yield finding
        except BrokenError as error:
            yield error.finding
        except MailboxError as error:
            yield Finding(step="account", state=State.BROKEN, seen=str(error), cure=ACCOUNT_CURE)
        except TemporaryError as error:
            yield Finding(step="database", state=State.BROKEN, seen=str(error), cure=DATABASE_CURE)
        finally:
            await self._clean_up()

    async def _steps(self) -> AsyncIterator[Finding]:
        for mailbox in self._mailboxes if self._watched else ():
            yield await self._account(mailbox)
        yield await self._sending()
        found = await self._delivery()
        yield _fine("delivery", f"the mail lies in {found.folder.name} of {self._key}")
        yield self._fields(found)
        known = await self._same_database(found)
        yield _fine("database", f"this command and the daemon share {self._setup.database}")
        yield self._clocks(found, known)
        label = await self._lesson(found, known)
        yield _fine("lesson", f"learned as {label}")
        yield await self._changed(known, label)
        yield await self._taken_back(known)

    @property
    def _key(self) -> str:
        return self._mailbox.key if self._mailbox else "?"

    async def _account(self, mailbox: DoctorMailbox) -> Finding:
        folders = await mailbox.folders()
        names = ", ".join(folder.name for folder in folders)
        junk = [folder.name for folder in folders if folder.place is Place.JUNK]
        if not junk:
            raise BrokenError(
                "account",
                f"{mailbox.key} has no Junk folder; it has {names}",
                "set feedback.junk_folders, or junk_folders of the account, to the name of the"
                " folder where people put spam, or create one",
            )
        there = {
            part.casefold()
            for f in folders
            for part in (f.name, f.name.replace("/", ".").rpartition(".")[2])
        }
        missing = [name for name in mailbox.named if name.casefold() not in there]
        if missing:
            raise BrokenError(
                "account",
                f"{mailbox.key} has no folder called {missing[0]}; it has {names}",
                "correct junk_folders and folders of the account in the settings",
            )
        return _fine("account", f"{mailbox.key}: Junk is {', '.join(junk)}; watched are {names}")

    async def _sending(self) -> Finding:
        setup = self._setup
        step = "sending"
        try:
            reply = await asyncio.to_thread(send, setup, self._with.clock.now())
        except smtplib.SMTPRecipientsRefused as error:
            code, text = next(iter(error.recipients.values()))
            said = f"{code} {plain(text)}"
            cure = "name an existing recipient: spamd doctor --recipient ADDRESS"
            raise BrokenError(
                step,
                f"{setup.recipient} is refused: {said}",
                smtp_cure(setup, said) if code < 500 else cure,
            ) from error
        except smtplib.SMTPResponseException as error:
            said = f"{error.smtp_code} {plain(error.smtp_error)}"
            raise BrokenError(step, f"the daemon answers {said}", smtp_cure(setup, said)) from error
        except (OSError, smtplib.SMTPException) as error:
            raise BrokenError(
                step,
                f"nothing listens at {setup.host}:{setup.port} ({reason(error)})",
                "start spamd serve, or check relay.listen",
            ) from error
        return _fine(step, f"the daemon took the test mail and said {reply}")

    async def _delivery(self) -> Found:
        async def check() -> Found | None:
            for mailbox in self._mailboxes:
                if found := await mailbox.find(self._setup.mark):
                    self._mailbox = mailbox
                    return found
            return None

        found = await self._until(check)
        if found is None:
            accounts = ", ".join(mailbox.key for mailbox in self._mailboxes) or "none"
            raise BrokenError(
                "delivery",
                f"the test mail to {self._setup.recipient} arrived in no account (looked in"
                f" {accounts})",
                f"check the queue and the log of {self._setup.next_hop}, and that the recipient's"
                " mail goes to a watched account (spamd doctor --recipient ADDRESS)",
            )
        return found

    def _fields(self, found: Found) -> Finding:
        mail = message_from_bytes(found.header)
        status = mail["X-Spam-Status"]
        if status is None or mail["X-Spam-Id"] is None:
            raise BrokenError(
                "fields",
                "the delivered mail carries no X-Spam fields",
                "a server after spamd removes them, or the message did not pass through spamd:"
                " check its Received fields",
            )
        text = " ".join(str(status).split())
        if "verdict=unscanned" in text:
            raise BrokenError(
                "verdict",
                f"the daemon could not judge the mail: {text}",
                "the reason is in the daemon's log; check the database first",
            )
        return _fine("verdict", text)

    async def _same_database(self, found: Found) -> Known:
        identity = " ".join(str(message_from_bytes(found.header)["X-Spam-Id"]).split())

        async def check() -> Known | None:
            return (await self._with.history.by_id([identity])).get(identity)

        known = await self._until(check)
        if known is None:
            raise BrokenError(
                "database",
                f"the daemon's scan is not in {self._setup.database}",
                "the daemon uses another database, of another user or another settings file:"
                " compare spamd config show as the daemon's user, and run this as that user",
            )
        self._known = known
        return known

    def _clocks(self, found: Found, known: Known) -> Finding:
        now = self._with.clock.now()
        for whose, when in (("the mail server", found.delivered), ("the daemon", known.scanned)):
            if when is not None and abs(now - when) > timedelta(seconds=CLOCK_S):
                return Finding(
                    step="clock",
                    state=State.WARNING,
                    seen=f"{whose} says {when:%Y-%m-%d %H:%M:%S %Z}, this machine {now:%H:%M:%S}",
                    cure="set the clocks by NTP",
                )
        return _fine("clock", "mail server, daemon and this machine agree")

    async def _lesson(self, found: Found, known: Known) -> Label:
        mailbox = self._mailbox
        if mailbox is None:
            raise BrokenError("move", "no account", ACCOUNT_CURE)
        label = Label.HAM if known.verdict is Verdict.SPAM else Label.SPAM
        if not self._watched:
            return await self._teach(known, label)
        await self._until(lambda: self._watched_in(mailbox, found))
        if label is Label.HAM and found.folder.place is not Place.JUNK:
            await mailbox.move(found, Place.JUNK)
            found = await mailbox.find(self._setup.mark) or found
            await self._until(lambda: self._watched_in(mailbox, found))
        await mailbox.move(found, Place.JUNK if label is Label.SPAM else Place.INBOX)

        async def check() -> Known | None:
            now = (await self._with.history.by_digest([known.digest])).get(known.digest)
            return now if now and now.label is label else None

        if await self._until(check) is None:
            raise await self._unlearned()
        return label

    async def _watched_in(self, mailbox: DoctorMailbox, found: Found) -> bool | None:
        """Return True once the watcher has seen the mail where it lies, for long enough."""
        mail = trace(header_fields(found.header))
        name = found.folder.name
        seen = (await self._with.mailboxes.seen(mailbox.key, [mail])).get(mail, ())
        cursor = (await self._with.mailboxes.cursors(mailbox.key)).get(name)
        if cursor is None or name not in {one.folder for one in seen}:
            return None
        settled = max(one.delivered for one in seen) + DATE_S + self._with.window_s
        return True if cursor.time.timestamp() >= settled else None

    async def _teach(self, known: Known, label: Label) -> Label:
        features = await self._with.history.kept(known.digest)
        if features is not None:
            await self._with.trainer.train([features], label, source="doctor", actor="doctor")
        return label

    async def _unlearned(self) -> BrokenError:
        holder = await self._with.leases.holder(LEASE)
        if holder is None:
            return BrokenError(
                "lesson",
                "the move was not learned: no worker watches the accounts",
                "start spamd serve with the accounts in its settings, or spamd feedback watch",
            )
        return BrokenError(
            "lesson",
            f"the move was not learned within {self._setup.wait_s:g} s, though {holder.holder}"
            f" watches since {holder.renewed:%H:%M:%S}",
            f"look for account.lost in its log, and whether it watches {self._key} too; then"
            " spamd feedback parked",
        )

    async def _changed(self, known: Known, label: Label) -> Finding:
        now = (await self._with.history.by_digest([known.digest])).get(known.digest, known)
        before, after = now.before, now.after
        right = before is not None and after is not None
        if right and before is not None and after is not None:
            right = after >= before if label is Label.SPAM else after <= before
        if not right:
            raise BrokenError(
                "effect",
                f"the lesson changed the probability from {before} to {after}",
                "run spamd database verify",
            )
        return _fine("effect", f"probability of spam {before:.4f} → {after:.4f}")

    async def _taken_back(self, known: Known) -> Finding:
        outcomes = await self._with.trainer.forget([known.digest])
        if [outcome.result for outcome in outcomes] != [Result.FORGOTTEN]:
            raise BrokenError(
                "taken back", "the lesson could not be taken back", "run spamd database verify"
            )
        return _fine("taken back", "the lesson is taken back, the counts are as before")

    async def _clean_up(self) -> None:
        mailbox = self._mailbox
        if mailbox is not None:
            with suppress(MailboxError):
                if found := await mailbox.find(self._setup.mark):
                    await mailbox.remove(found)
        if self._known is not None:
            with suppress(TemporaryError):
                await self._with.trainer.forget([self._known.digest])
        for each in self._mailboxes:
            await each.close()

    async def _until(self, check: Callable[[], Awaitable[T | None]]) -> T | None:
        """Look again and again until there is something, or the time is over."""
        for _ in range(int(self._setup.wait_s / CHECK_S)):
            if (thing := await check()) is not None:
                return thing
            await asyncio.sleep(CHECK_S)
        return await check()


ACCOUNT_CURE = "check host, port, tls, user and password of the account in the settings"
DATABASE_CURE = "check database.url and that the database answers"


def _fine(step: str, seen: str) -> Finding:
    return Finding(step=step, state=State.FINE, seen=seen)
