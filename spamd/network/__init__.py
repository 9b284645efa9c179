"""What all listeners share: addresses, sockets, limits, deadlines, and the way to a verdict."""
