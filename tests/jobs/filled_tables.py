"""Dumps of the sample in every shape, and the content of tables as plain values."""

import gzip
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from coordinator_core.records import COMMIT_TYPES
from coordinator_core.wire.record_codec import decode_record
from jobs.pipeline import decode, ingest
from jobs.sources.dump import open_dump
from jobs.sources.segments import SegmentsReader
from jobs.tables.delta import Tables
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.table import Table
from tests.jobs.conftest import SAMPLE_LOGS

TOPIC = "__consumer_offsets"

Rows = list[dict[str, Any]]


def take(tables: Tables, cluster: str, *paths: Path | str, topics: tuple[str, ...] = (TOPIC,)) -> None:
    """One ingest run and the decoding of it."""
    dumps = open_dump(tables.spark, [str(path) for path in paths], topics=topics)
    ingest.run(tables, dumps, cluster)
    decode.run(tables)


def sample_rows(topic: str = TOPIC, logs: Path = SAMPLE_LOGS) -> Rows:
    """The records of the sample as the segment source reads them, control records left out."""
    reader = SegmentsReader([str(logs)], frozenset({topic}), topic, 1 << 30)
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    return [row for row in rows if row["kind"] == "record"]


def kafka_rows(rows: Rows) -> Rows:
    """The shape that Spark's Kafka source gives, with a column of the dumper's own."""
    return [
        {
            "key": row["key"],
            "value": row["value"],
            "topic": row["log_topic"],
            "partition": row["log_partition"],
            "offset": row["log_offset"],
            "timestamp": row["timestamp_ms"],
            "timestampType": 0,
            "dumped_by": "me",
        }
        for row in rows
    ]


def write_parquet(folder: Path, rows: Rows) -> Path:
    """A file for each log partition, in a folder that Spark's own file source would pass over."""
    for partition in {row["partition"] for row in rows}:
        place = folder / f"{TOPIC}-{partition}"
        place.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist([row for row in rows if row["partition"] == partition])
        timestamp = table["timestamp"].cast(pa.timestamp("ms", "UTC"))
        pq.write_table(
            table.set_column(table.column_names.index("timestamp"), "timestamp", timestamp), place / "0.parquet"
        )
    return folder


def write_delta(spark: SparkSession, folder: Path, rows: Rows) -> Path:
    """One Delta table."""
    schema = "key binary, value binary, topic string, partition int, offset long, timestamp long, timestampType int"
    spark.createDataFrame(
        [tuple(row[name.split()[0]] for name in schema.split(", ")) for row in rows], schema
    ).write.format("delta").save(str(folder))
    return folder


def write_json(file: Path, rows: Rows) -> Path:
    """Gzipped JSON lines with base64."""
    with gzip.open(file, "wt") as out:
        for row in rows:
            encoded = {name: row[name] and b64encode(row[name]).decode() for name in ("key", "value")}
            out.write(json.dumps(row | encoded) + "\n")
    return file


def expected(rows: Rows) -> list[tuple[Any, ...]]:
    """What the decoded tables hold of these records, by the plain decoder."""
    found = []
    for row in rows:
        plain = decode_record(row["key"], row["value"])
        commit = plain.type in COMMIT_TYPES
        group = plain.key["group"] if "group" in plain.key else plain.key["groupId"]
        said = (plain.value or {}).get("offset") if commit else row["value"]
        found.append((row["log_partition"], row["log_offset"], plain.type, group, plain.value_version, said))
    return sorted(found)


def decoded(tables: Tables, cluster: str) -> list[tuple[Any, ...]]:
    """The same of the tables, strays with no offset; only of the logs of groups."""
    common = ["log_partition", "log_offset", "record_type", "group_id", "value_version"]
    found: list[tuple[Any, ...]] = []
    for table, said in ((OFFSET_COMMITS, "committed_offset"), (GROUP_RECORDS, "value")):
        found += tables.engine().tuples(
            f"SELECT {', '.join((*common, said))} FROM ${table.name} "
            f"WHERE cluster = :cluster AND coalesce(log_topic, '{TOPIC}') = '{TOPIC}'",
            cluster=cluster,
        )
    return sorted(found, key=lambda row: tuple(str(part) for part in row))


def content(tables: Tables, table: Table, cluster: str, wanted: str = "true") -> list[tuple[Any, ...]]:
    """All that a table says about a cluster, but for which run said it."""
    names = [name for name in table.schema.names if name not in ("run_id", "revised_by", "cluster", "extra")]
    text = f"SELECT {', '.join(names)} FROM ${table.name} WHERE cluster = :cluster AND {wanted}"
    return sorted(tables.engine().tuples(text, cluster=cluster), key=str)
