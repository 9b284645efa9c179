"""Plays many random histories and prints what came of them: `make histories`.

python -m tests.feedback.histories_run NUMBER [FIRST_SEED]
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.feedback.histories import Result, plan, shown, shrunk
from tests.feedback.player import play

AT_A_TIME = 2


def ran(seed: int) -> tuple[int, Result]:
    return seed, play(plan(seed))


def main(number: int, first: int) -> int:
    """Play histories; the first that fails is shown as small as it can be made."""
    total, failed = Result(), []
    started = time.monotonic()
    with ProcessPoolExecutor(AT_A_TIME) as pool:
        for seed, result in pool.map(ran, range(first, first + number), chunksize=50):
            total.add(result)
            if result.fails:
                failed.append(seed)
    print(f"histories    {number:>7,}  in {time.monotonic() - started:,.0f} s")
    print(f"polls        {total.polls:>7,}")
    print(f"lessons      {total.expected:>7,}  that people gave")
    print(f"learned      {total.given:>7,}")
    print(f"kept         {total.kept:>7,}  lessons of what was read and kept")
    print(f"wrong        {len(total.wrong):>7,}  that nobody gave")
    print(f"unexplained  {len(total.unexplained):>7,}  lost without a reason")
    for reason, count in total.lost.most_common():
        print(f"lost         {count:>7,}  {reason}")
    if failed:
        print(f"failed       {failed}\n{shown(shrunk(plan(failed[0]), play))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
