"""Every view answers, empty and with mail, and whatever a stranger wrote stands there as text."""

from pathlib import Path

import pytest

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
