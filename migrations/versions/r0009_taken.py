"""Who took a message that others of its recipients could not get."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "taken",
        sa.Column("message", sa.LargeBinary(), nullable=False),
        sa.Column("recipient", sa.LargeBinary(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("message", "recipient", name="pk_taken"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_taken_time", "taken", ["time"])


def downgrade() -> None:
    op.drop_table("taken")
