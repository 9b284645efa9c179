"""The steps from one database schema to the next, installed as `spamd.migrations`.

Alembic runs them: `spamd database upgrade`, and by itself at the start on SQLite. A new step is
made by `alembic revision -m "what it does"` in the checkout. Steps are never changed once released.
"""
