"""Two daemons share the accounts of a Dovecot: each move is one lesson, whatever becomes of one."""

from tests.scale.accounts import accounts

ACCOUNTS = 104
"""More than one worker watches alone (`feedback.shares`)."""

SETTINGS = "connections = 40\nlease_s = 6\npoll_s = 2\n"


def test_accounts_are_spread_and_taken_over_and_connections_are_bounded() -> None:
    with accounts(ACCOUNTS, 2, settings=SETTINGS) as site:
        assert site.holders == 2
        assert site.use().connections <= 80
        site.moves(range(0, ACCOUNTS, 20), 1)

        site.freeze(site.daemons[0])
        site.moves(range(1, ACCOUNTS, 20), 1)  # the other has taken them over
        site.thaw(site.daemons[0])
        site.moves(range(1, ACCOUNTS, 20), 2)  # and nothing is learned twice

        site.daemons[0].kill()
        site.moves(range(2, ACCOUNTS, 20), 1)

        assert site.use().connections <= 40
        assert site.ask("SELECT count(*) FROM lesson") == site.lessons
