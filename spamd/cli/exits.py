"""Exit codes, as bogofilter and sysexits.h have them."""

from enum import IntEnum

import typer


class Exit(IntEnum):
    """Of every command but `scan` on one message, which says SPAM, HAM, UNSURE or TROUBLE."""

    DONE = 0
    PARTLY = 1  # some of it was not done; standard error names what
    TROUBLE = 3  # nothing was done, or the answer is bad
    USAGE = 64  # EX_USAGE: the command line makes no sense
    LATER = 75  # EX_TEMPFAIL: the database or a server does not answer; try again
    CONFIG = 78  # EX_CONFIG: a setting is wrong; one sentence says which
    INTERRUPTED = 130  # stopped by Ctrl-C


class ScanExit(IntEnum):
    """Of `scan` on one message; on several it is `Exit.DONE` or `Exit.TROUBLE`."""

    SPAM = 0
    HAM = 1
    UNSURE = 2
    TROUBLE = 3


class UsageProblem(typer.TyperException):
    """The arguments are each possible, but make no sense together."""

    def __init__(self, message: str, context: typer.Context | None = None) -> None:
        super().__init__(message)
        self.ctx = context
