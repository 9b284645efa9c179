"""Views made by a process of their own are the views, whatever becomes of the process."""

import asyncio
import os
import re
import signal
from pathlib import Path

from sqlalchemy import update

from spamd.observe.options import LogOptions
from spamd.storage.tables import scan
from spamd.viewing.process import ViewFailedError, ViewProcess
from tests.admin.office import SPAM_WORDS, mail, office
from tests.listeners.web.clients import Running, running
from tests.listeners.web.pages.test_views import HERE, VIEWS
from tests.waiting import until

SAME = [path for path in VIEWS if not path.startswith("/settings")]
"""The listener of a test has thresholds of its own, and the settings show them."""

CHANGING = re.compile(r"[\d.,]+ [kMGT]?B( free)?|<time[^>]*>[^<]*</time>")
"""Room on the disk, and the time."""


async def shown(web: Running, path: str) -> tuple[int, str]:
    """Return the status and the text of a view, without what changes by itself."""
    answer = await web.get(path, HERE)
    return answer.status, CHANGING.sub("", answer.body.decode())


def alive(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_a_process_of_its_own_makes_the_same_views_and_is_replaced(tmp_path: Path) -> None:
    async with office(tmp_path, full=True) as here:
        name = await here.scanned(mail(1, SPAM_WORDS))
        damaged = await here.scanned(mail(2, SPAM_WORDS))
        async with here.store.database.writing() as connection:
            await connection.execute(update(scan).where(scan.c.id == damaged).values(content=b"\0"))
        settings = here.settings
        apart = ViewProcess(lambda: settings)
        try:
            async with (
                running(administration=here.found) as plain,
                running(administration=here.found, apart=apart) as web,
            ):
                assert str(tmp_path) in (await shown(web, "/settings"))[1]
                for path in (*SAME, f"/mail/{name}", f"/mail/{name}/basis", "/mail/none"):
                    there = await shown(web, path)
                    assert there == await shown(plain, path), path
                assert not web.observer.faults

                assert (await shown(web, f"/mail/{damaged}"))[0] == 500
                ((event, fault),) = web.observer.faults
                assert (event, type(fault)) == ("session.failed", ViewFailedError)
                assert "BlobError" in str(fault)

                killed = apart.pid
                assert killed is not None
                os.kill(killed, signal.SIGKILL)
                assert (await shown(web, "/history"))[0] == 200
                old = apart.pid
                assert old not in {None, killed}

                in_hand = asyncio.create_task(shown(web, "/words?word=pills"))
                await until(lambda: apart.busy)
                settings = settings.model_copy(update={"log": LogOptions()})
                apart.renew()
                assert "pills" in (await in_hand)[1]
                assert "ann" not in (await shown(web, "/lessons"))[1]
                assert apart.pid not in {None, old}
                await until(lambda: not alive(old))
        finally:
            last = apart.pid
            await apart.close()
        assert last is not None
        assert not alive(last)
