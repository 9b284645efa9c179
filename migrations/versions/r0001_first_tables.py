"""Make the tables of the journal, the counts, the scans, and of feedback."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "change",
        sa.Column("revision", ROW_ID, autoincrement=False, nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.LargeBinary(), nullable=False),
        sa.Column("grams", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_change"),
    )
    op.create_table(
        "corpus",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("spam", sa.BigInteger(), nullable=False),
        sa.Column("ham", sa.BigInteger(), nullable=False),
        sa.Column("spam_occurrences", sa.BigInteger(), nullable=False),
        sa.Column("ham_occurrences", sa.BigInteger(), nullable=False),
        sa.Column("vocabulary", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("id = 1", name="one_row"),
        sa.CheckConstraint("spam >= 0 AND ham >= 0 AND vocabulary >= 0", name="counts"),
        sa.CheckConstraint("spam_occurrences >= 0 AND ham_occurrences >= 0", name="occurrences"),
        sa.PrimaryKeyConstraint("id", name="pk_corpus"),
    )
    op.create_table(
        "cursor",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("validity", sa.BigInteger(), nullable=False),
        sa.Column("next_uid", sa.BigInteger(), nullable=False),
        sa.Column("modseq", sa.BigInteger(), nullable=False),
        sa.Column("messages", sa.BigInteger(), nullable=False),
        sa.Column("first_look", sa.BigInteger(), nullable=False),
        sa.Column("marked", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "folder", name="pk_cursor"),
    )
    op.create_table(
        "fact",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("spam", sa.BigInteger(), nullable=False),
        sa.Column("ham", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_fact"),
    )
    op.create_table(
        "fusion",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("lessons", sa.BigInteger(), nullable=False),
        sa.Column("weights", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("id = 1", name="one_row"),
        sa.PrimaryKeyConstraint("id", name="pk_fusion"),
    )
    op.create_table(
        "grams",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("id = 1", name="one_row"),
        sa.PrimaryKeyConstraint("id", name="pk_grams"),
    )
    op.create_table(
        "held",
        sa.Column("number", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("label", sa.String(length=4), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("label IN ('ham', 'spam')", name="label"),
        sa.PrimaryKeyConstraint("number", name="pk_held"),
        sa.UniqueConstraint("digest", name="uq_held_digest"),
    )
    op.create_table(
        "lease",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("renewed", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_lease"),
    )
    op.create_table(
        "lesson",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("label", sa.String(length=4), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("sender_domain", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("probability_before", sa.Double(), nullable=False),
        sa.Column("probability_after", sa.Double(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("gram_step", sa.Integer(), nullable=False),
        sa.Column("scores", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("label IN ('ham', 'spam')", name="label"),
        sa.PrimaryKeyConstraint("id", name="pk_lesson"),
        sa.UniqueConstraint("digest", name="uq_lesson_digest"),
    )
    op.create_index("ix_lesson_time", "lesson", ["time"], unique=False)
    op.create_table(
        "parked",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("validity", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "folder", "uid", name="pk_parked"),
    )
    op.create_table(
        "scan",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=True),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scan"),
    )
    op.create_index("ix_scan_digest", "scan", ["digest"], unique=False)
    op.create_index("ix_scan_time", "scan", ["time"], unique=False)
    op.create_table(
        "token",
        sa.Column("id", ROW_ID, autoincrement=False, nullable=False),
        sa.Column("spam", sa.Integer(), nullable=False),
        sa.Column("ham", sa.Integer(), nullable=False),
        sa.Column("spam_occurrences", sa.Integer(), nullable=False),
        sa.Column("ham_occurrences", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Integer(), nullable=False),
        sa.CheckConstraint("spam >= 0 AND ham >= 0", name="counts"),
        sa.CheckConstraint(
            "spam_occurrences >= spam AND ham_occurrences >= ham", name="occurrences"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_token"),
    )
    op.create_table(
        "trace",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("mail", sa.LargeBinary(), nullable=False),
        sa.Column("places", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "mail", name="pk_trace"),
    )
    op.create_table(
        "sample",
        sa.Column("lesson", ROW_ID, autoincrement=False, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["lesson"], ["lesson.id"], name="fk_sample_lesson", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("lesson", name="pk_sample"),
    )


def downgrade() -> None:

    op.drop_table("sample")
    op.drop_table("trace")
    op.drop_table("token")
    op.drop_index("ix_scan_time", table_name="scan")
    op.drop_index("ix_scan_digest", table_name="scan")
    op.drop_table("scan")
    op.drop_table("parked")
    op.drop_index("ix_lesson_time", table_name="lesson")
    op.drop_table("lesson")
    op.drop_table("lease")
    op.drop_table("held")
    op.drop_table("grams")
    op.drop_table("fusion")
    op.drop_table("fact")
    op.drop_table("cursor")
    op.drop_table("corpus")
    op.drop_table("change")
