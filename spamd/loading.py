"""Loading modules without looking for garbage meanwhile.

    with loading():
        from spamd.app import build

A module brings thousands of objects that stay; looking through them again and again for some that
don't takes a tenth of the time of loading.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Let the garbage collector rest while the context lasts."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
