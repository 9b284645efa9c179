"""Bytes → Message: header fields and parts (MIME), transfer encodings, charsets."""
