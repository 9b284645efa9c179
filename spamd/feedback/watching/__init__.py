"""The watcher of one account, and the rule that says when a move is a lesson."""
