"""Who a mail is from, and what servers we trust say to prove it."""
