"""What both sides know of SMTP and LMTP: commands, replies, extensions, who the client is."""
