"""Every view answers, empty and with mail, and whatever a stranger wrote stands there as text."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spamd.feedback.ports import AccountState, WatchedAccount
from tests.admin.office import SPAM_WORDS, mail, office
from tests.listeners.web.clients import running

VIEWS = (
    "/",
    "/?span=month",
    "/history",
    "/history?verdict=spam&since=x&at=y",
    "/words",
    "/words?word=pills",
    "/words?word=unheard",
    "/lessons",
    "/lessons/rollback?source=imap",
    "/accounts",
    "/settings?changed=1",
    "/evaluation",
)
HERE = ["Host: localhost"]
EVIL = "<script>alert(1)</script>\u202e\x1b[31m" + "W" * 10_000


@pytest.mark.parametrize("learned", [0, 12])
async def test_every_view_answers_whatever_there_is_to_show(tmp_path: Path, learned: int) -> None:
    async with office(tmp_path, learned=learned, full=True) as here:
        hostile = mail(1, f"{EVIL} {SPAM_WORDS}", subject="<b>offer</b>")
        name = await here.scanned(hostile, queue_id="<i>Q</i>")
        async with running(administration=here.found) as web:
            for path in (*VIEWS, f"/mail/{name}", f"/mail/{name}/basis"):
                answer = await web.get(path, HERE)
                text = answer.body.decode()
                assert not web.observer.faults, path
                assert answer.status == 200, f"{path}: {text[:2000]}"
                for raw in ("<script>alert", "<b>offer", "<i>Q", "\x1b", "\u202e"):
                    assert raw not in text, path
            assert (await web.get("/mail/unknown", HERE)).status == 404


async def test_accounts_are_shown_in_parts_that_lead_to_each_other(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    accounts = [
        WatchedAccount(
            name=f"user{number:03}", state=AccountState.WATCHING, since=now, reason="", silent=False
        )
        for number in range(101)
    ]
    async with office(tmp_path, learned=0) as here:
        await here.store.accounts.write(accounts, now)
        async with running(administration=here.found) as web:
            first = (await web.get("/accounts", HERE)).body.decode()
            (on,) = re.findall(r'rel="next" href="([^"]+)"', first)
            second = (await web.get(on, HERE)).body.decode()
    assert re.findall(r"user\d+", first)[-1] == "user099"
    assert set(re.findall(r"user\d+", second)) == {"user100"}
    assert 'rel="prev" href="/accounts"' in second
    assert 'rel="next"' not in second
