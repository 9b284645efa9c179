"""What docs/listeners.md prints for programs that pipe mail, run as it stands there.

Only paths and the daemon's socket are put in place of the printed ones.
"""

import os
import random
import resource
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import made_up
from tests.cli.pipe.agent import daemon, limited
from tests.listeners.agents import AGENTS, OURS, Agent, is_unaltered
from tests.listeners.pipe import killer, tried
from tests.listeners.pipe_daemon import PipeDaemon
from tests.servers.base import require

NOWHERE = "unix:/nowhere/spamc"


@pytest.fixture(params=AGENTS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> type[Agent]:
    found: type[Agent] = request.param
    require(found.name)
    return found


def mail(label: str, number: int) -> bytes:
    return made_up(label, number).replace(b"\r\n", b"\n")


def test_spam_goes_to_junk_and_ham_to_the_inbox(
    kind: type[Agent], pipe_daemon: PipeDaemon, home: Path
) -> None:
    agent = kind(home, pipe_daemon.address)

    codes = [agent.deliver(mail("spam", 15)), agent.deliver(mail("ham", 15))]

    (junk,), (inbox,) = agent.junk(), agent.inbox()
    assert not any(map(agent.keeps, codes))
    assert is_unaltered(junk, mail("spam", 15))
    assert is_unaltered(inbox, mail("ham", 15))
    assert all(b"X-Spam-Status: " in delivered for delivered in (junk, inbox))


def test_with_nobody_to_judge_mail_is_delivered_as_it_came(kind: type[Agent], home: Path) -> None:
    agent = kind(home, NOWHERE)

    code = agent.deliver(mail("spam", 16))

    (inbox,) = agent.inbox()
    assert (agent.keeps(code), agent.junk()) == (False, [])
    assert is_unaltered(inbox, mail("spam", 16))
    assert OURS.search(inbox) is None


def kills(number: signal.Signals) -> Callable[[socket.socket], None]:
    """Return how a daemon behaves that kills who asks it."""

    def behave(connection: socket.socket) -> None:
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        process, _, _ = struct.unpack("3i", peer)
        os.kill(process, number)
        while connection.recv(65536):
            pass

    return behave


def test_a_filter_that_is_killed_costs_no_mail(
    kind: type[Agent], home: Path, tmp_path: Path
) -> None:
    large = mail("ham", 17) + b"a line of text\n" * 20_000
    with daemon(tmp_path, kills(signal.SIGKILL)) as address:
        agent = kind(home, address)
        code = agent.deliver(large)

    assert agent.keeps(code)
    assert agent.inbox() + agent.junk() == []


def test_a_filter_that_is_stopped_passes_the_mail_on(
    kind: type[Agent], home: Path, tmp_path: Path
) -> None:
    large = mail("ham", 18) + b"a line of text\n" * 20_000
    with daemon(tmp_path, kills(signal.SIGTERM)) as address:
        agent = kind(home, address)
        code = agent.deliver(large)

    (inbox,) = agent.inbox()
    assert (agent.keeps(code), is_unaltered(inbox, large)) == (False, True)


def test_a_full_disk_costs_no_mail(kind: type[Agent], pipe_daemon: PipeDaemon, home: Path) -> None:
    large = mail("ham", 19) + b"a line of text\n" * 20_000
    agent = kind(home, pipe_daemon.address, limited(resource.RLIMIT_FSIZE, 100_000))

    code = agent.deliver(large)

    assert agent.keeps(code)
    assert [one for one in agent.inbox() if not is_unaltered(one, large)] == []


def test_an_agent_that_is_killed_costs_no_mail(
    kind: type[Agent], pipe_daemon: PipeDaemon, home: Path
) -> None:
    mails = [mail("ham", number) for number in (60, 61)]

    count = tried(kind(home, pipe_daemon.address), mails, killer(random.Random(3), most_s=0))

    assert (count.mails, count.lost, count.altered) == (2, 0, 0)
