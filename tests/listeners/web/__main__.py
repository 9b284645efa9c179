"""`make listeners WAY=web`: 10,000 broken requests, then what is left of them."""

import asyncio
import sys
import time

from tests.fakes import SPAM, FakeInspector
from tests.listeners.web.broken import play
from tests.listeners.web.clients import running
from tests.listeners.web.test_hostile import MIB, free
from tests.memory import peak_bytes, settled_bytes
from tests.waiting import until

COUNT = 10_000


async def main() -> None:
    async with running(FakeInspector(SPAM)) as here:
        await play(here, 500, seed=0)
        here.inspector.seen.clear()
        before, started = settled_bytes(), time.monotonic()
        said = await play(here, COUNT, seed=int(sys.argv[1]) if sys.argv[1:] else 1)
        await until(lambda: free(here))
        print(f"{COUNT} broken requests in {time.monotonic() - started:.0f} s")
        print(f"faults of ours: {len(here.observer.faults)}")
        print(f"memory above the start: {(peak_bytes() - before) / MIB:.1f} MiB at most")
        for line, number in sorted(said.items(), key=lambda item: -item[1])[:20]:
            print(f"{number:6} {line or '(closed without an answer)'}")
        assert (await here.get("/ping")).status == 200
        assert not here.observer.faults


if __name__ == "__main__":
    asyncio.run(main())
