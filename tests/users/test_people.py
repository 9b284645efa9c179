import asyncio
from collections.abc import Collection, Mapping, Sequence

from spamd.bayes.own import Layer
from spamd.bayes.wishes import NO_WISHES, Wishes
from spamd.errors import StorageUnavailable
from spamd.person import SITE, Person
from spamd.users.directory import Directory
from spamd.users.options import UsersOptions
from spamd.users.people import NO_LAYER, KnownPeople
from spamd.users.ports import Named
from tests.fakes import FakeObserver

OPTIONS = UsersOptions(enabled=True, timeout_s=0.01)
NEVER = Wishes(tag=False)
LAYER = Layer([])
ANNA, BOB = b"Anna+x@example.org", b"bob@example.org"


class Wished:
    def of(self, user: str) -> Wishes:
        return NEVER if user == "anna@example.org" else NO_WISHES


class Layered:
    """Gives everybody a layer, read anew each time; or fails, or hangs."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.hangs = False
        self.asked: list[set[str]] = []

    def of(self, user: str) -> Layer | None:
        return None

    def unread(self, users: Collection[str]) -> Sequence[str]:
        return list(users)

    async def read(self, users: Collection[str]) -> Mapping[str, Layer]:
        self.asked.append(set(users))
        if self.fault is not None:
            raise self.fault
        if self.hangs:
            await asyncio.Event().wait()
        return dict.fromkeys(users, LAYER)


class NamedOnes:
    """A directory that knows nobody but Anna, and can't be asked for Bob."""

    async def of(self, addresses: Sequence[bytes]) -> Mapping[bytes, Named]:
        return {
            ANNA: Named(user="anna@example.org"),
            BOB: Named(user="bob@example.org", missing="not asked"),
            b"else@elsewhere.test": Named(user=""),
        }


async def test_a_recipient_is_a_person_with_wishes_and_a_layer() -> None:
    layers = Layered()
    people = KnownPeople(
        OPTIONS, FakeObserver(), names=Directory(OPTIONS), wishes=Wished(), layers=layers
    )
    found = await people.of([ANNA, b"anna@example.org", BOB])
    assert (
        found[ANNA]
        == found[b"anna@example.org"]
        == Person(user="anna@example.org", wishes=NEVER, layer=LAYER)
    )
    assert found[BOB].user == "bob@example.org"
    assert layers.asked == [{"anna@example.org", "bob@example.org"}]


async def test_who_is_nobody_is_the_site_and_what_could_not_be_asked_is_said() -> None:
    people = KnownPeople(OPTIONS, FakeObserver(), names=NamedOnes())
    found = await people.of([ANNA, BOB, b"else@elsewhere.test"])
    assert found[b"else@elsewhere.test"] is SITE
    assert found[BOB] == Person(user="bob@example.org", missing="not asked")
    assert not found[ANNA].differs


async def test_a_layer_that_is_away_or_slow_is_left_out_and_told_once() -> None:
    layers, observer = Layered(), FakeObserver()
    people = KnownPeople(
        OPTIONS, observer, names=Directory(OPTIONS), wishes=Wished(), layers=layers
    )
    layers.hangs = True
    found = await people.of([ANNA])
    assert found[ANNA] == Person(user="anna@example.org", wishes=NEVER, missing=NO_LAYER)
    layers.fault = StorageUnavailable("away")
    assert (await people.of([BOB]))[BOB].missing == NO_LAYER
    layers.fault, layers.hangs = None, False
    assert (await people.of([BOB]))[BOB].missing == ""
    assert [event for event, _ in observer.faults] == ["layers.lost"]
    assert [event for event, _ in observer.events] == ["layers.regained"]
