"""What alembic runs: the steps, on the connection and in the transaction that the caller gives.

`spamd.storage.migrate` sets `config.attributes["connection"]`. By hand, `alembic revision` and
`alembic history` work in the checkout; they need no database.
"""

from alembic import context

from spamd.storage.layers.tables import user_lesson  # noqa: F401 - of the same metadata
from spamd.storage.people_tables import wish

connection = context.config.attributes.get("connection")
if connection is not None:
    context.configure(
        connection=connection,
        target_metadata=wish.metadata,
        render_as_batch=connection.dialect.name == "sqlite",  # SQLite alters tables by copying
        transactional_ddl=True,  # on SQLite too: we begin transactions ourselves
    )
    context.run_migrations()
