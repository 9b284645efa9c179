"""Mail in files, read for the commands."""
