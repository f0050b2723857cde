"""The blobs inside classic groups, by hand and by hypothesis."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import DecodeError, EncodeError, SchemaError, UnderflowError, UnknownVersionError
from coordinator_core.wire.embedded import (
    CACHED_BLOB_SIZE,
    decode_assignment,
    decode_blob,
    decode_subscription,
    encode_blob,
)
from coordinator_core.wire.message_layout import layout
from coordinator_core.wire.record_codec import TRAILING_BYTES
from coordinator_core.wire.schema import embedded_schemas
from tests.core.wire.strategies import fields
from tests.core.wire.test_hand_built import i8, i16, i32, i64, text

EVERY_VERSION = [(name, version) for name, schema in embedded_schemas().items() for version in schema.message.versions]


@pytest.mark.parametrize(("name", "version"), EVERY_VERSION)
@given(data=st.data())
def test_what_is_encoded_is_decoded(name: str, version: int, data: st.DataObject) -> None:
    drawn = data.draw(fields(layout(embedded_schemas()[name].message, version)))
    encoded = encode_blob(name, version, drawn)
    found = decode_blob(name, encoded)
    assert (found.fields, found.version) == (drawn, version) or found.version != version
    assert encode_blob(name, found.version, found.fields) == encoded


TOPICS = i32(2) + text("t") + text("größe")
OWNED = i32(1) + text("t") + i32(2, 0, 3)


@pytest.mark.parametrize(
    ("version", "body", "expected"),
    [
        (0, TOPICS + i32(-1), {"topics": ["t", "größe"], "userData": None}),
        (
            1,
            TOPICS + i32(-1) + OWNED,
            {"topics": ["t", "größe"], "userData": None, "ownedPartitions": [{"topic": "t", "partitions": [0, 3]}]},
        ),
        (
            2,
            i32(0) + i32(0) + i32(0) + i32(-1),
            {"topics": [], "userData": b"", "ownedPartitions": [], "generationId": -1},
        ),
        (
            3,
            i32(0) + i32(-1) + i32(0) + i32(7) + text("rack"),
            {"topics": [], "userData": None, "ownedPartitions": [], "generationId": 7, "rackId": "rack"},
        ),
        (
            9,
            i32(0) + i32(-1) + i32(0) + i32(7) + text(None) + b"newer",
            {
                "topics": [],
                "userData": None,
                "ownedPartitions": [],
                "generationId": 7,
                "rackId": None,
                TRAILING_BYTES: b"newer",
            },
        ),
    ],
)
def test_consumer_subscriptions_of_all_versions_and_a_newer_one(
    version: int, body: bytes, expected: dict[str, object]
) -> None:
    data = i16(version) + body
    found = decode_subscription("consumer", "range", data)
    assert found is not None
    assert (found.version, found.fields) == (version, expected)
    assert encode_blob(found.message, version, found.fields) == data


@pytest.mark.parametrize(
    ("version", "body", "expected"),
    [
        (1, TOPICS + i32(-1), {"topics": ["t", "größe"], "userData": None}),
        (2, TOPICS + i32(0), {"topics": ["t", "größe"], "userData": b""}),
        (3, TOPICS + i32(0) + i32(0), {"topics": ["t", "größe"], "userData": b"", "ownedPartitions": []}),
    ],
)
def test_a_subscription_that_ends_where_an_older_version_ends_is_read_as_that_one(
    version: int, body: bytes, expected: dict[str, object]
) -> None:
    """kafka-go, @platformatic/kafka and custom assigners of kafkajs write no owned partitions."""
    found = decode_subscription("consumer", "range", i16(version) + body)
    assert found is not None
    assert (found.version, found.fields, found.is_short) == (version, expected, True)


@pytest.mark.parametrize("rest", [i32(1), i32(0) + b"\x00", i32(0) + i32(3) + b"\xff"])
def test_a_subscription_that_ends_elsewhere_is_cut_off(rest: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_subscription("consumer", "range", i16(3) + TOPICS + i32(-1) + rest)


def test_an_assignment_of_connect_is_never_short() -> None:
    with pytest.raises(DecodeError):
        decode_assignment("connect", "compatible", i16(1) + i16(0) + text("w") + text("u") + i64(1))


def test_a_consumer_assignment() -> None:
    found = decode_assignment("consumer", "range", i16(0) + OWNED + i32(-1))
    assert found is not None
    assert found.fields == {"assignedPartitions": [{"topic": "t", "partitions": [0, 3]}], "userData": None}


@pytest.mark.parametrize("data", [None, b""])
def test_members_without_a_blob(data: bytes | None) -> None:
    """As brokers write them before the leader has assigned, and as some clients send them."""
    assert decode_subscription("consumer", "range", data) is None
    assert decode_assignment("connect", "default", data) is None


def test_protocol_types_of_others_are_left_alone() -> None:
    assert decode_subscription("my-own", "whatever", b"\x00") is None


def test_sticky_user_data_is_told_apart_by_its_length() -> None:
    first = decode_blob("StickyAssignorUserData", OWNED)
    second = decode_blob("StickyAssignorUserData", OWNED + i32(4))
    assert (first.version, second.version) == (0, 1)
    assert second.fields == {"previousAssignment": [{"topic": "t", "partitions": [0, 3]}], "generation": 4}


def test_user_data_is_read_by_the_assignor_and_kept_if_it_is_not_what_it_should_be() -> None:
    def nested(protocol: str, user_data: bytes) -> object:
        found = decode_subscription("consumer", protocol, i16(0) + i32(0) + i32(len(user_data)) + user_data)
        assert found is not None
        assert found.fields["userData"] == user_data
        return found.nested.fields if found.nested else None

    assert nested("cooperative-sticky", i32(12)) == {"generation": 12}
    previous = {"previousAssignment": [{"topic": "t", "partitions": [0, 3]}], "generation": 4}
    for protocol in ("cooperative-sticky", "sticky"):
        assert nested(protocol, OWNED + i32(4)) == previous
    assert nested("sticky", i16(1) + OWNED + i32(4)) == previous
    assert nested("sticky", i32(0) + i32(2)) == {"previousAssignment": [], "generation": 2}
    assert nested("sticky", b"\x01") is None
    assert nested("range", i32(12)) is None


URL = text("http://w:8083/")


@pytest.mark.parametrize(
    ("version", "body", "expected"),
    [
        (0, URL + i64(5), {"url": "http://w:8083/", "configOffset": 5}),
        (1, URL + i64(5) + i32(-1), {"url": "http://w:8083/", "configOffset": 5, "allocation": None}),
        (2, URL + i64(5) + i32(-1), {"url": "http://w:8083/", "configOffset": 5, "allocation": None}),
    ],
)
def test_connect_metadata(version: int, body: bytes, expected: dict[str, object]) -> None:
    found = decode_subscription("connect", "sessioned", i16(version) + body)
    assert found is not None
    assert (found.version, found.fields) == (version, expected)


def test_connect_metadata_holds_the_assignment_of_the_worker() -> None:
    tasks = i32(1) + text("jdbc") + i32(2, -1, 0)
    head = i16(0) + text("w-1") + URL + i64(9)
    assignment = i16(1) + head + tasks + i32(-1) + i32(3000)
    found = decode_subscription("connect", "compatible", i16(1) + URL + i64(5) + i32(len(assignment)) + assignment)
    assert found is not None
    assert found.nested is not None
    assert found.nested == decode_assignment("connect", "compatible", assignment)
    assert found.nested.fields["assignment"] == [{"connector": "jdbc", "tasks": [-1, 0]}]
    assert found.nested.fields["revoked"] is None
    assert found.nested.fields["delay"] == 3000
    eager = decode_assignment("connect", "default", i16(0) + head + tasks)
    assert eager is not None
    assert eager.fields["assignment"] == [{"connector": "jdbc", "tasks": [-1, 0]}]


TASK_IDS = i32(1) + i32(2, 5)
PROCESS = bytes(range(16))


@pytest.mark.parametrize(
    ("version", "body", "expected"),
    [
        (1, PROCESS + TASK_IDS + i32(0), {"prevTasks": [{"topicGroupId": 2, "partition": 5}], "standbyTasks": []}),
        (
            3,
            i32(11) + PROCESS + i32(0) + TASK_IDS + i32(3) + b"h:1",
            {
                "latestSupportedVersion": 11,
                "prevTasks": [],
                "standbyTasks": [{"topicGroupId": 2, "partition": 5}],
                "userEndPoint": b"h:1",
            },
        ),
        (
            7,
            i32(11) + PROCESS + i32(0) + i32(1) + i32(2) + i32(1) + i32(5) + i64(-2),
            {
                "latestSupportedVersion": 11,
                "userEndPoint": b"",
                "taskOffsetSums": [{"topicGroupId": 2, "partitionToOffsetSum": [{"partition": 5, "offsetSum": -2}]}],
            },
        ),
        (
            11,
            i32(11)
            + PROCESS
            + i32(0)
            + (i32(1) + i32(2, 5) + i64(77) + text(None))
            + (i8(3) + i32(0))
            + (i32(1) + i32(1) + b"k" + i32(1) + b"v"),
            {
                "latestSupportedVersion": 11,
                "userEndPoint": b"",
                "taskOffsetSums": [{"topicGroupId": 2, "partition": 5, "offsetSum": 77, "namedTopology": None}],
                "uniqueField": 3,
                "errorCode": 0,
                "clientTags": [{"key": b"k", "value": b"v"}],
            },
        ),
    ],
)
def test_streams_subscription_info(version: int, body: bytes, expected: dict[str, object]) -> None:
    data = i32(version) + body
    found = decode_subscription("consumer", "stream", i16(0) + i32(0) + i32(len(data)) + data)
    assert found is not None
    assert found.nested is not None
    assert found.nested.version == version
    assert found.nested.fields == {"processId": "AAECAwQFBgcICQoLDA0ODw", **expected}


HOST = text("h") + i32(7777)
NAMED = i32(2) + "tö".encode("utf-16-be")


@pytest.mark.parametrize(
    ("version", "body", "expected"),
    [
        (
            1,
            TASK_IDS + i32(1) + i32(2, 6) + i32(1) + text("t") + i32(6),
            {"standbyTasks": [{"topicGroupId": 2, "partition": 6, "partitions": [{"topic": "t", "partition": 6}]}]},
        ),
        (
            4,
            i32(4) + TASK_IDS + i32(0) + (i32(1) + HOST + i32(1) + text("t") + i32(6)) + i32(1),
            {
                "commonlySupportedVersion": 4,
                "standbyTasks": [],
                "partitionsByHost": [{"host": "h", "port": 7777, "partitions": [{"topic": "t", "partition": 6}]}],
                "errCode": 1,
            },
        ),
        (
            6,
            i32(6)
            + TASK_IDS
            + i32(0)
            + (i32(1) + i32(0) + text("t"))
            + (i32(1) + HOST + i32(1, 0, 6))
            + i32(0)
            + i32(0),
            {
                "commonlySupportedVersion": 6,
                "standbyTasks": [],
                "topicNames": [{"index": 0, "topic": "t"}],
                "activePartitionsByHost": [
                    {"host": "h", "port": 7777, "partitions": [{"topicIndex": 0, "partition": 6}]}
                ],
                "standbyPartitionsByHost": [],
                "errCode": 0,
            },
        ),
    ],
)
def test_streams_assignment_info(version: int, body: bytes, expected: dict[str, object]) -> None:
    found = decode_blob("StreamsAssignmentInfo", i32(version) + body)
    assert found.fields == {"activeTasks": [{"topicGroupId": 2, "partition": 5}], **expected}


def test_streams_tasks_of_named_topologies() -> None:
    tasks = i32(2) + (i32(0, 1) + NAMED) + (i32(0, 2) + i32(0))
    found = decode_blob("StreamsAssignmentInfo", i32(10, 10) + tasks + i32(0) + i32(0) * 3 + i32(0) + i64(-1))
    assert [task["namedTopology"] for task in found.fields["activeTasks"]] == ["tö", None]
    assert found.fields["nextRebalanceMs"] == -1


def test_equal_blobs_are_decoded_once_unless_they_are_large() -> None:
    small, large = i16(0) + i32(0) + i32(-1), i16(0) + i32(0) + i32(CACHED_BLOB_SIZE) + bytes(CACHED_BLOB_SIZE)
    for data, shared in ((small, True), (large, False)):
        first, second = (decode_blob("ConsumerProtocolSubscription", bytes(data)) for _ in range(2))
        assert first == second
        assert (first is second) == shared


@pytest.mark.parametrize(
    ("name", "data", "error", "message"),
    [
        ("ConsumerProtocolSubscription", b"\x00", UnderflowError, ".version at byte 0: 2 bytes wanted, 1 left"),
        ("ConsumerProtocolSubscription", i16(-1), UnknownVersionError, ".version: version -1, known are 0 to 3"),
        ("ConsumerProtocolSubscription", i16(0) + i32(1), UnderflowError, ".topics at byte 2: "),
        ("StreamsAssignmentInfo", i32(12, 12), UnknownVersionError, ".version: version 12, known are 1 to 11"),
        ("StickyAssignorUserData", b"\x01", UnderflowError, ".previousAssignment at byte 0: 4 bytes wanted, 1 left"),
    ],
)
def test_a_bad_blob_says_what_and_where(name: str, data: bytes, error: type[DecodeError], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_blob(name, data)
    assert str(caught.value).startswith(name + message)


def test_unknown_blobs_and_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SchemaError, match="no embedded message Nothing"):
        decode_blob("Nothing", b"")
    with pytest.raises(EncodeError, match=r"ConsumerProtocolSubscription\.topics: missing"):
        encode_blob("ConsumerProtocolSubscription", 0, {})
    with pytest.raises(EncodeError, match="ConsumerProtocolSubscription: 1048576 is no int16"):
        encode_blob("ConsumerProtocolSubscription", 1 << 20, {"topics": [], "userData": None})


def test_a_version_field_precedes_the_fields() -> None:
    assert encode_blob("ConnectProtocolMetadata", 0, {"url": "", "configOffset": -1}) == struct.pack(">hhq", 0, 0, -1)
