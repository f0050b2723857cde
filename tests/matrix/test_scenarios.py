"""Scenarios and removals that seeds choose: no answer says another thing than on the whole log.

``python -m tests.matrix --seed N`` prints the cells of a seed.
"""

import subprocess
import sys

import pytest

from tests.matrix.scenarios import scenario
from tests.shared_data import ROOT

SEEDS = range(1, 131)
QUICK = (2, 7, 19, 35, 97, 113, 126)
"""The seeds that the quick tier asks, from files: seven of those with the fewest records.

Together they have all types of groups, conversions, static members, regexes, transactions and outages.

Of a seed about 80 cells are left of 100, as not all logs have what is to be taken away. That is 500 cells here, and
20,000 in the long tier.
"""


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed in QUICK else pytest.mark.long) for seed in SEEDS]
)
def test_cells_of_files_are_the_same_or_unknown(seed: int) -> None:
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_cells_of_tables_are_the_same_or_unknown(seed: int) -> None:
    check(seed, "--tables")


def check(seed: int, *options: str) -> None:
    """Ask 100 cells of a seed."""
    command = [sys.executable, "-m", "tests.matrix", "--seed", str(seed), "--cells", "100", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    last = done.stdout.splitlines()[-1]
    assert last.startswith("all ")
    assert not any(word in last for word in ("wrong", "without reason", "needless")), done.stdout


def test_a_seed_makes_one_scenario() -> None:
    assert scenario(5) == scenario(5) != scenario(6)


def test_the_quick_seeds_have_all_types_of_groups() -> None:
    scenarios = [scenario(seed) for seed in QUICK]
    groups = [group for made in scenarios for group in made["groups"].values()]
    kinds = {"classic", "consumer", "share", "streams", "connect", "connect-kip-848", "classic-streams"}
    assert {group["type"] for group in groups} >= kinds
    assert all(any(group.get(feature) for group in groups) for feature in ("static", "commits", "regex"))
    assert any("migrate" in event for group in groups for event in group["events"])
    assert any("outages" in made["cluster"] for made in scenarios)
