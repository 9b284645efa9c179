"""The API of spamd under /api: JSON, described by /api/openapi.json."""
