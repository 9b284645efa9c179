"""How schemathesis writes a mail (SCHEMATHESIS_HOOKS): whatever it makes up stands in one."""

import schemathesis


@schemathesis.serializer("message/rfc822")
def mail(_: schemathesis.SerializationContext, value: object) -> bytes:
    """Return a mail that holds a value."""
    text = value if isinstance(value, str) else repr(value)
    return f"Subject: {text}\r\nContent-Type: text/html\r\n\r\n{text}\r\n".encode(
        "utf-8", "replace"
    )
