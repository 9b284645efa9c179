"""CSS → which declarations apply to an element."""
