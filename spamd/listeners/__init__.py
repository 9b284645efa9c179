"""The other ways in, beside the relay: a package each, none imports another."""
