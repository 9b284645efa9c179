"""The rule: when is what happened to a mail a lesson that a person gave?

Only people teach. A mail in Junk may have been put there by a rule, a view of other folders shows
what nobody moved, an import brings a thousand mails at once; none of that is a lesson. So the rule
rests on evidence, never on names, on numbers or on the order of answers:

    what was seen                                                                    lesson
    ───────────────────────────────────────────────────────────────────────────────  ──────
    it lay outside of Junk at the last poll; now it is gone there and lies in Junk    spam
    it lay in Junk at the last poll; now it is gone there and lies elsewhere          ham
    we said spam; it lay in the inbox, is gone there, and lies in another folder      ham
    it lay there without the keyword $Junk ($NotJunk) at the last poll; now it has it spam (ham)
    anything else                                                                     none

Each row holds only if nothing speaks against it (`Why`): it lay and lies on one side alone, no copy
stayed behind, it is the same mail, it had lain longer than a rule of a mail program takes to move
it, it did not go to what may be the Trash. What agrees with our verdict, or with the lesson in
force, is none.

The whole rule is `lesson`, a pure function of one `MoveFacts`; everything else in this package only
finds out what the facts is. When in doubt nothing is taught; docs/training.md says what that loses.
"""

from dataclasses import dataclass
from enum import StrEnum

from spamd.bayes.decision import Verdict
from spamd.feedback.mailboxes.mailbox import Place
from spamd.sample import Label

NOWHERE = Place(0)

ELSEWHERE = Place.INBOX | Place.OTHER
"""The side of the folders that are not Junk."""


class Event(StrEnum):
    """What made us look at a mail."""

    ARRIVED = "arrived"  # it is new in this folder
    MARKED = "marked"  # a keyword was set on it since we looked last


class Why(StrEnum):
    """Why a mail teaches nothing at once; all but the first two are doubts about a lesson.

    What its owner has filed is kept (`kept_finder`).
    """

    NOTHING = "teach nothing"
    FILED = "filed by their owner"
    HASTY = "moved sooner than a person does"
    THROWN = "moved to a folder that may be the Trash"
    COPIED = "still where they lay before"
    TWICE = "at two places at once"
    ANOTHER = "not certain to be the message that left"
    SHOWN = "in a folder that shows messages of other folders"
    RENAMED = "came with a folder that was renamed"
    OUTSIDE = "came from outside, not from a folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFacts:
    """All that the rule needs to know about one mail that is new, or newly marked, in a folder.

    place    where it is now: INBOX, JUNK or OTHER
    was      the places it lay in at the last poll (views of other folders don't count)
    stays    those of them it still lies in
    came     all places it is new in, in this poll
    mark     the keyword it has now: $Junk (spam), $NotJunk (ham); None: neither or both
    verdict  what we said when it came; None: we never judged it, or forgot
    label    the lesson in force; None: not taught
    same     it is known to be the very mail that lay there
    hasty    it had lain there for a shorter time than a person takes
    kept     the folder it is in is known not to be the Trash
    denies   the folder it is in keeps senders out: whom one does not want may write what others do
    """

    place: Place
    event: Event = Event.ARRIVED
    was: Place = NOWHERE
    stays: Place = NOWHERE
    came: Place = NOWHERE
    mark: Label | None = None
    verdict: Verdict | None = None
    label: Label | None = None
    same: bool = True
    hasty: bool = False
    kept: bool = True
    denies: bool = False


def lesson(facts: MoveFacts) -> Label | Why:
    """Return what a facts teaches, or why it teaches nothing."""
    if facts.event is Event.MARKED:
        meant = _by_mark(facts)
        doubt = Why.HASTY if facts.hasty else None
    else:
        meant = _by_move(facts)
        doubt = _doubt(facts)
        if meant is None and doubt is None and _is_filed(facts):
            return Why.FILED
    return Why.NOTHING if meant is None else doubt or meant


def is_told(label: Label, verdict: Verdict | None, taught: Label | None) -> bool:
    """Return whether a mail is taught like that already, or we said so and nobody disagreed."""
    if taught is not None:
        return taught is label
    return verdict is (Verdict.SPAM if label is Label.SPAM else Verdict.HAM)


def _by_mark(facts: MoveFacts) -> Label | None:
    if facts.mark is None or is_told(facts.mark, facts.verdict, facts.label):
        return None
    return facts.mark


def is_moved(facts: MoveFacts) -> bool:
    """Tell whether a person moved a mail from one folder to another, whatever that teaches."""
    return (
        facts.event is Event.ARRIVED
        and facts.was in tuple(Place)
        and facts.came == facts.place
        and not facts.stays
        and facts.same
        and facts.kept
        and not facts.hasty
    )


def _by_move(facts: MoveFacts) -> Label | None:
    """Return what a move would mean, if it is one.

    What is rescued from Junk is ham even if we said so: a rule had put it there.
    """
    if facts.denies:
        return None
    if facts.place is Place.JUNK:
        told = is_told(Label.SPAM, facts.verdict, facts.label)
        return Label.SPAM if facts.was & ELSEWHERE and not told else None
    if facts.was & Place.JUNK:
        return Label.HAM if facts.label is not Label.HAM else None
    judged_spam = is_told(Label.SPAM, facts.verdict, None) and facts.label is None
    filed = facts.place is Place.OTHER and facts.was & Place.INBOX and judged_spam
    return Label.HAM if filed else None


def _is_filed(facts: MoveFacts) -> bool:
    """Return whether a mail that we let pass went from the inbox to another folder."""
    passed = facts.verdict in {Verdict.HAM, Verdict.UNSURE} and facts.label is None
    filed = facts.place is Place.OTHER and not facts.denies
    return passed and filed and bool(facts.was & Place.INBOX)


def _doubt(facts: MoveFacts) -> Why | None:
    """Return what speaks against a move by hand, None for nothing."""
    if facts.place is Place.JUNK:
        origin, target = ELSEWHERE, Place.JUNK
    elif facts.was & Place.JUNK:
        origin, target = Place.JUNK, ELSEWHERE
    else:
        origin, target = Place.INBOX, Place.OTHER
    if facts.stays:
        return Why.COPIED
    if facts.was & ~origin or facts.came & ~target:
        return Why.TWICE
    if not facts.same:
        return Why.ANOTHER
    if not facts.kept and facts.place is Place.OTHER:
        return Why.THROWN
    return Why.HASTY if facts.hasty else None
