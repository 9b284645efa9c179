"""How each watched account fares, for `spamd status`, and when somebody last watched it.

What was remembered before of an account counts as of its newest cursor.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("silent", sa.Boolean(), nullable=False),
        sa.Column("watched", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_account"),
    )
    op.execute(
        "INSERT INTO account (name, state, since, reason, silent, watched)"
        " SELECT account, 'left', MAX(time), '', (1 = 0), MAX(time) FROM cursor GROUP BY account"
    )


def downgrade() -> None:
    op.drop_table("account")
