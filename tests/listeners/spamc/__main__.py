"""`make listeners WAY=spamc`: 10,000 broken requests, 500 slow clients, 1,000 corpus mails."""

import asyncio
import resource
import sys
import time

from tests.listeners.spamc.broken import crowd, fuzz
from tests.listeners.spamc.corpus import compared

COUNT = 10_000
CROWD = 500
MAILS = 1_000


def main() -> int:
    """Print what came of it; return 1 when something is wrong."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    started = time.monotonic()
    outcome = asyncio.run(fuzz(COUNT, seed=int(sys.argv[1]) if sys.argv[1:] else 1))
    print(f"{COUNT} broken requests, twice each, in {time.monotonic() - started:.0f} s")
    for line, number in outcome.replies.most_common():
        print(f"{number:6} {line.decode('latin_1') or '(closed without an answer)'}")
    found = asyncio.run(crowd(CROWD, 200))
    print(
        f"{CROWD} slow clients: {found.grown_bytes / 2**20:.0f} MiB more;"
        f" {found.honest} others served meanwhile, the slowest in {found.worst_s * 1e3:.0f} ms"
    )
    mails, wrong = compared(MAILS)
    print(f"{mails} corpus mails by PROCESS, HEADERS and CHECK: {len(wrong)} differ")
    faults = [*outcome.faults, *found.faults, *wrong]
    print("\n".join(faults[:20]) or "no fault")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
