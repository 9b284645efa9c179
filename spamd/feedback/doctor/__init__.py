"""`spamd doctor`: one test message through the whole installation."""
