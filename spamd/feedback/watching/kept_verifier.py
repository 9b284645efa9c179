"""Finds out whether a mail that seems to be kept may be a lesson, as it lies there now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spamd.feedback.mailboxes.mailbox import Folder, Mailbox, MessageSummary, Place
from spamd.feedback.ports import KeptMessage
from spamd.feedback.teacher import Candidate
from spamd.feedback.watching.context import WatcherContext
from spamd.feedback.watching.kept_rule import scan_that_may_teach, stays
from spamd.feedback.watching.move_verifier import MoveVerifier
from spamd.feedback.watching.poll_state import PollState
from spamd.sample import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A mail where it lies now, and what is known of it from before."""

    folder: Folder
    message: MessageSummary
    kept: KeptMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A mail that may be a lesson: `kept` with where it lies and what we said of it."""

    found: Found
    kept: KeptMessage
    candidate: Candidate


class KeptVerifier:
    """Verifies the kept mail of one account."""

    def __init__(self, mailbox: Mailbox, context: WatcherContext, verifier: MoveVerifier) -> None:
        self._mailbox = mailbox
        self._mailboxes = context.mailboxes
        self._history = context.history
        self._verifier = verifier

    async def verified(self, found: Sequence[Found], state: PollState) -> list[Verified]:
        """Return those of some mails that may be lessons."""
        found = [one for one in found if not one.message.fault and stays(one.message, one.kept)]
        known = await self._verifier.known([one.message for one in found])
        in_junk = await self._in_junk([one.message.trace for one in found], state)
        verified = []
        for one in found:
            about = known.get(one.message.id or "")
            if about is None or one.message.trace in in_junk:
                continue
            features = await self._history.kept(about.digest)
            scan = scan_that_may_teach(about, features)
            if scan is None or features is None:
                continue
            kept = replace(one.kept, folder=one.folder.name, key=one.message.key, scan=scan)
            candidate = Candidate(features=features, label=Label.HAM, known=about)
            verified.append(Verified(found=one, kept=kept, candidate=candidate))
        return verified

    async def _in_junk(self, traces: Sequence[bytes], state: PollState) -> set[bytes]:
        """Return those of some mails of which a copy lies in Junk."""
        if not traces:
            return set()
        lying = await self._mailboxes.seen(self._mailbox.key, traces)
        return {
            trace
            for trace in traces
            for row in (*lying.get(trace, ()), *state.came.get(trace, ()))
            if state.place(row.folder) is Place.JUNK
        }
