"""Indexes that list lessons by source, person and sender, and count them without reading them."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

INDEXES = {
    "ix_lesson_grouped": ["source", "label", "actor", "time"],
    "ix_lesson_source_time": ["source", "time"],
    "ix_lesson_actor": ["actor", "time"],
    "ix_lesson_sender_domain": ["sender_domain", "time"],
}


def upgrade() -> None:
    for name, columns in INDEXES.items():
        op.create_index(name, "lesson", columns)


def downgrade() -> None:
    for name in INDEXES:
        op.drop_index(name, "lesson")
