"""Command ``python -m tests.fuzz``: feed changed logs to the commands until the time is over.

Exit code 1 if a command crashed, used too much time or too much memory; those logs are kept.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.fuzz.campaign import Campaign, fuzz
from tests.fuzz.limits import MEGABYTE, Limits


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to run")
    parser.add_argument("--seed", type=int, default=1, help="first seed; each input has a seed of its own")
    parser.add_argument("--time", type=float, default=Limits().seconds, help="processor seconds that a command may use")
    parser.add_argument("--memory", type=int, default=Limits().memory // MEGABYTE, help="MiB that a command may use")
    parser.add_argument("--keep", type=Path, default=Path("out/fuzz"), help="folder for logs that broke something")
    chosen = parser.parse_args()
    limits = Limits(chosen.time, chosen.memory * MEGABYTE)
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(Path(scratch), limits, chosen.keep)
        tried = fuzz(campaign, chosen.seed, chosen.seconds)
    print(
        f"{tried.inputs} inputs, {tried.commands} commands, {len(tried.failures)} that broke something, "
        f"at most {tried.peak_mib} MiB in a process"
    )
    return bool(tried.failures)


if __name__ == "__main__":
    sys.exit(main())
