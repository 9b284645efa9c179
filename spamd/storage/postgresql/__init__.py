"""Connections to PostgreSQL: to whichever server takes writes, through a pooler or not."""
