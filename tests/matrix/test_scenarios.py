"""Scenarios and removals that seeds choose: no answer says another thing than on the whole log.

``python -m tests.matrix --seed N`` prints the cells of a seed.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.matrix.scenarios import scenario
from tests.shared_data import ROOT

SEEDS = range(1, 101)
QUICK = 4
"""The seed of which the quick tier asks eight cells."""


@pytest.mark.parametrize("cells", [8, pytest.param(100, marks=pytest.mark.long)])
def test_cells_of_a_seed_are_the_same_or_unknown(cells: int) -> None:
    check(QUICK, cells)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("tables", [False, True], ids=["files", "tables"])
def test_cells_of_many_seeds_are_the_same_or_unknown(seed: int, *, tables: bool) -> None:
    check(seed, 100, "--tables" if tables else None)


def check(seed: int, cells: int, *options: str | None) -> None:
    """Ask so many cells of a seed."""
    command = [sys.executable, "-m", "tests.matrix", "--seed", str(seed), "--cells", str(cells), *filter(None, options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    last = done.stdout.splitlines()[-1]
    assert last.startswith("all ")
    assert not any(word in last for word in ("wrong", "without reason", "needless")), done.stdout


def test_a_seed_makes_one_scenario() -> None:
    assert scenario(5) == scenario(5) != scenario(6)
    kinds = {group["type"] for seed in SEEDS for group in scenario(seed)["groups"].values()}
    assert kinds >= {"classic", "consumer", "share", "streams", "connect", "connect-kip-848", "classic-streams"}
