"""A batch of very many records goes on in pieces, and one damaged record still refuses all of it."""

import gc
import tracemalloc
from collections.abc import Iterator

import pyarrow as pa
import pytest

from coordinator_core.wire import batch_records, batches
from coordinator_core.wire.batch_format import Damage
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batch_writer import NewRecord, encode_batch, frame
from coordinator_core.wire.batches import read_columns, read_rows
from coordinator_core.wire.compression import compress

EMPTY_RECORD = bytes((12, 0, 0, 0, 1, 1, 0))
ZSTD = 4


def parts(data: bytes) -> Iterator[pa.RecordBatch | Damage]:
    return read_columns(lambda position, size: data[position : position + size], len(data))


@pytest.fixture
def ten_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "GROUP_RECORDS", 10)
    monkeypatch.setattr(batch_records, "MOST_AT_ONCE", 10)


@pytest.mark.usefixtures("ten_at_once")
@pytest.mark.parametrize("headers", [(), (("name", b"value"),)], ids=["plain", "with headers"])
@pytest.mark.parametrize("count", [10, 11, 30, 35])
def test_pieces_are_the_whole(count: int, headers: tuple[tuple[str, bytes], ...]) -> None:
    """With and without records that the fast reader leaves to the reference, between two other batches."""
    made = [NewRecord(5 + number, number, b"k" * number, b"v" * 200, headers) for number in range(count)]
    other = [NewRecord(0, 1, b"before", None)], [NewRecord(1000, 1, b"after", None)]
    data = encode_batch(other[0]) + encode_batch(made, compression="gzip") + encode_batch(other[1])
    found = [part for part in parts(data) if isinstance(part, pa.RecordBatch)]
    assert [row for part in found for row in part.column("offset").to_pylist()] == [0, *range(5, 5 + count), 1000]
    assert [row for part in found for row in part.column("key").to_pylist()] == [
        b"before",
        *(record.key for record in made),
        b"after",
    ]
    assert max(part.num_rows for part in found) <= 12
    plain = list(read_rows(lambda position, size: data[position : position + size], len(data)))
    assert [row.offset for row in plain if isinstance(row, LogRecord)] == [0, *range(5, 5 + count), 1000]


@pytest.mark.usefixtures("ten_at_once")
@pytest.mark.parametrize("last", [b"\x0c\x00\x00\x00\x01\x01", b"\x0e\x00\x00\x00\x01\x01\x02\x00", b"\x02\x00"])
def test_a_damaged_last_record_refuses_the_batch(last: bytes) -> None:
    body = EMPTY_RECORD * 34 + last
    times = {"base_timestamp": 0, "max_timestamp": 0}
    data = frame(compress(ZSTD, body), base_offset=0, last_offset=34, count=35, attributes=ZSTD, **times)
    assert [type(part) for part in parts(data)] == [Damage]


def test_memory_does_not_grow_with_the_records_of_a_batch() -> None:
    """A million records in less than a kilobyte."""
    count = 1_000_000
    body = compress(ZSTD, EMPTY_RECORD * count)
    data = frame(
        body, base_offset=0, last_offset=count - 1, count=count, base_timestamp=0, max_timestamp=0, attributes=ZSTD
    )
    assert len(data) < 1_000
    # What is imported at the first conversion (pandas, by pyarrow: 23 MB) is not memory of the batch. Only a test that
    # runs before all others would count it.
    list(parts(encode_batch([NewRecord(0, 0, b"k", b"v")], compression="zstd")))
    gc.collect()
    tracemalloc.start()
    rows = sum(part.num_rows for part in parts(data) if isinstance(part, pa.RecordBatch))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == count
    assert peak < 64 << 20
