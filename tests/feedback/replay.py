"""Plays a history of the model on a real Dovecot as well: with Sieve rules, views and two clients.

The model goes along and says what happens; each change of it is made on the server by the commands
that people's programs send. The watcher looks at the server. What Dovecot can't be made to do is
left out by name (`feasible`).
"""

import smtplib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import utime
from pathlib import Path

from imapclient import IMAPClient

from spamd.sample import Label
from tests.feedback.histories import FOLDERS, Plan, Step
from tests.feedback.model import Copy
from tests.feedback.player import Player
from tests.feedback.world import account_of
from tests.servers.dovecot import PASSWORD, Dovecot

CLIENTS = 2

VIEWS = {
    "Toate": "*\n-Views/*\n  all\n",
    "All Mail": "*\n-Views/*\n-Junk\n  all\n",
    "Unread": "*\n-Views/*\n  unseen\n",
    "Starred": "*\n-Views/*\n  flagged\n",
}
"""Dovecot's virtual plugin: the folders, and which of their mail is shown."""

RULE = """require ["envelope", "subaddress", "fileinto", "copy", "imap4flags"];
if envelope :detail "to" "work" { fileinto "Work"; }
elsif envelope :detail "to" "junk" { fileinto "Junk"; }
elsif envelope :detail "to" "junk-marked" { fileinto :flags "$Junk" "Junk"; }
elsif envelope :detail "to" "inbox-junk" { fileinto :copy "Junk"; }
elsif envelope :detail "to" "junk-work" { fileinto :copy "Junk"; fileinto "Work"; }
"""


@contextmanager
def office(users: dict[str, Plan], *, told: bool) -> Iterator[Dovecot]:
    """Run a server for these users; `told`: it tells which folder is the Trash."""
    server = Dovecot(*users)
    script = server.directory / "before.sieve"
    script.write_text(RULE)
    views = server.directory / "views"
    for user, history in users.items():
        (views / user).mkdir(parents=True)
        for name in history.views:
            (views / user / name).mkdir()
            (views / user / name / "dovecot-virtual").write_text(VIEWS[name])
    use = "special_use = \\Trash\n" if told else ""
    server.settings = (
        "mail_plugins = virtual\nprotocol lmtp {\n  mail_plugins = virtual sieve\n}\n"
        f"plugin {{\n  sieve_before = {script}\n}}\n"
        "mail_never_cache_fields = date.received imap.envelope\n"
        "namespace inbox {\n  mailbox Trash {\n    auto = no\n    special_use =\n  }\n"
        f"  mailbox Afval {{\n    auto = subscribe\n    {use}  }}\n}}\n"
        "namespace views {\n  prefix = Views/\n  separator = /\n"
        f"  location = virtual:{views}/%n:INDEX=~/views\n}}\n"
    )
    with server:
        yield server


def feasible(history: Plan) -> tuple[Plan, Counter[str]]:
    """Return what a real server can be made to do, and what was left out, by name."""
    left: Counter[str] = Counter()
    steps = []
    for step in history.steps:
        if step.act == "poll":
            left["happens within a poll"] += len(step.inside)
            left["the connection ends within a poll"] += bool(step.n)
            steps.append(Step("poll"))
        elif step.act == "resync":
            left["new UIDs of a folder"] += 1
        elif step.act == "rename" and step.a == "Junk":
            left["Junk is renamed, and its special use with it"] += 1
        else:
            steps.append(step)
    plain = replace(
        history,
        views=tuple(view for view in history.views if view in VIEWS),
        keyless=frozenset(),
        restless=frozenset(),
        next_uid=True,
        modseq=True,
        forgets=0,
        step=1,
        steps=tuple(steps),
    )
    left["a view of mail that came a moment ago"] += len(history.views) - len(plain.views)
    odd = history.keyless or history.restless or not (history.next_uid and history.modseq)
    left["a server without lasting UIDs, UIDNEXT or CONDSTORE"] += bool(odd)
    left["rows left out of answers"] += bool(history.forgets)
    left["UIDs in steps"] += history.step > 1
    return plain, +left


def lessons(player: Player) -> list[tuple[int, Label]]:
    """Return what was taught, by the numbers of the mails."""
    return [(player.numbers[digest], label) for digest, label in player.journal.history]


@dataclass(frozen=True)
class State:
    """What lies where, with which flags."""

    copies: dict[tuple[str, int], Copy]
    flags: dict[tuple[str, int], frozenset[str]]


