"""Remember where each mail lay at the last look, in place of all places it was ever seen in.

What was remembered before says neither where a mail lay last nor whether it still does, so no
lesson can rest on it: it is dropped with the cursors, and the next look at each account is a first
one, which teaches nothing.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("trace")
    op.execute("DELETE FROM cursor")
    op.create_table(
        "sighting",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("mail_key", sa.LargeBinary(), nullable=False),
        sa.Column("mail", sa.LargeBinary(), nullable=False),
        sa.Column("delivered", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "folder", "mail_key", name="pk_sighting"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_sighting_mail", "sighting", ["mail"])
    op.add_column("parked", sa.Column("label", sa.String(4), nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("parked") as parked:
        parked.drop_column("label")
    op.drop_table("sighting")
    op.execute("DELETE FROM cursor")
    op.create_table(
        "trace",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("mail", sa.LargeBinary(), nullable=False),
        sa.Column("places", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "mail", name="pk_trace"),
    )
