"""Who a mail is for: the port `People`.

    recipient → user (`Names`) → wishes (in memory), layer (`Layers`) → Person

A mail never waits for it longer than `users.timeout_s`, and no fault here costs one: what could
not be had by then is said in `Person.missing`, and the rest holds.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from spamd.bayes.own import Layer
from spamd.errors import TemporaryError
from spamd.person import SITE, Person
from spamd.ports import Observer
from spamd.users.options import UsersOptions
from spamd.users.ports import Layers, Named, Names, NoLayers, NoWishes, WishesSource

NO_LAYER = "own lessons could not be read"
"""Said of those whose layer was not there in time."""


class KnownPeople:
    """The people whose mail is judged, put together from what is known of them.

    Args:
        options: how long a mail may wait.
        observer: is told once that something can't be had, and once that it can again.
        names: which user is behind an address.
        wishes: what people wish.
        layers: what was learned from them alone.
    """

    def __init__(
        self,
        options: UsersOptions,
        observer: Observer,
        *,
        names: Names,
        wishes: WishesSource | None = None,
        layers: Layers | None = None,
    ) -> None:
        self._timeout_s = options.timeout_s
        self._observer = observer
        self._names = names
        self._wishes = wishes or NoWishes()
        self._layers = layers or NoLayers()
        self._lost = False

    async def of(self, recipients: Sequence[bytes]) -> Mapping[bytes, Person]:
        """Return the person behind each recipient."""
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        named = await self._names.of(recipients)
        people = {each.user: self._person(each) for each in named.values() if each.user}
        read = await self._read(self._layers.unread(people), deadline)
        people = {user: self._with_layer(person, read) for user, person in people.items()}
        return {recipient: people.get(each.user, SITE) for recipient, each in named.items()}

    def _person(self, named: Named) -> Person:
        wishes = self._wishes.of(named.user)
        return Person(user=named.user, wishes=wishes, missing=named.missing)

    def _with_layer(self, person: Person, read: Mapping[str, Layer | None]) -> Person:
        """Return a person with their layer, or with word that it could not be read."""
        if person.user not in read:
            return replace(person, layer=self._layers.of(person.user))
        if (layer := read[person.user]) is not None:
            return replace(person, layer=layer)
        return replace(person, missing="; ".join(filter(None, (person.missing, NO_LAYER))))

    async def _read(self, users: Collection[str], deadline: float) -> Mapping[str, Layer | None]:
        """Return layers that had to be read, None for each that could not be."""
        if not users:
            return {}
        try:
            async with asyncio.timeout_at(deadline):
                found = await self._layers.read(users)
        except (TimeoutError, TemporaryError) as error:
            if not self._lost:
                self._observer.failed("layers.lost", error)
            self._lost = True
            return dict.fromkeys(users)
        if self._lost:
            self._observer.happened("layers.regained")
        self._lost = False
        return found
