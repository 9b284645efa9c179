"""Who is let in and who is kept out: entries of allow and deny lists, and which of them counts."""
