"""The client's side: connections, sessions and transactions, until a message is delivered."""
