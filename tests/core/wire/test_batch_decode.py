"""The columnar decoder says what the plain one says, whatever the batch looks like."""

import struct
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import DecodeError, UnknownTypeError, UnknownVersionError
from coordinator_core.records import Family
from coordinator_core.wire import batch_decode
from coordinator_core.wire.arrow_types import message_type, to_arrow
from coordinator_core.wire.batch_decode import FEW_RECORDS, NO_TYPE, Decoded, decode_keys, decode_values
from coordinator_core.wire.message_layout import layout
from coordinator_core.wire.record_codec import decode_key, decode_value, encode_key, encode_value
from coordinator_core.wire.schema import RecordSchema, record_schemas
from tests.core.wire.encoded import encode_record
from tests.core.wire.samples import sample_records
from tests.core.wire.seeded_records import random_batch, random_fields
from tests.core.wire.strategies import every_version, records

COORDINATOR_VERSIONS = [(schema, version) for schema, version in every_version() if schema.key]

BATCHES = 24
"""Batches of each version of each record type: enough to find a row that is read twice in all types with tags."""


def agree(keys: list[bytes | None], values: list[bytes | None], family: Family) -> tuple[Decoded, Decoded]:
    """Decodes a batch in columns and row by row, and makes sure that all is the same."""
    decoded_keys = decode_keys(pa.array(keys, pa.binary()), family)
    types = decoded_keys.numbers
    decoded_values = decode_values(pa.array(values, pa.binary()), types, family)
    for decoded, rows, decode_one in (
        (decoded_keys, keys, lambda row: decode_key(keys[row], family)[1]),
        (decoded_values, values, lambda row: decode_value(values[row], types[row], family)[1]),
    ):
        of_type = {row: number for number, group in decoded.groups.items() for row in group.rows.tolist()}
        for number, group in decoded.groups.items():
            schema = record_schemas(family)[number]
            message = schema.key if decoded is decoded_keys else schema.value
            assert message is not None
            expected = to_arrow([decode_one(row) for row in group.rows.tolist()], message_type(message))
            group.values.validate(full=True)
            assert group.values.equals(expected)
            assert (np.diff(group.rows) > 0).all()
        for row, error in decoded.errors.items():
            with pytest.raises(type(error)) as caught:
                decode_one(row)
            assert str(caught.value) == str(error)
        for row, data in enumerate(rows):
            known = data is not None and (decoded is decoded_keys or types[row] in record_schemas(family))
            assert (row in of_type) + (row in decoded.errors) == known
    return decoded_keys, decoded_values


@pytest.mark.parametrize(
    ("schema", "version"),
    COORDINATOR_VERSIONS,
    ids=lambda part: part.name if isinstance(part, RecordSchema) else f"v{part}",
)
@given(data=st.data())
def test_every_version_of_every_type(schema: RecordSchema, version: int, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(records(schema, version), min_size=1, max_size=4))
    pairs = [encode_record(record, schema.family) for record in drawn] * 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_decode, "FEW_RECORDS", 0)
        agree([key for key, _ in pairs], [value for _, value in pairs], schema.family)


@pytest.mark.parametrize(
    ("schema", "version"),
    COORDINATOR_VERSIONS,
    ids=lambda part: part.name if isinstance(part, RecordSchema) else f"v{part}",
)
def test_rows_of_two_releases_in_one_batch(schema: RecordSchema, version: int) -> None:
    """More rows than are decoded one by one; from a seed, so that each run sees the same batches."""
    assert schema.key is not None
    rng = Random(f"{schema.name} {version}")
    key = encode_key(
        schema.type, random_fields(layout(schema.key, schema.key.versions.start), rng, is_newer=False), schema.family
    )
    for _ in range(BATCHES):
        values = random_batch(schema, version, rng)
        agree([key] * len(values), list(values), schema.family)


@pytest.mark.parametrize("family", [Family.GROUP, Family.SHARE])
@pytest.mark.parametrize("times", [1, FEW_RECORDS + 1])
def test_real_records_of_all_types_mixed(family: Family, times: int) -> None:
    batch = [record for record in sample_records() if record.family is family] * times
    decoded_keys, decoded_values = agree([record.key for record in batch], [record.value for record in batch], family)
    assert not decoded_keys.errors
    assert not decoded_values.errors


def commit(row: int, version: int = 4) -> tuple[bytes, bytes]:
    key = {"group": f"g{row % 7}", "topic": "größe" if row % 3 else "t", "partition": row}
    value: dict[str, Any] = {"offset": row, "metadata": "é" * (row % 130), "commitTimestamp": 10 * row}
    if version >= 3:
        value["leaderEpoch"] = row - 1
    if version == 4 and row % 5:
        value["topicId"] = "A" * 21 + "w"
    return encode_key(1, key), encode_value(1, version, value)


def test_versions_and_tombstones_of_one_type_stay_in_order() -> None:
    pairs = [commit(row, version) for row in range(400) for version in (4, 2, 3)]
    values = [None if row % 11 == 0 else value for row, (_, value) in enumerate(pairs)]
    _, decoded = agree([key for key, _ in pairs], values, Family.GROUP)
    assert decoded.groups[1].values.field("offset").to_pylist() == [
        row // 3 for row, value in enumerate(values) if value is not None
    ]