class Replayer(Player):
    """Player on a server; `user` has an account there that nobody used before."""

    def __init__(self, history: Plan, server: Dovecot, user: str) -> None:
        super().__init__(history)
        self.account = account_of(server, user)
        self._dovecot, self._user = server, user
        self._clients = [self._client() for _ in range(CLIENTS)]
        self._turn = 0
        for name in set(FOLDERS) - {"INBOX", "Junk", "Afval"}:
            self._clients[0].create_folder(name)
        self.begin()

    def end(self) -> None:
        """Log out."""
        for client in self._clients:
            client.logout()

    def _client(self) -> IMAPClient:
        client = IMAPClient("127.0.0.1", port=self._dovecot.port, ssl=False, timeout=30)
        client.login(self._user, PASSWORD)
        return client

    def _happen(self, step: Step) -> None:
        before = self._state()
        super()._happen(step)
        if step.act == "rename":
            new = next(
                name for name in reversed(self.server.boxes) if name.startswith(step.a + " ")
            )
            self._clients[0].rename_folder(step.a, new)
            self._clients[0].create_folder(step.a)
            return
        after = self._state()
        came = [key for key in after.copies if key not in before.copies]
        left = [key for key in before.copies if key not in after.copies]
        if step.act in {"deliver", "filed", "both"} and came:
            self._deliver_really(came, after)
        elif came:
            self._bring(step, came, left, before, after)
        elif left:
            self._at(left[0][0]).delete_messages([uid for _, uid in left])
            self._at(left[0][0]).uid_expunge([uid for _, uid in left])
        changed: dict[tuple[str, frozenset[str], frozenset[str]], list[int]] = {}
        for key in sorted(after.copies.keys() & before.copies.keys()):
            was, now = before.flags[key], after.flags[key]
            if was != now:
                changed.setdefault((key[0], now - was, was - now), []).append(key[1])
        for (folder, added, removed), uids in changed.items():
            for some in [uids] if step.act == "readall" else [[uid] for uid in uids]:
                self._flag_really(folder, some, added, removed)

    def _state(self) -> State:
        copies = {
            (name, uid): copy
            for name, box in self.server.boxes.items()
            if box.shows is None
            for uid, copy in box.copies.items()
        }
        flags = {key: frozenset(copy.flags) for key, copy in copies.items()}
        return State(copies=copies, flags=flags)

    def _at(self, folder: str) -> IMAPClient:
        """Return the client whose turn it is, in a folder."""
        self._turn += 1
        client = self._clients[self._turn % CLIENTS]
        client.select_folder(folder)
        return client

    def _bring(
        self,
        step: Step,
        came: list[tuple[str, int]],
        left: list[tuple[str, int]],
        before: State,
        after: State,
    ) -> None:
        """Make mail come to folders as people's programs do it."""
        if step.act in {"append", "wave", "twin"}:
            for name, uid in came:
                self._append_really(
                    name, after.copies[name, uid], after.copies[name, uid].mail.content
                )
                self._agree(name, uid)
            return
        (target, uid), mail = came[0], after.copies[came[0]].mail
        lying = [key for key in before.copies if "\\Deleted" not in before.flags[key]]
        source = left or [key for key in lying if before.copies[key].mail is mail]
        source.sort(key=lambda key: FOLDERS.index(key[0]) if key[0] in FOLDERS else len(FOLDERS))
        name, old = source[0]
        client = self._at(name)
        if step.act == "upload":
            content = client.fetch([old], ["BODY.PEEK[]"])[old][b"BODY[]"]
            self._append_really(target, after.copies[came[0]], content)
            client.select_folder(name)
            client.delete_messages([old])
            client.uid_expunge([old])
        elif left:
            client.move([old], target)
        else:
            client.copy([old], target)
        self._agree(target, uid)

    def _append_really(self, folder: str, copy: Copy, content: bytes) -> None:
        with self._stamped([folder], copy):
            self._at("INBOX").append(folder, content, tuple(copy.flags))

    def _deliver_really(self, came: list[tuple[str, int]], after: State) -> None:
        """Deliver by LMTP, to where the rule files it."""
        copy = after.copies[came[0]]
        folders = sorted(name for name, _ in came)
        marked = ["marked"] if any("$Junk" in after.flags[key] for key in came) else []
        address = f"{self._user}+{'-'.join([*folders, *marked]).lower()}@our.test"
        lmtp = smtplib.LMTP("127.0.0.1", self._dovecot.lmtp_port)
        with self._stamped(folders, copy), lmtp:
            lmtp.sendmail("a@sender.test", [address], copy.mail.content)
        for name, uid in came:
            self._agree(name, uid)

    @contextmanager
    def _stamped(self, folders: list[str], copy: Copy) -> Iterator[None]:
        """Set the time at which the server takes a mail to the clock of the model.

        Dovecot takes INTERNALDATE from the file, and none that lies ahead from a client.
        """
        known = set(self._files(folders))
        yield
        for path in set(self._files(folders)) - known:
            utime(path, (copy.date, copy.date))

    def _files(self, folders: list[str]) -> Iterator[Path]:
        root = self._dovecot.maildir(self._user)
        for name in folders:
            folder = root if name == "INBOX" else root / f".{name}"
            for part in ("new", "cur"):
                yield from (folder / part).glob("*")

    def _flag_really(
        self, folder: str, uids: list[int], added: frozenset[str], removed: frozenset[str]
    ) -> None:
        """Mark mails by one command."""
        client = self._at(folder)
        if added:
            client.add_flags(uids, sorted(added))
        if removed:
            client.remove_flags(uids, sorted(removed))

    def _agree(self, folder: str, uid: int) -> None:
        """Make sure that the model and the server speak of the same mail."""
        found = self._at(folder).search()
        assert max(found) == uid, f"{self._user}: {folder} holds {found}, not {uid} as its last"
