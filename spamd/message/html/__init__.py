"""HTML → what a reader sees."""
