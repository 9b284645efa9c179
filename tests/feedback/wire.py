"""The model of an IMAP server, spoken over a socket: for faults within answers."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from spamd.feedback.mailboxes.mailbox import FolderError
from tests.feedback.model import Box, Copy, Server
from tests.feedback.scripted import ScriptedImap

Spoil = Callable[[str, list[str]], list[str]]
"""From a command and the lines of an honest answer, without the last, to those that are sent."""

HEADER = "BODY[HEADER.FIELDS (MESSAGE-ID DATE FROM TO CC SUBJECT X-SPAM-ID)]"


def honest(_: str, lines: list[str]) -> list[str]:
    return lines


@contextmanager
def spoken(server: Server, spoil: Spoil = honest) -> Iterator[ScriptedImap]:
    """Let a server of the model answer on a port."""
    speaker = Speaker(server, spoil)
    with ScriptedImap(speaker.answer) as scripted:
        yield scripted


class Speaker:
    """One connection's answers."""

    def __init__(self, server: Server, spoil: Spoil) -> None:
        self._server = server
        self._spoil = spoil
        self._selected = ""

    def answer(self, tag: str, rest: str) -> list[str] | None:
        words = rest.split(" ")
        command = f"UID {words[1]}" if words[0] == "UID" else words[0]
        try:
            lines = self._lines(command.upper(), rest)
        except FolderError as error:
            return [f"{tag} NO {error}"]
        return [*self._spoil(rest, lines), f"{tag} OK done"]

    def _lines(self, command: str, rest: str) -> list[str]:
        match command:
            case "CAPABILITY":
                condstore = " CONDSTORE" if self._server.habits.modseq else ""
                return [f"* CAPABILITY IMAP4rev1{condstore}"]
            case "LIST":
                return [
                    f'* LIST ({" ".join(box.attributes)}) "/" {_quoted(box.name)}'
                    for box in self._server.boxes.values()
                ]
            case "STATUS":
                name = _name(rest)
                items = " ".join(f"{key} {value}" for key, value in self._state(name).items())
                return [f"* STATUS {_quoted(name)} ({items})"]
            case "EXAMINE":
                self._selected = _name(rest)
                state = self._state(self._selected)
                messages = state.pop("MESSAGES")
                codes = [f"* OK [{key} {value}] x" for key, value in state.items()]
                return ["* FLAGS ()", f"* {messages} EXISTS", *codes]
            case "UID SEARCH":
                return ["* SEARCH " + " ".join(map(str, self._search(rest)))]
            case "UID FETCH":
                return list(self._fetch(rest))
            case "LOGOUT":
                return ["* BYE bye"]
            case _:
                return []

    def _state(self, name: str) -> dict[str, int]:
        self._server.called()
        box, habits = self._server.synced(name), self._server.habits
        self._server.answers += 1
        validity = 0 if name in habits.keyless else box.validity
        state = {
            "MESSAGES": len(box.copies),
            "UIDNEXT": box.next_uid,
            "UIDVALIDITY": self._server.answers if name in habits.restless else validity,
            "HIGHESTMODSEQ": self._server.changes,
        }
        if not habits.next_uid:
            del state["UIDNEXT"]
        if not habits.modseq:
            del state["HIGHESTMODSEQ"]
        return state

    def _box(self) -> Box:
        self._server.called()
        return self._server.synced(self._selected)

    def _search(self, rest: str) -> list[int]:
        copies = self._box().copies
        found = sorted(copies)
        if ranged := re.search(r"UID (?:UID )?([\d:*,]+)", rest.partition("SEARCH")[2]):
            found = [uid for uid in found if _within(uid, ranged[1])]
        if word := re.search(r"KEYWORD (\S+)", rest):
            found = [uid for uid in found if word[1] in copies[uid].flags]
        if marks := set(re.findall(r"\b(DELETED|ANSWERED|FLAGGED|SEEN)\b", rest)):
            wanted = {f"\\{mark.capitalize()}" for mark in marks}
            found = [uid for uid in found if copies[uid].flags & wanted]
        if "UNSEEN" in rest:
            found = [uid for uid in found if "\\Seen" not in copies[uid].flags]
        if since := re.search(r"MODSEQ (\d+)", rest):
            found = [uid for uid in found if copies[uid].changed >= int(since[1])]
        if header := re.search(r'HEADER "?Message-ID"? "?(<[^">]*>)', rest, re.IGNORECASE):
            found = [uid for uid in found if copies[uid].mail.identity == header[1].encode()]
        return found

    def _fetch(self, rest: str) -> Iterator[str]:
        copies = self._box().copies
        wanted = rest.split(" ")[2]
        numbers = {uid: number for number, uid in enumerate(sorted(copies), start=1)}
        for uid in sorted(copies):
            if _within(uid, wanted) and "(MODSEQ)" in rest:
                yield f"* {numbers[uid]} FETCH (UID {uid} MODSEQ ({copies[uid].changed}))"
            elif _within(uid, wanted):
                yield fetched(numbers[uid], uid, copies[uid], whole="BODY.PEEK[]" in rest)


def fetched(number: int, uid: int, copy: Copy, *, whole: bool = False) -> str:
    """Return the row of a mail."""
    text = (copy.mail.content if whole else copy.mail.header).decode("latin-1")
    when = datetime.fromtimestamp(copy.date, UTC)
    date = f'INTERNALDATE "{when:%d-%b-%Y %H:%M:%S} +0000"'
    flags = " ".join(sorted(copy.flags))
    name = "BODY[]<0>" if whole else HEADER
    return f"* {number} FETCH (UID {uid} FLAGS ({flags}) {date} {name} {{{len(text)}}}\r\n{text})"


def _name(rest: str) -> str:
    quoted = re.search(r'"((?:[^"\\]|\\.)*)"', rest)
    name = quoted[1] if quoted else rest.split(" ")[1]
    return name.replace("\\\\", "\\").replace('\\"', '"')


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _within(uid: int, ranges: str) -> bool:
    for part in ranges.split(","):
        low, _, high = part.partition(":")
        top = 2**32 if high == "*" else int(high or low)
        if int(low) <= uid <= top:
            return True
    return False
