"""Snapshots of end offsets as they are given (JSON lines or Parquet), read in this process: for a look at one group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import json as pa_json

from coordinator_core.errors import InputError
from coordinator_core.groups.offsets import TopicPartition

COLUMNS = pa.schema(
    {"topic": pa.string(), "partition": pa.int64(), "timestamp_ms": pa.int64(), "end_offset": pa.int64()}
)


def newest_ends(path: Path, until_ms: int | None = None) -> dict[TopicPartition, int]:
    """The newest end offset of each partition, of those not later than ``until_ms``.

    Raises:
        InputError: the file cannot be read, or has not the columns topic, partition, timestamp_ms and end_offset.
    """
    rows = _read(path)
    if until_ms is not None:
        rows = rows.filter(pc.field("timestamp_ms") <= until_ms)
    ends: dict[TopicPartition, int] = {}
    for row in rows.sort_by("timestamp_ms").to_pylist():
        ends[TopicPartition(row["topic"], row["partition"])] = row["end_offset"]
    return ends


def _read(path: Path) -> Any:
    try:
        if path.name.endswith((".json", ".jsonl", ".json.gz", ".jsonl.gz")):
            rows = pa_json.read_json(path)
        else:
            rows = ds.dataset(path, format="parquet").to_table()
        missing = [name for name in COLUMNS.names if name not in rows.column_names]
        if missing:
            raise InputError(f"{path}: end offsets without a column {missing[0]}")
        return rows.select(COLUMNS.names).cast(COLUMNS)
    except FileNotFoundError:
        raise InputError(f"{path}: No such file or directory") from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error
