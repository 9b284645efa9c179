"""What PostgreSQL's error codes (SQLSTATE) mean for us; loads nothing."""

REFUSED = ("28", "3D", "42501")
"""Classes that the setting causes: wrong user or password, no such database, no right."""

CONFLICTS = ("40001", "40P01")
"""Of a transaction that was ended in favour of another: serialization failure, deadlock. Nothing of
it happened, and the same may be tried again at once."""

READ_ONLY = "25006"
"""Of a server that was the primary and is a standby by now."""

UNKNOWN_SETTING = "08P01"
"""Of a pooler, for settings at the start that it does not know."""


def state_of(error: BaseException | None) -> str:
    """Return the code that an error bears, empty where it bears none."""
    return str(getattr(error, "sqlstate", None) or "")


def refuses(error: BaseException | None) -> bool:
    """Return whether a server says that the setting is wrong."""
    return state_of(error).startswith(REFUSED)
