"""The token table as a file that all processes of a machine map: it is in memory once."""
