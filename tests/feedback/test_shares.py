"""Many accounts are spread over the workers, each has one watcher, and connections are bounded."""

import asyncio
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spamd.errors import StorageUnavailable
from spamd.feedback.shares import ALONE, SHARES, Seats, Shares
from tests.feedback.fakes import FakeLeases
from tests.storage.mails import FixedClock
from tests.waiting import until

LEASE_S = 15.0
NAMES = [f"user{number}@mail.example:143" for number in range(500)]


class Site:
    """Some workers that renew their leases in turn."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.leases = FakeLeases(self.clock)

    def worker(self, name: str) -> Shares:
        return Shares(self.leases, name, LEASE_S, self.clock)

    async def go_on(self, *workers: Shares, rounds: int = 4, accounts: int = len(NAMES)) -> None:
        for _ in range(rounds):
            for each in workers:
                await each.renew(accounts)
            self.clock.advance(seconds=LEASE_S / 3)


def watchers(*workers: Shares) -> Counter[int]:
    """Return how many accounts have how many watchers."""
    return Counter(sum(each.holds(name) for each in workers) for name in NAMES)


@pytest.mark.parametrize("workers", [1, 2, 5])
async def test_few_accounts_are_all_watched_by_one_worker(workers: int) -> None:
    site = Site()
    some = [site.worker(f"host:{pid}") for pid in range(workers)]
    await site.go_on(*some, accounts=ALONE)
    assert [len(each.mine) for each in some] == [SHARES, *[0] * (workers - 1)]


@pytest.mark.parametrize("number", [1, 2, 3, 20])
async def test_many_accounts_are_spread_evenly_and_each_has_one_watcher(number: int) -> None:
    site = Site()
    workers = [site.worker(f"host:{pid}") for pid in range(number)]
    await site.go_on(*workers, rounds=6)
    assert watchers(*workers) == {1: len(NAMES)}
    assert max(len(each.mine) for each in workers) == -(-SHARES // number)
    assert min(len(each.mine) for each in workers) == SHARES // number


async def test_one_that_comes_gets_his_part_once_it_is_given_back() -> None:
    site = Site()
    one, two = site.worker("one"), site.worker("two")
    await site.go_on(one)
    for _ in range(4):
        await site.go_on(one, two, rounds=1)
        assert max(watchers(one, two)) == 1
    assert len(one.mine) == len(two.mine) == SHARES // 2


@pytest.mark.parametrize("accounts", [(ALONE, ALONE + 1), (ALONE + 1, ALONE)])
async def test_workers_that_count_the_accounts_differently_share_none(
    accounts: tuple[int, int],
) -> None:
    site = Site()
    one, two = site.worker("one"), site.worker("two")
    for _ in range(6):
        await one.renew(accounts[0])
        await two.renew(accounts[1])
        assert max(watchers(one, two)) == 1
        site.clock.advance(seconds=LEASE_S / 3)
    assert watchers(one, two)[1] > 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["renew", "renew", "renew", "wait", "leave", "lost"]),
        st.integers(0, 3),
        st.sampled_from([1, ALONE, ALONE + 1, 10_000]),
        st.floats(0, LEASE_S * 1.5),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_whatever_happens_an_account_has_one_watcher_at_most(
    steps: list[tuple[str, int, int, float]],
) -> None:
    async def play() -> None:
        site = Site()
        workers = [site.worker(f"host:{pid}") for pid in range(4)]
        for step, place, accounts, seconds in steps:
            match step:
                case "renew":
                    await workers[place].renew(accounts)
                case "leave":
                    await workers[place].release()
                case "lost":  # it is killed, and another is started with its name
                    workers[place] = site.worker(f"host:{place}")
                case _:
                    site.clock.advance(seconds=seconds)
            assert max(watchers(*workers)) <= 1

    asyncio.run(play())


async def test_the_shares_of_one_that_dies_or_hangs_are_taken_over_within_two_leases() -> None:
    site = Site()
    one, two = site.worker("one"), site.worker("two")
    await site.go_on(one, two)
    await site.go_on(two, rounds=5)  # 25 seconds
    assert len(two.mine) == SHARES
    assert watchers(one, two) == {1: len(NAMES)}, "one that was stopped knows before it asks"
    assert not one.last
    await one.renew(len(NAMES))
    assert not one.mine
    assert watchers(one, two) == {1: len(NAMES)}


async def test_one_that_can_not_renew_goes_on_until_its_leases_are_about_to_run_out() -> None:
    site = Site()
    one = site.worker("one")
    await one.renew(1)
    site.leases.away = True
    for left in (True, False):
        site.clock.advance(seconds=LEASE_S / 3 + 0.1)
        with pytest.raises(StorageUnavailable):
            await one.renew(1)
        assert one.last is left
        assert one.holds(NAMES[0])
    site.clock.advance(seconds=LEASE_S / 3)
    assert not one.holds(NAMES[0])


async def test_what_is_given_back_is_free_at_once() -> None:
    site = Site()
    one, two = site.worker("one"), site.worker("two")
    await site.go_on(one, two)
    await one.release()
    await site.go_on(two, rounds=2)
    assert watchers(two) == {1: len(NAMES)}
    await two.release()
    assert not site.leases.rows


class Held:
    """Watchers that take a seat again and again, and how many have one."""

    def __init__(self, seats: Seats) -> None:
        self.seats = seats
        self.most = 0
        self.now = 0
        self.turns: Counter[int] = Counter()
        self.end = asyncio.Event()

    async def watch(self, number: int) -> None:
        while not self.end.is_set():
            async with self.seats.taken() as seat:
                self.now += 1
                self.most = max(self.most, self.now)
                self.turns[number] += 1
                await asyncio.sleep(0)
                await until(lambda: not seat.stays or self.end.is_set())
                self.now -= 1
            await asyncio.sleep(0)


@pytest.mark.parametrize(("connections", "accounts"), [(5, 5), (5, 40), (20, 60), (1, 9)])
async def test_never_more_connections_are_kept_than_may_be_and_all_have_their_turn(
    connections: int, accounts: int
) -> None:
    seats = Seats(connections)
    held = Held(seats)
    seats.share_out(accounts)
    tasks = [asyncio.create_task(held.watch(number)) for number in range(accounts)]
    enough = 3 * accounts if accounts > connections else accounts
    await until(lambda: len(held.turns) == accounts and held.turns.total() >= enough)
    held.end.set()
    await asyncio.wait(tasks)
    assert held.most == min(connections, accounts)
    in_turn = [turns for turns in held.turns.values() if turns > 1]
    assert not in_turn or max(in_turn) - min(in_turn) <= 2


async def test_as_accounts_come_some_give_their_connections_back() -> None:
    seats = Seats(4)
    seats.share_out(4)
    async with seats.taken() as first, seats.taken(), seats.taken(), seats.taken() as last:
        assert first.stays
        seats.share_out(5)
        assert not last.stays


async def test_who_waits_for_a_connection_is_seen() -> None:
    seats = Seats(1)
    seats.share_out(2)
    assert seats.waited_s == 0

    async def come() -> None:
        async with seats.taken():
            pass

    async with seats.taken():
        waiting = asyncio.create_task(come())
        await until(lambda: seats.waited_s > 0)
    await waiting
    assert seats.waited_s == 0
