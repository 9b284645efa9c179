"""Mail that its owner may read and keep."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "kept",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("mail_key", sa.LargeBinary(), nullable=False),
        sa.Column("mail", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("came", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("deliberate", sa.Boolean(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("probability", sa.Double(), nullable=True),
        sa.Column("sender", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("account", "folder", "mail_key", name="pk_kept"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("kept")
