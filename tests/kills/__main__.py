"""Command ``python -m tests.kills``: kill commands that write after random numbers of commits, until the time is over.

Exit code 1 if the tables of a life differ from those of a quiet one, or an answer between was silent.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from jobs import settings
from jobs.tables import session
from tests.jobs.conftest import SMALL
from tests.kills.lives import LIVES, Lives


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long to run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--life", action="append", choices=sorted(LIVES), help="only these; repeatable")
    chosen = parser.parse_args()
    choose, until = random.Random(chosen.seed), time.monotonic() + chosen.seconds
    spark = session.get_or_create(settings.load(flags={"spark.master": "local[2]", "spark.conf": SMALL}).spark)
    most = dict.fromkeys(chosen.life or LIVES, 40)
    kills = differences = 0
    with tempfile.TemporaryDirectory() as home:
        lives = Lives(Path(home))
        while time.monotonic() < until:
            name = choose.choice(list(most))
            commits = choose.randrange(most[name])
            began = time.monotonic()
            try:
                was_killed = lives.live(name, commits)
            except AssertionError as error:
                differences += 1
                print(f"{name} after {commits} commits: {error}", flush=True)
                continue
            kills += was_killed
            if not was_killed:  # it was through before
                most[name] = min(most[name], commits)
            print(f"{name} after {commits} commits: equal, {time.monotonic() - began:.0f} s", flush=True)
    spark.stop()
    print(f"{kills} kills, {differences} lives that differ")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
