"""What happens to an account of the model, and what its people mean to teach by what they do.

Each act of a history is a method. One by which a person gives a lesson is noted together with all
that speaks against its being seen: the reasons for which the rule may lose it on purpose.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import FolderError, Place, header_fields, trace
from spamd.feedback.options import FeedbackOptions
from spamd.feedback.watching.lesson_rule import is_told
from spamd.feedback.watching.move_verifier import DATE_S
from spamd.message.features import extract
from spamd.sample import Label
from tests.fakes import FakeClock
from tests.feedback.fakes import FakeJournal, FakeMailboxes
from tests.feedback.histories import FOLDERS, PLACES, VERDICTS, Act, Plan, Result, Step
from tests.feedback.model import Box, Copy, Habits, Mail, Server, Show

OPTIONS = FeedbackOptions(rule_window_s=1.0, poll_s=30.0, hold_after=0, chunk=5, kept_days=0.02)
QUICK_S = 2
"""How long a rule of a mail program takes at most."""

IMPORT_LEAST = 12
ATTRIBUTES = {"Junk": frozenset({"\\junk"}), "Afval": frozenset({"\\trash"})}


class Noted(set[object]):
    """What is to be kept in mind until a whole poll began after it: `fresh` came within one."""

    fresh: set[object]

    def add(self, one: object) -> None:
        super().add(one)
        self.fresh = getattr(self, "fresh", set()) | {one}


class People:
    """One account and its people; `account_key` is the watcher's name for it."""

    def __init__(self, history: Plan) -> None:
        self._history = history
        self.clock = FakeClock()
        habits = Habits(
            keyless=history.keyless,
            restless=history.restless,
            next_uid=history.next_uid,
            modseq=history.modseq,
            forgets=history.forgets,
        )
        self.server = Server(clock=self.clock, habits=habits)
        for number, name in enumerate(FOLDERS):
            self._create(name, validity=100 * (number + 1))
        for name in history.views:
            box = Box(name=name, validity=77, step=history.step, shows=self._show(name))
            self.server.boxes[name] = box
        self.mailboxes, self.journal = FakeMailboxes(), FakeJournal(self.clock)
        self.account_key = ""
        self.mails: dict[int, Mail] = {}
        self.verdicts: dict[int, Verdict | None] = {}
        self.numbers: dict[bytes, int] = {}
        self.result = Result()
        self._acts: list[Act] = []
        self._pending: list[Act] = []
        self._looking = False
        self._looked = False
        self._upset = Noted()
        self._uploaded: set[int] = set()
        self._inside: set[int] = set()
        self._lay: dict[int, set[str]] = {}
        self._gone = Noted()
        self._foreign = Noted()

    # ── what happens ────────────────────────────────────────────────────────────────────────────

    def _happen(self, step: Step) -> None:
        self.server.changes += 1
        getattr(self, f"_{step.act}")(step)

    def _create(self, name: str, validity: int) -> None:
        untold = name == "Afval" and not self._history.told
        self.server.boxes[name] = Box(
            name=name,
            attributes=frozenset() if untold else ATTRIBUTES.get(name, frozenset()),
            validity=validity,
            step=self._history.step,
        )

    def _show(self, name: str) -> Show:
        shows: dict[str, Show] = {
            "Toate": lambda _, __: True,
            "All Mail": lambda folder, _: folder != "Junk",
            "Unread": lambda _, copy: "\\Seen" not in copy.flags,
            "Starred": lambda _, copy: "\\Flagged" in copy.flags,
            "Recent spam": lambda folder, copy: (
                folder == "Junk" and self.server.now() - copy.date < 100
            ),
        }
        return shows[name]

    def new(self, number: int, verdict: Verdict | None, date: int) -> Mail:
        identity = f"X-Spam-Id: id-{number}\r\n" if verdict else ""
        when = format_datetime(datetime.fromtimestamp(date, UTC))
        text = (
            f"{identity}Message-ID: <{number}@model.test>\r\nDate: {when}\r\n"
            f"From: a@sender.test\r\nSubject: number {number}\r\n\r\nWords of {number}.\r\n"
        )
        mail = Mail(number=number, content=text.encode())
        if verdict:
            digest = self.journal.scanned(mail.content, f"id-{number}", verdict).digest
        else:
            digest = extract(mail.content).digest
        self.mails[number], self.verdicts[number] = mail, verdict
        self.numbers[digest] = number
        return mail

    def _deliver(self, step: Step) -> None:
        if step.mail not in self.mails:
            now = self.server.now()
            mail = self.new(step.mail, VERDICTS[step.n], now)
            self.server.boxes[step.a].add(Copy(mail, now))

    def _filed(self, step: Step) -> None:
        self._deliver(step)
        if step.n % 2 and (found := self._find(step.mail)):
            found[2].flags.add("$Junk")

    def _both(self, step: Step) -> None:
        self._deliver(step)
        if step.mail in self.mails:
            self.server.boxes[step.b].add(Copy(self.mails[step.mail], self.server.now()))
            self._foreign.add(step.mail)

    def _wave(self, step: Step) -> None:
        for number in range(IMPORT_LEAST):
            date = self.server.now() - 100_000
            mail = self.new(10_000 * (step.mail + 1) + number, None, date)
            self.server.boxes[step.a].add(Copy(mail, date))

    def _twin(self, step: Step) -> None:
        """A second mail with the same header comes, and is filed by a rule."""
        if step.mail in self.mails and self.verdicts[step.mail] is None:
            content = self.mails[step.mail].content + b"And more.\r\n"
            mail = Mail(number=step.mail, content=content)
            self.server.boxes[step.b].add(Copy(mail, self.server.now() + 1))

    def _append(self, step: Step) -> None:
        """Somebody imports a mail that was here before; not in the moment when it is moved."""
        if step.mail in self.mails and step.mail not in self._gone:
            mail = self.mails[step.mail]
            date = self.server.now() - 5000
            self.server.boxes[step.b].add(Copy(mail, date))
            self._foreign.add(step.mail)
            self._touch(step.mail)

    def _find(self, number: int, folder: str = "") -> tuple[Box, int, Copy] | None:
        for name in (folder, *FOLDERS) if folder else FOLDERS:
            box = self.server.boxes[name]
            for uid, copy in box.copies.items():
                if copy.mail is self.mails.get(number) and "\\Deleted" not in copy.flags:
                    return box, uid, copy
        return None

    def _move(self, step: Step) -> None:
        self._moved(step, lambda box, uid, _: box.copies.pop(uid))

    def _upload(self, step: Step) -> None:
        def anew(box: Box, uid: int, copy: Copy) -> Copy:
            del box.copies[uid]
            self._uploaded.add(step.mail)
            return replace(copy, date=self.server.now())

        self._moved(step, anew, why="uploaded under a new date, never judged")

    def _mutt(self, step: Step) -> None:
        def copied(_: Box, __: int, copy: Copy) -> Copy:
            twin = replace(copy, flags=set(copy.flags))
            copy.flags.add("\\Deleted")
            return twin

        self._moved(step, copied, why="copied and only marked as deleted where no UIDs last")

    def _moved(self, step: Step, take: Callable[[Box, int, Copy], Copy], *, why: str = "") -> None:
        found = self._find(step.mail)
        if found is None or found[0].name == step.b or step.mail in self._foreign:
            return
        box, uid, copy = found
        self._mean_move(step.mail, box, uid, copy, step.b, why=why)
        self.server.boxes[step.b].add(take(box, uid, copy))
        self._gone.add(step.mail)

    def _program(self, step: Step) -> None:
        """A rule of a mail program files what was delivered just now.

        Not what a person has uploaded anew just before: that can't be told from his next move.
        """
        found = self._find(step.mail)
        if step.mail in self._uploaded:
            return
        if found and self.server.now() - found[2].date < QUICK_S and found[0].name != step.b:
            box, uid, _ = found
            self.server.boxes[step.b].add(box.copies.pop(uid))
            self._touch(step.mail)
            self._gone.add(step.mail)

    def _programmark(self, step: Step) -> None:
        found = self._find(step.mail)
        if found and self.server.now() - found[2].date < QUICK_S:
            found[2].flags.add("$Junk")
            self._touch(step.mail)

    def _copy(self, step: Step) -> None:
        if found := self._find(step.mail):
            self.server.boxes[step.b].add(replace(found[2], flags=set(found[2].flags)))
            self._touch(step.mail)
            self._foreign.add(step.mail)

    def _remove(self, step: Step) -> None:
        found = self._find(step.mail, step.a)
        if found and step.mail not in self._foreign:
            del found[0].copies[found[1]]
            self._touch(step.mail)
            self._gone.add(step.mail)

    def _trash(self, step: Step) -> None:
        self._move(replace(step, b="Afval"))

    def _expunge(self, step: Step) -> None:
        box = self.server.boxes[step.a]
        box.copies = {u: c for u, c in box.copies.items() if "\\Deleted" not in c.flags}

    def _mark(self, step: Step) -> None:
        found = self._find(step.mail)
        flag, label = (("$Junk", Label.SPAM), ("$NotJunk", Label.HAM))[step.n % 2]
        if found is None or found[2].flags & {"$Junk", "$NotJunk"} or found[0].name == "Afval":
            return
        box, uid, copy = found
        told = is_told(label, self.verdicts[step.mail], self._label(step.mail))
        act = self._mean(step.mail, label, box, uid, copy, effective=not told)
        if box.name in self._history.keyless | self._history.restless | self.seen_restless():
            act.doubts.add("marked where no UIDs last")
        if PLACES.get(box.name) is Place.OTHER and not self._history.modseq:
            act.doubts.add("marked in another folder of a server without CONDSTORE")
        copy.flags.add(flag)

    def _unmark(self, step: Step) -> None:
        if found := self._find(step.mail):
            found[2].flags -= {"$Junk", "$NotJunk"}
            self._touch(step.mail)

    def _resync(self, step: Step) -> None:
        self.server.boxes[step.a].renumber()
        self._upset.add("new UIDs of a folder")

    def _rename(self, step: Step) -> None:
        old = f"{step.a} before {self.server.changes}"
        box = self.server.boxes.pop(step.a)
        box.name = old
        self.server.boxes[old] = box
        self._create(step.a, validity=10_000 + self.server.changes)
        self._upset.add("a folder was renamed")
        for number in self.mails:
            self._gone.add(number)

    def seen_restless(self) -> set[str]:
        """Return the folders that seem to get new UIDs all the time: two in one poll are enough."""
        return set()

    # ── what people mean ────────────────────────────────────────────────────────────────────────

    def _mean_move(
        self, number: int, box: Box, uid: int, copy: Copy, target: str, *, why: str
    ) -> None:
        source, goal = PLACES.get(box.name), PLACES.get(target)
        verdict, label = self.verdicts[number], self._label(number)
        meant: Label | None = None
        effective = False
        if goal is Place.JUNK:
            told = is_told(Label.SPAM, verdict, label)
            meant, effective = Label.SPAM, source is not None and not told
        elif source is Place.JUNK and goal is not None:
            meant, effective = Label.HAM, label is not Label.HAM
        elif source is Place.INBOX and goal is Place.OTHER and verdict is Verdict.SPAM:
            meant, effective = Label.HAM, label is None
        elif goal is not None and self._lay.get(number, set()) & {"Junk", "INBOX"}:
            meant = Label.HAM  # all in all it was rescued, or filed
        self._touch(number)
        if meant is not None:
            act = self._mean(number, meant, box, uid, copy, effective=effective)
            keyless = box.name in self._history.keyless | self._history.restless
            if (verdict is None and "never judged" in why) or (keyless and "no UIDs" in why):
                act.doubts.add(why)
            if goal is Place.OTHER and not self._history.told:
                act.doubts.add("to a folder that may be the Trash")
            if self._inside and target in self._history.keyless | self._history.restless:
                act.doubts.add("to where no UIDs last, after something happened while we polled")

    def _mean(
        self, number: int, label: Label, box: Box, uid: int, copy: Copy, *, effective: bool
    ) -> Act:
        """Take note of a lesson, and of what speaks against its being seen."""
        act = Act(mail=number, label=label, doubts=set())
        fingerprint = trace(header_fields(copy.mail.header))
        keyless = box.name in self._history.keyless | self._history.restless
        rows = [
            row
            for (_, folder, key), row in self.mailboxes.sightings.items()
            if folder == box.name and row.mail == fingerprint and (keyless or key == str(uid))
        ]
        cursor = self.mailboxes.rows.get((self.account_key, box.name))
        if not rows or cursor is None or not self._looked:
            act.doubts.add("quicker than a poll")
        elif cursor.time.timestamp() - copy.date < OPTIONS.rule_window_s + DATE_S:
            act.doubts.add("sooner after its delivery than a person moves mail")
        if self._places(number) > 1 or len(self._lay.get(number, ())) > 1:
            act.doubts.add("at two places at once")
        if self._looking or number in self._inside or (keyless and self._inside):
            act.doubts.add("while we polled")
        self._acts.append(act)
        if effective:
            self.result.expected += 1
            self._pending.append(act)
        return act

    def _label(self, number: int) -> Label | None:
        for digest, (label, _, _) in self.journal.lessons.items():
            if self.numbers.get(digest) == number:
                return label
        return None

    def _places(self, number: int) -> int:
        found = 0
        for name in list(self.server.boxes):
            try:
                copies = self.server.synced(name).copies.values()
            except FolderError:
                continue
            lying = [copy for copy in copies if "\\Deleted" not in copy.flags]
            found += sum(copy.mail.number == number for copy in lying)
        return found

    def _lying(self) -> dict[int, set[str]]:
        """Return which folders each mail lies in."""
        found: dict[int, set[str]] = {number: set() for number in self.mails}
        for box in list(self.server.boxes.values()):
            for copy in self.server.synced(box.name).copies.values():
                if copy.mail is self.mails.get(copy.mail.number):
                    found[copy.mail.number].add(box.name)
        return found

    def _touch(self, number: int) -> None:
        self._doubt(number, "moved or changed again before we polled")

    def _doubt(self, number: int, why: str) -> None:
        for act in self._pending:
            if act.mail == number:
                act.doubts.add(why)
