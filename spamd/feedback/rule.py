"""The rule: when is what a person did with a mail a lesson?

A lesson is the difference between what we said about a mail and where a person put it. The whole
rule is `lesson`, a pure function of one `Sight`; everything else in this package only finds out
what the sight is.

    what happened                                                                    lesson
    ───────────────────────────────────────────────────────────────────────────────  ──────
    it is taught like that already, or we said so and nobody taught otherwise         none
    it came to Junk, and a person brought it                                          spam
    it came to Junk by a rule of the server, or lay there at the first look           none
    it came to a folder that teaches, from Junk                                       ham
    we said spam, and a person filed it in a folder other than the inbox              ham
    it lies in the inbox, read or unread, and never was in Junk                       none
    it is in Trash, Deleted, Drafts, Sent or Outbox (those folders aren't even read)  none
    a person set $Junk or $NotJunk on it                                              spam, ham
    it vanished                                                                       none

How do we know that a person brought it, not a rule at delivery? One of three signs is enough:

* we saw the mail in another folder before;
* mail came to a folder on the other side and left it unseen between two looks (a gap in its UIDs):
  a person, or a test, was quicker than we;
* it came here long after it was delivered (`Sight.late`).

At the first look at a folder, mail that we never judged is a baseline and teaches nothing: nobody
knows who put it there. `spamd bootstrap` learns from such mail on purpose. Mail that we did judge
needs no baseline, the difference is known.

When a mail turns up on both sides within one look, it lay on the side that agrees with the verdict
and was copied to the other.
"""

from dataclasses import dataclass
from enum import StrEnum

from spamd.bayes.decision import Verdict
from spamd.ports import Place
from spamd.sample import Label

NOWHERE = Place(0)

ELSEWHERE = Place.INBOX | Place.OTHER
"""The side of the folders that are not Junk."""


class Event(StrEnum):
    """What made us look at a mail."""

    ARRIVED = "arrived"  # it is new in this folder
    MARKED = "marked"  # a keyword was set on it since we looked last


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """All that the rule needs to know about one mail in one folder.

    place       where it is now: INBOX, JUNK or OTHER
    before      places this account had it in, and keywords it had, when we looked before
    mark        the keyword it has now: $Junk (spam), $NotJunk (ham); None: neither or both
    verdict     what we said when it came; None: we never judged it, or forgot
    label       the lesson in force; None: not taught
    first_look  it lay in this folder when we looked there for the first time
    unseen      sides (JUNK; INBOX, OTHER) where mail came and went between two looks
    late        it came to this folder long after its delivery
    twin        it is new on the other side too, in the same look
    """

    place: Place
    event: Event = Event.ARRIVED
    before: Place = NOWHERE
    mark: Label | None = None
    verdict: Verdict | None = None
    label: Label | None = None
    first_look: bool = False
    unseen: Place = NOWHERE
    late: bool = False
    twin: bool = False


def lesson(sight: Sight) -> Label | None:
    """Return what a sight teaches, None for nothing."""
    moved = _by_move(sight) if sight.event is Event.ARRIVED else None
    return moved or _by_mark(sight)


def _by_move(sight: Sight) -> Label | None:
    if sight.first_look and sight.before & sight.place:
        return None  # an old acquaintance: only the folder's UIDs are new
    if sight.twin and sight.place & _origin(sight.verdict):
        return None
    return _into_junk(sight) if sight.place is Place.JUNK else _elsewhere(sight)


def _origin(verdict: Verdict | None) -> Place:
    """Return the side where a mail lay first when it turns up on both at once."""
    return Place.JUNK if verdict is Verdict.SPAM else ELSEWHERE


def _into_junk(sight: Sight) -> Label | None:
    if sight.label is Label.SPAM:
        return None
    if sight.label is None and sight.verdict is Verdict.SPAM:
        return None  # where our verdict says it belongs, whoever brought it
    if sight.first_look and sight.verdict is None:
        return None
    brought = sight.before & ELSEWHERE or sight.unseen & ELSEWHERE or sight.late or sight.twin
    return Label.SPAM if brought else None


def _elsewhere(sight: Sight) -> Label | None:
    if sight.label is Label.HAM:
        return None
    if sight.first_look and (sight.verdict is not Verdict.SPAM or sight.label is Label.SPAM):
        return None
    if sight.before & Place.JUNK or sight.twin:
        return Label.HAM
    if sight.verdict is not Verdict.SPAM or sight.label is Label.SPAM:
        return None
    if sight.unseen & Place.JUNK or sight.late:
        return Label.HAM
    filed = sight.place is Place.OTHER and sight.before & Place.INBOX
    return Label.HAM if filed else None


def _by_mark(sight: Sight) -> Label | None:
    if sight.mark is None or sight.mark is sight.label:
        return None
    if sight.event is Event.ARRIVED:
        known = Place.MARKED_SPAM if sight.mark is Label.SPAM else Place.MARKED_HAM
        if sight.before & known or sight.label is not None:
            return None  # the mark came along with a copy
        if sight.first_look and sight.verdict is None:
            return None
    agrees = Verdict.SPAM if sight.mark is Label.SPAM else Verdict.HAM
    if sight.label is None and sight.verdict is agrees:
        return None
    return sight.mark
