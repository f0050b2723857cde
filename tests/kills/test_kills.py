"""Each command that writes, killed at its commits."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.jobs.conftest import spark  # noqa: F401
from tests.kills.lives import LIVES, Lives

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def lives(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lives:  # noqa: F811
    return Lives(Path(tmp_path_factory.mktemp("lives")))


@pytest.mark.parametrize("name", LIVES)
def test_a_command_that_is_killed_at_any_commit_is_made_good(lives: Lives, name: str) -> None:
    """All commits of the command that deletes most, some of each other one; ``python -m tests.kills`` has all."""
    killed = 0
    for commits in count(0, 1 if name == "replay-rebuild" else 6):
        if not lives.live(name, commits):
            break
        killed += 1
    assert killed
