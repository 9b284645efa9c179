"""The journal, held lessons, rollback; words; accounts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from spamd.admin.history import place_of
from spamd.feedback.ports import AccountState, Cursor, Held, Parked, WatchedAccount
from spamd.sample import Label
from spamd.training.ports import Selection
from tests.admin.office import SPAM_WORDS, Office, mail, office

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


async def test_the_journal_comes_in_parts_and_names_people_only_if_it_may(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        lessons = here.found.lessons
        first = await lessons.journal(Selection(), None, 20, people=False)
        assert (len(first.rows), first.newer) == (20, None)
        assert {row.actor for row in first.rows} == {""}
        assert first.older is not None
        rest = await lessons.journal(Selection(), place_of(first.older), 20, people=True)
        assert (len(rest.rows), rest.older) == (4, None)
        assert {row.actor for row in rest.rows} <= {"ann", "bob"}
        some = await lessons.journal(Selection(actor="bob"), None, 50, people=True)
        assert {row.label for row in some.rows} == {Label.HAM}


async def held(here: Office, number: int, words: str = SPAM_WORDS) -> None:
    one = Held(
        number=0,
        features=here.features(mail(number, words, "secret offer")),
        label=Label.SPAM,
        source="imap",
        actor="ann",
        probability=0.01,
        reason="more than 20 lessons of ann within 3600 s",
        time=NOW,
    )
    await here.store.held.hold([one])


async def test_held_lessons_are_learned_or_dropped(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        for number in (700, 701, 702):
            await held(here, number)
        lessons = here.found.lessons
        rows = await lessons.held(words=True, people=False)
        assert [(row.actor, row.words, row.reason, row.sender_domain) for row in rows] == [
            ("", (), "", "")
        ] * 3
        (named, *_) = await lessons.held(words=True, people=True)
        assert set(named.words) == {"secret", "offer", "700"} or "secret" in named.words
        numbers = [row.number for row in rows]
        shown = await lessons.waiting(2, people=True)
        assert [(row.number, row.mail, row.actor) for row in shown] == [
            (row.number, row.mail, "ann") for row in rows[:2]
        ]
        (nameless, *_) = await lessons.waiting(1, people=False)
        assert (nameless.actor, nameless.reason) == ("", "")
        done = await lessons.release([numbers[0], 999])
        assert (done.done, done.missing) == (1, 1)
        dropped = await lessons.drop([numbers[1], numbers[1], 999])
        assert (dropped.done, dropped.missing) == (1, 1)
        assert [row.number for row in await lessons.held(words=False, people=False)] == numbers[2:]
        assert (await here.store.totals()).spam == 13


async def test_a_rollback_shows_first_what_it_takes_back(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        lessons, chosen = here.found.lessons, Selection(actor="ann")
        shown = await lessons.preview(chosen, people=False)
        assert (shown.lessons, shown.spam_left, shown.ham_left) == (12, 0, 12)
        assert [group.actor for group in shown.groups] == [""]
        await here.taught(Label.SPAM, [mail(300, SPAM_WORDS)], "carl")
        unnamed = await lessons.preview(Selection(label=Label.SPAM), people=False)
        assert [(each.actor, each.lessons) for each in unnamed.groups] == [("", 13)]
        named = await lessons.preview(Selection(label=Label.SPAM), people=True)
        assert [(each.actor, each.lessons) for each in named.groups] == [("ann", 12), ("carl", 1)]
        done = await lessons.rollback(chosen)
        assert (done.taken_back, done.left) == (12, 0)
        totals = await here.store.totals()
        assert (totals.spam, totals.ham) == (1, 12)


async def test_a_word_tells_its_counts_its_lessons_and_its_probabilities(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        found = await here.found.words.find("  Cheap ", people=False)
        (form,) = found.forms
        assert (form.token, form.spam, form.ham) == ("cheap", 12, 0)
        assert {lesson.lesson.label for lesson in found.lessons} == {Label.SPAM}
        assert sum(week.spam for week in found.weeks) == len(found.lessons) == 12
        assert all(probability > 0.5 for _, probability in form.classifiers)
        assert {"graham", "multinomial"} <= {name for name, _ in form.classifiers}
        pair = await here.found.words.find("cheap pills", people=False)
        assert pair.forms[0].token == "cheap pills"
        for nothing in ("", "   ", "unheard-of", "x" * 10_000, "\0", "\ud800", "é" * 300):
            assert (await here.found.words.find(nothing, people=False)).forms == ()


async def test_accounts_tell_their_state_folders_and_what_could_not_be_learned(
    tmp_path: Path,
) -> None:
    def account(name: str, state: AccountState) -> WatchedAccount:
        return WatchedAccount(name=name, state=state, since=NOW, reason="", silent=False)

    async with office(tmp_path, learned=0) as here:
        store = here.store
        rows = [account("a", AccountState.WATCHING), account("b", AccountState.LOST)]
        await store.accounts.write(rows, NOW)
        cursor = Cursor(
            account="a",
            folder="Junk",
            validity=1,
            next_uid=5,
            modseq=0,
            messages=4,
            baseline=1,
            marked="",
            time=NOW,
        )
        await store.mailboxes.save("a", [cursor])
        parked = Parked(
            account="a", folder="Junk", validity=1, uid="3", attempts=1, reason="no", time=NOW
        )
        await store.mailboxes.park(parked)
        found = await here.found.accounts.all()
        assert [(row.account.name, row.parked) for row in found.accounts] == [("b", 0), ("a", 1)]
        part = await here.found.accounts.all(1, 1)
        assert ([row.account.name for row in part.accounts], part.in_all) == (["a"], 2)
        one = await here.found.accounts.one("a")
        assert one is not None
        assert [(folder.name, folder.messages) for folder in one.folders] == [("Junk", 4)]
        assert one.parked == (parked,)
        assert await here.found.accounts.one("c") is None


async def test_lessons_of_a_time_are_chosen(tmp_path: Path) -> None:
    async with office(tmp_path) as here:
        later = datetime.now(UTC) + timedelta(hours=1)
        part = await here.found.lessons.journal(Selection(since=later), people=True)
        assert part.rows == ()
