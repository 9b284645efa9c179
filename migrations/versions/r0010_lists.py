"""Allow and deny lists, to whom people have written, and which entry decided about a scan."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "list_entry",
        sa.Column("id", NUMBER, autoincrement=True, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("unproven", sa.Boolean(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("effect IN ('allow', 'deny')", name="effect"),
        sa.PrimaryKeyConstraint("id", name="pk_list_entry"),
        sa.UniqueConstraint("owner", "kind", "value", name="uq_list_entry_owner"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "known_address",
        sa.Column("id", NUMBER, autoincrement=True, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("pair", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.BigInteger(), nullable=False),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_known_address"),
        sa.UniqueConstraint("pair", name="uq_known_address_pair"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_known_address_owner", "known_address", ["owner"])
    op.create_index("ix_known_address_last", "known_address", ["last"])
    op.create_table(
        "removals",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_removals"),
    )
    op.add_column("scan", sa.Column("listed", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("scan", "listed")
    for table in ("removals", "known_address", "list_entry"):
        op.drop_table(table)
