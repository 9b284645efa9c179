"""The tables, in SQLAlchemy Core. Migrations make the same (a test compares).

    lesson, sample       the journal: everything that was taught and is still in force
    tally                counts that other programs had made
    corpus, token,
    fact, grams, fusion  what follows from journal and imported counts; `verify` recomputes it
    change               what each revision touched, so that readers fetch only that
    scan                 what was said about a mail, kept for some days
    mail_hour            how many mails were answered in an hour, by listener, verdict and action
    session, trial       who is logged in at the page, and the last evaluation it ran
    list_entry, wish,
    known_address        what people have said, and to whom they write: `people_tables`
    account, cursor,
    sighting, kept,
    parked, held, lease  what feedback remembers

A token is known by its 64-bit id (`message.tokens.token_id`). The texts stand in the samples of the
lessons only: a second copy beside each count would double the work of training, and an id says
everything a scan needs. Ids keep words apart byte by byte, whatever the database's collation.

Times are microseconds since 1970 in UTC. Numbers a person may sum in SQL are columns, arrays that
only we read are blobs (`storage.blobs`).
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)

RowId = BigInteger().with_variant(Integer, "sqlite")
"""On SQLite only INTEGER PRIMARY KEY is the row's own number; it holds 64 bits there too."""


class OutsideText(TypeDecorator[str]):
    """Text that strangers may have written.

    NUL and lone surrogates, which PostgreSQL refuses, become U+FFFD on both servers.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Return the text as it is stored and looked for."""
        return None if value is None else storable(value)


def storable(text: str) -> str:
    """Return `text` with U+FFFD for each character that a database can't hold."""
    clean = text.replace("\0", "\ufffd")
    return clean.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _text(name: str) -> Column[str]:
    return Column(name, OutsideText, nullable=False)


corpus = Table(
    "corpus",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _number("spam"),
    _number("ham"),
    _number("spam_occurrences"),
    _number("ham_occurrences"),
    _number("vocabulary"),
    _number("revision"),
    _number("generation"),
    Column("secret", LargeBinary, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
    CheckConstraint("spam >= 0 AND ham >= 0 AND vocabulary >= 0", name="counts"),
    CheckConstraint("spam_occurrences >= 0 AND ham_occurrences >= 0", name="occurrences"),
)
"""One row. `revision` grows by one with each change; `generation` with each that can't be followed
by `change` rows (reset). Writers lock this row first, so lessons have one order.
`secret` makes the marks of our message ids."""

token = Table(
    "token",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=False),
    Column("spam", Integer, nullable=False),
    Column("ham", Integer, nullable=False),
    Column("spam_occurrences", Integer, nullable=False),
    Column("ham_occurrences", Integer, nullable=False),
    Column("weight", Integer, nullable=False),
    CheckConstraint("spam >= 0 AND ham >= 0", name="counts"),
    CheckConstraint("spam_occurrences >= spam AND ham_occurrences >= ham", name="occurrences"),
)
"""Messages that hold the token, its occurrences in them, and its logistic weight (units of 2⁻¹⁶).
A row whose counts all become zero is deleted."""

fact = Table(
    "fact", metadata, Column("key", OutsideText, primary_key=True), _number("spam"), _number("ham")
)
"""`bayes.classifiers.mixed.FactCounts.to_rows`."""

lesson = Table(
    "lesson",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("label", String(4), nullable=False),
    _text("source"),
    _text("actor"),
    _text("sender_domain"),
    Column("time", BigInteger, nullable=False, index=True),
    Column("probability_before", Double, nullable=False),
    Column("probability_after", Double, nullable=False),
    Column("step", Integer, nullable=False),
    Column("gram_step", Integer, nullable=False),
    Column("scores", LargeBinary, nullable=False),
    CheckConstraint("label IN ('ham', 'spam')", name="label"),
    Index("ix_lesson_source", "source", "label", "probability_before"),
    Index("ix_lesson_grouped", "source", "label", "actor", "time"),
    Index("ix_lesson_source_time", "source", "time"),
    Index("ix_lesson_actor", "actor", "time"),
    Index("ix_lesson_sender_domain", "sender_domain", "time"),
)
"""One row for each mail in force, in the order of learning."""

sample = Table(
    "sample",
    metadata,
    Column(
        "lesson", RowId, ForeignKey("lesson.id", ondelete="CASCADE"), primary_key=True,
        autoincrement=False,
    ),
    Column("content", LargeBinary, nullable=False),
)  # fmt: skip
"""What the lesson taught, apart from it: the journal is read often, the samples seldom."""

tally = Table(
    "tally",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    _text("source"),
    _number("time"),
    _number("spam"),
    _number("ham"),
    Column("content", LargeBinary, nullable=False),
)
"""`ImportedCounts`: the mails it was counted over, its words and their counts."""

change = Table(
    "change",
    metadata,
    Column("revision", RowId, primary_key=True, autoincrement=False),
    Column("time", BigInteger, nullable=False),
    Column("tokens", LargeBinary, nullable=False),
    Column("grams", LargeBinary, nullable=False),
)
"""The ids of the tokens that a revision touched, and what it added to the gram table."""

