"""Where people keep mail: IMAP accounts and Maildirs, and which folder is what."""
