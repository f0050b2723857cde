"""Logs that are cut, with holes, and with wrong bits, anywhere: nothing right is called wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.queries.damaged_logs import Claims, FromFiles, damaged_anywhere

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 40))]


@pytest.fixture(scope="module")
def truth() -> Claims:
    return Claims.of(FromFiles(SAMPLE_LOGS).answers())


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_right_is_called_wrong(seed: int, truth: Claims, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, folder)
    damaged_anywhere(folder, Random(seed))
    assert Claims.of(FromFiles(folder).answers()).not_in(truth) == []
