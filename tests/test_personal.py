"""Lessons of users come to the site by votes: the newsletter, and the wave of spam.

With 5,000 users: `make scale PART=newsletter`.
"""

from pathlib import Path

import pytest

from spamd.errors import StorageUnavailable
from tests.scale.newsletter import SPAM, Site, news, newsletter, opened, wave


@pytest.fixture
async def site(tmp_path: Path) -> Site:
    return await opened(tmp_path)


@pytest.mark.parametrize("number", [1, 50])
async def test_must_show_1_who_moves_a_newsletter_twice_is_rid_of_it_and_the_others_keep_it(
    site: Site, number: int
) -> None:
    found = await newsletter(site, number, 5)
    assert found.own > 0.9
    if number > 1:
        assert abs(found.after - found.before) < 0.05
        assert found.other < 0.05
    await site.close()


@pytest.mark.parametrize("number", [1, 50])
async def test_must_show_1_a_wave_that_three_report_is_spam_for_all(
    site: Site, number: int
) -> None:
    assert await wave(site, number) > 0.9
    await site.close()


async def test_who_can_not_be_asked_about_teaches_nothing(site: Site) -> None:
    with pytest.raises(StorageUnavailable, match="could not be asked"):
        await site.trainer.train([news(1)], SPAM, source="imap", actor="away")
    assert (await site.store.totals()).messages == 0
    await site.close()
