"""`spamd train spam - --daemon`, also `retrain` and `forget`: by way of the daemon.

It costs no start-up, and needs no right on the database. Where no daemon answers, or it does not
know the user of `--user`, the whole command does it, or says what is wrong; it then reads the mail
once more from the same descriptor.
"""

import os
import time

from spamd.cli.pipe import daemon
from spamd.cli.pipe.arguments import Arguments
from spamd.cli.pipe.descriptors import STDIN, write_all
from spamd.cli.pipe.faults import UnjudgedError
from spamd.cli.pipe.spool import Spool
from spamd.errors import SpamdError
from spamd.sources import value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DONE, TROUBLE, LATER = 0, 3, 75
"""Exit codes, as every command has them (`cli.exits`)."""

LIMIT_S = 60.0
"""So long the daemon may take: lessons queue at one row of the database."""

DAEMON = "--daemon"


def taught(wanted: Arguments, run: "Callable[[list[str]], int]") -> int:
    """Have the daemon learn or forget the mail on standard input; `run` is the whole command."""
    mail = Spool()
    mail.read(STDIN)
    if not mail.size_bytes:
        return _said(2, "spamd: standard input is empty", TROUBLE)
    label = "" if wanted.command[0] == "forget" else wanted.command[1]
    fields = {"Message-class": label, "Set": "local"} if label else {"Remove": "local"}
    if wanted.user:
        fields |= {"User": wanted.user, "Own": "yes"}
    try:
        addresses = value_of("spamc.listen", (), wanted.config, wanted.given, os.environ)
        said, _ = daemon.ask(addresses, "TELL", fields, mail, time.monotonic() + LIMIT_S)
    except UnjudgedError:
        return _said(2, "spamd: the daemon has no time now; try again later", LATER)
    except (daemon.NoAnswerError, SpamdError):  # what is wrong with the settings, it says better
        _put_back(mail)
        return run(wanted.without(DAEMON))
    if label:
        known = "known already" if "didset" not in said else f"learned as {label}"
        return _said(1, f"{known}, by the daemon", DONE)
    if "didremove" in said:
        return _said(1, "1 lesson taken back, by the daemon", DONE)
    return _said(2, "spamd: -: this message was never learned", TROUBLE)


def _put_back(mail: Spool) -> None:
    """Let standard input begin with the mail once more."""
    copy = os.memfd_create("mail")
    for block in mail.blocks():
        write_all(copy, block)
    os.lseek(copy, 0, os.SEEK_SET)
    os.dup2(copy, STDIN)


def _said(descriptor: int, text: str, code: int) -> int:
    try:
        write_all(descriptor, text.encode() + b"\n")
    except OSError:
        return code  # nobody listens; what was done is done
    return code
