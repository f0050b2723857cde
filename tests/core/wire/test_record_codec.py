"""The plain codec: what it writes it reads, what it refuses it names."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import (
    DecodeError,
    EarlyAccessError,
    EncodeError,
    HostileLengthError,
    InvalidTextError,
    SchemaError,
    UnderflowError,
    UnexpectedNullError,
    UnknownTypeError,
    UnknownVersionError,
)
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, SHARE_UPDATE
from coordinator_core.records import Family, Fields, RecordType
from coordinator_core.wire.record_codec import (
    DecodedRecord,
    decode_key,
    decode_metadata,
    decode_record,
    decode_value,
    encode_key,
    encode_value,
)
from coordinator_core.wire.schema import RecordSchema
from tests.core.wire.encoded import encode_record
from tests.core.wire.samples import sample_records
from tests.core.wire.strategies import every_version, records


@pytest.mark.parametrize(
    ("schema", "version"), every_version(), ids=lambda part: part.name if isinstance(part, RecordSchema) else f"v{part}"
)
@given(data=st.data())
def test_what_is_encoded_is_decoded(schema: RecordSchema, version: int, data: st.DataObject) -> None:
    record = data.draw(records(schema, version))
    key, value = encode_record(record, schema.family)
    assert decode_record(key, value, schema.family) == record


def test_real_records_are_encoded_as_they_were() -> None:
    for family, key, value in sample_records():
        assert encode_record(decode_record(key, value, family), family) == (key, value)


def test_a_tombstone_has_a_key_only() -> None:
    key = struct.pack(">hh1s", 3, 1, b"g")
    record = DecodedRecord(3, "CONSUMER_GROUP_METADATA", {"groupId": "g"}, None, None)
    assert decode_record(key, None) == record
    assert encode_record(record) == (key, None)


def test_an_explicit_null_of_a_tagged_struct_differs_from_an_absent_one() -> None:
    member: Fields = {
        "instanceId": None,
        "rackId": None,
        "clientId": "c",
        "clientHost": "/h",
        "subscribedTopicNames": [],
        "subscribedTopicRegex": None,
        "rebalanceTimeoutMs": 1,
        "serverAssignor": None,
    }
    absent = encode_value(5, 0, member)
    explicit = encode_value(5, 0, {**member, "classicMemberMetadata": None})
    assert absent[-1:] == b"\x00"
    assert explicit[-4:] == b"\x01\x00\x01\x00"  # one tagged field: tag 0, one byte, presence 0
    assert "classicMemberMetadata" not in decode_value(absent, 5)[1]
    assert decode_value(explicit, 5)[1]["classicMemberMetadata"] is None


GROUP_KEY = struct.pack(">hh", 2, 1) + b"g"


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", UnderflowError, "key.type at byte 0: 2 bytes wanted, 0 left"),
        (b"\x00", UnderflowError, "key.type at byte 0: 2 bytes wanted, 1 left"),
        (struct.pack(">h", 9), UnknownTypeError, "type at byte 0: no record type 9 in group_coordinator"),
        (struct.pack(">h", -1), UnknownTypeError, "type at byte 0: no record type -1 in group_coordinator"),
        (b"not a coordinator key", UnknownTypeError, "type at byte 0: no record type 28271 in group_coordinator"),
        (struct.pack(">hh", 2, 5) + b"abc", UnderflowError, "GroupMetadataKey.group at byte 4: 5 bytes wanted, 3 left"),
        (struct.pack(">hh", 2, -1), UnexpectedNullError, "GroupMetadataKey.group at byte 2: null"),
        (struct.pack(">hh", 2, -7), HostileLengthError, "GroupMetadataKey.group at byte 2: a length of -7"),
        (
            struct.pack(">hh", 2, 3) + b"a\xffb",
            InvalidTextError,
            "GroupMetadataKey.group at byte 5: no utf-8: invalid start byte",
        ),
    ],
)
def test_a_bad_key_says_what_and_where(data: bytes, error: type[DecodeError], message: str) -> None:
    with pytest.raises(error) as caught:
        decode_key(data)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("record_type", "data", "error", "message"),
    [
        (1, b"\x00", UnderflowError, "OffsetCommitValue.version at byte 0: 2 bytes wanted, 1 left"),
        (
            1,
            struct.pack(">h", 5),
            UnknownVersionError,
            "OffsetCommitValue.version at byte 0: version 5, known are 0 to 4",
        ),
        (
            1,
            struct.pack(">h", -1),
            UnknownVersionError,
            "OffsetCommitValue.version at byte 0: version -1, known are 0 to 4",
        ),
        (
            1,
            struct.pack(">hq", 4, 1),
            UnderflowError,
            "OffsetCommitValue.leaderEpoch at byte 10: 4 bytes wanted, 0 left",
        ),
        (
            1,
            struct.pack(">hqi", 4, 1, 1) + b"\xff" * 10,
            HostileLengthError,
            "OffsetCommitValue.metadata at byte 14: a varint exceeds 32 bits",
        ),
        (
            1,
            struct.pack(">hqi", 4, 1, 1) + b"\x01" + bytes(8) + b"\xff\xff\xff\xff\x0f",
            HostileLengthError,
            "OffsetCommitValue at byte 23: 4294967295 tagged fields in 0 bytes",
        ),
        (
            1,
            struct.pack(">hqi", 4, 1, 1) + b"\x01" + bytes(8) + b"\x01\x00\x02ab",
            UnderflowError,
            "OffsetCommitValue.topicId at byte 26: 16 bytes wanted, 2 left",
        ),
        (
            1,
            struct.pack(">hqi", 4, 1, 1) + b"\x01" + bytes(8) + b"\x01\x00\x11" + bytes(17),
            DecodeError,
            "OffsetCommitValue.topicId at byte 26: 16 bytes in a tagged field of 17",
        ),
        (
            1,
            struct.pack(">hqi", 4, 1, 1) + b"\x01" + bytes(8) + b"\x02\x07\x00\x07\x00",
            DecodeError,
            "OffsetCommitValue at byte 26: tag 7 occurs twice",
        ),
        (
            2,
            struct.pack(">hhihhqi", 2, 0, 0, -1, -1, 0, 2**31 - 1),
            HostileLengthError,
            "GroupMetadataValue.members at byte 20: an array of 2147483647 elements in 0 bytes",
        ),
        (
            2,
            struct.pack(">hhihhqi", 2, 0, 0, -1, -1, 0, -2),
            HostileLengthError,
            "GroupMetadataValue.members at byte 20: a length of -2",
        ),
        (
            2,
            struct.pack(">hhihhqi", 2, 0, 0, -1, -1, 0, 1) + struct.pack(">hhhiiih", 0, 0, 0, 1, 1, 0, 0),
            UnderflowError,
            "GroupMetadataValue.members[0].assignment at byte 42: 4 bytes wanted, 2 left",
        ),
        (
            19,
            b"\x00\x00" + b"\x00\x00\x01\x01" + bytes(8) + b"\x01" + b"\x02",
            DecodeError,
            "StreamsGroupMemberMetadataValue.userEndpoint at byte 15: presence is -1 or 1, not 2",
        ),
    ],
)
def test_a_bad_value_says_what_and_where(record_type: int, data: bytes, error: type[DecodeError], message: str) -> None:
    with pytest.raises(error) as caught:
        decode_value(data, record_type)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", UnderflowError, "metadata.frame at byte 0: a varint is cut off"),
        (b"\x00\x02\x00", DecodeError, "metadata.frame at byte 0: frame version 0"),
        (b"\x01\x63\x00", UnknownTypeError, "type at byte 1: no metadata record type 99"),
        (b"\x01\x02\x07", UnknownVersionError, "TopicRecord.version at byte 0: version 7, known are 0 to 0"),
        (b"\x01" + b"\xff" * 10, HostileLengthError, "metadata.type at byte 1: a varint exceeds 32 bits"),
    ],
)
def test_a_bad_metadata_record_says_what_and_where(data: bytes, error: type[DecodeError], message: str) -> None:
    with pytest.raises(error) as caught:
        decode_metadata(data)
    assert str(caught.value) == message


def test_records_without_what_their_log_demands_are_refused() -> None:
    with pytest.raises(DecodeError, match="a metadata record without a value"):
        decode_record(None, None, Family.METADATA)
    with pytest.raises(DecodeError, match="a coordinator record without a key"):
        decode_record(None, b"\x00\x00")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "OffsetCommitValue.offset: missing"),
        ({"offset": 1, "metadata": "", "commitTimestamp": 2**63}, "OffsetCommitValue.commitTimestamp: "),
        ({"offset": "1", "metadata": "", "commitTimestamp": 1}, "OffsetCommitValue.offset: '1' is no int64"),
        ({"offset": 1, "metadata": None, "commitTimestamp": 1}, "OffsetCommitValue.metadata: None is not a string"),
        (
            {"offset": 1, "metadata": "", "commitTimestamp": 1, "topicId": "short"},
            "OffsetCommitValue.topicId: 'short' is",
        ),
        (
            {"offset": 1, "metadata": "", "commitTimestamp": 1, "expireTimestamp": 1},
            "OffsetCommitValue.expireTimestamp: no",
        ),
        ({"offset": 1, "metadata": "\ud800", "commitTimestamp": 1}, "OffsetCommitValue.metadata: "),
    ],
)
def test_a_value_that_does_not_fit_its_schema_is_refused(fields: Fields, message: str) -> None:
    with pytest.raises(EncodeError) as caught:
        encode_value(RecordType.OFFSET_COMMIT, 4, fields)
    assert str(caught.value).startswith(message)


def test_an_error_inside_an_array_names_the_element() -> None:
    good = {"topicId": "A" * 22, "partitions": [1]}
    with pytest.raises(EncodeError, match=r"topicPartitions\[1\]\.partitions\[0\]: 'x' is no int32"):
        encode_value(7, 0, {"topicPartitions": [good, {**good, "partitions": ["x"]}]})


def test_a_text_too_long_for_its_length_is_refused() -> None:
    with pytest.raises(EncodeError, match=r"OffsetCommitKey\.group: 32768 is no int16"):
        encode_key(1, {"group": "g" * 32768, "topic": "t", "partition": 0})


def test_unknown_types_and_versions_have_no_encoding() -> None:
    with pytest.raises(SchemaError):
        encode_key(99, {})
    with pytest.raises(SchemaError):
        encode_value(1, 5, {})
    with pytest.raises(SchemaError):
        encode_key(2, {}, Family.METADATA)


@pytest.mark.parametrize(
    ("record_type", "family", "written", "fields"),
    [
        (RecordType.SHARE_GROUP_METADATA, Family.GROUP, "00000000000500", {"epoch": 5}),
        (
            SHARE_SNAPSHOT,
            Family.SHARE,
            "000000000000000000000000ffffffffffffffff0100",
            {"snapshotEpoch": 0, "stateEpoch": 0, "leaderEpoch": 0, "startOffset": -1, "stateBatches": []},
        ),
        (
            SHARE_UPDATE,
            Family.SHARE,
            "000000000000000000000000000000e80200000000000000e800000000000000e90200010000",
            {
                "snapshotEpoch": 0,
                "leaderEpoch": 0,
                "startOffset": 232,
                "stateBatches": [{"firstOffset": 232, "lastOffset": 233, "deliveryState": 2, "deliveryCount": 1}],
            },
        ),
    ],
)
def test_share_groups_of_4_0s_early_access_are_read(
    record_type: int, family: Family, written: str, fields: Fields
) -> None:
    """Kafka 4.0.0 wrote these bytes: later snapshots have longer epochs, and times."""
    assert decode_value(bytes.fromhex(written), record_type, family) == (0, fields)


def test_a_record_of_3_7s_early_access_is_told_from_one_that_is_damaged():
    """Kafka 3.7.2 wrote these bytes for a member's target; today's layout has no error in front."""
    written = bytes.fromhex("0000000100000100")
    with pytest.raises(EarlyAccessError, match=r"3\.7's early access"):
        decode_value(written, RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER)
    with pytest.raises(DecodeError) as damaged:
        decode_value(written[:-1], RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER)
    assert not isinstance(damaged.value, EarlyAccessError)
