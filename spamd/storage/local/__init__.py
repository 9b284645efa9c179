"""What a machine keeps of its own, beside the database that it shares with others."""
