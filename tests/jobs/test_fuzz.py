"""Changed logs through the commands: those that once broke something, and in the long tier new ones for a while."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from tests.fuzz.campaign import STABLE_COMMANDS, Campaign, fuzz
from tests.fuzz.limits import MEGABYTE, Limits, run
from tests.shared_data import ROOT

CORPUS = sorted((ROOT / "tests" / "data" / "fuzz").glob("*.tar.gz"))
LIMITS = Limits(seconds=20, memory=512 * MEGABYTE)
COMMANDS = (*STABLE_COMMANDS, ("groups",), ("history", "g"), ("whatif", "g", "--standbys", "1"))


@pytest.mark.parametrize("logs", CORPUS, ids=lambda path: path.name.removesuffix(".tar.gz"))
def test_what_once_broke_something(logs: Path, tmp_path: Path) -> None:
    with tarfile.open(logs) as archive:
        archive.extractall(tmp_path, filter="data")
    failures = [failure for command in COMMANDS if (failure := run(command, tmp_path, LIMITS)[1]) is not None]
    assert not failures


def test_the_corpus_is_there() -> None:
    assert len(CORPUS) >= 7


@pytest.mark.long
def test_new_changes(tmp_path: Path) -> None:
    tried = fuzz(Campaign(tmp_path / "scratch", LIMITS, tmp_path / "kept"), seed=1, seconds=120)
    assert tried.inputs > 10
    assert not tried.failures
