"""Changed logs through the commands: those that once broke something, and in the long tier new ones for a while."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.fuzz.campaign import Campaign, fuzz, try_input
from tests.fuzz.files import KINDS
from tests.fuzz.inputs import LOG, make_input
from tests.fuzz.limits import MEGABYTE, Limits, commands_kept, run_command
from tests.shared_data import ROOT

CORPUS = sorted((ROOT / "tests" / "data" / "fuzz").glob("*.tar.gz"))
LARGE = {"batch-of-very-many-records.tar.gz"}
"""Logs that each command reads for seconds."""
LIMITS = Limits(seconds=20, memory=512 * MEGABYTE)
COMMANDS = (
    *(("describe", "--all"), ("audit", "--json"), ("findings",), ("rebalances",), ("groups",), ("history", "g")),
    ("whatif", "g", "--standbys", "1"),
)
GIVEN = sorted((ROOT / "tests" / "data" / "fuzz" / "inputs").glob("*/command.json"))
"""Inputs of every kind that once broke the command that is beside them."""


@pytest.mark.parametrize(
    "logs",
    [pytest.param(path, marks=pytest.mark.long if path.name in LARGE else ()) for path in CORPUS],
    ids=[path.name.removesuffix(".tar.gz") for path in CORPUS],
)
def test_what_once_broke_something(logs: Path, tmp_path: Path) -> None:
    with tarfile.open(logs) as archive:
        archive.extractall(tmp_path, filter="data")
    questions = ((*command, "--log", str(tmp_path)) for command in COMMANDS)
    failures = [failure for question in questions if (failure := run_command(question, LIMITS)[1]) is not None]
    assert not failures


@pytest.mark.parametrize("file", GIVEN, ids=lambda path: path.parent.name)
def test_what_once_broke_a_command(file: Path, tmp_path: Path) -> None:
    words = {"OUT": str(tmp_path / "page.html"), "NEW": str(tmp_path / "new"), "LOGS": str(file.parent / "logs")}
    command = [words.get(word, word.replace("HERE", str(file.parent))) for word in json.loads(file.read_text())]
    with commands_kept():
        assert run_command(command, LIMITS)[1] is None


def test_each_kind_of_input_is_made_and_read(tmp_path: Path) -> None:
    tried: dict[str, set[str]] = {}
    with commands_kept():
        for seed in range(150):
            given = make_input(tmp_path / "simulated", seed)
            assert try_input(given, tmp_path / "input", LIMITS) is None
            tried.setdefault(given.kind, set()).add(given.command[0])
            if {LOG, *KINDS} <= set(tried) and len(tried[LOG]) > 5:
                return
    pytest.fail(f"not all of {[LOG, *KINDS]} were made, or few commands read logs: {tried}")


def test_the_corpus_is_there() -> None:
    assert len(CORPUS) >= 7


@pytest.mark.long
def test_new_changes(tmp_path: Path) -> None:
    tried = fuzz(Campaign(tmp_path / "scratch", LIMITS, tmp_path / "kept"), seed=1, seconds=60)
    assert tried.inputs > 1_000
    assert not tried.failures
