"""JSON lines: both forms, and every line that is no record is kept with its place and its cause."""

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any, cast

import pytest

from coordinator_core.errors import InputError
from coordinator_core.wire.record_codec import decode_record
from jobs.sources.dump import open_dump
from jobs.sources.files import find_logs
from jobs.sources.printed import json_lines
from jobs.sources.printed.forms import is_printed
from jobs.sources.printed.json_lines import parse
from jobs.sources.printed.logs import printed_logs

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


@pytest.mark.parametrize(
    "changed",
    [
        {"offset": "7", "partition": "3"},
        {"offset": 7.0, "timestamp": 1795256781267.0},
        {"timestamp": "1795256781267"},
        {"timestamp": 1795256781267000},
        {"timestamp": 1795256781267000000},
        {"timestamp": "2026-11-21T10:26:21.267Z"},
    ],
)
def test_numbers_and_times_in_the_forms_of_other_writers(changed: dict[str, object]) -> None:
    record = {"key": "AAE=", "value": "", "partition": 3, "offset": 7, "timestamp": 1795256781267} | changed
    for names in (str, str.upper, str.title):
        row = parse(json.dumps({names(name): value for name, value in record.items()}).encode())
        assert (row["log_partition"], row["log_offset"]) == (3, 7)
        assert row["timestamp_ms"] == 1795256781267
        assert (row["key"], row["value"]) == (b"\0\1", None)


def test_a_time_in_seconds_is_not_one_of_1970() -> None:
    assert parse(b'{"key": "AAE=", "timestamp": 1795256781}')["timestamp_ms"] == 1795256781000
    assert parse(b'{"key": "AAE=", "timestamp": 1000}')["timestamp_ms"] == 1000


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"offset": 7.5}, "offset: invalid value 7.5"),
        ({"offset": "seven"}, "offset: invalid value"),
        ({"offset": float("nan")}, "offset: invalid value"),
        ({"key": "000100"}, "key: hexadecimal digits"),
        ({"value": "\\x0003"}, "value: hexadecimal digits"),
    ],
)
def test_what_looks_like_a_field_and_is_none_is_refused(changed: dict[str, object], complaint: str) -> None:
    record = {"key": "AAE=", "value": None, "partition": 3, "offset": 7} | changed
    with pytest.raises(InputError, match=complaint):
        parse(json.dumps(record).encode())


def test_a_sink_of_several_topics_gives_the_records_of_this_one(tmp_path: Path) -> None:
    for topic in ("__consumer_offsets", "payments"):
        for name in (f"topics/{topic}/partition=3/{topic}+3+0000000000.json", f"{topic}+4+0000000000.json"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b'{"key": "AAE=", "value": null, "offset": 7}\n')
    assert [(log.topic, log.partition) for log in find_logs([tmp_path])] == [
        ("__consumer_offsets", 3),
        ("__consumer_offsets", 4),
    ]


def test_other_json_beside_a_dump_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "dump.jsonl").write_bytes(b'{"key": "AAE=", "partition": 3, "offset": 7}\n')
    (tmp_path / "cluster.jsonl").write_bytes(b'{"timestamp_ms": 1, "topic": "t", "partition": 0, "end_offset": 9}\n')
    (tmp_path / "manifest.json").write_bytes(b'{"made_by": "ops"}\n')
    assert [len(log.files) for log in printed_logs([log.path for log in find_logs([tmp_path])]).logs] == [1]
    (dump,) = open_dump(cast("Any", None), [str(tmp_path)])
    assert dump.source is not None
    assert dump.source.partitions() == [str(tmp_path / "dump.jsonl")]
    with pytest.raises(InputError, match="a snapshot of a cluster: give it as --topics or --end-offsets"):
        find_logs([tmp_path / "cluster.jsonl"])
