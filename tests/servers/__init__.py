"""Fixtures that start real servers; nothing here is used by spamd itself."""
