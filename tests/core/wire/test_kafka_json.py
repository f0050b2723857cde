"""Decoded values as Kafka's JSON and back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import EncodeError
from coordinator_core.records import Family, Fields
from coordinator_core.wire.kafka_json import key_from_json, key_to_json, value_from_json, value_to_json
from coordinator_core.wire.record_codec import decode_key, decode_value, encode_value
from coordinator_core.wire.schema import record_schemas
from tests.core.wire.samples import sample_records
from tests.core.wire.strategies import messages


def test_real_records_survive_their_json() -> None:
    for family, key, value in sample_records():
        if family is Family.METADATA or key is None:
            continue
        number, fields = decode_key(key, family)
        assert key_from_json(number, json.loads(json.dumps(key_to_json(number, fields, family))), family) == fields
        if value is not None:
            version, fields = decode_value(value, number, family)
            printed = json.loads(json.dumps(value_to_json(number, version, fields, family)))
            assert value_from_json(number, version, printed, family) == fields


def test_bytes_are_base64_and_fields_stand_as_kafka_declares_them() -> None:
    update: Fields = {
        "snapshotEpoch": 1,
        "leaderEpoch": 2,
        "startOffset": 3,
        "stateBatches": [],
        "deliveryCompleteCount": 4,
    }
    assert list(value_to_json(1, 0, update, Family.SHARE)) == [
        "snapshotEpoch",
        "leaderEpoch",
        "startOffset",
        "deliveryCompleteCount",
        "stateBatches",
    ]
    member = {"name": "range", "metadata": b"\x00\xff"}
    classic = {"sessionTimeoutMs": 1, "supportedProtocols": [member]}
    assert value_to_json(5, 0, {"classicMemberMetadata": classic})["classicMemberMetadata"]["supportedProtocols"] == [
        {"name": "range", "metadata": "AP8="}
    ]


@pytest.mark.parametrize(
    ("record_type", "fields", "printed"),
    [
        (3, {"epoch": 1, "metadataHash": 0}, {"epoch": 1}),
        (3, {"epoch": 1, "metadataHash": 5}, {"epoch": 1, "metadataHash": 5}),
        (3, {"epoch": 1}, {"epoch": 1}),
        (17, {"epoch": 1, "metadataHash": 0, "validatedTopologyEpoch": -1}, {"epoch": 1, "metadataHash": 0}),
        (5, {"instanceId": None, "classicMemberMetadata": None}, {"instanceId": None, "classicMemberMetadata": None}),
        (5, {"classicMemberMetadata": {"sessionTimeoutMs": 0, "supportedProtocols": []}}, {}),
    ],
)
def test_tagged_fields_that_equal_their_default_are_left_out(record_type: int, fields: Fields, printed: Fields) -> None:
    assert value_to_json(record_type, 0, fields) == printed


def test_what_no_schema_knows_is_kept_in_json_too() -> None:
    fields: Fields = {"epoch": 1, "_unknownTaggedFields": {9: b"\x01"}, "_trailingBytes": b"\x02"}
    printed = value_to_json(3, 0, fields)
    assert printed == {"epoch": 1, "_unknownTaggedFields": {"9": "AQ=="}, "_trailingBytes": "Ag=="}
    assert value_from_json(3, 0, json.loads(json.dumps(printed))) == fields


@given(data=st.data())
def test_json_forgets_nothing_but_defaults(data: st.DataObject) -> None:
    schema = data.draw(st.sampled_from(list(record_schemas(Family.GROUP).values())))
    version = data.draw(st.sampled_from(schema.value.versions))
    fields = data.draw(messages(schema.value, version))
    printed = json.loads(json.dumps(value_to_json(schema.type, version, fields)))
    found = value_from_json(schema.type, version, printed)
    assert value_to_json(schema.type, version, found) == printed
    assert decode_value(encode_value(schema.type, version, found), schema.type) == (version, found)


def test_bad_base64_is_refused() -> None:
    with pytest.raises(EncodeError, match="no base64: 'A'"):
        value_from_json(2, 3, {"members": [{"subscription": "A"}]})
