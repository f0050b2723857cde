"""Record versions that no broker of today writes, put together by hand from the schema facts, not by the encoder."""

import struct
from typing import Any

import pytest

from coordinator_core.records import Family, Fields
from coordinator_core.wire.record_codec import decode_key, decode_value, encode_key, encode_value

TOPIC_ID = bytes(range(16))
TOPIC_ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"


def i8(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}b", *numbers)


def i16(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}h", *numbers)


def i32(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def i64(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}q", *numbers)


def text(value: str | None) -> bytes:
    """An int16 length (-1 for null) and UTF-8."""
    return i16(-1) if value is None else i16(len(value.encode())) + value.encode()


def blob(value: bytes) -> bytes:
    return i32(len(value)) + value


def compact(value: str | bytes | None) -> bytes:
    """A length plus 1 in one byte (0 for null), and the content; only for short ones."""
    if value is None:
        return b"\x00"
    content = value.encode() if isinstance(value, str) else value
    assert len(content) < 127
    return bytes([len(content) + 1]) + content


def compact_array(*elements: bytes) -> bytes:
    assert len(elements) < 127
    return bytes([len(elements) + 1]) + b"".join(elements)


NO_TAGS = b"\x00"

OFFSET_COMMITS: list[tuple[int, bytes, Fields]] = [
    (0, i64(42) + text("größe") + i64(1000), {"offset": 42, "metadata": "größe", "commitTimestamp": 1000}),
    (
        1,
        i64(42) + text("") + i64(1000, 2000),
        {"offset": 42, "metadata": "", "commitTimestamp": 1000, "expireTimestamp": 2000},
    ),
    (2, i64(-1) + text("m") + i64(1000), {"offset": -1, "metadata": "m", "commitTimestamp": 1000}),
    (
        3,
        i64(2**63 - 1) + i32(-1) + text("m") + i64(1000),
        {"offset": 2**63 - 1, "leaderEpoch": -1, "metadata": "m", "commitTimestamp": 1000},
    ),
    (
        4,
        i64(7) + i32(3) + compact("m") + i64(1000) + b"\x01\x00\x10" + TOPIC_ID,
        {"offset": 7, "leaderEpoch": 3, "metadata": "m", "commitTimestamp": 1000, "topicId": TOPIC_ID_TEXT},
    ),
    (
        4,
        i64(7) + i32(3) + compact("m" * 126) + i64(1000) + NO_TAGS,
        {"offset": 7, "leaderEpoch": 3, "metadata": "m" * 126, "commitTimestamp": 1000},
    ),
    (
        4,
        i64(7) + i32(3) + b"\x80\x01" + b"m" * 127 + i64(1000) + NO_TAGS,
        {"offset": 7, "leaderEpoch": 3, "metadata": "m" * 127, "commitTimestamp": 1000},
    ),
]


def member(*names: str, instance: str | None = None) -> Fields:
    known: Fields = {
        "memberId": "m-1",
        "groupInstanceId": instance,
        "clientId": "c",
        "clientHost": "/10.0.0.1",
        "rebalanceTimeout": 60000,
        "sessionTimeout": 10000,
        "subscription": b"\x00\x01",
        "assignment": b"",
    }
    return {name: value for name, value in known.items() if name not in names}


WHO = text("c") + text("/10.0.0.1")
BLOBS = blob(b"\x00\x01") + blob(b"")
GROUP = {"protocolType": "consumer", "generation": 5, "protocol": "range", "leader": "m-1"}
EMPTY_GROUP = {"protocolType": "", "generation": 0, "protocol": None, "leader": None}
GROUP_HEAD = text("consumer") + i32(5) + text("range") + text("m-1")

GROUP_METADATA: list[tuple[int, bytes, Fields]] = [
    (
        0,
        GROUP_HEAD + i32(1) + text("m-1") + WHO + i32(10000) + BLOBS,
        {**GROUP, "members": [member("groupInstanceId", "rebalanceTimeout")]},
    ),
    (
        1,
        GROUP_HEAD + i32(1) + text("m-1") + WHO + i32(60000, 10000) + BLOBS,
        {**GROUP, "members": [member("groupInstanceId")]},
    ),
    (
        2,
        GROUP_HEAD + i64(99) + i32(1) + text("m-1") + WHO + i32(60000, 10000) + BLOBS,
        {**GROUP, "currentStateTimestamp": 99, "members": [member("groupInstanceId")]},
    ),
    (
        3,
        GROUP_HEAD
        + i64(99)
        + i32(2)
        + (text("m-1") + text("i-1") + WHO + i32(60000, 10000) + BLOBS)
        + (text("m-1") + text(None) + WHO + i32(60000, 10000) + BLOBS),
        {**GROUP, "currentStateTimestamp": 99, "members": [member(instance="i-1"), member()]},
    ),
    (
        3,
        text("") + i32(0) + text(None) + text(None) + i64(-1) + i32(0),
        {**EMPTY_GROUP, "currentStateTimestamp": -1, "members": []},
    ),
    (
        4,
        compact("consumer")
        + i32(5)
        + compact("range")
        + compact("m-1")
        + i64(99)
        + compact_array(
            compact("m-1")
            + compact(None)
            + compact("c")
            + compact("/10.0.0.1")
            + i32(60000, 10000)
            + compact(b"\x00\x01")
            + compact(b"")
            + NO_TAGS
        )
        + NO_TAGS,
        {**GROUP, "currentStateTimestamp": 99, "members": [member()]},
    ),
]

PARTITION_METADATA = (
    compact_array(
        TOPIC_ID
        + compact("t")
        + i32(3)
        + compact_array(
            i32(0) + compact_array(compact("rack-a"), compact("rack-b")) + NO_TAGS, i32(2) + compact_array() + NO_TAGS
        )
        + NO_TAGS
    )
    + NO_TAGS,
    {
        "topics": [
            {
                "topicId": TOPIC_ID_TEXT,
                "topicName": "t",
                "numPartitions": 3,
                "partitionMetadata": [{"partition": 0, "racks": ["rack-a", "rack-b"]}, {"partition": 2, "racks": []}],
            }
        ]
    },
)


@pytest.mark.parametrize(
    ("record_type", "version", "body", "fields"),
    [
        *((1, *case) for case in OFFSET_COMMITS),
        *((2, *case) for case in GROUP_METADATA),
        (0, 0, i64(5) + text("m") + i64(6), {"offset": 5, "metadata": "m", "commitTimestamp": 6}),
        (4, 0, *PARTITION_METADATA),
    ],
)
def test_a_value_of_every_version(record_type: int, version: int, body: bytes, fields: Fields) -> None:
    data = i16(version) + body
    assert decode_value(data, record_type) == (version, fields)
    assert encode_value(record_type, version, fields) == data


def test_an_offset_commit_key_of_the_first_format() -> None:
    data = i16(0) + text("gruppe-ä") + text("t") + i32(9)
    fields: Fields = {"group": "gruppe-ä", "topic": "t", "partition": 9}
    assert decode_key(data) == (0, fields)
    assert encode_key(0, fields) == data
    assert decode_key(i16(1) + data[2:]) == (1, fields)


TASKS = compact_array(
    compact_array(compact("file-source"), compact("jdbc"))
    + compact_array(compact("file-source") + i8(0) + NO_TAGS, compact("jdbc") + i8(127) + NO_TAGS)
    + NO_TAGS
)
TASKS_FIELDS: list[Fields] = [
    {
        "connectors": ["file-source", "jdbc"],
        "tasks": [{"connectorId": "file-source", "taskId": 0}, {"connectorId": "jdbc", "taskId": 127}],
    }
]
ASSIGNOR = compact("incremental") + i16(0, 2) + i8(1) + i16(2) + compact(b"\x01") + NO_TAGS
ASSIGNOR_FIELDS: Fields = {
    "name": "incremental",
    "minimumVersion": 0,
    "maximumVersion": 2,
    "reason": 1,
    "version": 2,
    "metadata": b"\x01",
}

CONNECT: list[tuple[int, bool, bytes, Fields]] = [
    (3, False, i32(8) + NO_TAGS, {"epoch": 8}),
    (4, False, i32(8) + TASKS + NO_TAGS, {"epoch": 8, "connectorsTasks": TASKS_FIELDS}),
    (
        5,
        True,
        i32(8)
        + compact("inst")
        + compact("client")
        + compact("/10.0.0.2")
        + compact_array()
        + compact(None)
        + compact_array(ASSIGNOR)
        + NO_TAGS,
        {
            "groupEpoch": 8,
            "instanceId": "inst",
            "clientId": "client",
            "clientHost": "/10.0.0.2",
            "subscribedTopicNames": [],
            "subscribedTopicRegex": None,
            "assignors": [ASSIGNOR_FIELDS],
        },
    ),
    (
        6,
        False,
        i32(8) + compact_array(compact("w-1") + i8(0) + TASKS + i16(1) + compact(b"md") + NO_TAGS) + NO_TAGS,
        {
            "assignmentEpoch": 8,
            "members": [
                {"memberId": "w-1", "error": 0, "connectorsTasks": TASKS_FIELDS, "version": 1, "metadata": b"md"}
            ],
        },
    ),
    (
        7,
        True,
        i32(8) + i8(0) + TASKS + i16(1) + compact(b"") + NO_TAGS,
        {"memberEpoch": 8, "error": 0, "connectorsTasks": TASKS_FIELDS, "version": 1, "metadata": b""},
    ),
    (
        8,
        False,
        compact_array(compact("session.timeout.ms") + compact("45000") + NO_TAGS) + NO_TAGS,
        {"configurations": [{"name": "session.timeout.ms", "value": "45000"}]},
    ),
]


@pytest.mark.parametrize(("record_type", "has_member", "body", "fields"), CONNECT)
def test_the_records_of_the_proposed_connect_group(
    record_type: int, has_member: bool, body: bytes, fields: Fields
) -> None:
    key_fields: dict[str, Any] = {"groupId": "connect-cluster"} | ({"memberId": "w-1"} if has_member else {})
    key = i16(record_type) + text("connect-cluster") + (text("w-1") if has_member else b"")
    assert decode_key(key, Family.CONNECT) == (record_type, key_fields)
    assert encode_key(record_type, key_fields, Family.CONNECT) == key
    data = i16(0) + body
    assert decode_value(data, record_type, Family.CONNECT) == (0, fields)
    assert encode_value(record_type, 0, fields, Family.CONNECT) == data
