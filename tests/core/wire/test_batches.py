"""Record batch v2: what is written is read, by both readers alike: times, sequences, control and empty batches."""

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import EncodeError
from coordinator_core.wire import batches as reading
from coordinator_core.wire.batch_format import CODECS, DELETE_HORIZON_BIT, BatchHeader, Damage
from coordinator_core.wire.batch_records import LogRecord, sequence_of
from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch, frame, varint
from coordinator_core.wire.control import ABORT, COMMIT, ControlRecord, parse_control
from tests.core.wire.other_batches import encode_empty_batch, encode_marker_batch
from tests.core.wire.segments import reader, records, rows_of, segment

REAL_BATCH = bytes.fromhex(
    "0000000000000000000000790000000002ec4e537c000000000000000001a1fda489d3000001a1fda489d3ffffffffffffffffffff00000000"
    "000000018c010000002c000100067761726d757000067761726d7570000000005400040000000000000000ffffffff01000001a1fda489ce01"
    "0010aed04a2d392e41fab3d9ed70df16e14400"
)
"""A commit of offset 0 of group "warmup", as Kafka 4.3.1 wrote it."""


def as_new(row: LogRecord) -> NewRecord:
    return NewRecord(row.offset, row.timestamp, row.key, row.value, row.headers)


def test_a_batch_of_a_real_broker_is_read_and_written_again():
    (row,) = rows_of(REAL_BATCH)
    assert row.key == b"\0\1\0\6warmup\0\6warmup\0\0\0\0"
    assert (row.offset, row.timestamp, len(row.value), row.sequence) == (0, 1795256781267, 42, 0)
    assert encode_batch([as_new(row)], producer=Producer(-1, -1, 0)) == REAL_BATCH


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_written_is_read(codec):
    written = [records(0, 3), records(3, 1), records(10, 40)]
    rows = rows_of(b"".join(encode_batch(batch, compression=codec) for batch in written))
    assert [as_new(row) for row in rows] == [record for batch in written for record in batch]
    assert {row.batch.compression for row in rows} == {codec}
    assert [(row.batch.base_offset, row.batch.last_offset) for row in (rows[0], rows[3], rows[4])] == [
        (0, 2),
        (3, 3),
        (10, 49),
    ]


def test_codecs_and_formats_may_alternate_in_one_segment():
    data = b"".join(encode_batch(records(at * 4, 4), compression=codec) for at, codec in enumerate(CODECS * 2))
    assert [row.offset for row in rows_of(data)] == list(range(40))


fields = st.none() | st.binary(max_size=200)
new_records = st.lists(
    st.tuples(
        st.integers(0, 2**31 - 1),
        st.integers(-1, 2**62),
        fields,
        fields,
        st.lists(st.tuples(st.text(max_size=5), fields), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=30,
)


@given(new_records, st.sampled_from(CODECS), st.integers(0, 2**55))
def test_any_records_survive(drawn, codec, base):
    drawn.sort(key=lambda record: record[0])
    written = [NewRecord(base + offset, *rest) for offset, *rest in drawn]
    assert [as_new(row) for row in rows_of(encode_batch(written, compression=codec))] == written


def test_log_append_time_holds_for_all_records_of_the_batch():
    rows = rows_of(encode_batch(records(0, 3), log_append_time=99))
    assert [(row.timestamp, row.batch.timestamp_type) for row in rows] == [(99, 1)] * 3


def test_timestamps_are_relative_to_the_delete_horizon():
    body = encode_batch(records(0, 2))[61:]
    data = frame(
        body,
        base_offset=0,
        last_offset=1,
        count=2,
        base_timestamp=5000,
        max_timestamp=5007,
        attributes=DELETE_HORIZON_BIT,
    )
    rows = rows_of(data)
    assert [row.timestamp for row in rows] == [5000, 5007]
    assert rows[0].batch.delete_horizon_ms == 5000
    assert rows_of(segment())[0].batch.delete_horizon_ms is None


def test_sequences_wrap():
    assert [sequence_of(2**31 - 2, delta) for delta in range(3)] == [2**31 - 2, 2**31 - 1, 0]
    assert sequence_of(-1, 5) == -1
    rows = rows_of(encode_batch(records(0, 3), producer=Producer(9, 1, 2**31 - 2)))
    assert [row.sequence for row in rows] == [2**31 - 2, 2**31 - 1, 0]


def test_markers_and_what_they_say():
    producer = Producer(4000, 3)
    data = encode_batch(records(0, 2), producer=producer._replace(base_sequence=0), transactional=True)
    data += encode_marker_batch(COMMIT, 12, offset=2, timestamp=77, producer=producer)
    data += encode_marker_batch(ABORT, 13, offset=3, timestamp=78, producer=producer)
    rows = rows_of(data)
    assert [row.control for row in rows] == [None, None, ControlRecord(COMMIT, 12), ControlRecord(ABORT, 13)]
    assert [row.control.name for row in rows[2:]] == ["COMMIT", "ABORT"]
    assert all(row.batch.is_transactional and row.batch.producer_id == 4000 for row in rows)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (struct.pack(">hh", 0, 2), b"leader", ControlRecord(2, None)),
        (struct.pack(">hh", 0, 3), b"", ControlRecord(3, None)),
        (struct.pack(">hh", 0, 99), None, ControlRecord(99, None)),
        (struct.pack(">hh", 0, -1), None, ControlRecord(-1, None)),
        (struct.pack(">hh", 0, 1), b"\0\0\0", None),
        (b"\0\0\0", b"", None),
        (None, None, None),
    ],
)
def test_other_control_records(key, value, expected):
    assert parse_control(key, value) == expected
    (row,) = rows_of(encode_batch([NewRecord(8, 1, key, value)], control=True))
    assert row.control == expected
    assert row.batch.is_control


