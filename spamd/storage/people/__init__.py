"""What is known of people: who they are by a mail server's own database, and what they wish."""
