"""What is known of senders: the lists, and to whom people have written."""
