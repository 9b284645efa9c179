"""Where the listener listens, and who may open its UNIX sockets."""

from pathlib import Path

import pytest

from spamd.listeners.spamc.options import SpamcOptions
from spamd.network.sockets import open_sockets


@pytest.mark.parametrize(("mode", "rights"), [("0660", 0o660), ("666", 0o666), ("0600", 0o600)])
def test_a_unix_socket_has_the_rights_that_are_set(mode: str, rights: int, tmp_path: Path) -> None:
    options = SpamcOptions(listen=(f"unix:{tmp_path}/spamc", "127.0.0.1:0"), socket_mode=mode)
    (sockets,) = open_sockets(options.listeners, 1)
    assert (tmp_path / "spamc").stat().st_mode & 0o777 == rights
    for sock in sockets:
        sock.close()


@pytest.mark.parametrize("mode", ["", "rw", "0888", "66", "7777", "-1", "0o66", "06600"])
def test_what_is_no_mode_stops_the_start(mode: str) -> None:
    with pytest.raises(ValueError, match=r"spamc\.socket_mode is an octal number"):
        SpamcOptions(listen=("127.0.0.1:0",), socket_mode=mode)
