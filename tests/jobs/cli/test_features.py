"""The levels of features that a cluster works with, as ``config`` shows them beside the settings."""

import json
from pathlib import Path

import pytest
from typer.testing import Result

from tests.commands import run_command
from tests.jobs.conftest import ROOT
from tests.matrix.sources import StoredTables, ThisProcess

INCIDENT = ROOT / "data" / "samples" / "incident"


def config(*options: str | Path) -> Result:
    return run_command("config", "--json", *options)


def features(result: Result) -> dict[str, tuple[int, str]]:
    assert result.exit_code == 0, result.stderr
    lines = map(json.loads, result.stdout.splitlines())
    return {
        line["setting"].removeprefix("feature "): (line["value"], line["from"])
        for line in lines
        if line["setting"].startswith("feature ")
    }


def test_features_are_those_of_the_metadata_log_in_files_and_tables(tmp_path: Path) -> None:
    of_files = features(config("--log", INCIDENT))
    assert of_files["group.version"] == (1, "__cluster_metadata 0:9")
    assert "kraft.version" not in of_files, "no record of the metadata log sets it"
    StoredTables(ThisProcess(), tmp_path / "tables", [[INCIDENT]])
    assert features(config("--tables", tmp_path / "tables")) == of_files


def test_without_a_metadata_log_no_level_is_claimed() -> None:
    assert features(config()) == {}
    refused = config("--log", INCIDENT / "__consumer_offsets-3")
    assert refused.exit_code == 1
    assert "no segments of __cluster_metadata" in refused.stderr


@pytest.mark.parametrize("options", [["--log", str(INCIDENT), "--tables", "x"]])
def test_either_files_or_tables(options: list[str]) -> None:
    assert config(*options).exit_code == 2
