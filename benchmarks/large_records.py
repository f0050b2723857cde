"""The memory of ingest with large records: ``python -m benchmarks.large_records [--sizes BYTES...] [--total BYTES]``.

A log of group metadata records of one size, taken in both ways: as segments, which a task reads itself, and as
Parquet, whose rows Spark hands to Python in batches. The figures are the largest resident size that a Python worker
reached, with the default settings, and the processor time. Each size and way has new tables in one session; a worker
may keep memory of the work before it, so the sizes come in ascending order.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.ingest import new_tables
from benchmarks.workers import Workers, taken
from coordinator_core.records import RecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs import settings
from jobs.pipeline import ingest
from jobs.sources.dump import open_dump
from jobs.tables import session

TOPIC = "__consumer_offsets"


def records(size: int, total: int) -> Iterator[NewRecord]:
    """Group metadata records of about this size; the pattern repeats late, so that compression is not all."""
    noise = bytes((7 * place + place // 251) % 256 for place in range(size))
    for number in range(total // size):
        member = {
            "memberId": "m",
            "groupInstanceId": None,
            "clientId": "c",
            "clientHost": "/10.0.0.1",
            "rebalanceTimeout": 60_000,
            "sessionTimeout": 45_000,
            "subscription": number.to_bytes(8, "big") + noise,
            "assignment": b"",
        }
        value = {
            "protocolType": "custom",
            "generation": number,
            "protocol": "p",
            "leader": "m",
            "currentStateTimestamp": number,
            "members": [member],
        }
        key = encode_key(RecordType.GROUP_METADATA, {"group": f"group-{number % 50}"})
        yield NewRecord(number, 1_760_000_000_000 + number, key, encode_value(RecordType.GROUP_METADATA, 3, value))


def write_segment(folder: Path, size: int, total: int) -> None:
    folder.mkdir(parents=True)
    with (folder / f"{0:020}.log").open("wb") as segment:
        for record in records(size, total):
            segment.write(encode_batch([record]))


def write_parquet(folder: Path, size: int, total: int) -> None:
    folder.mkdir(parents=True)
    schema = pa.schema(
        {"key": pa.binary(), "value": pa.binary(), "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
    )
    with pq.ParquetWriter(folder / "0.parquet", schema) as out:
        for record in records(size, total):
            row = {"key": record.key, "value": record.value, "topic": TOPIC, "partition": 0, "offset": record.offset}
            out.write_table(pa.Table.from_pylist([row], schema=schema))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--total", type=int, default=1 << 30, help="bytes of all records of a log")
    given = parser.parse_args()
    spark = session.get_or_create(settings.load(flags={"spark.master": "local[2]"}).spark)
    for size in sorted(given.sizes):
        for way, write in (("segments", write_segment), ("parquet", write_parquet)):
            with tempfile.TemporaryDirectory() as folder:
                write(Path(folder, "logs", f"{TOPIC}-0"), size, given.total)
                tables = new_tables(spark, Path(folder, "tables"))
                workers = Workers()
                workers.start()
                paths = [str(Path(folder, "logs"))]
                took = taken(lambda: ingest.ingest(tables, open_dump(spark, paths), "benchmark", "run"))  # noqa: B023
            print(
                f"{given.total // size} records of {size} bytes, {way}: largest Python worker {workers.peak >> 20} MB, "
                f"{took.wall:.1f} s, of processors: JVM {took.jvm:.1f} s, Python {took.python:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
