"""What people do with their mail says of senders: to whom they write, whom they let in."""
