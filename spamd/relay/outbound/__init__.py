"""The next hop's side: which one, sessions there, delivery into a Maildir."""
