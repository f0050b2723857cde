"""The commands that tell what groups went through, from segment files to what is printed."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import Result

from coordinator_core.records import CoordinatorRecord, Family, LogPosition, MetadataRecordType
from tests.commands import run_command
from tests.core.history.logs import GROUP, A, GroupLog, alone, current, epoch, gone, member, target, target_epoch
from tests.jobs.logs import batch, write_segment


def run(*arguments: object) -> Result:
    return run_command(*arguments, env={"COLUMNS": "400"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = alone(GroupLog())
    log.write(member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2, 3), target_epoch(3))
    log.write(current("m1", 3, 0, 1)).write(current("m2", 3, 2, 3), after_ms=400)
    log.write(*gone("m2"), epoch(4))
    batches: dict[int, list[CoordinatorRecord]] = {}
    for record in log.records:
        batches.setdefault(record.batch, []).append(record)
    write_segment(tmp_path / "__consumer_offsets-0", [batch(*records) for records in batches.values()])
    topic = CoordinatorRecord(LogPosition(0, 1, 500), MetadataRecordType.TOPIC, {}, {"name": "t", "topicId": A}, 0)
    last = CoordinatorRecord(LogPosition(0, 2, log.records[-1].at.timestamp_ms), MetadataRecordType.NO_OP, {}, {}, 0)
    write_segment(tmp_path / "__cluster_metadata-0", [batch(each, family=Family.METADATA) for each in (topic, last)])
    return tmp_path


def test_a_timeline_for_people(folder):
    text = run("history", GROUP, "--log", folder).stdout
    for told in ("member came: join", "rebalance 2 to 3", "converged at 3", "2 moved", "member_left_or_expired"):
        assert told in text
    assert re.search(r"member_left_or_expired [^ ]+ at [^ ]+ \(m2\)", text), "the client first, its id behind"
    later = run("history", GROUP, "--log", folder, "--since", "1970-01-01T00:00:05Z").stdout
    assert "rebalance 2 to 3" not in later
    assert "rebalance 3 to 4" in later


def test_every_row_as_json(folder):
    rows = [json.loads(line) for line in run("history", GROUP, "--log", folder, "--json").stdout.splitlines()]
    assert {row["table"] for row in rows} == {
        *("group_epochs", "rebalances", "memberships", "assignments"),
        "violations",  # m2 joined, and got no current assignment at once
    }
    assert all(row["group_id"] == GROUP for row in rows)
    left = next(row for row in rows if row["table"] == "memberships" and row["member_id"] == "m2")
    assert left["left"] == {"partition": 0, "offset": 14, "timestamp_ms": 5400}


def test_rebalances_by_cause_and_by_duration(folder):
    def lines(*options: object) -> list[dict[str, object]]:
        result = run("rebalances", "--log", folder, "--json", *options)
        return [json.loads(line) for line in result.stdout.splitlines()]

    assert [line["to_epoch"] for line in lines()] == [2, 3, 4]
    assert [line["to_epoch"] for line in lines("--cause", "member_left_or_expired")] == [4]
    (slowest,) = lines("--slowest", 1)
    assert (slowest["to_epoch"], slowest["duration_min_ms"], slowest["units_moved"]) == (3, 1400, 2)
    assert "member_joined" in run("rebalances", "--log", folder).stdout


def test_what_is_not_there_is_one_line(folder):
    assert "'other'" in run("history", "other", "--log", folder).stderr
    for command in ("rebalances", "audit", "findings"):
        unknown = run(command, "--group", "other", "--log", folder)
        assert unknown.exit_code == 1
        assert re.fullmatch("error: .*'other'.*\n", unknown.stderr)
    behind_the_end = run("rebalances", "--group", "g", "--since", "2100-01-01", "--log", folder)
    assert (behind_the_end.exit_code, "before 2100-01-01" in behind_the_end.stderr) == (1, True)
    wrong = run("rebalances", "--log", folder, "--cause", "moon")
    assert wrong.exit_code == 2
    assert re.search("'moon'.*assignor_changed", wrong.stderr)
