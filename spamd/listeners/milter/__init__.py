"""The milter protocol (version 6): Postfix and Sendmail ask us about each message."""
