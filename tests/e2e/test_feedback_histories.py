"""Histories of the model on a real Dovecot: the same lessons as on the model."""

import asyncio
import os
from collections import Counter

from tests.feedback.histories import Result, plan, shown
from tests.feedback.player import Player
from tests.feedback.replay import Replayer, feasible, lessons, office
from tests.servers.base import require

HISTORIES = int(os.environ.get("DOVECOT_HISTORIES", "12"))
"""`make histories` plays a hundred."""

FIRST_SEED = 50_000


def test_h1_k4_histories_of_the_model_teach_the_same_on_a_dovecot_with_views_and_rules() -> None:
    require("dovecot")
    require("sieve")
    total, left = Result(), Counter[str]()
    plans = {}
    for seed in range(FIRST_SEED, FIRST_SEED + HISTORIES):
        plans[f"h{seed}"], skipped = feasible(plan(seed, faults=seed % 2 == 0))
        left += skipped
    for told in (True, False):
        users = {user: history for user, history in plans.items() if history.told is told}
        with office(users, told=told) as server:
            for user, history in users.items():
                model, real = Player(history), Replayer(history, server, user)
                meant = asyncio.run(model.run())
                found = asyncio.run(real.run())
                real.end()
                assert not found.fails, f"{found.wrong} {found.unexplained}\n{shown(history)}"
                assert sorted(lessons(real)) == sorted(lessons(model)), shown(history)
                assert (found.expected, found.lost) == (meant.expected, meant.lost)
                total.add(found)
    print(f"{HISTORIES} histories, {total.polls} polls, {total.given} lessons of {total.expected}")
    for name, count in left.most_common():
        print(f"not on a real server {count:>6,}  {name}")
    assert total.given > HISTORIES / 2
