"""An address we listen on, as the settings name it: host:port, [v6]:port or unix:/path."""

from dataclasses import dataclass, replace

from spamd.network.address_text import split_address


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One address we listen on; `path` is a UNIX socket, else `host` and `port` count.

    key   the setting that names it: what is spoken there follows from it
    mode  the rights of a UNIX socket's file; None: as the umask leaves them
    """

    key: str
    host: str = ""
    port: int = 0
    path: str = ""
    tls: bool = False
    lmtp: bool = False
    mode: int | None = None

    def __str__(self) -> str:
        """Return the address, for messages."""
        return self.path or f"{self.host}:{self.port}"


def parse_listener(
    text: str, *, key: str, tls: bool = False, lmtp: bool = False, unix: bool = True
) -> Listener:
    """Return the address that `text` names; a port of 0 takes a free one.

    Raises:
        ValueError: it is none; the text names the key.
    """
    path, host, port = split_address(text, key=key, unix=unix)
    return Listener(key=key, host=host, port=port, path=path, tls=tls, lmtp=lmtp)


def parse_listeners(
    texts: tuple[str, ...], *, key: str, mode: int | None = None
) -> tuple[Listener, ...]:
    """Return the addresses of a setting; UNIX sockets get these rights."""
    found = (parse_listener(text, key=key) for text in texts)
    return tuple(replace(each, mode=mode) if each.path else each for each in found)


def parse_mode(text: str, *, key: str) -> int:
    """Return the rights of a file that an octal number names.

    Raises:
        ValueError: it is none; the text names the key.
    """
    if len(text) not in (3, 4) or set(text) - set("01234567") or int(text, 8) > 0o777:
        raise ValueError(f'{key} is an octal number like "0660", not {text!r}')
    return int(text, 8)
