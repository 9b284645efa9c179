"""The tables of users' own lessons.

user_lesson   the journal: what each user has said of each mail, and a sketch of it for their layer
user_sample   what those mails held, once for all users
user_layer    which change of a user's lessons was their last, for those who follow
origin_users  how many users call the mails of a list or address ham, and how many spam

A forgotten user leaves nothing: lessons go, and samples with their last lesson.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
)

from spamd.storage.tables import OutsideText, RowId, metadata

user_lesson = Table(
    "user_lesson",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("user", OutsideText, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("label", String(4), nullable=False),
    Column("source", OutsideText, nullable=False),
    Column("origin", BigInteger, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("sketch", LargeBinary, nullable=False),
    UniqueConstraint("user", "digest"),
    Index("ix_user_lesson_digest", "digest"),
    Index("ix_user_lesson_user", "user", "id"),
    Index("ix_user_lesson_origin", "origin", "user", "label", "digest"),
    CheckConstraint("label IN ('ham', 'spam')", name="label"),
    sqlite_autoincrement=True,  # the order in which they were given
)
"""`origin` is the list or the address that the mail came from (`message.tokens.origin`), 0 none;
`sketch` the tokens that stand for it (`bayes.own.sketch`), 8 bytes each, little-endian."""

user_sample = Table(
    "user_sample",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("sender_domain", OutsideText, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

user_layer = Table(
    "user_layer",
    metadata,
    Column("user", OutsideText, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Index("ix_user_layer_revision", "revision"),
)
"""`revision` grows with each change of anybody's lessons: who follows asks for what is newer."""

origin_users = Table(
    "origin_users",
    metadata,
    Column("origin", BigInteger, primary_key=True, autoincrement=False),
    Column("ham", Integer, nullable=False),
    Column("spam", Integer, nullable=False),
    CheckConstraint("ham >= 0 AND spam >= 0", name="counts"),
    sqlite_with_rowid=False,
)
"""Users who have said nothing but ham, or nothing but spam, of an origin's mails. It follows from
the journal, and `verify` holds it against that: counting anew at each lesson would take seconds
where thousands read a list."""
