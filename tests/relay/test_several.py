"""One mail for several people: who gets which verdict, and what the client is told."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spamd.bayes.decision import Action, Verdict
from spamd.bayes.wishes import Wishes
from spamd.errors import StorageUnavailable
from spamd.network.spool import Budget, SpooledMessage
from spamd.person import SITE, Person
from spamd.ports import Outcome
from spamd.relay.options import Mixed
from spamd.relay.taken import Taken, message_key
from spamd.report import ScanReport
from tests.fakes import HAM, REJECT, SPAM, FakeClock, FakeObserver
from tests.relay.hop import MESSAGE, Hop, Plan, Sender, SharedTaken, connected
from tests.relay.memory import MemoryRelay

A, B, C, D = b"a@y.test", b"b@y.test", b"c@y.test", b"d@y.test"
NAMES = (A, B, C, D)


UNSURE = replace(HAM, verdict=Verdict.UNSURE)


def own(report: ScanReport, user: str) -> ScanReport:
    return replace(report, id=f"id-{user}", user=user)


TAGS_B = {B: own(SPAM, "b")}


def relay_of(
    hop: Hop, verdicts: Mapping[bytes, ScanReport], *, lmtp: bool = False, **options: object
) -> MemoryRelay:
    return connected(MemoryRelay(lmtp=lmtp, **options), hop, verdicts)


async def sent(
    relay: MemoryRelay, recipients: Sequence[bytes], content: bytes = MESSAGE
) -> tuple[Sender, list[bytes]]:
    await relay.start()
    sender = Sender(recipients, content)
    return sender, await sender.send(relay)


def flagged(copy: bytes) -> bool:
    return b"X-Spam-Flag: YES\r\n" in copy


# LMTP: an own verdict, own fields, an own reply


@pytest.mark.parametrize("scheme", ["lmtp", "smtp"])
async def test_over_lmtp_each_recipient_has_own_fields_and_an_own_reply(scheme: str) -> None:
    hop = Hop({name: Plan() for name in NAMES}, lmtp=scheme == "lmtp")
    verdicts = {B: own(SPAM, "b"), C: own(REJECT, "c")}
    relay = relay_of(hop, verdicts, lmtp=True)
    _, replies = await sent(relay, NAMES)
    assert [each[:3] for each in replies] == [b"250", b"250", b"550", b"250"]
    assert [len(hop.copies[name]) for name in NAMES] == [1, 1, 0, 1]
    assert [flagged(hop.copies[name][0]) for name in (A, B, D)] == [False, True, False]
    assert b"X-Spam-Id: id-b\r\n" in hop.copies[B][0]
    assert [(report.user, code[:3], people) for report, code, people in relay.observer.scans] == [
        ("", b"250", 2), ("b", b"250", 1), ("c", b"550", 1),
    ]  # fmt: skip
    await relay.relay.stop()


async def test_over_lmtp_a_lost_next_hop_costs_only_who_had_no_reply() -> None:
    hop = Hop({name: Plan() for name in NAMES}, lmtp=True, lost=[2])
    verdicts = {B: own(SPAM, "b"), C: own(SPAM, "c")}
    relay = relay_of(hop, verdicts, lmtp=True)
    _, replies = await sent(relay, NAMES)
    assert [each[:3] for each in replies] == [b"250", b"451", b"451", b"250"]
    await relay.relay.stop()


async def test_a_recipient_given_twice_is_answered_twice() -> None:
    hop = Hop({A: Plan(), B: Plan()}, lmtp=True)
    relay = relay_of(hop, TAGS_B, lmtp=True)
    _, replies = await sent(relay, [B, A, B])
    assert len(replies) == 3
    assert [len(hop.copies[name]) for name in (A, B)] == [1, 2]
    await relay.relay.stop()


# SMTP: nobody differs, nothing changes


async def test_recipients_with_one_verdict_share_the_transaction_that_is_open() -> None:
    hop = Hop({name: Plan() for name in NAMES}, lmtp=False)
    resets: list[int] = []
    hop.reset = lambda: resets.append(1)  # type: ignore[method-assign,assignment,return-value]  # nobody may call it
    verdicts = dict.fromkeys(NAMES, own(SPAM, "all"))
    relay = relay_of(hop, verdicts)
    _, replies = await sent(relay, NAMES)
    assert replies[0].startswith(b"250")
    assert [len(hop.copies[name]) for name in NAMES] == [1, 1, 1, 1]
    assert resets == []
    await relay.relay.stop()


async def test_who_is_told_the_same_shares_a_transaction_however_sure_each_is() -> None:
    hop = Hop({name: Plan() for name in NAMES}, lmtp=False)
    verdicts = {
        A: own(replace(HAM, probability=0.011), "a"), B: own(replace(HAM, probability=0.012), "b"),
        C: own(SPAM, "c"), D: own(replace(SPAM, probability=0.97), "d"),
    }  # fmt: skip
    relay = relay_of(hop, verdicts)
    _, replies = await sent(relay, NAMES)
    assert replies[0].startswith(b"250")
    assert len({copy for copies in hop.copies.values() for copy in copies}) == 2
    assert hop.copies[A] == hop.copies[B]
    assert b"X-Spam-Id: id-" not in hop.copies[A][0]  # the site's
    assert b"X-Spam-Id: id-c\r\n" in hop.copies[D][0]
    await relay.relay.stop()


# split


async def test_split_gives_each_their_own_in_a_transaction_for_each_verdict() -> None:
    hop = Hop({name: Plan() for name in NAMES}, lmtp=False)
    relay = relay_of(hop, TAGS_B)
    _, replies = await sent(relay, NAMES)
    assert replies[0].startswith(b"250")
    assert [flagged(hop.copies[name][0]) for name in NAMES] == [False, True, False, False]
    assert not relay.context.taken
    await relay.relay.stop()


async def test_split_tags_for_who_wants_it_rejected_while_others_take_it() -> None:
    hop = Hop({A: Plan(), B: Plan()}, lmtp=False)
    relay = relay_of(hop, {B: own(REJECT, "b")})
    _, replies = await sent(relay, [A, B])
    assert replies[0].startswith(b"250")
    assert [flagged(hop.copies[name][0]) for name in (A, B)] == [False, True]
    assert [report.action for report, _, _ in relay.observer.scans] == [Action.ACCEPT, Action.TAG]
    await relay.relay.stop()


async def test_split_rejects_what_everybody_wants_rejected() -> None:
    hop = Hop({A: Plan(), B: Plan()}, lmtp=False)
    relay = relay_of(hop, {A: own(REJECT, "a"), B: own(REJECT, "b")})
    _, replies = await sent(relay, [A, B])
    assert replies[0].startswith(b"550")
    assert hop.copies == {A: [], B: []}
    await relay.relay.stop()


async def test_split_never_makes_more_transactions_than_are_set() -> None:
    names = [b"%d@y.test" % number for number in range(30)]
    hop = Hop({name: Plan() for name in names}, lmtp=False)
    verdicts = {names[0]: own(SPAM, "a"), names[1]: own(UNSURE, "b"), names[2]: own(SPAM, "c")}
    relay = relay_of(hop, verdicts, most_transactions=2)
    _, replies = await sent(relay, names)
    assert replies[0].startswith(b"250")
    assert len({copy for copies in hop.copies.values() for copy in copies}) == 2
    assert [flagged(hop.copies[name][0]) for name in names] == [True, False, True] + [False] * 27
    await relay.relay.stop()


@pytest.mark.parametrize("scheme", ["lmtp", "smtp"])
async def test_a_retry_repeats_only_what_is_missing(scheme: str) -> None:
    hop = Hop({A: Plan(), B: Plan(data=1), C: Plan()}, lmtp=scheme == "lmtp")
    relay = relay_of(hop, TAGS_B)
    sender, replies = await sent(relay, [A, B, C])
    assert replies[0].startswith(b"451")
    again = await sender.send(relay)
    assert again[0].startswith(b"250")
    assert [len(hop.copies[name]) for name in (A, B, C)] == [1, 1, 1]
    assert flagged(hop.copies[B][0])
    await relay.relay.stop()


async def test_who_was_refused_is_told_so_alone_and_who_took_it_reads_250() -> None:
    hop = Hop({A: Plan(), B: Plan(never="data")}, lmtp=False)
    relay = relay_of(hop, TAGS_B)
    sender, replies = await sent(relay, [A, B])
    assert replies[0].startswith(b"451")
    assert (await sender.send(relay))[0].startswith(b"250")
    assert sender.told == {A: "delivered"}
    assert (await sender.send(relay))[0].startswith(b"550")
    assert sender.told == {A: "delivered", B: "refused"}
    assert [len(hop.copies[name]) for name in (A, B)] == [1, 0]
    await relay.relay.stop()


async def test_another_message_to_the_same_people_is_delivered_to_all() -> None:
    hop = Hop({A: Plan(), B: Plan(data=1)}, lmtp=False)
    relay = relay_of(hop, TAGS_B)
    await sent(relay, [A, B])
    assert (await Sender([A, B], MESSAGE + b"More.\r\n").send(relay))[0].startswith(b"250")
    assert [len(hop.copies[name]) for name in (A, B)] == [2, 1]
    await relay.relay.stop()


async def test_a_retry_with_new_received_fields_is_the_same_message() -> None:
    budget = Budget(memory_bytes=10**6, spool_bytes=10**6, spool_above_bytes=10**6)
    keys = set()
    for top in (b"", b"Received: from a by b; now\r\n", b"received: from a\r\n\tby b; later\r\n"):
        message = SpooledMessage(budget.share(""))
        message.append(top + MESSAGE)
        keys.add(await message_key(message, b"s@x.test"))
        message.close()
    assert len(keys) == 1


async def test_another_worker_knows_what_the_first_one_delivered() -> None:
    shared = SharedTaken()
    hop = Hop({A: Plan(), B: Plan(data=1)}, lmtp=False)
    first, second = relay_of(hop, TAGS_B), relay_of(hop, TAGS_B)
    first.context.taken.store = second.context.taken.store = shared
    sender, _ = await sent(first, [A, B])
    await second.start()
    assert (await sender.send(second))[0].startswith(b"250")
    assert [len(hop.copies[name]) for name in (A, B)] == [1, 1]
    await first.relay.stop()
    await second.relay.stop()


async def test_without_the_database_mail_flows_and_this_worker_remembers() -> None:
    class Away(SharedTaken):
        async def of(self, message: bytes) -> Mapping[bytes, Outcome]:
            raise StorageUnavailable("away")

        async def add(self, message: bytes, outcomes: Mapping[bytes, Outcome]) -> None:
            raise StorageUnavailable("away")

    hop = Hop({A: Plan(), B: Plan(data=1)}, lmtp=False)
    relay = relay_of(hop, TAGS_B)
    relay.context.taken.store = Away()
    sender, _ = await sent(relay, [A, B])
    assert (await sender.send(relay))[0].startswith(b"250")
    assert [len(hop.copies[name]) for name in (A, B)] == [1, 1]
    assert {event for event, _ in relay.observer.faults} == {"taken.unread", "taken.unsaved"}
    await relay.relay.stop()


async def test_what_is_remembered_is_bounded_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spamd.relay.taken.MOST", 10)
    clock = FakeClock()
    taken = Taken(clock, FakeObserver())
    for number in range(100):
        await taken.keep(b"%32d" % number, b"s", {A: Outcome.TAKEN, B: Outcome.REFUSED})
    assert len(taken._messages) == 10
    assert taken.apart(b"s", [A], B)
    clock.seconds = 7 * 86_400
    await taken.follow()
    assert not taken
    assert not taken.apart(b"s", [A], B)
    assert taken._named == {}


# site


async def test_site_gives_all_the_sites_verdict_and_one_person_their_own() -> None:
    hop = Hop({A: Plan(), B: Plan()}, lmtp=False)
    relay = relay_of(hop, TAGS_B, several_verdicts="site")
    _, replies = await sent(relay, [A, B])
    assert replies[0].startswith(b"250")
    assert [flagged(hop.copies[name][0]) for name in (A, B)] == [False, False]
    await Sender([B], MESSAGE).send(relay)
    assert flagged(hop.copies[B][1])
    await relay.relay.stop()


async def test_site_rejects_only_what_each_of_them_rejects() -> None:
    hop = Hop({A: Plan(), B: Plan()}, lmtp=False)
    relay = relay_of(hop, {B: own(SPAM, "b")}, several_verdicts="site")
    relay.inspector.answer = REJECT
    _, replies = await sent(relay, [A, B])
    assert replies[0].startswith(b"250")
    assert [flagged(hop.copies[name][0]) for name in (A, B)] == [True, True]
    await relay.relay.stop()


async def test_a_maildir_that_all_share_gets_one_copy_with_the_sites_verdict() -> None:
    hop = Hop({A: Plan(), B: Plan()}, lmtp=True)
    hop.one_mailbox = True
    for lmtp in (False, True):
        relay = relay_of(hop, TAGS_B, lmtp=lmtp)
        await sent(relay, [A, B])
        await relay.relay.stop()
    assert hop.copies[A] == hop.copies[B]
    assert [flagged(copy) for copy in hop.copies[B]] == [False, False]


# single


class Persons:
    def __init__(self, people: Mapping[bytes, Person]) -> None:
        self.people = people

    async def of(self, recipients: Sequence[bytes]) -> Mapping[bytes, Person]:
        return {name: self.people.get(name, SITE) for name in recipients}


async def test_single_takes_one_person_a_transaction() -> None:
    never = Person(user="b", wishes=Wishes(tag=False))
    hop = Hop({name: Plan() for name in NAMES}, lmtp=False)
    relay = relay_of(hop, dict.fromkeys((B, D), own(SPAM, "b")), several_verdicts="single")
    relay.context.shared.people = Persons({B: never, D: never})
    sender, _ = await sent(relay, [A, B, C, D])
    assert sender.told == {A: "delivered", C: "delivered"}
    await sender.send(relay)
    assert sender.told == dict.fromkeys(NAMES, "delivered")
    assert [len(hop.copies[name]) for name in NAMES] == [1, 1, 1, 1]
    assert [flagged(hop.copies[name][0]) for name in NAMES] == [False, True, False, True]
    await relay.relay.stop()


# Whatever the verdicts and the replies are: one copy, or one honest reply

KINDS = {"ham": HAM, "spam": SPAM, "reject": REJECT}
plans = st.builds(
    Plan,
    rcpt=st.integers(0, 2),
    data=st.integers(0, 2),
    never=st.sampled_from(["", "", "rcpt", "data"]),
)
kinds = st.sampled_from(["site", "site", "ham", "spam", "reject"])


EXAMPLES = int(os.environ.get("SEVERAL_EXAMPLES", "150"))
"""Two thousand were run when it was written."""


@dataclass(frozen=True)
class World:
    """One mail, who is to get it, what is thought of it, and what the next hop says.

    lost     deliveries that end in a lost connection
    workers  which of two takes each try
    """

    people: list[tuple[Plan, str]]
    site: str
    lost: list[int]
    workers: list[int]
    hop_lmtp: bool
    lmtp: bool
    rule: str
    mixed: Mixed


worlds = st.builds(
    World,
    people=st.lists(st.tuples(plans, kinds), min_size=1, max_size=5),
    site=st.sampled_from(list(KINDS)),
    lost=st.lists(st.integers(1, 6), max_size=2),
    workers=st.lists(st.integers(0, 1), min_size=40, max_size=40),
    hop_lmtp=st.booleans(),
    lmtp=st.booleans(),
    rule=st.sampled_from(["split", "split", "site"]),
    mixed=st.sampled_from(list(Mixed)),
)


@given(worlds)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_each_recipient_gets_exactly_one_copy_or_one_honest_refusal(world: World) -> None:
    names = [b"%d@y.test" % number for number in range(len(world.people))]
    reports = {
        name: own(KINDS[kind], name.decode())
        for name, (_, kind) in zip(names, world.people, strict=True)
        if kind != "site"
    }
    by_name = {name: plan for name, (plan, _) in zip(names, world.people, strict=True)}
    hop, site = Hop(by_name, lmtp=world.hop_lmtp, lost=world.lost), KINDS[world.site]
    shared = SharedTaken()
    relays = [relay_of(hop, reports, lmtp=world.lmtp, several_verdicts=world.rule) for _ in "12"]
    for relay in relays:
        relay.inspector.answer = site
        relay.context.next_hop = replace(relay.context.next_hop, mixed_replies=world.mixed)
        relay.context.taken.store = shared
        await relay.start()
    sender = Sender(names)
    for worker in world.workers:
        if not sender.left:
            break
        await relays[worker].context.taken.follow()
        await sender.send(relays[worker])
    for relay in relays:
        await relay.relay.stop()
    assert sender.left == []
    for name in names:
        copies, report = hop.copies[name], reports.get(name, site)
        assert len(copies) == (sender.told[name] == "delivered"), name
        if copies and world.rule == "split":
            assert flagged(copies[0]) == (report.verdict is Verdict.SPAM)
        refused = {plan.never for plan, _ in world.people} if not world.hop_lmtp else set()
        if not copies and not {by_name[name].never, *refused} & {"rcpt", "data"}:
            assert Action.REJECT in {report.action, site.action}
