"""JSON lines: both forms, and every line that is no record is kept with its place and its cause."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from pathlib import Path

import pytest

from coordinator_core.errors import InputError
from coordinator_core.wire.record_codec import decode_record
from jobs.sources.printed import json_lines
from jobs.sources.printed.forms import is_printed

KEY = {"group": "g", "topic": "t", "partition": 3}
VALUE = {"offset": 7, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 5, "topicId": "rtBKLTkuQfqz2e1w3xbhRA"}


def test_base64_with_a_position_and_columns_of_its_own() -> None:
    line = {
        "topic": "__consumer_offsets", "partition": 2, "offset": 11, "timestamp": "2026-11-21T12:00:00.123Z",
        "timestampType": 0, "key": b64encode(b"k").decode(), "value": None, "broker": 4,
    }  # fmt: skip
    row = json_lines.parse(json.dumps(line).encode())
    assert (row["log_topic"], row["log_partition"], row["log_offset"]) == ("__consumer_offsets", 2, 11)
    assert (row["timestamp_ms"], row["timestamp_type"]) == (1795262400123, "CreateTime")
    assert (row["key"], row["value"], row["outcome"], row["extra"]) == (b"k", None, "unknown", {"broker": "4"})


@pytest.mark.parametrize(("type_name", "number"), [("type", int), ("version", str)])
def test_printed_records_are_encoded_anew_and_have_no_position(type_name: str, number: type) -> None:
    """Kafka 4 prints ``type`` and numbers, 3.8 and 3.9 ``version`` and text."""
    printed = {"key": {type_name: number(1), "data": KEY}, "value": {"version": number(4), "data": VALUE}}
    row = json_lines.parse(json.dumps(printed).encode())
    decoded = decode_record(row["key"], row["value"])
    assert (decoded.type, decoded.key, decoded.value_version, decoded.value) == (1, KEY, 4, VALUE)
    assert "log_partition" not in row
    assert "log_offset" not in row


def test_a_printed_tombstone_has_no_value() -> None:
    row = json_lines.parse(json.dumps({"key": {"type": 2, "data": {"group": "g"}}, "value": None}).encode())
    assert row["value"] is None
    assert decode_record(row["key"], None).key == {"group": "g"}


def test_printed_share_state_is_of_the_other_log() -> None:
    key = {"groupId": "g", "topicId": "rtBKLTkuQfqz2e1w3xbhRA", "partition": 1}
    row = json_lines.parse(json.dumps({"key": {"type": 0, "data": key}, "value": None}).encode())
    assert row["log_topic"] == "__share_group_state"


def test_the_names_that_kcat_gives() -> None:
    line = {"topic": "__consumer_offsets", "partition": 0, "offset": 5, "tstype": "create", "ts": 7, "broker": 1}
    row = json_lines.parse(json.dumps({**line, "key": "aw==", "payload": "dg=="}).encode())
    assert (row["key"], row["value"], row["timestamp_ms"], row["timestamp_type"]) == (b"k", b"v", 7, "CreateTime")
    assert row["extra"] == {"broker": "1"}
    with pytest.raises(InputError, match=r"payload: kcat prints bytes as text"):
        json_lines.parse(json.dumps({**line, "key": "aw==", "payload": "\0\3\0"}).encode())


def test_an_offset_without_its_partition_is_no_position() -> None:
    assert "log_offset" not in json_lines.parse(b'{"key": "aw==", "value": null, "offset": 3}')


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "not JSON"),
        (b"[1]", "JSON object.* list"),
        (b'{"value": "aw=="}', "'key' is missing"),
        (b'{"key": "a*b="}', "key: invalid base64"),
        (b'{"key": 5}', "key: expected base64"),
        (b'{"key": "aw==", "topic": {}}', "topic: expected a name, not {}"),
        (b'{"key": "aw==", "partition": -7, "offset": 1}', "partition: invalid value -7"),
        (b'{"key": "aw==", "timestamp": "noon"}', "timestamp: invalid time 'noon'"),
        (b'{"key": {"type": 1, "data": "unknown"}, "value": null}', 'the formatter printed "unknown"'),
    ],
)
def test_a_line_that_is_no_record_says_why(line: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        json_lines.parse(line)


def test_bad_lines_become_rows_and_the_others_are_read(tmp_path: Path) -> None:
    file = tmp_path / "dump.jsonl"
    file.write_bytes(b'{"key": "aw=="}\n\nnothing\n{"key": "aw=="}\n{"key": {"type": Infinity, "data": {}}}\n')
    rows = list(json_lines.read(file))
    assert rows.pop()["error"] == "line 5: type: not a number: 'inf'"
    assert [(row["kind"], row["place"]) for row in rows] == [("record", 1), ("damaged", 3), ("record", 4)]
    assert rows[1]["value"] == b"nothing"
    assert rows[1]["error"].startswith("line 3: not JSON")


def test_a_cut_archive_gives_what_is_before_the_cut(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"key": "aw=="}\n' * 1000)
    file = tmp_path / "dump.jsonl.gz"
    file.write_bytes(whole[:-12])
    *records, last = json_lines.read(file)
    assert {row["kind"] for row in records} <= {"record"}
    assert last["kind"] == "damaged"
    assert "damaged after line" in last["error"]


def test_an_overlong_line_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "MOST_LINE_BYTES", 20)
    file = tmp_path / "dump.jsonl"
    file.write_bytes(b'"' + b"x" * 70 + b'"\n{"key": "aw=="}\n')
    assert [(row["kind"], row["place"]) for row in json_lines.read(file)] == [("damaged", 1), ("record", 2)]


@pytest.mark.parametrize("is_list", [False, True])
def test_records_printed_over_many_lines_are_those_of_one_line_each(tmp_path: Path, *, is_list: bool) -> None:
    """As jq prints them, and as a list that was saved; half of one is damage, and takes no other with it."""
    records = [
        {
            "key": b64encode(b"k%d" % at).decode(),
            "value": None,
            "metadata": {"topic": "t", "partition": 0, "offset": at},
        }
        for at in range(3)
    ]
    printed = [json.dumps(record, indent=2) for record in records]
    text = json.dumps(records, indent=2) if is_list else "\n".join([*printed[:2], printed[0][:40], printed[2]])
    (tmp_path / "a.json").write_text(f"{text}\n")
    assert is_printed(str(tmp_path / "a.json"))
    rows = list(json_lines.read(tmp_path / "a.json"))
    assert [row["log_offset"] for row in rows if row["kind"] == "record"] == [0, 1, 2]
    assert sum(row["kind"] == "damaged" for row in rows) == (0 if is_list else 4)


def test_other_json_over_many_lines_is_not_taken_for_records(tmp_path: Path) -> None:
    (tmp_path / "connector.json").write_text(json.dumps({"name": "sink", "config": {"topics": "t"}}, indent=2))
    assert not is_printed(str(tmp_path / "connector.json"))
