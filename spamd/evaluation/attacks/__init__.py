"""What attackers do to a filter, and the filters that it is done to."""
