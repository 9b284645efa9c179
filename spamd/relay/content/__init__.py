"""The content of a message on its way: received, kept, given its header fields, sent."""
