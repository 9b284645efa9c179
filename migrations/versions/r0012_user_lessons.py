"""Lessons of users."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "user_lesson",
        sa.Column("id", NUMBER, autoincrement=True, nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("label", sa.String(4), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("origin", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("sketch", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("label IN ('ham', 'spam')", name="label"),
        sa.PrimaryKeyConstraint("id", name="pk_user_lesson"),
        sa.UniqueConstraint("user", "digest", name="uq_user_lesson_user"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_user_lesson_digest", "user_lesson", ["digest"])
    op.create_index("ix_user_lesson_user", "user_lesson", ["user", "id"])
    op.create_index("ix_user_lesson_origin", "user_lesson", ["origin", "user", "label", "digest"])
    op.create_table(
        "user_sample",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("sender_domain", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_user_sample"),
    )
    op.create_table(
        "user_layer",
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user", name="pk_user_layer"),
    )
    op.create_index("ix_user_layer_revision", "user_layer", ["revision"])
    op.create_table(
        "origin_users",
        sa.Column("origin", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ham", sa.Integer(), nullable=False),
        sa.Column("spam", sa.Integer(), nullable=False),
        sa.CheckConstraint("ham >= 0 AND spam >= 0", name="counts"),
        sa.PrimaryKeyConstraint("origin", name="pk_origin_users"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("origin_users")
    op.drop_table("user_layer")
    op.drop_table("user_sample")
    op.drop_table("user_lesson")
