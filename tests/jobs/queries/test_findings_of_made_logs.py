"""Findings whose other tests type in rows: here each is found in a log, made record by record."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from coordinator_core.records import CoordinatorRecord, MetadataRecordType
from coordinator_core.simulator.brokers import MetadataRecord
from tests.commands import run_command
from tests.core.builders import GroupLog, consumer_member
from tests.jobs.logs import batch, metadata_batches, write_segment

A = "AAAAAAAAAAAAAAAAAAAAAQ"


def kinds_of(logs: Path, *options: object) -> dict[str, dict[str, Any]]:
    """The findings of a folder of logs by kind."""
    result = run_command("findings", "--json", "--log", logs, *options)
    assert result.exit_code == 0 or "nothing was found" in result.stderr, result.stderr
    return {row["kind"]: row for row in map(json.loads, result.stdout.splitlines())}


def write(logs: Path, records: Iterable[CoordinatorRecord], partition: int = 0) -> None:
    write_segment(logs / f"__consumer_offsets-{partition}", [batch(record) for record in records])


def consumer_group(log: GroupLog) -> list[CoordinatorRecord]:
    return [log.member("m"), log.epoch(1), log.target("m", {A: [0]}), log.target_epoch(1)]


def a_while(log: GroupLog, seconds: int = 100) -> list[CoordinatorRecord]:
    """Seconds in which another job commits for the group."""
    return [log.commit("others", 0, offset) for offset in range(seconds)]


def test_two_jobs_that_commit_by_turns(tmp_path: Path) -> None:
    log = GroupLog("etl")
    write(tmp_path, [log.commit("orders", 0, offset) for turn in range(7) for offset in (1_000 + turn, 10 + turn)])
    found = kinds_of(tmp_path)["commits_by_turns"]
    assert (found["group_id"], found["value"]) == ("etl", 7)
    write(tmp_path, [log.commit("orders", 0, turn) for turn in range(14)])
    assert "commits_by_turns" not in kinds_of(tmp_path)


def test_an_epoch_after_the_other_before_the_member_has_its_target(tmp_path: Path) -> None:
    log = GroupLog("busy")
    records = [*consumer_group(log), log.current("m", 1, {A: [0]})]
    for epoch in range(2, 6):
        records += [log.epoch(epoch), log.target_epoch(epoch), *a_while(log)]
    write(tmp_path, records)
    found = kinds_of(tmp_path)["never_converges"]
    assert (found["group_id"], found["value"] > 300_000) == ("busy", True)


def test_many_groups_that_had_members_once(tmp_path: Path) -> None:
    for number in range(50):
        log = GroupLog(f"job-{number}")
        write(tmp_path, [log.classic(1, [consumer_member("m", [0], [])]), log.classic(2)], partition=number)
    found = kinds_of(tmp_path)["short_lived_groups"]
    assert (found["subject"], found["value"]) == ("job-N", 50)
    for file in (tmp_path / "__consumer_offsets-0").iterdir():
        file.unlink()
    assert "short_lived_groups" not in kinds_of(tmp_path)


def test_a_group_whose_feature_was_turned_off(tmp_path: Path) -> None:
    write(tmp_path, consumer_group(GroupLog("modern")))

    def level(number: int) -> MetadataRecord:
        return MetadataRecord(MetadataRecordType.FEATURE_LEVEL, 0, {"name": "group.version", "featureLevel": number})

    for levels, is_found in (((1,), False), ((1, 0), True)):
        metadata = [(1_000 * at, [level(number)]) for at, number in enumerate(levels)]
        write_segment(tmp_path / "__cluster_metadata-0", metadata_batches(metadata))
        assert ("feature_off" in kinds_of(tmp_path)) is is_found


def test_a_member_that_went_as_the_broker_says_and_is_still_there_in_the_log(tmp_path: Path) -> None:
    log = GroupLog("kept")
    write(tmp_path / "logs", [*consumer_group(log), log.current("m", 1, {A: [0]}), *a_while(log, 800)])
    prefix = "INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=0]"
    left = f"[1970-01-01 00:02:00,000] {prefix} [GroupId kept] Member m left the consumer group.\n"
    server_log = tmp_path / "server.log"
    options = ("--broker-log", server_log, "--broker-log-zone", "UTC")
    server_log.write_text(left)
    assert "decision_not_kept" not in kinds_of(tmp_path / "logs", *options), "the broker may have been killed"
    server_log.write_text(f"{left}[1970-01-01 00:12:00,000] INFO [ReplicaManager broker=1] Anything.\n")
    assert "decision_not_kept" in kinds_of(tmp_path / "logs", *options)
    assert "decision_not_kept" not in kinds_of(tmp_path / "logs")
