"""Message formats v0 and v1, put together by hand: plain, in compressed wrappers, and damaged."""

import cramjam
import pytest
import xxhash

from coordinator_core.wire.batch_format import Damage, DamageKind
from coordinator_core.wire.batch_writer import encode_batch
from coordinator_core.wire.compression import compress
from tests.core.wire.segments import message, records, rows_of

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
STAMPED = 0x08


def told(rows):
    return [(row.offset, row.timestamp, row.key, row.value) for row in rows]


def test_plain_messages():
    data = (
        message(5, b"k", b"v", magic=0) + message(6, None, b"", magic=1, timestamp=70) + message(7, b"k", None, magic=1)
    )
    rows = rows_of(data)
    assert told(rows) == [(5, -1, b"k", b"v"), (6, 70, None, b""), (7, -1, b"k", None)]
    assert [row.batch.timestamp_type for row in rows] == [-1, 0, 0]
    assert [(row.batch.base_offset, row.batch.last_offset) for row in rows] == [(5, 5), (6, 6), (7, 7)]
    assert {(row.batch.leader_epoch, row.batch.producer_id, row.sequence) for row in rows} == {(-1, -1, -1)}


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_v0_wrappers_hold_absolute_offsets(codec):
    inner = message(20, b"a", b"1", magic=0) + message(22, b"b", None, magic=0)
    rows = rows_of(message(22, None, compress(codec, inner), magic=0, attributes=codec))
    assert told(rows) == [(20, -1, b"a", b"1"), (22, -1, b"b", None)]
    assert (rows[0].batch.base_offset, rows[0].batch.last_offset) == (20, 22)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_v1_wrappers_hold_relative_offsets(codec):
    inner = b"".join(message(at, b"k", b"%d" % at, magic=1, timestamp=100 + at) for at in (0, 1, 3))
    data = message(53, None, compress(codec, inner), magic=1, timestamp=103, attributes=codec)
    rows = rows_of(data)
    assert told(rows) == [(50, 100, b"k", b"0"), (51, 101, b"k", b"1"), (53, 103, b"k", b"3")]
    assert {row.batch.last_offset for row in rows} == {53}


def test_a_wrapper_stamped_by_the_broker_stamps_all_messages():
    inner = b"".join(message(at, b"k", b"v", magic=1, timestamp=100 + at) for at in (0, 1))
    data = message(1, None, compress(GZIP, inner), magic=1, timestamp=900, attributes=GZIP | STAMPED)
    rows = rows_of(data)
    assert [(row.timestamp, row.batch.timestamp_type) for row in rows] == [(900, 1), (900, 1)]


def test_a_wrapper_of_offset_0_leaves_the_inner_offsets():
    inner = b"".join(message(at, b"k", b"v", magic=1, timestamp=1) for at in (4, 5))
    rows = rows_of(message(0, None, compress(GZIP, inner), magic=1, timestamp=1, attributes=GZIP))
    assert [row.offset for row in rows] == [4, 5]


def test_the_broken_lz4_header_checksum_of_v0_is_read():
    inner = message(3, b"k", b"v" * 500, magic=0)
    frame = bytearray(cramjam.lz4.compress(inner))
    at = 6 + (8 if frame[4] & 0x08 else 0)
    frame[at] = xxhash.xxh32_intdigest(bytes(frame[:at])) >> 8 & 0xFF
    assert told(rows_of(message(3, None, bytes(frame), magic=0, attributes=LZ4))) == [(3, -1, b"k", b"v" * 500)]
    (damage,) = rows_of(message(3, None, bytes(frame), magic=1, timestamp=1, attributes=LZ4))
    assert "lz4 data is damaged" in damage.cause


def test_raw_and_framed_snappy_are_read():
    inner = message(0, b"k", b"v" * 100, magic=1, timestamp=1)
    for packed in (cramjam.snappy.compress_raw(inner), cramjam.snappy.compress(inner)):
        assert len(rows_of(message(0, None, bytes(packed), magic=1, timestamp=1, attributes=SNAPPY))) == 1


def test_all_formats_in_one_file():
    data = message(0, b"k", b"v", magic=0) + message(1, b"k", b"v", magic=1, timestamp=1) + encode_batch(records(2, 2))
    assert [row.offset for row in rows_of(data + message(4, b"k", b"v", magic=1))] == [0, 1, 2, 3, 4]


def test_a_wrong_crc_is_set_aside():
    data = bytearray(message(0, b"k", b"v", magic=1, timestamp=1))
    data[-1] ^= 1
    damage, row = rows_of(bytes(data) + message(1, b"k", b"v", magic=0))
    assert (damage.kind, damage.position, damage.data) == (DamageKind.CRC, 0, bytes(data))
    assert row.offset == 1


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (message(0, None, None, magic=1, attributes=GZIP), "a compressed message without a value"),
        (message(0, None, compress(GZIP, b""), magic=1, attributes=GZIP), "with no messages in it"),
        (message(0, None, b"x", magic=1, attributes=ZSTD), "zstd in message format v1"),
        (message(0, None, b"x", magic=1, attributes=6), "codec 6 is not known"),
        (message(0, None, b"garbage", magic=0, attributes=GZIP), "gzip data is damaged"),
        (
            message(2, None, compress(GZIP, message(3, b"", b"", magic=1)), magic=1, attributes=GZIP),
            "offset 2 is below 3",
        ),
        (
            message(0, None, compress(GZIP, message(0, b"", b"", magic=1, attributes=GZIP)), magic=1, attributes=GZIP),
            "a compressed message within",
        ),
        (message(0, None, compress(GZIP, message(0, b"", b"", magic=1)[:-1]), magic=1, attributes=GZIP), "are left"),
        (message(0, None, compress(GZIP, b"abc"), magic=1, attributes=GZIP), "3 bytes where a message should be"),
    ],
)
def test_damaged_wrappers_name_the_cause(data, cause):
    (damage,) = rows_of(data)
    assert isinstance(damage, Damage)
    assert (damage.kind, damage.size) == (DamageKind.FORMAT, len(data))
    assert cause in damage.cause


@pytest.mark.parametrize("cut", range(1, 31))
def test_truncation_within_a_message(cut):
    whole = message(0, b"key", b"value", magic=1, timestamp=1)
    row, damage = rows_of(whole + whole[:-cut])
    assert row.offset == 0
    assert damage.kind is DamageKind.TRUNCATED
