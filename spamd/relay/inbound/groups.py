"""Which recipients of a message get the same, and what one reply can say for all of them.

Over LMTP each recipient has a reply of their own, so each gets what their own verdict says. Over
SMTP one reply stands for all, and `relay.several_verdicts` says what follows where they differ.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from spamd.bayes.decision import Action
from spamd.ports import Outcome
from spamd.relay.options import SeveralVerdicts
from spamd.relay.smtp.replies import Reply, reply
from spamd.report import ScanReport, Verdicts

_MIXED = reply(451, "4.3.0 Delivery to some recipients failed, please try again later")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Recipients who get the same; `places` are their numbers among the recipients."""

    report: ScanReport
    places: tuple[int, ...]


def grouped(
    verdicts: Verdicts,
    recipients: Sequence[bytes],
    rule: SeveralVerdicts,
    most: int,
    *,
    lmtp: bool,
    without: Collection[int] = (),
) -> list[Group]:
    """Return the groups in the order of their first recipients.

    rule     for a client that gets one reply
    most     groups, the last of which takes who is left: they get the site's verdict
    lmtp     each recipient gets a reply
    without  numbers of recipients who need nothing any more
    """
    places = [place for place in range(len(recipients)) if place not in without]
    reports = [verdicts.of(recipients[place]) for place in places]
    if not lmtp:
        reports = verdicts.shared(reports)
    found: dict[int, tuple[ScanReport, list[int]]] = {}
    for place, report in zip(places, reports, strict=True):
        found.setdefault(id(report), (report, []))[1].append(place)
    if len(found) > 1 and not lmtp and rule is not SeveralVerdicts.SPLIT:
        return [Group(report=_for_all(verdicts.site, reports), places=tuple(places))]
    groups = [Group(report=report, places=tuple(at)) for report, at in found.values()]
    if len(groups) > most:
        kept, others = groups[: most - 1], groups[most - 1 :]
        left = sorted(place for group in others for place in group.places)
        site = _for_all(verdicts.site, [group.report for group in others])
        groups = [*kept, Group(report=site, places=tuple(left))]
    rejecting = [group.report.action is Action.REJECT for group in groups]
    if lmtp or all(rejecting):
        return groups
    # 550 would be untrue for the others, and 250 a loss: what somebody wants rejected is tagged.
    return [
        replace(group, report=replace(group.report, action=Action.TAG)) if rejects else group
        for group, rejects in zip(groups, rejecting, strict=True)
    ]


def _for_all(site: ScanReport, reports: Sequence[ScanReport]) -> ScanReport:
    """Return the site's report for these recipients; it rejects only what each of them rejects."""
    own = {b"%d" % number: report for number, report in enumerate(reports)}
    return Verdicts(site=site, own=own).for_all(list(own))


def without(groups: Sequence[Group], had: Collection[int]) -> list[Group]:
    """Return the groups without recipients who need nothing any more."""
    left = [
        replace(group, places=tuple(place for place in group.places if place not in had))
        for group in groups
    ]
    return [group for group in left if group.places]


def outcome_of(answer: Reply) -> Outcome | None:
    """Return what a final reply means for the next try; None: it is asked again."""
    if answer.accepted:
        return Outcome.TAKEN
    return Outcome.REFUSED if answer.permanent else None


def differ(replies: Sequence[Reply]) -> bool:
    """Tell whether the replies are of several classes, so that none of them is true for all."""
    return len({outcome_of(answer) for answer in replies}) > 1


def final_replies(replies: Sequence[Reply], recipients: int, *, lmtp: bool) -> list[Reply]:
    """Return the replies for the client's protocol.

    LMTP wants one per recipient, SMTP one in all: several that agree become the first of them,
    others 451, since neither 2yz nor 5yz would be true for everybody (RFC 2033 §4.2).
    """
    if lmtp:
        return list(replies) if len(replies) == recipients else [replies[0]] * recipients
    return [_MIXED if differ(replies) else replies[0]]
