"""An address as the settings write it, taken apart: host:port, [v6]:port or unix:/path.

Apart from `addresses`, since `spamd filter` loads no dataclasses.
"""

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "*": "127.0.0.1"}  # noqa: S104 - where one listens, not we


def reached_at(host: str) -> str:
    """Return where a client on this machine reaches who listens at a host."""
    return _LOOPBACK.get(host, host)


def split_address(text: str, *, key: str, unix: bool = True) -> tuple[str, str, int]:
    """Return (path, host, port): of a UNIX socket its path, else host and port.

    Raises:
        ValueError: it is no address; the text names the key.
    """
    if unix and text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path.startswith("/"):
            raise ValueError(f"{key}: {text!r} needs an absolute path")
        return path, "", 0
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or not host:
        path = ' or "unix:/path"' if unix else ""
        raise ValueError(f'{key}: {text!r} is no "host:port"{path}')
    return "", host.strip("[]"), int(port)
