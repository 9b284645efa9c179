"""The tables of what people have said beside lessons, and of those they write to.

list_entry     whom people let in or keep out
known_address  to whom people have written, as hashes
wish           what users and domains wish to be done with spam
removals       how often rows of these went, for those who follow them
"""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Double, Table, UniqueConstraint

from spamd.storage.tables import OutsideText, RowId, metadata

list_entry = Table(
    "list_entry",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("owner", OutsideText, nullable=False),
    Column("kind", OutsideText, nullable=False),
    Column("value", OutsideText, nullable=False),
    Column("effect", OutsideText, nullable=False),
    Column("unproven", Boolean, nullable=False),
    Column("expires", BigInteger, nullable=True),
    Column("source", OutsideText, nullable=False),
    Column("created", BigInteger, nullable=False),
    UniqueConstraint("owner", "kind", "value"),
    CheckConstraint("effect IN ('allow', 'deny')", name="effect"),
    sqlite_autoincrement=True,  # who follows knows by the numbers what is new
)
"""Whom people let in or keep out (`lists.Entry`). `owner`: "" the site, "@domain", or a user."""

known_address = Table(
    "known_address",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("owner", OutsideText, nullable=False, index=True),
    Column("pair", BigInteger, nullable=False, unique=True),
    Column("address", BigInteger, nullable=False),
    Column("times", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False, index=True),
    sqlite_autoincrement=True,
)
"""To whom a user has written: keyed hashes of the address, and of both, never the address."""

wish = Table(
    "wish",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("owner", OutsideText, nullable=False, unique=True),
    Column("tag_from", Double, nullable=True),
    Column("reject_from", Double, nullable=True),
    Column("tag", Boolean, nullable=True),
    Column("reject", Boolean, nullable=True),
    Column("changed", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)
"""What a user, or "@domain", wishes (`bayes.wishes.Wishes`)."""

removals = Table(
    "removals",
    metadata,
    Column("name", OutsideText, primary_key=True),
    Column("number", BigInteger, nullable=False),
)
"""How often rows were removed from a table that processes follow by the numbers of its rows."""
