"""Whose verdict a scan was."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("scan", sa.Column("user", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("scan", "user")
