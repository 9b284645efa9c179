"""What people wish to be done with mail that is probably spam."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "wish",
        sa.Column("id", NUMBER, autoincrement=True, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("tag_from", sa.Double(), nullable=True),
        sa.Column("reject_from", sa.Double(), nullable=True),
        sa.Column("tag", sa.Boolean(), nullable=True),
        sa.Column("reject", sa.Boolean(), nullable=True),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_wish"),
        sa.UniqueConstraint("owner", name="uq_wish_owner"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    op.drop_table("wish")
