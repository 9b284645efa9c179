"""Who looks at the page or asks the API, and what they may do."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What somebody may do: each of them also what the ones before it may."""

    NOBODY = "nobody"
    READER = "reader"  # figures, lists and verdicts
    TEACHER = "teacher"  # teach, take back; and see the words of a mail

    def may(self, wanted: "Role") -> bool:
        """Tell whether this role includes another."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(wanted)


class Way(StrEnum):
    """How we know who somebody is."""

    LOCAL = "local"  # at this machine, or at a UNIX socket of ours
    SESSION = "session"  # logged in with a password
    PROXY = "proxy"  # a proxy that we trust has said so
    TOKEN = "token"  # noqa: S105 - the word, not one


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who may at least read.

    name   stands in the journal as who gave a lesson
    form   what a form of this visitor carries, so that nobody else can send it in their name
    """

    name: str
    role: Role
    way: Way
    form: str
