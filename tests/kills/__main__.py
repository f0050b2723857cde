"""Command ``python -m tests.kills``: kill commands that write at random commits, until the time is over.

``--stops``: they stand still there instead, for longer than their lease, while a night takes it; then they go on.

Exit code 1 if the tables of a life differ from those of a quiet one, or an answer between was silent.
"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from jobs import settings
from jobs.tables import session
from tests.jobs.conftest import SMALL
from tests.kills.lives import LIVES, Lives


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long to run")
    parser.add_argument("--kills", type=int, default=1_000_000, help="how many kills or stops are enough")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--life", action="append", choices=sorted(LIVES), help="only these; repeatable")
    parser.add_argument("--stops", action="store_true", help="stop the commands instead of killing them")
    parser.add_argument("--by-spark", action="store_true", help="the stopped commands let Spark write, as in a catalog")
    chosen = parser.parse_args()
    spark = session.get_or_create(settings.load(flags={"spark.master": "local[2]", "spark.conf": SMALL}).spark)
    with tempfile.TemporaryDirectory() as home:
        lived = _live(Lives(spark, Path(home)), chosen)
    spark.stop()
    events = f"{lived.stops} stops" if chosen.stops else f"{sum(lived.kills.values())} kills"
    print(f"{events} in {lived.lives} lives, {lived.different} lives that differ")
    for name, number in sorted(lived.kills.items()):
        print(f"  {name}: {number}")
    return bool(lived.different)


class _Lived:
    """What came of all lives: kills by command."""

    def __init__(self) -> None:
        self.kills: Counter[str] = Counter()
        self.lives = 0
        self.stops = 0
        self.different = 0


def _live(lives: Lives, chosen: argparse.Namespace) -> _Lived:
    """Live one life after the other, each command equally often, until the time is over."""
    choose, lived, until = random.Random(chosen.seed), _Lived(), time.monotonic() + chosen.seconds
    waiting: list[str] = []
    while time.monotonic() < until and lived.stops + sum(lived.kills.values()) < chosen.kills:
        if not waiting:
            waiting = choose.sample(chosen.life or [*LIVES], len(chosen.life or LIVES))
        name, began = waiting.pop(), time.monotonic()
        lived.lives += 1
        try:
            if chosen.stops:
                told = lives.stand_still(name, choose, by_spark=chosen.by_spark)
                lived.stops += 1
                print(f"{name}: stopped, then said {told}; equal, {time.monotonic() - began:.1f} s", flush=True)
                continue
            kills = lives.live(name, choose)
        except Exception:
            lived.different += 1
            print(f"{name} differs:\n{traceback.format_exc()}", flush=True)
            continue
        lived.kills += kills
        killed = ", ".join(f"{each} {number}" for each, number in kills.items()) or "nothing"
        print(f"{name}: killed {killed}; equal, {time.monotonic() - began:.1f} s", flush=True)
    return lived


if __name__ == "__main__":
    sys.exit(main())
