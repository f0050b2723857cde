"""The cases that are kept for every run: the hand-picked ones and a few random ones."""

import json
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.broker.highly_available import with_results
from tests.broker.highly_available.hand_picked import hand_picked
from tests.broker.highly_available.random_groups import random_case

SEEDS = (1432, 2178, 3128, 3140, 4070, 5736, 5811, 6646, 7003, 7129, 7149, 7330, 8127, 8259, 9103, 9499, 10330, 10960)
"""Chosen by breaking the assignor rule by rule: each rule decides three or more of the cases kept."""

if __name__ == "__main__":
    with TemporaryDirectory() as home:
        for result in with_results(chain(hand_picked(), map(random_case, SEEDS)), Path(home)):
            print(json.dumps(result, separators=(",", ":")))
