"""What became of messages for recipients whom one SMTP reply could not tell (`relay.taken`).

Only hashes stand here; none of them says anything to who does not have the message.
"""

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import select

from spamd.ports import Clock, Outcome
from spamd.storage.engine import Database, upsert
from spamd.storage.tables import taken
from spamd.storage.times import to_number

LATE = 60_000_000
"""Microseconds: a row that another machine wrote may be dated so much before it can be read."""


class SqlTaken:
    """The port `TakenStore` in the database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def of(self, message: bytes) -> Mapping[bytes, Outcome]:
        wanted = select(taken.c.recipient, taken.c.outcome).where(taken.c.message == message)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
        return {row.recipient: Outcome(row.outcome) for row in rows}

    async def add(self, message: bytes, outcomes: Mapping[bytes, Outcome]) -> None:
        time = to_number(self._clock.now())
        rows = [
            {"message": message, "recipient": recipient, "outcome": outcome.value, "time": time}
            for recipient, outcome in outcomes.items()
        ]
        async with self._database.writing() as connection:
            insert = upsert(connection)(taken)
            changed = insert.on_conflict_do_update(
                index_elements=[taken.c.message, taken.c.recipient],
                set_={"outcome": insert.excluded.outcome, "time": insert.excluded.time},
                where=taken.c.outcome != Outcome.TAKEN.value,
            )
            await connection.execute(changed, rows)

    async def since(self, time: int) -> tuple[Mapping[bytes, Mapping[bytes, Outcome]], int]:
        now = to_number(self._clock.now())
        wanted = select(taken).where(taken.c.time >= time - LATE)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
        found: defaultdict[bytes, dict[bytes, Outcome]] = defaultdict(dict)
        for row in rows:
            found[row.message][row.recipient] = Outcome(row.outcome)
        return found, now
