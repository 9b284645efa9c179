"""What a run over mailboxes came to, as commands print it."""

from typing import TYPE_CHECKING

from spamd.cli.exits import Exit
from spamd.cli.output import fault, line
from spamd.wording import printable

if TYPE_CHECKING:
    from spamd.feedback.run_summary import RunSummary


def summary_json(summary: "RunSummary") -> dict[str, object]:
    """Return what JSON shows of a run."""
    return {
        "examined": summary.examined,
        "learned": {str(label): count for label, count in summary.learned.items()},
        "known": summary.already,
        "held": summary.held,
        "parked": summary.parked,
        "skipped": dict(summary.skipped),
        "faults": summary.faults,
    }


def print_summary(summary: "RunSummary") -> None:
    """Print a run for a person; what failed goes to standard error."""
    by_label = ", ".join(f"{count:,} {label}" for label, count in sorted(summary.learned.items()))
    line(f"examined       {summary.examined:>8,}")
    line(f"learned        {summary.learned.total():>8,}" + (f"  {by_label}" if by_label else ""))
    line(f"already known  {summary.already:>8,}")
    for reason, count in sorted(summary.skipped.items()):
        line(f"skipped        {count:>8,}  {reason}")
    if summary.held:
        line(f"held           {summary.held:>8,}  for review: spamd lessons held")
    if summary.parked:
        line(f"parked         {summary.parked:>8,}  could not be learned: spamd feedback parked")
    for each in summary.faults:
        fault(printable(each, limit=400))


def summary_exit(summary: "RunSummary") -> Exit:
    """Return done, partly done, or trouble when nothing could be examined."""
    if not summary.faults and not summary.parked:
        return Exit.DONE
    return Exit.PARTLY if summary.examined else Exit.TROUBLE
