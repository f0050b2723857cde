"""Situations of public reports, rebuilt on real brokers (``tests/data/reports.tar.xz``): what is said of them."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rows_of_command, run_command
from tests.core.real_logs import unpacked

REPORTS = unpacked("reports") / "reports"
DEAD_LETTERS = REPORTS / "dead_letters"
"""A share group with a dead-letter queue, and one whose queue names a topic that there is not (4.4.0)."""
TWO_CLUSTERS = REPORTS / "two_clusters"
"""Two Connect clusters with one group.id, each with its own config topic (4.3.1)."""


def printed(*command: str, logs: Path) -> list[dict[str, Any]]:
    return rows_of_command(*command, "--log", logs)


def cut(folder: Path, log: str, records: int, into: Path) -> Path:
    """The logs with only so many records at the beginning of one."""
    shutil.copytree(folder, into, dirs_exist_ok=True)
    segment = into / log / "00000000000000000000.log"
    data = segment.read_bytes()
    end = next((at for at in _batches(data) if int.from_bytes(data[at : at + 8]) >= records), len(data))
    segment.write_bytes(data[:end])
    return into


def _batches(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        found.append(at)
        at += 12 + int.from_bytes(data[at + 8 : at + 12])
    return found


def test_records_on_their_way_to_a_dead_letter_queue_break_no_rule() -> None:
    assert [row for row in printed("audit", logs=DEAD_LETTERS) if row["table"] == "violations"] == []


def test_records_given_up_to_a_dead_letter_queue_are_no_markers_of_transactions() -> None:
    found = {row["group_id"]: row for row in printed("findings", logs=DEAD_LETTERS) if row["kind"] == "share_archived"}
    assert {group: row["value"] for group, row in found.items()} == {"billing": 6, "shipping": 6}
    assert not any("marker" in row["detail"] for row in found.values())
    assert "payments-0 6 after 2 deliveries (the limit)" in found["billing"]["detail"]


def test_records_that_no_dead_letter_queue_has_are_found() -> None:
    (row,) = (row for row in printed("findings", logs=DEAD_LETTERS) if row["kind"] == "share_unqueued")
    assert (row["group_id"], row["value"], row["level"]) == ("shipping", 6, "alarm")
    assert row["detail"] == (
        "6 records of parcels archived, and not in a dead-letter queue: errors.deadletterqueue.topic.name names "
        "dlq.parcels, and there is no such topic"
    )


def test_offsets_count_what_is_on_its_way_to_the_queue(tmp_path: Path) -> None:
    (row,) = printed("offsets", "billing", logs=cut(DEAD_LETTERS, "__share_group_state-0", 5, tmp_path))
    counted = {name: row[name] for name in ("available", "acknowledged", "archiving", "archived", "nextOffset")}
    assert counted == {"available": 1, "acknowledged": 6, "archiving": 4, "archived": 0, "nextOffset": 4}


def test_history_names_the_log_of_share_state() -> None:
    result = run_command("history", "shipping", "--log", DEAD_LETTERS)
    assert "share: sent to the dead-letter queue" in result.stdout
    assert "__share_group_state 0:15" in result.stdout


@pytest.mark.parametrize("generation", [5, 6, 7])
def test_the_worker_of_another_cluster_is_a_cause(generation: int) -> None:
    asked = ["explain", f"connect-cluster@{generation}", "--log", str(TWO_CLUSTERS)]
    (said,) = (line for line in run_command(*asked).stdout.splitlines() if "config topic" in line)
    assert "connect-127.0.0.1:21182 at 127.0.0.1) reads another config topic than others" in said
    assert "(it came back with config offset -1 after it was assigned at 4)" in said


def test_two_connect_clusters_with_one_group_id_are_an_alarm() -> None:
    (row,) = (row for row in printed("findings", logs=TWO_CLUSTERS) if row["level"] == "alarm")
    assert (row["kind"], row["subject"], row["value"]) == ("configs_differ", "connect-127.0.0.1:21182 at 127.0.0.1", 3)
