"""Findings of logs that lack a segment, or all times: none that the whole log does not have."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import run_command
from tests.jobs.filled_tables import kafka_rows, sample_rows, write_json
from tests.matrix.removals import cut, group_partitions

SAMPLES = Path("data/samples")
Key = tuple[str, str | None, str | None]


def found(folder: Path) -> set[Key]:
    """The findings of all groups: of which kind, about which group and whom."""
    done = run_command("findings", "--log", folder, "--json")
    return {(row["kind"], row["group_id"], row["subject"]) for row in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(params=["logs", "share_delivery/logs", "incident"])
def whole(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A sample without its metadata log, in segments."""
    folder = tmp_path / "whole"
    shutil.copytree(SAMPLES / request.param, folder)
    for metadata in folder.glob("__cluster_metadata-*"):
        shutil.rmtree(metadata)
    cut(folder, 8)
    return folder


def test_what_is_lost_makes_no_finding(whole: Path, tmp_path: Path) -> None:
    truth = found(whole)
    for number in range(1, 7):
        lost = tmp_path / f"without {number}"
        shutil.copytree(whole, lost)
        for partition in group_partitions(lost):
            files = sorted(partition.glob("*.log"))
            if number + 1 < len(files):
                files[number].unlink()
        assert found(lost) - truth == set(), number


@pytest.mark.parametrize("timestamp", [{}, {"timestamp": 0}, {"timestamp": -1}], ids=str)
def test_records_without_times_make_no_finding(whole: Path, tmp_path: Path, timestamp: dict[str, int]) -> None:
    rows = kafka_rows(sample_rows("__consumer_offsets", whole))
    named = [{name: value for name, value in row.items() if name != "timestamp"} for row in rows]
    write_json(tmp_path / "dump.jsonl.gz", [row | timestamp for row in named])
    write_json(tmp_path / "timed.jsonl.gz", rows)
    assert found(tmp_path / "dump.jsonl.gz") <= found(tmp_path / "timed.jsonl.gz")
