"""The relay: mail comes in by SMTP or LMTP, is judged, and goes on to the next hop at once."""
