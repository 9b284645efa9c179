"""The printed set-ups, typed by a stranger on a bare Debian: `make stranger`."""
