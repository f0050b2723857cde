"""Columns of decoded commits give back their bytes, and what they do not give back is noticed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import SchemaError
from coordinator_core.records import Family, RecordType
from coordinator_core.wire import batch_decode
from coordinator_core.wire.arrow_types import message_type, to_arrow
from coordinator_core.wire.batch_decode import decode_keys, decode_values
from coordinator_core.wire.batch_encode import encode_columns, same_keys, same_values
from coordinator_core.wire.codec import UNKNOWN_TAGGED_FIELDS
from coordinator_core.wire.record_codec import encode_key, encode_value
from coordinator_core.wire.schema import RecordSchema, record_schemas
from tests.core.wire.encoded import encode_record
from tests.core.wire.strategies import every_version, records

COMMITS = (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)
OF_COMMITS = [
    (schema, version) for schema, version in every_version() if schema.family is Family.GROUP and schema.type in COMMITS
]
KEY = encode_key(1, {"group": "g", "topic": "t", "partition": 3})
VALUE = encode_value(1, 3, {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 5})
NEWEST = encode_value(1, 4, {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 5})
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"


def given_back(pairs: Sequence[tuple[bytes | None, bytes | None]], record_type: int = 1) -> list[tuple[bool, bool]]:
    """For each pair, whether key and value are of the type and come back."""
    schema = record_schemas(Family.GROUP)[record_type]
    assert schema.key is not None
    keys, values = (pa.array([pair[part] for pair in pairs], pa.binary()) for part in (0, 1))
    decoded = decode_keys(keys)
    of_keys = same_keys(keys, decoded, record_type, schema.key)
    of_values = same_values(values, decode_values(values, decoded.numbers), record_type, schema.value)
    return [*zip(of_keys.tolist(), of_values.tolist(), strict=True)]


@pytest.mark.parametrize(("schema", "version"), OF_COMMITS)
@pytest.mark.parametrize("few", [0, 64], ids=["in columns", "one by one"])
@given(data=st.data())
def test_commits_of_every_version_come_back(schema: RecordSchema, version: int, few: int, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(records(schema, version), min_size=1, max_size=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_decode, "FEW_RECORDS", few)
        found = given_back([encode_record(record) for record in drawn], schema.type)
    for record, (key, value) in zip(drawn, found, strict=True):
        assert key
        assert value == (record.value is not None and UNKNOWN_TAGGED_FIELDS not in record.value)


def test_long_text_and_ids_come_back() -> None:
    values = [
        encode_value(1, 4, {"offset": 1, "metadata": "é" * size, "commitTimestamp": 2, **topic_id})
        for size in (0, 1, 62, 63, 64, 127, 8191, 8192, 30_000)
        for topic_id in ({}, {"topicId": TOPIC_ID}, {"topicId": "A" * 22})
    ]
    assert given_back([(KEY, value) for value in values] * 5) == [(True, True)] * len(values) * 5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY, NEWEST.replace(b"\x02m", b"\x82\x00m")),
        (KEY, NEWEST[:-1] + b"\x80\x00"),
        (KEY, NEWEST[:-1] + b"\x01\x07\x01x"),
    ],
    ids=["longer length", "longer count of tagged fields", "a tagged field of a newer writer"],
)
def test_what_does_not_come_back_is_noticed_among_others(key: bytes, value: bytes) -> None:
    assert value != NEWEST
    assert given_back([(KEY, VALUE), (key, value), (KEY, NEWEST)] * 30) == [
        (True, True), (True, False), (True, True),
    ] * 30  # fmt: skip


def test_bytes_behind_the_fields_come_back() -> None:
    assert given_back([(KEY + b"x", VALUE + b"yz"), (KEY, VALUE)]) == [(True, True)] * 2


def test_other_types_faults_and_tombstones_are_not_of_the_type() -> None:
    other = encode_key(2, {"group": "g"})
    pairs: list[tuple[bytes | None, bytes | None]] = [(other, None), (b"\x00", VALUE), (None, VALUE), (KEY, None)]
    assert given_back([*pairs, (KEY, VALUE[:-1])]) == [
        (False, False), (False, False), (False, False), (True, False), (True, False),
    ]  # fmt: skip


def test_a_message_with_lists_has_no_columns() -> None:
    schema = record_schemas(Family.GROUP)[RecordType.GROUP_METADATA]
    version = schema.value.versions.stop - 1
    fields: dict[str, Any] = {"protocolType": "c", "generation": 1, "members": []}
    with pytest.raises(SchemaError):
        encode_columns(schema.value, version, version, to_arrow([fields], message_type(schema.value)))


def test_a_row_with_other_bytes_at_its_place_is_noticed() -> None:
    """The comparison is with the bytes of the same row."""
    keys = pa.array([KEY, encode_key(1, {"group": "h", "topic": "t", "partition": 3})])
    schema = record_schemas(Family.GROUP)[1]
    assert schema.key is not None
    assert same_keys(keys, decode_keys(keys), 1, schema.key).all()
    assert not np.any(same_keys(keys.take(pa.array([1, 0])), decode_keys(keys), 1, schema.key))
