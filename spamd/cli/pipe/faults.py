"""Why a mail was not judged, in words for the system's log."""

from spamd.errors import SpamdError


class UnjudgedError(Exception):
    """There is no verdict; the text says why."""


def reason(error: BaseException) -> str:
    """Return what to tell: never a text of a library."""
    if isinstance(error, UnjudgedError | SpamdError):
        return str(error)
    return f"a fault of ours: {type(error).__name__}"
