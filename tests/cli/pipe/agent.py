"""An agent that pipes mail through `spamd filter`, and daemons as one would not wish them."""

import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]

FIELDS = (
    b"X-Spam-Status: Yes, score=10.3 required=3.4 verdict=spam (probability 1.0000,\r\n"
    b" tag from 0.9677)\r\nX-Spam-Flag: YES\r\nX-Spam-Probability: 0.999965\r\n"
    b"X-Spam-Id: a9c336d6022e489c9564-2371915ac4240b56\r\n"
)
"""What a daemon puts on top of a spam mail."""

MAIL = (
    b"From: a@prizes.example\r\nTo: b@example.org\r\nSubject: You have won\r\n\r\n"
    b"Claim your prize.\r\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """What came of one mail."""

    code: int
    out: bytes
    err: bytes


def spamd_filter(
    mail: bytes,
    *arguments: str,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
    python: str = sys.executable,
) -> Filtered:
    """Pipe a mail through `spamd filter`, as an agent in that folder does."""
    done = subprocess.run(
        [python, *command(*arguments)[1:]], input=mail, capture_output=True, check=False,
        timeout=120, cwd=folder, env=environment(folder, environ), preexec_fn=before,
    )  # fmt: skip
    return Filtered(code=done.returncode, out=done.stdout, err=done.stderr)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "spamd", "filter", *arguments]


def environment(folder: Path, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of an agent; the database is in the folder."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(CHECKOUT),
        "SPAMD_DATABASE__URL": f"sqlite:///{folder}/spamd.db",
        **(environ or {}),
    }


def limited(kind: int, value: int) -> Callable[[], None]:
    """Return what gives a process such a limit."""
    return lambda: resource.setrlimit(kind, (value, value))


Behaviour = Callable[[socket.socket], None]


@contextmanager
def daemon(folder: Path, behave: Behaviour) -> Iterator[str]:
    """Listen on a UNIX socket and treat each connection like that; give the address."""
    path = folder / "d.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(64)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    try:
                        behave(connection)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"unix:{path}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            path.unlink()


def request(connection: socket.socket) -> tuple[bytes, bytes]:
    """Return head and body of a request, read to its end."""
    pieces = []
    while piece := connection.recv(65536):
        pieces.append(piece)
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    return head, body


def answers(reply: bytes) -> Behaviour:
    """Return how a daemon behaves that says that, whatever it is asked."""

    def behave(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(reply)

    return behave


def reply(body: bytes, *, length: int | None = None, status: bytes = b"0 EX_OK") -> bytes:
    """Return a reply as the daemon writes it."""
    size = len(body) if length is None else length
    spam = b"Spam: True ; 7.5 / 5.0"
    return b"SPAMD/1.1 %b\r\nContent-length: %d\r\n%b\r\n\r\n%b" % (status, size, spam, body)


def marks(connection: socket.socket) -> None:
    """Answer as the daemon does: the header section with our fields on top."""
    _, mail = request(connection)
    head, blank, _ = mail.partition(b"\r\n\r\n")
    connection.sendall(reply(FIELDS + head + blank))


def with_fields(mail: bytes, newline: bytes = b"\r\n") -> bytes:
    """Return a mail with what that daemon puts on top."""
    return FIELDS.replace(b"\r\n", newline) + mail


def as_arguments(address: str) -> Sequence[str]:
    return ("--set", f"spamc.listen={address}")


LARGE = MAIL + b"x" * 70 + b"\r\n" + b"a line of text\r\n" * 200_000
"""Three megabytes: more than is kept in memory."""

MAILS = {
    "plain": MAIL,
    "LF": MAIL.replace(b"\r\n", b"\n"),
    "mbox line": b"From a@b Sat Nov 28 21:00:00 2026\n" + MAIL.replace(b"\r\n", b"\n"),
    "NUL and 8 bit": MAIL + bytes(range(256)),
    "no last line end": MAIL + b"end",
    "no header": b"Hello there,\nthis is text.\n",
    "header only": b"Subject: x\n",
    "empty line first": b"\nbody\n",
    "bare CR": MAIL.replace(b"\r\n", b"\r"),
    "dots": MAIL + b".\r\n..\r\n",
    "long line": MAIL + b"y" * 100_000,
    "large": LARGE,
}

CODES = [([], 0), (["--exit-code"], 3), (["--defer"], 75), (["--defer", "--exit-code"], 75)]


def wrong(kind: str, folder: Path) -> dict[str, str]:
    """Return the environment of an agent for whom something is wrong."""
    match kind:
        case "no database":
            return {"SPAMD_DATABASE__URL": f"sqlite:///{folder}/missing/spamd.db"}
        case "a broken database":
            (folder / "spamd.db").write_bytes(b"no database")
        case "no settings file":
            return {"SPAMD_CONFIG": "missing.toml"}
        case "a broken settings file":
            (folder / "broken.toml").write_text("[spamc\nlisten")
            return {"SPAMD_CONFIG": "broken.toml"}
        case "an unknown setting":
            return {"SPAMD_SPAMC__LISTENN": "x"}
        case "no address":
            return {"SPAMD_SPAMC__LISTEN": "nonsense", "SPAMD_RELAY__WORKERS": "0"}
        case "a value of the wrong kind":
            return {"SPAMD_SPAMC__LISTEN": "17"}
        case "a variable that is none":
            return {"SPAMD_": "x"}
        case _:
            raise AssertionError(kind)
    return {}