def test_a_group_spreads_over_its_batch_with_nulls_elsewhere() -> None:
    pairs = [commit(row) for row in range(3)]
    keys = [pairs[0][0], encode_key(2, {"group": "g"}), pairs[2][0]]
    decoded = decode_keys(pa.array(keys, pa.binary()))
    assert decoded.groups[1].over(3).field("partition").to_pylist() == [0, None, 2]
    assert decoded.groups[1].over(3).is_valid().to_pylist() == [True, False, True]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_any_kind_of_binary_array_sliced_chunked_or_with_nulls(kind: pa.DataType) -> None:
    keys = [None if row % 9 == 4 else commit(row)[0] for row in range(300)]
    plain = decode_keys(pa.array(keys[20:280], pa.binary()))
    sliced = decode_keys(pa.array(keys, kind).slice(20, 260))
    chunked = decode_keys(pa.chunked_array([pa.array(keys[20:100], kind), pa.array(keys[100:280], kind)]))
    for decoded in (sliced, chunked):
        assert decoded.groups[1].values.equals(plain.groups[1].values)
        assert decoded.groups[1].rows.tolist() == plain.groups[1].rows.tolist()
        assert (decoded.numbers == plain.numbers).all()


@pytest.mark.parametrize("rows", [[], [None], [b""], [None, b"\x00"]])
def test_batches_with_hardly_anything(rows: list[bytes | None]) -> None:
    decoded, _ = agree(rows, rows, Family.GROUP)
    assert decoded.groups == {}
    assert set(decoded.numbers.tolist()) <= {NO_TYPE}


def test_bad_rows_do_not_hurt_their_neighbours() -> None:
    good = [commit(row) for row in range(300)]
    bad_keys = [
        b"",
        b"\x00",
        struct.pack(">h", 99),
        struct.pack(">hh", 1, 500),
        struct.pack(">hh", 1, -5),
        b"\xff" * 30,
    ]
    offset = struct.pack(">hqi", 4, 1, 1)
    bad_values = [
        b"",
        struct.pack(">h", 9),
        offset,
        offset + b"\xff" * 10,
        offset + b"\x03\xff\xfe" + bytes(9),
        offset + b"\x01" + bytes(8) + b"\xff\xff\xff\xff\x0f",
        offset + b"\x01" + bytes(8) + b"\x01\x00\x11" + bytes(17),
    ]
    odd_values = [
        offset + b"\x01" + bytes(8) + b"\x01\x63\x02ab",
        offset + b"\x01" + bytes(8) + b"\x02\x00\x10" + bytes(16) + b"\x63\x00",
        offset + b"\x01" + bytes(8) + b"\x00" + b"trailing",
    ]
    keys = [key for key, _ in good[:150]] + bad_keys + [key for key, _ in good[150:]]
    decoded_keys, _ = agree(keys, [None] * len(keys), Family.GROUP)
    assert len(decoded_keys.errors) == len(bad_keys)
    assert isinstance(decoded_keys.errors[152], UnknownTypeError)
    values = [value for _, value in good[:150]] + bad_values + odd_values + [value for _, value in good[150:]]
    _, decoded = agree([good[0][0]] * len(values), values, Family.GROUP)
    assert len(decoded.errors) == len(bad_values)
    assert isinstance(decoded.errors[151], UnknownVersionError)
    kept = decoded.groups[1].values
    assert kept.field("_unknownTaggedFields").drop_null().to_pylist() == [[(0x63, b"ab")], [(0x63, b"")]]
    assert kept.field("_trailingBytes").drop_null().to_pylist() == [b"trailing"]


def test_lists_of_very_different_lengths() -> None:
    """One group of 3,000 members among small ones: a list too long to be walked."""

    def group(count: int) -> bytes:
        blobs = {"subscription": b"s" * (count % 5), "assignment": b""}
        members = [
            {"memberId": f"m{at}", "clientId": "c", "clientHost": "/h", "sessionTimeout": at, "rebalanceTimeout": 1}
            | blobs
            for at in range(count)
        ]
        head = {"protocolType": "consumer", "generation": count, "protocol": "range", "leader": None}
        return encode_value(2, 3, {**head, "members": members})

    counts = [*range(40), 3000, *range(60), 200, 199]
    _, decoded = agree(
        [encode_key(2, {"group": f"g{row}"}) for row in range(len(counts))], [group(n) for n in counts], Family.GROUP
    )
    assert [len(members) for members in decoded.groups[2].values.field("members").to_pylist()] == counts


def test_tags_in_any_order_and_number() -> None:
    plain = {"epoch": 3, "metadataHash": 4}
    hostile = encode_value(17, 0, plain)[:-1] + b"\x02\x01\x00\x00\x04" + bytes(4)  # tag 1 before 0
    cases = [
        encode_value(17, 0, plain),
        encode_value(17, 0, {**plain, "validatedTopologyEpoch": 8}),
        encode_value(17, 0, {**plain, "lastAssignmentConfigs": None}),
        encode_value(17, 0, {**plain, "lastAssignmentConfigs": [{"key": "k", "value": "v"}] * 3}),
        encode_value(17, 0, {**plain, "validatedTopologyEpoch": -1, "lastAssignmentConfigs": []}),
        hostile,
    ]
    batch = [cases[(7 * row) % len(cases)] for row in range(300)]
    _, decoded = agree([encode_key(17, {"groupId": "g"})] * len(batch), batch, Family.GROUP)
    assert len(decoded.groups[17].rows) + len(decoded.errors) == 300


def test_only_errors_of_the_tree_stand_in_a_batch() -> None:
    decoded = decode_keys(pa.array([struct.pack(">hh", 2, 1) + b"\xff"] * 200, pa.binary()))
    assert len(decoded.errors) == 200
    assert all(isinstance(error, DecodeError) for error in decoded.errors.values())
