"""How the daemon is: what mail needs, whether it is there, and since when it isn't.

    model      the counts of what was learned are in memory
    database   it answered when it was asked last; meanwhile mail is judged by what is in memory
    next_hop   the relay's next hop answers; only where the relay listens

Each worker tells of itself; what is counted it tells for all.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from spamd.observe.metrics import CorpusNow, Metrics
from spamd.ports import Check
from spamd.sample import Label
from spamd.store_opening import StoreOpening

AwaySince = Callable[[], Awaitable[datetime | None]]


class DaemonHealth:
    """Tells how this worker is (`ports.Health`).

    Args:
        opening: the store, and since when the database is away.
        next_hop_away: returns since when the next hop is; None where there is none.
        metrics: what is counted.
        waiting_bytes: returns how much waits on the disk for the database.
    """

    def __init__(
        self,
        opening: StoreOpening,
        next_hop_away: AwaySince | None,
        metrics: Metrics,
        waiting_bytes: Callable[[], int],
    ) -> None:
        self._opening = opening
        self._next_hop_away = next_hop_away
        self._metrics = metrics
        self._waiting_bytes = waiting_bytes
        metrics.follow_corpus(self._corpus)

    async def checks(self) -> Sequence[Check]:
        """Return what mail needs, and whether it is there."""
        found = [self._model(), self._database()]
        if self._next_hop_away is not None:
            found.append(_next_hop(await self._next_hop_away()))
        return found

    async def metrics(self) -> bytes:
        """Return what was counted, in the text format of Prometheus."""
        self._metrics.ready({check.name: check.ok for check in await self.checks()})
        return self._metrics.text()

    def _model(self) -> Check:
        if (opened := self._opening.opened) is None:
            text = "not loaded: the database has not answered since the start; mail is not judged"
            return Check(name="model", ok=False, text=text)
        totals = opened.store.snapshot.model.totals
        text = f"loaded: {totals.spam:,.0f} spam and {totals.ham:,.0f} ham messages learned"
        return Check(name="model", ok=True, text=text)

    def _database(self) -> Check:
        since = self._opening.away_since
        if since is None:
            return Check(name="database", ok=True, text="answers")
        text = f"away since {_moment(since)}; lessons wait"
        return Check(name="database", ok=False, text=text)

    def _corpus(self) -> CorpusNow:
        if (opened := self._opening.opened) is None:
            return CorpusNow(waiting_bytes=self._waiting_bytes())
        model = opened.store.snapshot.model
        return CorpusNow(
            messages={Label.HAM: model.totals.ham, Label.SPAM: model.totals.spam},
            tokens=len(model.tokens),
            behind_s=opened.store.behind_s,
            waiting_bytes=self._waiting_bytes(),
        )


def _next_hop(away_since: datetime | None) -> Check:
    if away_since is None:
        return Check(name="next_hop", ok=True, text="answers")
    text = f"away since {_moment(away_since)}; clients are told to try again later"
    return Check(name="next_hop", ok=False, text=text)


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
