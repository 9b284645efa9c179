"""The page: what it shows, to whom, and how it looks in a browser."""
