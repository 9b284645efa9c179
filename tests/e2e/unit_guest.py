"""What is tried inside of the unit's limits, by root, beside a systemd (`test_install.py`).

A program of its own that knows the standard library only. It prints one JSON object: what it found.
"""

import json
import re
import smtplib
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

UNIT = "spamd-relay"
SPAMC = "/run/spamd/spamc"
LARGE = b"<p>" + b"a word of many <b>more</b> " * 8000


def show(*names: str) -> dict[str, str]:
    """Return properties of the unit."""
    printed = subprocess.run(
        ["systemctl", "show", "--property", ",".join(names), UNIT],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return dict(line.split("=", 1) for line in printed.splitlines())


def processes() -> list[int]:
    """Return the processes of the unit."""
    (group,) = Path("/sys/fs/cgroup").rglob(f"{UNIT}.service/cgroup.procs")
    return sorted(map(int, group.read_text().split()))


def rights(pid: int) -> dict[str, str]:
    """Return what the kernel says a process may do."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    names = ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Uid")
    return {name: found[name].split("\t")[0] for name in names}


def mail(subject: str, body: bytes) -> bytes:
    """Return a mail."""
    return f"Subject: {subject}\r\nContent-Type: text/html\r\n\r\n".encode() + body + b"\r\n"


def send(content: bytes) -> None:
    """Send a mail to the port below 1024."""
    with smtplib.SMTP("127.0.0.1", 25, timeout=60) as client:
        client.sendmail("ann@x.test", ["bob@y.test"], content)


def verdicts() -> list[str]:
    """Return the verdicts that stand in the Maildir."""
    texts = [path.read_text() for path in Path("/srv/mail/new").glob("*")]
    return sorted(re.findall(r"verdict=(\w+)", "".join(texts)))


def teach(content: bytes) -> str:
    """Teach by the UNIX socket, and return the answer."""
    head = b"TELL SPAMC/1.5\r\nMessage-class: spam\r\nSet: local\r\nContent-length: %d\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        client.connect(SPAMC)
        client.sendall(head % len(content) + content)
        client.shutdown(socket.SHUT_WR)
        return client.makefile("rb").read().decode()


def ready() -> str:
    """Return what /readyz says."""
    with urllib.request.urlopen("http://127.0.0.1:11333/readyz", timeout=60) as answer:
        lines: list[str] = answer.read().decode().splitlines()
    return lines[-1]


def refused(pid: int, *command: str) -> str:
    """Return how a command fails that sees the files as a process of the unit does."""
    done = subprocess.run(
        ["nsenter", "--target", str(pid), "--mount", *command],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr.strip().rpartition(": ")[2]


def reloaded() -> list[str]:
    """Reload, and return the state of the unit and whether its supervisor stayed.

    Both workers are new afterwards, and nobody reads large mail yet.
    """
    before = processes()
    subprocess.run(["systemctl", "reload", UNIT], check=True)
    until(lambda: len(set(processes()) - set(before)) == 2 and len(processes()) == 3)
    return [show("ActiveState")["ActiveState"], str(before[0] == processes()[0])]


def hung() -> dict[str, str]:
    """Stop a worker without ending it, and return what systemd made of it."""
    subprocess.run(["kill", "-STOP", str(processes()[-1])], check=True)
    until(lambda: show("NRestarts")["NRestarts"] != "0")
    until(lambda: show("ActiveState")["ActiveState"] == "active")
    return show("NRestarts")


def until(condition) -> None:  # type: ignore[no-untyped-def]  # a program of its own
    """Wait."""
    deadline = time.monotonic() + 100
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within 100 s: {show('ActiveState', 'StatusText', 'Result')}")
        time.sleep(0.1)


def main() -> None:
    """Try all of it."""
    send(mail("small", b"<p>one"))
    send(mail("large", LARGE))
    pids = processes()
    found = {
        "rights": [rights(pid) for pid in pids],
        "verdicts": verdicts(),
        "taught": teach(mail("spam", b"<p>win")),
        "ready": ready(),
        "/etc": refused(pids[0], "touch", "/etc/x"),
        "/usr": refused(pids[0], "touch", "/usr/x"),
        "reload": reloaded(),
        "hung": hung(),
    }
    send(mail("after all", b"<p>one"))
    found["after all"] = verdicts()
    print(json.dumps(found))


main()
