"""spamd, a spam-filtering mail service daemon."""
