"""What no record says: answers about the samples do not claim it, where the page of limits says that nothing can."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coordinator_core.records import Family
from tests.commands import rows_of_command
from tests.core.builders import GroupLog
from tests.jobs.cli.test_describe import ORDERS, topic_records
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batch, write_segment

SHARE = "D-share-38"
"""A share group with three members in its life, whose state is in the share state log."""


def names(value: Any) -> Iterator[str]:
    """Yield the names of all fields, however deep."""
    if isinstance(value, list):
        value = {str(number): each for number, each in enumerate(value)}
    if isinstance(value, dict):
        for name, each in value.items():
            yield name.lower()
            yield from names(each)


def test_no_answer_has_the_time_of_a_heartbeat() -> None:
    for command in (("describe", "--all"), ("groups",), ("history", "C-consumer"), ("history", SHARE)):
        assert not [name for name in names(rows_of_command(*command, "--log", SAMPLE_LOGS)) if "heartbeat" in name]


def test_who_acknowledged_a_share_record_is_in_no_row_of_its_delivery() -> None:
    rows = [
        row for row in rows_of_command("history", SHARE, "--log", SAMPLE_LOGS) if row["table"] == "share_partitions"
    ]
    rows += rows_of_command("offsets", SHARE, "--log", SAMPLE_LOGS)
    assert any(row.get("accepted_now") for row in rows)
    assert not [name for name in names(rows) if "member" in name or "client" in name or "owner" in name]


def test_the_lock_duration_of_a_share_group_without_settings_of_its_own_is_not_given() -> None:
    (described,) = rows_of_command("describe", SHARE, "--log", SAMPLE_LOGS)
    assert [each["name"] for each in described["settings"]] == ["share.auto.offset.reset"]
    assert not [name for name in names(described) if "lock" in name]


def test_a_commit_has_the_owner_of_its_partition_and_not_who_sent_it(tmp_path: Path) -> None:
    """The second commit may be of ``a`` still, which had left, or of a tool: nobody had the partition."""
    log = GroupLog("payments")
    operations = [
        log.join("a", 2, {ORDERS: [0, 1]}),
        [log.commit("orders", 0, 5)],
        [*log.gone("a"), log.epoch(3)],
        [log.commit("orders", 1, 9)],
    ]
    write_segment(tmp_path / "__consumer_offsets-0", [batch(*records) for records in operations])
    write_segment(tmp_path / "__cluster_metadata-0", [batch(*topic_records(), family=Family.METADATA)])
    rows = rows_of_command("commits", "payments", "--log", tmp_path)
    assert [(row["partition"], row["owner"]) for row in rows] == [(0, "a"), (1, None)]
    assert not [name for name in names(rows) if "member" in name]
