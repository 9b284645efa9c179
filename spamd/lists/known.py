"""People one knows: addresses to which a user has written.

Kept as keyed hashes only, of the address, and of user and address together: nobody can read there
who writes to whom, but ask for an address, with the key.

    proven mail from there     evidence for ham, a user's own more than one whom others know
    mail that only claims to   evidence of a forgery, if our servers say that it is not from there

What it adds is bounded, so that what a known account sends once it is taken over is still seen; it
is a term beside the classifiers and no token for them to learn: that did next to nothing, differs
between the users that share them, and must hold from the first mail on (E-037). Unproven mail of
which nothing is known gets nothing: a From field is anybody's word.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from spamd.message.authentication.proof import Proof

_NEW = 1_000
"""Hashes that are held apart before they are sorted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOptions:
    """What it means that somebody has written to the sender of a mail. Log-odds, bounded.

    enabled     whether addresses are remembered and weighed at all
    own         taken from the spam log-odds of proven mail from an address its reader wrote to
    others      the same, where only others of the site have written there
    forged      added to mail that claims such an address and that our servers say is not from there
    most        addresses remembered for a user; the oldest go first
    days        days after which an address is forgotten that nobody has written to
    """

    enabled: bool = True
    own: float = 2.0
    others: float = 1.0
    forged: float = 1.0
    most: int = 2_000
    days: int = 730

    def __post_init__(self) -> None:
        for name in ("own", "others", "forged"):
            if not 0 <= getattr(self, name) <= 10:
                raise ValueError(f'"{name}" must lie between 0 and 10')
        if self.most < 1 or not 1 <= self.days <= 36_500:
            raise ValueError('"most" and "days" must be at least 1')


DEFAULTS = KnownOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acquaintance:
    """What is added to the log-odds of a mail because of who knows its sender, and why.

    who      "own": its reader has written there, "others": somebody else here; "": nobody
    forged   our servers say that it is not from there
    """

    term: float = 0.0
    words: str = ""
    who: str = ""
    forged: bool = False

    @property
    def short(self) -> str:
        """Return it as one word: "own", "others", "forged" or ""."""
        return "forged" if self.forged else self.who


NOT_KNOWN = Acquaintance()


def address_hash(key: bytes, address: str, owner: str = "") -> int:
    """Return the keyed hash of an address, with an owner of both, as a signed number of 64 bits."""
    state = blake2b(digest_size=8, key=key[:64], person=b"spamd known")
    state.update(f"{owner}\0{address}".encode("utf-8", "replace"))
    return int.from_bytes(state.digest(), "big", signed=True)


class KnownAddresses:
    """The hashes in memory: 16 bytes for each address of each user.

    Args:
        key: the installation's secret.
        options: what they mean.
    """

    def __init__(self, key: bytes, options: KnownOptions) -> None:
        self._key = key
        self._options = options
        self._sorted = np.zeros(0, np.int64)
        self._new: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._new)

    def add(self, hashes: Iterable[int]) -> None:
        """Take in hashes of addresses and of pairs alike: none is ever both."""
        self._new.update(hashes)
        if len(self._new) > _NEW:
            fresh = np.fromiter(self._new, np.int64, len(self._new))
            self._sorted = np.union1d(self._sorted, fresh)
            self._new = set()

    def of(self, proof: Proof, user: str = "") -> Acquaintance:
        """Return what it means for a mail that somebody knows its sender."""
        address = proof.sender.address
        if not len(self) or not address or not (proof.by or proof.disproved):
            return NOT_KNOWN
        if user and self._holds(address_hash(self._key, address, user)):
            who, words, term = "own", "its reader has", self._options.own
        elif self._holds(address_hash(self._key, address)):
            who, words, term = "others", "somebody here has", self._options.others
        else:
            return NOT_KNOWN
        if proof.by:
            return Acquaintance(term=-term, words=f"{words} written to its sender", who=who)
        return Acquaintance(
            term=self._options.forged,
            words=f"forged: {words} written to the sender it claims",
            who=who,
            forged=True,
        )

    def _holds(self, number: int) -> bool:
        if number in self._new:
            return True
        place = int(np.searchsorted(self._sorted, number))
        return place < len(self._sorted) and int(self._sorted[place]) == number
