"""HTTP: the API that clients of rspamd call."""
