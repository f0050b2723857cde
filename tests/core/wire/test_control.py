"""Control records of the KRaft log, as a broker wrote them and as kafka-dump-log 4.3.1 prints them."""

from pathlib import Path

import pytest

from coordinator_core.errors import DecodeError
from coordinator_core.records import Family
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.control import CONTROL_TYPES, kraft_fields
from coordinator_core.wire.kafka_text import KRAFT, record_line
from coordinator_core.wire.schema import control_schemas
from tests.core.wire.segments import reader

SNAPSHOTS = Path(__file__).resolve().parents[2] / "data" / "kraft"
"""What ``kafka-storage format --standalone`` leaves, and kafka-dump-log's text of it without the first line."""

LEADER_CHANGE = bytes.fromhex("00000000000102000000010002000000010000")
"""Node 1 votes for itself."""


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", "00000000000000000000-0000000000.checkpoint"])
def test_snapshots_print_as_kafka_prints_them(name: str) -> None:
    data = (SNAPSHOTS / name).read_bytes()
    lines = [record_line(row, Family.METADATA) for row in read_rows(reader(data), len(data))]
    expected = (SNAPSHOTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert lines == [line for line in expected if line.startswith("|")]


def test_a_change_of_leader() -> None:
    assert kraft_fields(2, LEADER_CHANGE) == {
        "version": 0,
        "leaderId": 1,
        "voters": [{"voterId": 1}],
        "grantingVoters": [{"voterId": 1}],
    }


def test_every_control_record_but_markers_has_a_schema_and_a_text() -> None:
    named = {CONTROL_TYPES[number] for number in control_schemas()}
    assert named == set(KRAFT) == set(CONTROL_TYPES) - {"ABORT", "COMMIT"}
    assert kraft_fields(7, b"") is None


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (None, "LeaderChangeMessage: no value"),
        (LEADER_CHANGE[:-1], "LeaderChangeMessage at byte 18: a varint is cut off"),
        (LEADER_CHANGE + b"\0", "1 bytes after its fields"),
        (
            LEADER_CHANGE[:6] + b"\xff\xff\xff\xff\xff" + LEADER_CHANGE[7:],
            "LeaderChangeMessage.voters at byte 6: a varint exceeds",
        ),
    ],
)
def test_what_is_no_such_record_is_named(value: bytes | None, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint.replace(".", r"\.")):
        kraft_fields(2, value)