def test_names_of_control_types():
    assert [ControlRecord(kind, None).name for kind in (2, 3, 4, 5, 6, 7)] == [
        "LEADER_CHANGE",
        "SNAPSHOT_HEADER",
        "SNAPSHOT_FOOTER",
        "KRAFT_VERSION",
        "KRAFT_VOTERS",
        "UNKNOWN(7)",
    ]


def test_batches_that_compaction_has_emptied_stand_between_the_others():
    data = encode_batch(records(0, 2))
    data += encode_empty_batch(2, 6, producer=Producer(5, 1), transactional=True, control=True)
    data += encode_batch(records(7, 1)) + encode_empty_batch(8, 8)
    rows = rows_of(data)
    assert [type(row) for row in rows] == [LogRecord, LogRecord, BatchHeader, LogRecord, BatchHeader]
    assert (rows[2].base_offset, rows[2].last_offset, rows[2].is_control) == (2, 6, True)


def test_the_writer_refuses_a_batch_of_nothing():
    with pytest.raises(EncodeError, match="a batch needs a record"):
        encode_batch([])


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-65, "8101")]
)
def test_varints_are_zigzag(value, expected):
    assert varint(value).hex() == expected


def test_a_batch_may_be_larger_than_a_chunk(monkeypatch):
    monkeypatch.setattr("coordinator_core.wire.framing.CHUNK_BYTES", 64)
    assert [row.offset for row in rows_of(segment(5, 4))] == list(range(20))


def test_groups_bound_records_and_decompressed_bytes(monkeypatch):
    monkeypatch.setattr(reading, "GROUP_RECORDS", 5)
    monkeypatch.setattr(reading, "GROUP_BYTES", 100)
    data = b"".join(encode_batch(records(at * 3, 3), compression="zstd") for at in range(6)) + segment(4)
    parts = list(reading.read_columns(reader(data), len(data)))
    assert len(parts) > 5
    assert sum(part.num_rows for part in parts) == 30
    rows_of(data)


@given(st.binary(max_size=60), st.integers(-3, 20), st.sampled_from(range(8)))
def test_bytes_that_are_no_records_but_have_a_right_crc_are_set_aside(body, count, codec):
    data = frame(body, base_offset=0, last_offset=9, count=count, base_timestamp=0, max_timestamp=0, attributes=codec)
    whole = data + encode_batch(records(10, 2))
    rows = rows_of(whole)
    assert [row.offset for row in rows[-2:]] == [10, 11]
    if isinstance(rows[0], Damage):
        assert (rows[0].position, rows[0].size, rows[0].data) == (0, len(data), data)
        assert (rows[0].base_offset, rows[0].last_offset) == (0, 9)


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"\xff" * 10 + bytes(30), "record 0: a varint exceeds 32 bits"),
        (varint(4000) + bytes(30), "record 0 has length 4000, 30 bytes are left"),
        (varint(6) + b"\0\0\0" + varint(2000) + bytes(20), "record 0: a field of 2000 bytes"),
        (varint(6) + b"\0\0\0\1\1" + varint(1), "record 0: 1 headers in 0 bytes"),
        (varint(8) + b"\0\0\0\1\1\0\0\0", "record 0: 2 bytes after its fields"),
        (varint(8) + b"\0\0\0\1\1" + varint(1) + varint(-1) + varint(-1), "record 0: a header without a key"),
    ],
)
def test_causes_name_the_record(body, cause):
    data = frame(body, base_offset=3, last_offset=3, count=1, base_timestamp=0, max_timestamp=0)
    (damage,) = rows_of(data)
    assert cause in damage.cause


def test_timestamps_beyond_64_bits_wrap_as_in_java():
    body = encode_batch([NewRecord(0, 0, b"k", b"v"), NewRecord(1, 100, b"k", b"v")])[61:]
    data = frame(body, base_offset=0, last_offset=1, count=2, base_timestamp=2**63 - 1, max_timestamp=0)
    assert [row.timestamp for row in rows_of(data)] == [2**63 - 1, -(2**63) + 99]


def test_columns_have_the_documented_schema():
    (part,) = reading.read_columns(reader(segment()), len(segment()))
    assert isinstance(part, pa.RecordBatch)
    assert part.schema.equals(reading.columns_of_rows([]).schema)