grams = Table(
    "grams",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _number("revision"),
    Column("content", LargeBinary, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)
"""The gram table as of `revision`; newer changes are added from `change`."""

fusion = Table(
    "fusion",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _number("lessons"),
    Column("weights", LargeBinary, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)

scan = Table(
    "scan",
    metadata,
    Column("id", OutsideText, primary_key=True),
    Column("digest", LargeBinary, nullable=False, index=True),
    _number("time"),
    _text("verdict"),
    _text("action"),
    Column("probability", Double, nullable=True),
    Column("content", LargeBinary, nullable=False),
    Column("listener", OutsideText, nullable=False, server_default=""),
    Column("queue_id", OutsideText, nullable=False, server_default="", index=True),
    Column("user", OutsideText, nullable=False, server_default=""),
    Column("listed", OutsideText, nullable=False, server_default=""),
    Index(
        "ix_scan_listed",
        "time", "id", "verdict", "action", "listener", "probability", "queue_id", "digest",
    ),
)  # fmt: skip
"""Id, verdict and features of a scanned mail; probability NULL: it was not scanned. The index
`ix_scan_listed` holds all that a list shows, so lists read none of the large rows. `user` is whose
verdict it is, "" the site's; a mail for several people has a row for each verdict. `listed` is the
entry of a list that decided ("allow 7")."""

mail_hour = Table(
    "mail_hour",
    metadata,
    Column("hour", BigInteger, primary_key=True, autoincrement=False),
    Column("listener", OutsideText, primary_key=True),
    Column("verdict", OutsideText, primary_key=True),
    Column("action", OutsideText, primary_key=True),
    _number("mails"),
    sqlite_with_rowid=False,
)
"""`hour` is the time at which it began. Mail that was not judged counts too."""

session = Table(
    "session",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    _text("role"),
    _text("name"),
    _number("created"),
    _number("seen"),
    sqlite_with_rowid=False,
)
"""Of each session only the SHA-256 of what the browser holds."""

trial = Table(
    "trial",
    metadata,
    Column("name", OutsideText, primary_key=True),
    _number("time"),
    _text("content"),
)
"""What came of the last evaluation (JSON)."""

taken = Table(
    "taken",
    metadata,
    Column("message", LargeBinary, primary_key=True),
    Column("recipient", LargeBinary, primary_key=True),
    _text("outcome"),
    Column("time", BigInteger, nullable=False, index=True),
    sqlite_with_rowid=False,
)
"""What became of a message for a recipient, where one reply could not say it (`relay.taken`)."""

account = Table(
    "account",
    metadata,
    Column("name", OutsideText, primary_key=True),
    _text("state"),
    _number("since"),
    _text("reason"),
    Column("silent", Boolean, nullable=False),
    _number("watched"),
)
"""How a watched account fares; `watched` is when somebody was last at it, which ages it."""

cursor = Table(
    "cursor",
    metadata,
    Column("account", OutsideText, primary_key=True),
    Column("folder", OutsideText, primary_key=True),
    _number("validity"),
    _number("next_uid"),
    _number("modseq"),
    _number("messages"),
    _number("first_look"),
    _text("marked"),
    _number("time"),
)

sighting = Table(
    "sighting",
    metadata,
    Column("account", OutsideText, primary_key=True),
    Column("folder", OutsideText, primary_key=True),
    Column("mail_key", LargeBinary, primary_key=True),
    Column("mail", LargeBinary, nullable=False, index=True),
    _number("delivered"),
    sqlite_with_rowid=False,
)

kept = Table(
    "kept",
    metadata,
    Column("account", OutsideText, primary_key=True),
    Column("folder", OutsideText, primary_key=True),
    Column("mail_key", LargeBinary, primary_key=True),
    Column("mail", LargeBinary, nullable=False),
    _text("state"),
    _number("came"),
    _number("since"),
    Column("deliberate", Boolean, nullable=False),
    Column("digest", LargeBinary, nullable=True),
    Column("verdict", OutsideText, nullable=True),
    Column("probability", Double, nullable=True),
    Column("sender", OutsideText, nullable=True),
    sqlite_with_rowid=False,
)
"""Mail that came to an inbox unread, and how far its owner has got with it (`KeptState`). What we
said of it stands there once it is kept."""

parked = Table(
    "parked",
    metadata,
    Column("account", OutsideText, primary_key=True),
    Column("folder", OutsideText, primary_key=True),
    Column("uid", OutsideText, primary_key=True),
    _number("validity"),
    _number("attempts"),
    _text("reason"),
    _number("time"),
    Column("label", String(4), nullable=False, server_default=""),
)

held = Table(
    "held",
    metadata,
    Column("number", RowId, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("label", String(4), nullable=False),
    _text("source"),
    _text("actor"),
    Column("probability", Double, nullable=False),
    _text("reason"),
    _number("time"),
    Column("content", LargeBinary, nullable=False),
    CheckConstraint("label IN ('ham', 'spam')", name="label"),
    sqlite_autoincrement=True,  # a number that a person has read never means another mail
)

lease = Table(
    "lease",
    metadata,
    Column("name", OutsideText, primary_key=True),
    _text("holder"),
    _number("renewed"),
    _number("expires"),
)
