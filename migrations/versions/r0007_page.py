"""What the page shows: where a mail came in, mails by the hour, sessions, the last evaluation."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("listener", "queue_id"):
        op.add_column("scan", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    op.create_index("ix_scan_queue_id", "scan", ["queue_id"])
    op.create_index(
        "ix_scan_listed",
        "scan",
        ["time", "id", "verdict", "action", "listener", "probability", "queue_id", "digest"],
    )
    op.drop_index("ix_scan_time", "scan")
    op.create_index("ix_lesson_source", "lesson", ["source", "label", "probability_before"])
    op.create_table(
        "mail_hour",
        sa.Column("hour", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("listener", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("mails", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "listener", "verdict", "action", name="pk_mail_hour"),
        sqlite_with_rowid=False,
    )
    op.execute(
        "INSERT INTO mail_hour (hour, listener, verdict, action, mails)"
        " SELECT time - time % 3600000000, '', verdict, action, count(*) FROM scan"
        " GROUP BY time - time % 3600000000, verdict, action"
    )
    op.create_table(
        "session",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_session"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "trial",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_trial"),
    )


def downgrade() -> None:
    for table in ("trial", "session", "mail_hour"):
        op.drop_table(table)
    op.drop_index("ix_lesson_source", "lesson")
    op.create_index("ix_scan_time", "scan", ["time"])
    op.drop_index("ix_scan_listed", "scan")
    op.drop_index("ix_scan_queue_id", "scan")
    for name in ("queue_id", "listener"):
        op.drop_column("scan", name)
