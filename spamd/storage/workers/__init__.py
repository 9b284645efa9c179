"""What equal workers tell each other: leases, and what a retry need not repeat."""
