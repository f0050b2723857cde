"""Command ``python -m tests.broker.wild FOLDER``: record a random life of groups on a real broker."""

import argparse
import signal
import sys
from pathlib import Path

from tests.broker.kafka import KAFKA
from tests.broker.wild import Wild

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--release", default=KAFKA)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--seconds", type=float, default=180)
    options.add_argument("--compaction", action="store_true")
    options.add_argument("--second-broker", action="store_true", help="in another rack; it is what fails over")
    given = options.parse_args()
    given.folder.mkdir(parents=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM: what was recorded until then is kept"))
    life = Wild(given.folder, given.release, given.seed, is_compacted=given.compaction, has_second=given.second_broker)
    life.live(given.seconds)
