"""Large messages, read by helper processes."""
