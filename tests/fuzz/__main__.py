"""Command ``python -m tests.fuzz``: feed changed inputs of every kind to the commands until the time is over.

Exit code 1 if a command crashed, used too much time or too much memory; those inputs are kept.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.campaign import Campaign, Tried, fuzz
from tests.fuzz.limits import MEGABYTE, Limits


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to run")
    parser.add_argument("--seed", type=int, default=1, help="first seed; each input has a seed of its own")
    parser.add_argument("--processes", type=int, default=1, help="how many processes try inputs")
    parser.add_argument("--time", type=float, default=Limits().seconds, help="processor seconds that a command may use")
    parser.add_argument("--memory", type=int, default=Limits().memory // MEGABYTE, help="MiB that a command may use")
    parser.add_argument("--keep", type=Path, default=Path("out/fuzz"), help="folder for inputs that broke something")
    chosen = parser.parse_args()
    limits = Limits(chosen.time, chosen.memory * MEGABYTE)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign(Path(scratch), limits, chosen.keep, chosen.processes)
        tried = fuzz(campaign, chosen.seed, chosen.seconds)
    _print(tried, time.monotonic() - began)
    return bool(tried.failures)


def _print(tried: Tried, seconds: float) -> None:
    """Print the tally: inputs by kind, and for each kind by command."""
    kinds: dict[str, Counter[str]] = {}
    for (kind, command), number in tried.counts.items():
        kinds.setdefault(kind, Counter())[command] += number
    for kind, commands in sorted(kinds.items()):
        told = ", ".join(f"{command} {number}" for command, number in sorted(commands.items()))
        print(f"  {kind}: {commands.total()} ({told})")
    print(
        f"{tried.inputs} inputs through {tried.commands} commands in {seconds:.0f} s, "
        f"{len(tried.failures)} that broke something, at most {tried.peak_mib} MiB in a process"
    )


if __name__ == "__main__":
    sys.exit(main())
