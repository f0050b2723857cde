"""Snapshots of end offsets, from JSON lines, Parquet or what Kafka's tools print; Spark: ``spark_end_offsets``."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import InputError
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from jobs.sources.bounded_text import check_unpacked
from jobs.sources.packed import head_of
from jobs.sources.printed.printed_ends import printed_ends

COLUMNS = pa.schema(
    {"topic": pa.string(), "partition": pa.int64(), "timestamp_ms": pa.int64(), "end_offset": pa.int64()}
)
"""Columns of a snapshot: the end offset of a partition at a time (ms since the epoch)."""

MOST_BYTES: Final = 1 << 30
"""The largest JSON file that is read, unpacked."""

MOST_ROWS: Final = 20_000_000
"""The largest number of rows of Parquet that is read."""

EndOffsets = Mapping[TopicPartition, Sequence[EndOffset]]
"""End offsets of partitions, each in order of time."""

JSON_SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""Names of JSON lines files; all other files are Parquet."""


def check_columns(path: str, names: Collection[str]) -> None:
    """Raise InputError if a column of ``COLUMNS`` is missing."""
    missing = [name for name in COLUMNS.names if name not in names]
    if missing:
        raise InputError(f"{path}: end offsets need the columns {', '.join(COLUMNS.names)}; {missing[0]} is missing")


def newest_ends(path: Path, until_ms: int | None = None) -> dict[TopicPartition, EndOffset]:
    """Return the newest end offset of each partition that is not later than ``until_ms`` (None: any time).

    Raises:
        InputError: the file cannot be read, or lacks a column.
    """
    newest = {}
    for partition, ends in all_ends(path).items():
        known = [end for end in ends if until_ms is None or end.time_ms <= until_ms]
        if known:
            newest[partition] = known[-1]
    return newest


def all_ends(path: Path) -> EndOffsets:
    """Return every end offset of each partition, in order of time.

    Raises:
        InputError: the file cannot be read, or lacks a column.
    """
    ends: dict[TopicPartition, list[EndOffset]] = defaultdict(list)
    for row in _read(path).sort_by("timestamp_ms").to_pylist():
        of = TopicPartition(row["topic"], row["partition"])
        ends[of].append(EndOffset(row["timestamp_ms"], row["end_offset"], row.get("topic_id")))
    return ends


def _read(path: Path) -> pa.Table:
    try:
        if (printed := printed_ends(path)) is not None:
            rows = pa.Table.from_pylist(printed, COLUMNS)
        else:
            rows = _read_json(path) if path.name.endswith(JSON_SUFFIXES) else _read_parquet(path)
        check_columns(str(path), rows.column_names)
        schema = COLUMNS if "topic_id" not in rows.column_names else COLUMNS.append(pa.field("topic_id", pa.string()))
        # A partition without a leader has no end offset; rows about settings have no topic.
        is_known = pc.field("end_offset").is_valid() & pc.field("topic").is_valid()
        rows = rows.select(schema.names).cast(schema).filter(is_known)
        rows.validate(full=True)  # Arrow reads names without a look at their UTF-8
        return _placed(path, rows)
    except FileNotFoundError:
        raise InputError(f"{path}: No such file or directory") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the name of a column is not UTF-8: {error.object[:100]!r}") from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error


def _placed(path: Path, rows: pa.Table) -> pa.Table:
    """Return the rows; raise InputError if one does not say of which partition or of what time it is."""
    for name in ("partition", "timestamp_ms"):
        if missing := rows[name].null_count:
            raise InputError(f"{path}: {missing} of {rows.num_rows} end offsets lack the column {name}")
    return rows


def _read_json(path: Path) -> object:
    from pyarrow import json

    check_unpacked(path, MOST_BYTES)
    return json.read_json(path)


def _read_parquet(path: Path) -> object:
    """Return the rows of Parquet files. Arrow's datasets import pandas if it is there, which takes most of a second."""
    import pyarrow.dataset as ds

    if path.is_file() and head_of(path, 4) != b"PAR1":
        raise InputError(
            f"{path}: no end offsets: give what kafka-get-offsets or kafka-consumer-groups --describe prints, a "
            "file of the command snapshot (FILE.jsonl), or Parquet"
        )
    dataset = ds.dataset(path, format="parquet")
    if (rows := dataset.count_rows()) > MOST_ROWS:
        raise InputError(f"{path}: has {rows} rows, and at most {MOST_ROWS} are read: name the newest files")
    return dataset.to_table(columns=[name for name in (*COLUMNS.names, "topic_id") if name in dataset.schema.names])
