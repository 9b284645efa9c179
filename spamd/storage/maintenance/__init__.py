"""Looking after a database: expiry, export and import, prune, reset, verify."""
