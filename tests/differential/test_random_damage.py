"""Logs of real brokers that are cut, with holes, and with wrong bits, anywhere: nothing right is called wrong."""

import shutil
from pathlib import Path
from random import Random

import pytest

from tests.jobs.queries.damaged_logs import Claims, FromFiles, damaged_anywhere
from tests.shared_data import SHARED

CORPORA = ("wild", "misc", "upgrade")
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 10))]


@pytest.fixture(scope="module", params=CORPORA)
def corpus(request: pytest.FixtureRequest) -> Path:
    folder = SHARED / "corpus" / request.param / "logs"
    if not folder.exists():
        pytest.skip(f"{folder} is not there")
    return folder


@pytest.fixture(scope="module")
def truth(corpus: Path) -> Claims:
    return Claims.of(FromFiles(corpus).answers())


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_right_is_called_wrong(seed: int, corpus: Path, truth: Claims, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(corpus, folder)
    damaged_anywhere(folder, Random(seed))
    assert Claims.of(FromFiles(folder).answers()).not_in(truth) == []
