"""Never give the number of a held lesson to another one: AUTOINCREMENT on SQLite.

PostgreSQL's sequences never go back by themselves. SQLite has no way to change a table's key, so
the rows are copied to a new table.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COLUMNS = "number, digest, label, source, actor, probability, reason, time, content"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _remake(autoincrement=True)
    else:
        # Earlier versions wrote the numbers themselves and left the sequence where it was.
        op.execute("SELECT setval(pg_get_serial_sequence('held', 'number'), max(number)) FROM held")


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _remake(autoincrement=False)


def _remake(*, autoincrement: bool) -> None:
    op.rename_table("held", "held_old")
    op.create_table(
        "held",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("label", sa.String(4), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("label IN ('ham', 'spam')", name="label"),
        sa.PrimaryKeyConstraint("number", name="pk_held"),
        sa.UniqueConstraint("digest", name="uq_held_digest"),
        sqlite_autoincrement=autoincrement,
    )
    op.execute(f"INSERT INTO held ({COLUMNS}) SELECT {COLUMNS} FROM held_old")  # noqa: S608
    op.drop_table("held_old")
