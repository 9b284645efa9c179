"""Our fields on top of a header section; a thread goes through a large one."""

import asyncio

from spamd.message.spam_fields import strip_and_prepend

LARGE_HEADER_BYTES = 64 * 1024
"""A larger header section is gone through in a thread: 4 MB of tiny fields would take a second."""


def is_large(header: bytes) -> bool:
    """Tell whether going through a header section would hold the event loop."""
    return len(header) > LARGE_HEADER_BYTES


async def marked_header(header: bytes, fields: bytes) -> bytes:
    """Return a header section with these fields on top and no others that may pass for ours."""
    if is_large(header):
        return await asyncio.to_thread(strip_and_prepend, header, fields)
    return strip_and_prepend(header, fields)
