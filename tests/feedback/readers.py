"""People who read their mail, and programs that only mark it; and which mail counts as kept."""

from collections.abc import Iterator

from spamd.bayes.decision import Verdict
from tests.feedback.histories import Plan, Step
from tests.feedback.model import Box, Copy
from tests.feedback.people import OPTIONS, QUICK_S, People

KEPT_S = OPTIONS.kept_days * 86_400

NOT_KEPT = {"Junk", "Afval"}


class Readers(People):
    """One account, whose people read mail as well."""

    def __init__(self, history: Plan) -> None:
        super().__init__(history)
        self._read_at: dict[int, int] = {}
        self._acted: set[int] = set()
        self._old: set[int] = set()
        self._numbered: list[Copy] = []
        self.bulk: list[Copy] = []  # marked together since we polled

    def _happen(self, step: Step) -> None:
        before = [(copy, set(copy.flags)) for copy in self._copies()]
        flags = {id(copy): marks for copy, marks in before}
        self._numbered = []
        lay = {number: self._folders_of(number) for number in {step.mail} & self.mails.keys()}
        super()._happen(step)
        for copy in self._copies():
            by_itself = any(copy is one for one in self._numbered)
            if not by_itself and flags.get(id(copy)) != copy.flags:
                copy.changed = self.server.changes  # all by one command
        if step.act in {"move", "mutt", "upload"} and lay.get(step.mail) == {"INBOX"}:
            filed = self._folders_of(step.mail) & {"Work", "Privat"}
            self._acted |= {step.mail} if filed and step.mail in self._read_at else set()

    def _copies(self) -> Iterator[Copy]:
        for box in self.server.boxes.values():
            if box.shows is None:
                yield from box.copies.values()

    def _folders_of(self, number: int) -> set[str]:
        return {
            box.name
            for box in self.server.boxes.values()
            if box.shows is None
            for copy in box.copies.values()
            if copy.mail.number == number and "\\Deleted" not in copy.flags
        }

    # ── what happens ────────────────────────────────────────────────────────────────────────────

    def _read(self, step: Step) -> None:
        """A person opens a mail."""
        if found := self._find(step.mail):
            box, _, copy = found
            if "\\Seen" not in copy.flags and box.name == "INBOX":
                self._read_at[step.mail] = self.server.now()
            copy.flags.add("\\Seen")

    def _answer(self, step: Step) -> None:
        self._read(step)
        if found := self._find(step.mail):
            found[2].flags.add("\\Answered")
            self._act(step.mail, found[0])

    def _flag(self, step: Step) -> None:
        if found := self._find(step.mail):
            if step.n % 2 == 0:
                self._act(step.mail, found[0])
                found[2].flags ^= {"\\Flagged"}
            elif "\\Seen" in found[2].flags and all(found[2] is not one for one in self.bulk):
                found[2].flags.remove("\\Seen")
            else:
                self._read(step)

    def _act(self, number: int, box: Box) -> None:
        """Take note that somebody dealt with a mail: whatever has marked it, he knows it."""
        self._acted.add(number)
        if box.name == "INBOX":
            self._read_at.setdefault(number, self.server.now())

    def _readall(self, step: Step) -> None:
        """Somebody marks a folder as read; two at least, as of one nobody can tell."""
        copies = self._unread(step.a)
        for copy in copies if len(copies) > 1 else ():
            copy.flags.add("\\Seen")
            self.bulk.append(copy)

    def _readrun(self, step: Step) -> None:
        """A program does so, one mail after the other; of few, or what is left of them, who knows?

        That it marked more than three must still be seen when some were moved right after.
        """
        copies = self._unread(step.a)
        for copy in copies if len(copies) > 5 else ():
            self.server.changes += 1
            copy.flags.add("\\Seen")
            copy.changed = self.server.changes
            self._numbered.append(copy)

    def _programread(self, step: Step) -> None:
        """A rule of a mail program marks what was delivered just now."""
        found = self._find(step.mail)
        if found and self.server.now() - found[2].date < QUICK_S:
            found[2].flags.add("\\Seen")

    def _unread(self, folder: str) -> list[Copy]:
        return [
            copy for copy in self.server.boxes[folder].copies.values() if "\\Seen" not in copy.flags
        ]

    # ── what is kept ────────────────────────────────────────────────────────────────────────────

    def note_old(self) -> None:
        """Take note of what lay there when somebody looked for the first time."""
        self._old = set(self.mails)

    def places(self) -> dict[int, set[str]]:
        """Return where each mail lies."""
        return {number: self._folders_of(number) for number in self.mails}

    def why_not_kept(self, number: int, *lay: dict[int, set[str]]) -> str:
        """Return why a mail must not be taught as kept, which lay there; empty if it may be."""
        read = self._read_at.get(number)
        if read is None:
            return "nobody has read it"
        if number in self._old:
            return "it lay there before"
        if self.verdicts.get(number) not in {Verdict.HAM, Verdict.UNSURE}:
            return "we did not let it pass"
        if number not in self._acted and self.server.now() - read < KEPT_S:
            return "it was read a moment ago"
        places = [each.get(number, set()) for each in lay]
        if not any(each and not each & NOT_KEPT for each in places):
            return f"it lies in {places}"
        return ""
