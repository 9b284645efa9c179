"""Coverage-guided fuzzing of what an IMAP server answers, for a person who has time.

    pip install atheris
    python -m tests.feedback.fuzz_imap -max_total_time=600 -max_len=20000 FOLDER

An input is the server's side of a session: answers separated by NUL, one for each thing we send, in
which `$` at the start of a line stands for the tag of our command. FOLDER keeps the inputs that
reached new code; it starts with an honest session. Atheris is no dependency of the project: what
the fuzzer found is kept as a test, by hand.
"""

import socket
import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # installed only by who runs this

with atheris.instrument_imports(include=["spamd.feedback", "imapclient", "imaplib"]):
    from spamd.feedback.mailboxes.folders import bootstrap_folders, watched
    from spamd.feedback.mailboxes.imap_rows import MODSEQ_MOST, UID_MOST
    from spamd.feedback.mailboxes.imap_session import ImapSession
    from spamd.feedback.mailboxes.mailbox import FolderError, MailboxError, header_fields, trace
    from spamd.feedback.options import AccountOptions, FeedbackOptions, Tls

from tests.feedback.lying_server import HONEST, LIES

ACCOUNT = AccountOptions(host="127.0.0.1", port=143, tls=Tls.NONE, user="alice", password="x")
OPTIONS = FeedbackOptions()


class Peer:
    """Stands in for the socket: what we send asks for the next answer."""

    def __init__(self, data: bytes) -> None:
        self._answers = data.split(b"\0")
        self._here = self._next(b"*")
        self._sent = b""

    def _next(self, tag: bytes) -> bytes:
        answer = self._answers.pop(0) if self._answers else b""
        lines = answer.split(b"\n")
        return b"\n".join(tag + line[1:] if line[:1] == b"$" else line for line in lines)

    def sendall(self, data: bytes) -> None:
        self._sent += data
        while b"\r\n" in self._sent:
            line, _, self._sent = self._sent.partition(b"\r\n")
            assert b"\n" not in line
            self._here += self._next(line.split(b" ")[0])

    def recv(self, size: int) -> bytes:
        block, self._here = self._here[:size], self._here[size:]
        return block

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def shutdown(self, how: int) -> None:
        self._answers = []

    def close(self) -> None:
        self._answers = []


def one_input(data: bytes) -> None:
    """Go through everything we ever ask of a server; only words about it may come out."""
    socket.create_connection = lambda *_, **__: Peer(data)  # type: ignore[assignment] # as far as we use one
    session = ImapSession(ACCOUNT, "alice", 5)
    try:
        session.open()
        _visit(session)
    except MailboxError as error:
        _check(error)
    finally:
        session.close()


def _check(error: MailboxError) -> None:
    said = str(error)
    assert said.isprintable(), said
    assert len(said) < 600, said


def _visit(session: ImapSession) -> None:
    listed = session.listed()
    bootstrap_folders(listed, ACCOUNT, OPTIONS)
    for folder in watched(listed, ACCOUNT, OPTIONS)[:3]:
        try:
            session.status(folder.raw)
            status = session.examine(folder.raw)
            assert 0 <= status.validity <= UID_MOST
            assert 0 <= status.next_uid <= UID_MOST
            assert 0 <= status.messages <= UID_MOST
            assert 0 <= status.modseq <= MODSEQ_MOST
            uids = session.uids(folder.raw, 1, status) if status.messages < 1_000_000 else []
            assert all(1 <= uid <= UID_MOST for uid in uids)
            for row in session.rows(folder.raw, uids[:10]):
                assert row.uid in uids
                trace(header_fields(row.header))
                content = session.content(folder.raw, row.uid, 1000)
                assert content is None or len(content) <= 1000
        except FolderError as error:
            _check(error)
    session.idle("INBOX", 0.01, None)


def seeds() -> dict[str, bytes]:
    """Return an honest session, and one for each lie that has an end."""
    order = [
        "greeting", "CAPABILITY", "LOGIN", "CAPABILITY", "LIST",
        *["STATUS", "EXAMINE", "UID SEARCH", "UID FETCH head", "UID FETCH content"] * 2,
        "EXAMINE", "IDLE", "DONE", "LOGOUT",
    ]  # fmt: skip
    honest = [HONEST[stage](b"$", b'UID "INBOX"') for stage in order]
    found = {"honest": b"\0".join(honest)}
    for name, lie in LIES.items():
        if "without end" in name or "time" in name or name in {"silence", "nesting"}:
            continue
        for number in range(len(order)):
            lied = b"".join(lie(b"$", honest[number]))[:5000]
            session = [*honest[:number], lied.replace(b"\0", b""), *honest[number + 1 :]]
            found[f"{number}-{name}"] = b"\0".join(session)
    return found


def main() -> None:
    """Run the fuzzer with the options of libFuzzer given on the command line."""
    for folder in (Path(word) for word in sys.argv[1:] if not word.startswith("-")):
        folder.mkdir(exist_ok=True)
        for name, session in seeds().items():
            (folder / name.replace(" ", "-")).write_bytes(session)
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
