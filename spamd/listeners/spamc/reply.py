"""What a client reads: each version of the protocol has shapes of its own.

The shapes are those of SpamAssassin's spamd (4.0.1), for clients take replies apart by them: Exim
wants no length beside the verdict, spamc both, and clients older than 1.2 the bare mail.
"""

from spamd.bayes.decision import Verdict
from spamd.listeners.score import REQUIRED, score
from spamd.listeners.spamc.request import Head, Verb
from spamd.ports import Taught
from spamd.report import ScanReport

PONG = b"SPAMD/1.5 0 PONG\r\n"

_OK = b"SPAMD/1.1 0 EX_OK\r\n"


def opening(head: Head, report: ScanReport, length: int) -> bytes:
    """Return what stands before the body of a reply, which is `length` bytes long."""
    verdict = _verdict(head, report)
    size = b"Content-length: %d\r\n" % length
    match head.verb:
        case Verb.CHECK:
            return _OK + verdict + b"\r\n"
        case Verb.PROCESS | Verb.HEADERS if head.version < (1, 2):
            return b"SPAMD/1.0 0 EX_OK\r\n"
        case Verb.PROCESS | Verb.HEADERS if head.version < (1, 3):
            return _OK + size + b"\r\n"
        case _ if head.version < (1, 3):
            return _OK + verdict + b"\r\n"
        case _:
            return _OK + size + verdict + b"\r\n"


def _verdict(head: Head, report: ScanReport) -> bytes:
    words = ("Yes", "No") if head.verb is Verb.REPORT_IFSPAM else ("True", "False")
    word = words[report.verdict is not Verdict.SPAM]
    return f"Spam: {word} ; {score(report):.1f} / {REQUIRED:.1f}\r\n".encode()


def told(head: Head, taught: Taught) -> bytes:
    """Return the reply to a TELL; what was known before, or is unknown, changed nothing here.

    There are no databases elsewhere. The corpus that all share is ours, so a lesson that is in
    force here, or held, counts as reported or revoked there: what spamc and its users ask for.
    """
    sets, removes = head.sets, head.removes
    match taught:
        case Taught.LEARNED | Taught.HELD | Taught.WAITING:
            pass
        case Taught.KNOWN:
            sets, removes = sets - {"local"}, removes - {"local"}
        case Taught.FORGOTTEN:
            sets = frozenset()
        case Taught.UNKNOWN:
            sets = removes = frozenset()
    lines = [("DidSet", sets), ("DidRemove", removes)]
    said = "".join(f"{name}: {','.join(sorted(places))}\r\n" for name, places in lines if places)
    return _OK + said.encode() + b"\r\n\r\n"
